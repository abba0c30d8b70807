// Scenes on a whole runtime: submitters, evictors and cancellers against its copy thread and the
// threads of the host backend's streams.
#include "stress/explore/machine.hpp"

namespace cairn::explore {

namespace {

/// One thread stores and restores, one forgets.
struct store_restore_forget : machine {
  static constexpr std::uint32_t threads = 2;
  void run(std::uint32_t t) {
    if (t == 0) {
      require(store(1) == status::ok, "a store failed");
      const status got = restore(1);
      require(got == status::ok || got == status::not_found, "a restore failed");
      wait_for_all();
      return;
    }
    static_cast<void>(rt->records().forget(key(1)));
  }
  void judge() { judge_ledger(); }
};
const bool store_restore_forget_added =
    add_part<store_restore_forget>("runtime-forget", true, "runtime");

/// Two images fit; the third store evicts what another thread may be pinning.
struct evictions : machine {
  static constexpr std::uint32_t threads = 2;
  void run(std::uint32_t t) {
    if (t == 0) {
      for (std::uint64_t n = 1; n <= 3; ++n) store_beside_evictor(n);
      static_cast<void>(restore(2));
      wait_for_all();
      return;
    }
    const checkpoint_key keys[] = {key(1), key(2)};
    auto held = rt->records().pin_longest(keys, 2, patience());
    evicting.store_release(1);
    static_cast<void>(rt->records().ensure_free_units(2));
    evicting.store_release(2);
    if (held) rt->records().release_pin(*held);
  }
  // The other thread may have taken the only victim and not given its units back, or not even
  // counted it, yet. Nothing else refuses a store, and then only until it has.
  void store_beside_evictor(std::uint64_t n) {
    const bool before = evicting.load_acquire() == 2;
    status got = store(n);
    const bool short_of = got == status::no_room || got == status::passed_over;
    if (short_of && !before && evicting.load_acquire() != 0) {
      wait_until([&] { return evicting.load_acquire() == 2; }, "an eviction never ended");
      got = store(n);
    }
    require(got == status::ok, "a store failed although one victim was there");
  }
  sync::atomic<std::uint32_t> evicting{0};  ///< 1: making room; 2: done
  void judge() { judge_ledger(); }
};
const bool evictions_added = add_part<evictions>("runtime-evict", true, "runtime");

/// Ops of one slot behind each other, and an abort.
struct cancels : machine {
  static constexpr std::uint32_t threads = 2;
  void run(std::uint32_t t) {
    if (t == 1) {
      rt->records().cancel_restores(1);
      rt->records().cancel_stores(0);
      return;
    }
    write(0, 1);
    auto first = rt->store(key(1), 0, 0);
    require(first.ok(), "a store was refused");
    auto second = rt->store(key(2), 0, 0);
    require(second.ok(), "a store was refused");
    require(rt->order_after_slot(0, 0, patience()) == status::ok, "a slot's ops never passed");
    write(0, 9);
    const status one = first->wait(patience());
    const status two = second->wait(patience());
    require(one == status::ok || one == status::cancelled,
            "a store neither ended nor was cancelled");
    require(two == status::ok || two == status::cancelled,
            "a store neither ended nor was cancelled");
    if (one == status::ok) static_cast<void>(restore(1));
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool cancels_added = add_part<cancels>("runtime-cancel", true, "runtime");

/// A submitter meets the end. What was accepted is reported; what comes later is refused.
struct closing : machine {
  static constexpr std::uint32_t threads = 2;
  void run(std::uint32_t t) {
    if (t == 1) {
      const deadline soon = in_ns(1'000'000'000);
      require(rt->close(patience()) == status::ok, "closing left copies behind");
      require(clock::now() < soon, "closing waited for something that never came");
      require(rt->rank(0).outstanding() == 0, "an accepted op was not reported");
      require(rt->store(key(3), 0, 0).code() == status::closed, "a closed runtime takes an op");
      return;
    }
    write(0, 1);
    auto made = rt->store(key(1), 0, 0);
    if (!made) {
      require(made.code() == status::closed, "a store was refused for another reason");
      return;
    }
    const status got = made->wait(patience());
    require(got == status::ok, "an accepted op did not end well although there was time");
    auto again = rt->restore(key(1), 1, 0);
    if (again) require(again->wait(patience()) == status::ok, "an accepted restore failed");
  }
  void judge() { judge_ledger(); }
};
const bool closing_added = add_part<closing>("runtime-close", true, "runtime");

/// Two submitters of one slot's ops: what is restored is one whole image, and the last.
struct two_submitters : machine {
  static constexpr std::uint32_t threads = 2;
  void run(std::uint32_t t) {
    if (t == 0) {
      require(store(1, 0) == status::ok, "a store failed");
      static_cast<void>(restore(2, 2));
    } else {
      require(store(2, 1) == status::ok, "a store failed");
      static_cast<void>(restore(1, 1));
    }
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool two_submitters_added = add_part<two_submitters>("runtime-two", true, "runtime");

/// Restores in all batches, behind compute that another thread lets go: the copy thread sleeps and
/// wants to hear of no more of them. One more comes as soon as the last of them has ended.
struct sated : machine {
  static constexpr std::uint32_t threads = 2;
  sync::atomic<std::uint32_t> full{0};
  void run(std::uint32_t t) {
    if (t == 1) {
      wait_until([&] { return full.load_acquire() == 1; }, "a restore was never launched");
      open();
      return;
    }
    require(store(1) == status::ok, "a store failed");
    hold();
    std::array<ticket, 4> made;
    for (ticket& each : made) {
      auto one = rt->restore(key(1), 1, 0);
      require(one.ok(), "a restore was refused");
      each = std::move(*one);
      require(rt->order_after(0, each, patience()) == status::ok, "a restore was never launched");
    }
    full.store_release(1);
    for (const ticket& each : made)
      require(each.wait(patience()) == status::ok, "a restore never ended");
    require(restore(1) == status::ok, "a restore never ended");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool sated_added = add_part<sated>("runtime-sated", true, "runtime");

/// Two threads restore into one slot on two ranks: whoever comes last, it is the same on both.
struct two_on_a_slot : machine {
  static constexpr std::uint32_t threads = 2;
  std::array<ticket, 2> made;
  two_on_a_slot() : machine({.ranks = 2, .threaded = false}) {
    for (std::uint64_t n = 1; n <= 2; ++n) {
      write(0, n);
      require(rt->store(key(n), 0, 0).ok(), "a store was refused");
      settle();
    }
  }
  void run(std::uint32_t t) {
    auto one = rt->restore(key(1 + t), 1, 0);
    require(one.ok(), "a restore was refused");
    made[t] = std::move(*one);
  }
  void judge() {
    settle();
    for (ticket& each : made) {
      require(each.code() == status::ok, "a restore failed");
      each = {};
    }
    judge_ledger();
    const auto which = [this](rank_id r) { return (slot_areas[r][slot_words] - 10 * r) / 100; };
    require(which(0) == which(1), "a slot holds another image on each rank");
  }
};
const bool two_on_a_slot_added = add_part<two_on_a_slot>("runtime-slot-ranks", true, "runtime");

/// Two tenants of a slot on two compute streams, with no copy between them: the second one's first
/// step runs behind all that the first one had enqueued.
struct tenants : machine {
  static constexpr std::uint32_t threads = 2;
  sync::atomic<std::uint32_t> handed{0};
  tenants() : machine({.second_compute = true}) {}
  void run(std::uint32_t t) {
    if (t == 0) {
      enqueue(*compute2, write_job, 0, 0, 100);
      enqueue(*compute2, check_job, 0, 0, 100);
      require(rt->finish_slot(0, 1).ok(), "a slot was not handed on");
      handed.store_release(1);
      return;
    }
    wait_until([&] { return handed.load_acquire() == 1; }, "a slot was never handed on");
    require(rt->order_after_slot(0, 0, patience()) == status::ok, "a slot's compute never passed");
    write(0, 2);
    check(0, 2);
    wait_for_compute();
  }
  void judge() { judge_ledger(); }
};
const bool tenants_added = add_part<tenants>("runtime-tenants", true, "runtime");

}  // namespace

}  // namespace cairn::explore
