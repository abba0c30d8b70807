// Scenes on what happens to a whole runtime when copies do not run well: deadlines and the proofs
// that come after them, slots that nobody vouches for, images that went bad.
#include <chrono>

#include "stress/explore/machine.hpp"

namespace cairn::explore {

namespace {

using namespace std::chrono_literals;
constexpr std::int64_t op_ns = 1'000'000;

// ---- deadlines --------------------------------------------------------------------------------

/// Ops have little time, and compute that is held may hold them up beyond it.
struct late_machine : machine {
  explicit late_machine(std::uint32_t scene_threads)
      : machine({.scene_threads = scene_threads, .op_timeout = 1ms}) {}

  /// Compute goes on at about the time at which an op must have ended.
  void open_late() {
    nap(op_ns);
    open();
  }
  result<ticket> store_behind_compute() {
    write(0, 1);
    hold();
    return rt->store(key(1), 0, 0);
  }
};

/// The copy cannot be over in time: what it may touch is kept until it is, and no longer.
struct deadline_late : late_machine {
  static constexpr std::uint32_t threads = 2;
  deadline_late() : late_machine(threads) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().forget(key(1)));
      static_cast<void>(rt->records().ensure_free_units(4));
      return;
    }
    auto made = store_behind_compute();
    require(made.ok(), "a store was refused");
    require(made->wait(patience()) == status::timed_out, "an op whose time is up has not ended");
    require(rt->rank(0).slot_status(0) == status::busy, "a copy that was given up leaves its slot");
    require(rt->records().counts().quarantine_units == 2,
            "a copy that was given up leaves its units");
    require(rt->store(key(2), 0, 0).code() == status::busy, "a busy slot takes an op");
    require(!rt->records().ensure_free_units(4).ok(), "units in quarantine are free");
    made = ticket();
    open();
    wait_for_proof(0);
    require(store(2) == status::ok, "a slot whose copy is over takes no store");
    wait_for_all();
  }
  void judge() {
    judge_ledger();
    require(!rt->records().contains(key(1)), "a store that was given up is READY");
  }
};
const bool deadline_late_added = add_part<deadline_late>("deadline-late", true, "runtime");

/// A slot that is not busy any more is the engine's: it may be written at once.
struct deadline_slot : late_machine {
  static constexpr std::uint32_t threads = 1;
  deadline_slot() : late_machine(threads) {}

  void run(std::uint32_t) {
    auto made = store_behind_compute();
    require(made.ok(), "a store was refused");
    require(made->wait(patience()) == status::timed_out, "an op whose time is up has not ended");
    open();
    wait_until([&] { return rt->rank(0).slot_status(0) != status::busy; },
               "a copy that was given up is over and keeps its slot");
    write(0, 2);
    made = ticket();
    wait_for_proof(0);
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool deadline_slot_added = add_part<deadline_slot>("deadline-slot", true, "runtime");

/// The copy ends at about the time at which it must have.
struct deadline_complete : late_machine {
  static constexpr std::uint32_t threads = 2;
  deadline_complete() : late_machine(threads) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      open_late();
      rt->rank(0).drop_cancelled();  // rings the copy thread
      return;
    }
    auto made = store_behind_compute();
    require(made.ok(), "a store was refused");
    const status got = made->wait(patience());
    require(got == status::ok || got == status::timed_out, "an op has not ended");
    require(rt->records().contains(key(1)) == (got == status::ok), "READY is not what was told");
    made = ticket();
    wait_for_proof(0);
    if (got == status::ok) require(restore(1) == status::ok, "a restore failed");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool deadline_complete_added =
    add_part<deadline_complete>("deadline-complete", true, "runtime");

/// The same for a restore, while its image is forgotten and its units are wanted.
struct deadline_restore : late_machine {
  static constexpr std::uint32_t threads = 3;
  deadline_restore() : late_machine(threads) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      open_late();
      return;
    }
    if (t == 2) {
      nap(op_ns);
      static_cast<void>(rt->records().forget(key(1)));
      static_cast<void>(rt->records().ensure_free_units(4));
      return;
    }
    require(store(1) == status::ok, "a store failed");
    hold();
    auto made = rt->restore(key(1), 1, 0);
    if (!made) {
      require(made.code() == status::not_found, "a restore was refused");
      return;
    }
    const status got = made->wait(patience());
    require(got == status::ok || got == status::timed_out, "an op has not ended");
    made = ticket();
    wait_for_proof(1);
    if (got == status::ok) {
      check(1, 1);
    } else {
      require(rt->store(key(2), 1, 0).code() == status::poisoned,
              "nobody knows what a slot holds, and it is stored");
      require(rt->reset_slot(1) == status::ok, "a slot cannot be reset");
    }
    require(store(3, 1) == status::ok, "a slot that was reset takes no store");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool deadline_restore_added = add_part<deadline_restore>("deadline-restore", true, "runtime");

/// An op's end comes from its deadline, from a cancel, or from its copy.
struct deadline_cancel : late_machine {
  static constexpr std::uint32_t threads = 3;
  deadline_cancel() : late_machine(threads) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      open_late();
      return;
    }
    if (t == 2) {
      static_cast<void>(rt->release_slot(0, 0));
      return;
    }
    auto made = store_behind_compute();
    require(made.ok(), "a store was refused");
    const status got = made->wait(patience());
    require(got == status::ok || got == status::timed_out || got == status::cancelled,
            "an op has not ended");
    require(rt->records().contains(key(1)) == (got == status::ok), "READY is not what was told");
    made = ticket();
    wait_for_proof(0);
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool deadline_cancel_added = add_part<deadline_cancel>("deadline-cancel", true, "runtime");

/// Closing runs out of time before the op does.
struct deadline_close : late_machine {
  static constexpr std::uint32_t threads = 3;
  deadline_close() : late_machine(threads) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      open_late();
      return;
    }
    if (t == 2) {
      const status first = rt->close(in_ns(op_ns));
      require(first == status::ok || first == status::timed_out, "closing ends otherwise");
      require(rt->rank(0).outstanding() == 0, "an accepted op was not reported");
      wait_until([&] { return rt->close(patience()) == status::ok; },
                 "closing never sees the copies end");
      return;
    }
    auto made = store_behind_compute();
    if (!made) {
      require(made.code() == status::closed, "a store was refused for another reason");
      return;
    }
    const status got = made->wait(patience());
    require(got == status::ok || got == status::timed_out || got == status::cancelled,
            "an accepted op was not reported");
    require(rt->records().contains(key(1)) == (got == status::ok), "READY is not what was told");
  }
  void judge() { judge_ledger(); }
};
const bool deadline_close_added = add_part<deadline_close>("deadline-close", true, "runtime");

// ---- a lost device ----------------------------------------------------------------------------

/// What is outstanding ends, nothing more comes in, no record stays READY; of what the device may
/// still touch nothing is given away.
struct device_lost : machine {
  static constexpr std::uint32_t threads = 2;
  device_lost() : machine({.scene_threads = threads}) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      auto in = rt->restore(key(1), 2, 0);
      const status got = in ? in->wait(patience()) : in.code();
      require(got == status::ok || got == status::device_lost || got == status::not_found ||
                  got == status::cancelled,
              "a restore ends otherwise");
    } else {
      require(store(1) == status::ok, "a store failed");
      device().gone.set(true);
      auto made = rt->store(key(2), 1, 0);
      const status got = made ? made->wait(patience()) : made.code();
      require(got == status::device_lost, "an op on a lost device ends otherwise");
      require(!rt->records().contains(key(1)), "a READY record has lost a shard");
      require(rt->store(key(3), 0, 0).code() == status::device_lost, "a lost device takes an op");
    }
    require(rt->rank(0).drain(patience()) == status::ok, "an op on a lost device has no end");
    nap(10'000'000);  // proofs of copies that were on their way
  }
  void judge() { judge_ledger_of_lost(); }
};
const bool device_lost_added = add_part<device_lost>("device-lost", true, "runtime");

/// One finds the device lost, another is told so.
struct device_lost_told : machine {
  static constexpr std::uint32_t threads = 2;
  device_lost_told() : machine({.scene_threads = threads, .threaded = false}) {
    write(0, 1);
    auto made = rt->store(key(1), 0, 0);
    require(made.ok(), "a store was refused");
    while (rt->pump() || host->step()) {
    }
    require(made->code() == status::ok, "a store failed");
    require(rt->store(key(2), 0, 0).ok(), "a store was refused");
    device().gone.set(true);
  }

  void run(std::uint32_t t) {
    if (t == 0) {
      while (rt->pump()) {
      }
      return;
    }
    if (rt->store(key(3), 1, 0).code() == status::device_lost)
      require(!rt->records().contains(key(1)), "a READY record has lost a shard");
  }
  void judge() {
    while (rt->pump()) {
    }
    require(rt->store(key(3), 1, 0).code() == status::device_lost, "a lost device takes an op");
    require(rt->rank(0).outstanding() == 0, "an op on a lost device has no end");
    require(rt->records().counts().ready == 0, "a record outlives its shard");
  }
};
const bool device_lost_told_added =
    add_part<device_lost_told>("device-lost-told", false, "runtime");

// ---- slots and images -------------------------------------------------------------------------

/// A restore fails; the slot is reset before, while or after a store from it comes.
struct slot_poison : machine {
  static constexpr std::uint32_t threads = 2;
  quiet_word<bool> failed;
  quiet_word<bool> reset_early;  ///< before the restore was submitted
  quiet_word<bool> reset_late;   ///< begun after the restore had ended
  slot_poison() : machine({.scene_threads = threads}) { device().failing.set(1); }

  void run(std::uint32_t t) {
    if (t == 1) {
      const bool late = failed.get();
      require(rt->reset_slot(1) == status::ok, "a slot cannot be reset");
      (late ? reset_late : reset_early).set(true);
      return;
    }
    require(store(1) == status::ok, "a store failed");
    const bool before = reset_early.get();
    require(restore(1) == status::failed, "a restore that failed is none");
    failed.set(true);
    const bool after = reset_late.get();
    auto made = rt->store(key(2), 1, 0);
    const status got = made ? made->wait(patience()) : made.code();
    require(got == status::ok || got == status::poisoned, "a store ends otherwise");
    if (before)
      require(got == status::poisoned, "nobody knows what a slot holds, and it is stored");
    if (after) require(got == status::ok, "a slot that was reset takes no store");
    require(rt->records().contains(key(2)) == (got == status::ok), "READY is not what was told");
    made = ticket();
    require(restore(1) == status::ok, "a restore failed");
    require(store(3, 1) == status::ok, "a slot that was restored takes no store");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool slot_poison_added = add_part<slot_poison>("slot-poison", true, "runtime");

/// The store comes while nobody knows yet that the restore before it on its slot will fail.
struct slot_poison_behind : machine {
  static constexpr std::uint32_t threads = 2;
  slot_poison_behind() : machine({.scene_threads = threads}) { device().failing.set(1); }

  void run(std::uint32_t t) {
    if (t == 1) {
      require(rt->reset_slot(0) == status::ok, "a slot cannot be reset");
      static_cast<void>(rt->records().contains(key(2)));
      return;
    }
    require(store(1) == status::ok, "a store failed");
    auto in = rt->restore(key(1), 1, 0);
    require(in.ok(), "a restore was refused");
    auto out = rt->store(key(2), 1, 0);
    const status got = out ? out->wait(patience()) : out.code();
    require(got == status::poisoned, "nobody knows what a slot holds, and it is stored");
    require(in->wait(patience()) == status::failed, "a restore that failed is none");
    require(!rt->records().contains(key(2)), "a store that read an unknown slot is READY");
    in = ticket();
    out = ticket();
    require(rt->reset_slot(1) == status::ok, "a slot cannot be reset");
    require(store(3, 1) == status::ok, "a slot that was reset takes no store");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool slot_poison_behind_added =
    add_part<slot_poison_behind>("slot-poison-behind", true, "runtime");

/// A store and a restore on one slot, and another restore of what was stored: on two streams, with
/// no wait of the engine's between.
struct slot_order : machine {
  static constexpr std::uint32_t threads = 2;
  slot_order() : machine({.scene_threads = threads}) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().contains(key(1)));
      static_cast<void>(rt->reset_slot(2));
      return;
    }
    require(store(2, 1) == status::ok, "a store failed");
    write(0, 1);
    auto out = rt->store(key(1), 0, 0);
    auto in = rt->restore(key(2), 0, 0);
    require(out.ok() && in.ok(), "an op was refused");
    require(rt->order_after_slot(0, 0, patience()) == status::ok, "a slot's ops never passed");
    check(0, 2);
    require(out->wait(patience()) == status::ok, "a store failed");
    require(in->wait(patience()) == status::ok, "a restore failed");
    out = ticket();
    in = ticket();
    require(restore(1, 2) == status::ok, "a restore failed");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool slot_order_added = add_part<slot_order>("slot-order", true, "runtime");

/// Bytes of an image change where nobody may write.
struct image_corrupt : machine {
  static constexpr std::uint32_t threads = 2;
  image_corrupt() : machine({.scene_threads = threads}) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      static_cast<void>(rt->records().forget(key(1)));
      return;
    }
    require(store(1) == status::ok, "a store failed");
    for (std::uint64_t& word : unit_areas[0]) word ^= 1;
    const status got = restore(1);
    require(got == status::corrupt || got == status::not_found, "wrong bytes were restored");
    require(!rt->records().contains(key(1)), "an image that is wrong is READY");
    wait_for_all();
  }
  void judge() {
    judge_ledger();
    require(rt->own_pool()->free_units() == units, "an image that is wrong keeps its units");
  }
};
const bool image_corrupt_added = add_part<image_corrupt>("image-corrupt", true, "runtime");

}  // namespace

}  // namespace cairn::explore
