// Scenes on a whole runtime whose devices go wrong as the schedule says: which call, and how, is
// one of its decisions, beside who runs. An engine keeps what it was told and checks after each op
// that it ended once, in its time and as it may have, that READY is what it was told, and that
// whatever is restored is the right image on every rank.
#include <chrono>

#include "stress/explore/machine.hpp"

namespace cairn::explore {

namespace {

using namespace std::chrono_literals;
using enum trouble;

struct troubled : machine {
  static constexpr std::chrono::nanoseconds timeout = 3ms;
  static constexpr std::uint32_t keys = 4;

  /// What the engine was told of a key. One thread's.
  struct kept {
    std::uint64_t image = 0;  ///< 0: none that could be there
    std::uint64_t images = 0;
  };
  std::array<kept, keys> told{};
  quiet_word<bool> others_forget;  ///< somebody evicts or forgets, so a key may be gone
  quiet_word<bool> others_cancel;
  quiet_word<bool> closing;

  troubled(std::uint32_t scene_threads, std::uint32_t ranks, trouble_set which)
      : machine({.scene_threads = scene_threads,
                 .ranks = ranks,
                 .op_timeout = timeout,
                 .troubles = which}) {
    for (rank_id r = 0; r < ranks; ++r) devices.at(r).late_ns = timeout.count();
  }

  [[nodiscard]] bool met() {
    std::uint32_t sum = 0;
    for (rank_id r = 0; r < rt->ranks(); ++r) sum += devices.at(r).met.get();
    return sum != 0;
  }
  [[nodiscard]] bool flipped() {
    for (rank_id r = 0; r < rt->ranks(); ++r)
      if (devices.at(r).flipped.get()) return true;
    return false;
  }
  [[nodiscard]] bool lost() {
    for (rank_id r = 0; r < rt->ranks(); ++r)
      if (devices.at(r).dead.get()) return true;
    return false;
  }
  void release() {
    for (rank_id r = 0; r < rt->ranks(); ++r) devices.at(r).release();
  }
  /// From now on nothing new goes wrong, and what was held back comes.
  void calm_down() {
    for (rank_id r = 0; r < rt->ranks(); ++r) devices.at(r).calm.set(true);
    release();
  }

  /// Whether an op or a call may have come to this, as things are.
  void excuse(status got) {
    switch (got) {
      case status::ok:
        return;
      case status::cancelled:
        return require(others_cancel.get() || closing.get() || lost(), "nobody has cancelled");
      case status::closed:
        return require(closing.get(), "nobody closes");
      case status::no_room:
      case status::passed_over:
        return require(others_forget.get() || met(), "there is room and a store is refused");
      case status::not_found:
      case status::corrupt:
      case status::failed:
      case status::queue_full:
      case status::poisoned:
      case status::busy:
      case status::timed_out:
        return require(met() || closing.get() || (got == status::not_found && others_forget.get()),
                       "all goes well and an op does not");
      case status::device_lost:
        require(lost(), "no device is lost");
        return none_ready();
      default:
        fail("an op ends as nothing can");
    }
  }

  void none_ready() {
    for (std::uint64_t n = 0; n < keys; ++n)
      require(!rt->records().contains(key(n)), "a READY record has lost a shard");
  }

  /// Waits for the op's end; it comes in its time.
  status end_of(ticket& op, std::int64_t accepted_ns) {
    repeat_early(op);
    const bool early = op.code() == status::pending;
    const status got = op.wait(patience());
    require(got != status::pending, "an accepted op never ends");
    require(!early || now_ns() <= accepted_ns + timeout.count(),
            "an op has ended behind its deadline");
    require(op.code() == got, "an op ends twice");
    excuse(got);
    repeat(op, got);
    return got;
  }
  /// A rank says again what it has said, while the other has not. Of one engine's only op.
  void repeat_early(const ticket& op) {
    if (rt->ranks() == 1 || draw(2) == 0) return;
    wait_until([&] { return op.code() != status::pending || rt->rank(0).outstanding() == 0; },
               "an accepted op never ends");
    require(!rt->records().finish(said(op, 0, status::ok)).counted, "a rank counts twice");
  }
  completion said(const ticket& op, rank_id rank, status code) {
    completion what;
    what.op = op.op();
    what.rank = rank;
    what.epoch = rt->records().epoch();
    what.code = code;
    return what;
  }
  /// The same once the op has ended.
  void repeat(const ticket& op, status got) {
    if (draw(2) == 0) return;
    const status other = got == status::ok ? status::failed : status::ok;
    require(!rt->records().finish(said(op, rt->ranks() - 1, other)).counted, "a rank counts twice");
  }
  [[nodiscard]] bool some_rank_finds(slot_id slot, status what) {
    for (rank_id r = 0; r < rt->ranks(); ++r)
      if (rt->rank(r).slot_status(slot) == what) return true;
    return false;
  }

  /// Until no copy that was given up may touch the slot any more; false when that never comes.
  bool settle(slot_id slot) {
    wait_until(
        [&] {
          release();
          return lost() || !some_rank_finds(slot, status::busy);
        },
        "a copy that was given up is over and keeps its slot");
    return !lost();
  }

  /// Compute that is enqueued now runs behind the op; an engine may wait for its end instead.
  bool ordered(const ticket& op) {
    return draw(2) == 0 && rt->order_after(0, op, patience()) == status::ok;
  }
  /// Compute, a store of what it wrote, and compute behind it that writes the slot anew.
  void keep(std::uint64_t n, slot_id slot) {
    if (!settle(slot)) return;
    if (some_rank_finds(slot, status::poisoned)) {
      {
        auto made = rt->store(key(n), slot, 0);
        const status got = made ? made->wait(patience()) : made.code();
        require(got != status::ok, "nobody knows what a slot holds, and it is stored");
      }
      if (!settle(slot)) return;
      static_cast<void>(rt->reset_slot(slot));
    }
    kept& its = told[n];
    const std::uint64_t image = 10 * n + ++its.images;
    write(slot, image);
    const std::int64_t accepted_ns = now_ns();
    auto made = rt->store(key(n), slot, 0);
    if (!made) {
      if (made.code() != status::duplicate) excuse(made.code());
      return;
    }
    if (ordered(*made)) write(slot, 50 + image);
    const status got = end_of(*made, accepted_ns);
    its.image = got == status::ok ? image : 0;
    if (got != status::ok)
      require(!rt->records().contains(key(n)), "a store that did not end well is READY");
    // A proof frees the slot before the units.
    const bool held = rt->records().counts().quarantine_units != 0;
    if (got == status::timed_out && some_rank_finds(slot, status::busy))
      require(held, "a copy that was given up leaves its units");
    made = ticket();
  }

  /// A restore, and compute that looks at it.
  void resume(std::uint64_t n, slot_id slot) {
    if (!settle(slot)) return;
    kept& its = told[n];
    const std::int64_t accepted_ns = now_ns();
    auto made = rt->restore(key(n), slot, 0);
    if (!made) {
      if (made.code() == status::not_found && its.image == 0) return;
      if (made.code() == status::not_found)
        require(others_forget.get() || lost(), "what was kept and not evicted is gone");
      return excuse(made.code());
    }
    require(its.image != 0, "what was not kept can be restored");
    static_cast<void>(ordered(*made));
    const status got = end_of(*made, accepted_ns);
    if (got == status::ok) check(slot, its.image);
    if (got == status::corrupt)
      require(!rt->records().contains(key(n)), "an image that is wrong is READY");
    // Of two ranks that fail, the op tells of one, and the record goes for the other.
    if (got == status::corrupt ||
        (got != status::ok && flipped() && rt->ranks() > 1 && !rt->records().contains(key(n))))
      its.image = 0;
    made = ticket();
  }

  /// The faults are over: everything ends, comes back, and can be read.
  void wind_up(std::uint64_t last_key) {
    calm_down();
    for (rank_id r = 0; r < rt->ranks(); ++r)
      require(rt->rank(r).drain(patience()) == status::ok, "accepted ops do not end");
    require(rt->drain(patience()) == status::ok, "not every rank has reported every op once");
    if (lost()) {
      nap(10'000'000);  // proofs of copies that were on their way
      if (rt->rank(0).lost() || rt->rank(rt->ranks() - 1).lost()) none_ready();
      return;
    }
    wait_until(
        [&] {
          const catalog_counts c = rt->records().counts();
          return c.quarantine_units == 0 && c.ops == 0;
        },
        "copies that were given up are over and keep units or an op");
    if (!closing.get())
      for (std::uint64_t n = 1; n <= last_key; ++n)
        if (rt->records().contains(key(n))) resume(n, 2);
    wait_for_compute();
  }

  void judge() {
    if (lost()) return judge_ledger_of_lost();
    judge_ledger();
  }
};

/// One engine on one device or two, nobody else: what was kept can be restored.
template <std::uint32_t Ranks>
struct trouble_alone : troubled {
  static constexpr std::uint32_t threads = 1;
  trouble_alone() : troubled(threads, Ranks, trouble_set::all()) {}
  void run(std::uint32_t) {
    keep(1, 0);
    resume(1, 1);
    keep(2, 1);
    resume(2, 0);
    wind_up(2);
  }
};
const bool trouble_one_added = add_part<trouble_alone<1>>("trouble-one", true, "runtime");
const bool trouble_two_ranks_added = add_part<trouble_alone<2>>("trouble-ranks", true, "runtime");

/// While another evicts and forgets.
template <std::uint32_t Ranks>
struct trouble_evict : troubled {
  static constexpr std::uint32_t threads = 2;
  trouble_evict() : troubled(threads, Ranks, trouble_set::all().without(trouble::lost)) {
    others_forget.set(true);
  }
  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().ensure_free_units(draw(2) == 0 ? 2 : 4));
      static_cast<void>(rt->records().forget(key(1)));
      return;
    }
    keep(1, 0);
    resume(1, 1);
    keep(2, 0);
    keep(3, 1);
    wind_up(3);
  }
};
const bool trouble_evict_added = add_part<trouble_evict<1>>("trouble-evict", true, "runtime");
const bool trouble_evict_ranks_added =
    add_part<trouble_evict<2>>("trouble-ranks-evict", true, "runtime");

/// While another takes back what has not begun.
template <std::uint32_t Ranks>
struct trouble_cancel : troubled {
  static constexpr std::uint32_t threads = 2;
  trouble_cancel() : troubled(threads, Ranks, trouble_set::all().without(trouble::lost)) {
    others_cancel.set(true);
  }
  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().cancel_stores(0));
      if (draw(2) != 0) nap(timeout.count());
      static_cast<void>(rt->records().cancel_restores(1));
      return;
    }
    keep(1, 0);
    resume(1, 1);
    keep(1, 1);
    wind_up(1);
  }
};
const bool trouble_cancel_added = add_part<trouble_cancel<1>>("trouble-cancel", true, "runtime");
const bool trouble_cancel_ranks_added =
    add_part<trouble_cancel<2>>("trouble-ranks-cancel", true, "runtime");

/// Copies end late, or are not seen to; units and slots are wanted meanwhile.
struct trouble_late : troubled {
  static constexpr std::uint32_t threads = 3;
  trouble_late() : troubled(threads, 1, {event_late, event_lost, stalled}) {
    others_forget.set(true);
  }
  void run(std::uint32_t t) {
    if (t == 1) {
      nap(timeout.count());
      release();
      return;
    }
    if (t == 2) {
      nap(draw(2) == 0 ? timeout.count() : 0);
      static_cast<void>(rt->records().forget(key(1)));
      static_cast<void>(rt->records().ensure_free_units(4));
      return;
    }
    keep(1, 0);
    resume(1, 1);
    keep(2, 1);
    wind_up(2);
  }
};
const bool trouble_late_added = add_part<trouble_late>("trouble-late", true, "runtime");

/// A device is lost, of one or of two; the other's copies go on.
template <std::uint32_t Ranks>
struct trouble_lost : troubled {
  static constexpr std::uint32_t threads = 2;
  trouble_lost() : troubled(threads, Ranks, {trouble::lost, fails_late, event_late}) {
    others_forget.set(true);
  }
  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().ensure_free_units(2));
      if (rt->mark(0).code() == status::device_lost) none_ready();
      return;
    }
    keep(1, 0);
    keep(2, 1);
    resume(1, 1);
    wind_up(2);
  }
};
const bool trouble_lost_added = add_part<trouble_lost<1>>("trouble-lost", true, "runtime");
const bool trouble_lost_ranks_added =
    add_part<trouble_lost<2>>("trouble-ranks-lost", true, "runtime");

/// The end comes meanwhile, with little time or with enough.
struct trouble_close : troubled {
  static constexpr std::uint32_t threads = 2;
  trouble_close() : troubled(threads, 1, trouble_set::all().without(trouble::lost)) {}
  void run(std::uint32_t t) {
    if (t == 1) {
      if (draw(2) != 0) nap(timeout.count() / 2);
      closing.set(true);
      const status first = rt->close(in_ns(draw(2) == 0 ? 2 * timeout.count() : 1000));
      require(first == status::ok || first == status::timed_out, "closing ends otherwise");
      require(rt->rank(0).outstanding() == 0, "an accepted op was not reported");
      calm_down();
      wait_until([&] { return rt->close(patience()) == status::ok; },
                 "closing never sees the copies end");
      return;
    }
    keep(1, 0);
    resume(1, 1);
    keep(2, 0);
  }
  void judge() {
    require(rt->records().counts().ops == 0, "an op has not ended");
    troubled::judge();
  }
};
const bool trouble_close_added = add_part<trouble_close>("trouble-close", true, "runtime");

}  // namespace

}  // namespace cairn::explore
