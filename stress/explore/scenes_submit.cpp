// Scenes on submitting to a runtime without threads of its own: what an engine calls submitting,
// for the freeze test, which suspends any of these callers for ever. One thread pumps copies and
// devices.
//
// The other calls that 5.8 names are frozen in the scenes on records (lookup and pin, begin_store,
// begin_restore, finish, forget: "look-*", "pin-*", "evict-*", "forget-*", "rank-*") and on units
// (reserve: "reserve-*").
#include "stress/explore/machine.hpp"

namespace cairn::explore {

namespace {

struct submit_part : machine {
  explicit submit_part(std::uint32_t scene_threads)
      : machine({.scene_threads = scene_threads, .threaded = false}) {
    write(0, 1);
    write(1, 2);
  }

  void submit(std::uint64_t n, slot_id slot) {
    auto made = rt->store(key(n), slot, 0);
    require(made.ok() || made.code() == status::duplicate, "a store was refused");
  }
  void pump() {
    static_cast<void>(rt->pump());
    static_cast<void>(host->step());
  }
  void judge() {
    settle();
    judge_ledger();
  }
};

struct submit_submit : submit_part {
  static constexpr std::uint32_t threads = 3;
  submit_submit() : submit_part(threads) {}
  void run(std::uint32_t t) {
    if (t == 2) {
      for (int i = 0; i < 3; ++i) pump();
      return;
    }
    submit(t + 1, t);
  }
  void judge() {
    submit_part::judge();
    require(rt->records().contains(key(1)) && rt->records().contains(key(2)),
            "a store that was accepted is not READY");
  }
};
const bool submit_submit_added = add_part<submit_submit>("submit-submit", false, "runtime");

/// One slot, so one lane: an abort meets what waits there.
struct submit_release : submit_part {
  static constexpr std::uint32_t threads = 4;
  submit_release() : submit_part(threads) {}
  void run(std::uint32_t t) {
    if (t < 2)
      submit(t + 1, 0);
    else if (t == 2)
      static_cast<void>(rt->release_slot(0, 0));
    else
      for (int i = 0; i < 3; ++i) pump();
  }
};
const bool submit_release_added = add_part<submit_release>("submit-release", false, "runtime");

/// A restore, a store behind it on its slot, and the slot's reset.
struct submit_restore : submit_part {
  static constexpr std::uint32_t threads = 3;
  submit_restore() : submit_part(threads) {
    submit(1, 0);
    settle();
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      auto made = rt->restore(key(1), 1, 0);
      require(made.ok(), "a READY key cannot be restored");
      submit(2, 1);
    } else if (t == 1) {
      require(rt->reset_slot(1) == status::ok, "a slot cannot be reset");
    } else {
      for (int i = 0; i < 3; ++i) pump();
    }
  }
};
const bool submit_restore_added = add_part<submit_restore>("submit-restore", false, "runtime");

/// Admission with its restore, against the end of its image.
struct submit_admit : submit_part {
  static constexpr std::uint32_t threads = 3;
  std::array<unit_id, 2> held{};
  quiet_word<std::uint32_t> count;
  submit_admit() : submit_part(threads) {
    submit(1, 0);
    settle();
    unit_id kv[1] = {};
    require(rt->records().allocate(kv).ok(), "there is a unit");
    require(rt->own_pool()->publish(kv[0], key(1)).ok(), "a live unit can be published");
    require(rt->own_pool()->free(kv[0]).ok(), "a live unit can be freed");
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      const checkpoint_key keys[] = {key(1)};
      ticket restored;
      auto got = rt->admit(keys, 1, 1, held, 0, restored);
      if (got.ok()) count.set(2);
    } else if (t == 1) {
      static_cast<void>(rt->records().forget(key(1)));
    } else {
      for (int i = 0; i < 3; ++i) pump();
    }
  }
  void judge() {
    settle();
    for (std::uint32_t i = count.get(); i > 0; --i)
      require(rt->own_pool()->free(held[i - 1]).ok(), "what was admitted is not its holder's");
    judge_ledger();
  }
};
const bool submit_admit_added = add_part<submit_admit>("submit-admit", false, "runtime");

}  // namespace

}  // namespace cairn::explore
