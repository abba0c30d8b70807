// Scenes on quiet: callers keep a whole runtime's copy thread from its device, while ops come, run
// out of time, are cancelled, or everything ends.
#include <chrono>

#include "stress/explore/machine.hpp"

namespace cairn::explore {

namespace {

using namespace std::chrono_literals;
constexpr std::int64_t op_ns = 1'000'000;

/// Two callers want quiet, together or one after the other, while ops come and run.
struct quiet_ops : machine {
  static constexpr std::uint32_t threads = 3;
  quiet_ops() : machine({.scene_threads = threads}) {}

  void run(std::uint32_t t) {
    if (t == 0) {
      require(store(1) == status::ok, "a store failed");
      require(restore(1) == status::ok, "a restore failed");
      wait_for_all();
      return;
    }
    require(rt->quiesce(patience()) == status::ok, "there is no quiet");
    device().quiet.add(1);
    // The engine reads and writes what copies use.
    std::uint64_t sum = 0;
    for (const std::uint64_t word : unit_areas[0]) sum += word;
    if (sum == 1) fail("impossible");
    nap(t == 1 ? 1000 : 0);
    device().quiet.add(~std::uint32_t{0});
    rt->resume();
  }
  void judge() { judge_ledger(); }
};
const bool quiet_ops_added = add_part<quiet_ops>("quiet-ops", true, "runtime");

/// Quiet ends when the runtime closes: its ops must.
struct quiet_close : machine {
  static constexpr std::uint32_t threads = 3;
  quiet_close() : machine({.scene_threads = threads}) {}

  void run(std::uint32_t t) {
    if (t == 0) {
      auto made = rt->store(key(1), 0, 0);
      if (!made) {
        require(made.code() == status::closed, "a store was refused for another reason");
        return;
      }
      require(made->wait(patience()) == status::ok, "an accepted op did not end well");
    } else if (t == 1) {
      const status got = rt->quiesce(patience());
      require(got == status::ok || got == status::closed, "neither quiet nor closed");
      if (got != status::ok) return;
      device().quiet.add(1);
      sync::point();
      device().quiet.add(~std::uint32_t{0});
      rt->resume();
    } else {
      device().closing.set(true);
      require(rt->close(patience()) == status::ok, "closing left copies behind");
    }
  }
  void judge() {
    judge_ledger();
    require(rt->quiesce(patience()) == status::closed, "a closed runtime becomes quiet");
  }
};
const bool quiet_close_added = add_part<quiet_close>("quiet-close", true, "runtime");

/// An op's time passes while nothing is handed over: it ends all the same, or is cancelled, and
/// has touched nothing.
template <bool Cancelled>
struct quiet_deadline : machine {
  static constexpr std::uint32_t threads = Cancelled ? 3 : 2;
  quiet_word<bool> ended;
  quiet_deadline() : machine({.scene_threads = threads, .op_timeout = 1ms}) {}

  void run(std::uint32_t t) {
    if (t == 1) {
      require(rt->quiesce(patience()) == status::ok, "there is no quiet");
      device().quiet.add(1);
      wait_until([&] { return ended.get(); }, "an op that waits has no end");
      device().quiet.add(~std::uint32_t{0});
      rt->resume();
      return;
    }
    if (t == 2) {
      nap(op_ns);
      static_cast<void>(rt->release_slot(0, 0));
      return;
    }
    wait_until([&] { return device().quiet.get() != 0; }, "there is no quiet");
    auto made = rt->store(key(1), 0, 0);
    require(made.ok(), "a quiet runtime takes no ops");
    const status got = made->wait(patience());
    require(got == status::timed_out || got == status::cancelled,
            "an op whose time is up has not ended");
    require(rt->rank(0).slot_status(0) == status::ok, "an op that never ran keeps its slot");
    require(!rt->records().contains(key(1)), "a store that never ran is READY");
    require(rt->records().counts().quarantine_units == 0, "an op that never ran keeps its units");
    ended.set(true);
    made = ticket();
    require(rt->order_after_slot(0, 0, in_ns(op_ns)) == status::ok,
            "an op that has ended keeps its turn");
    require(store(2) == status::ok, "a store failed");
    wait_for_all();
  }
  void judge() { judge_ledger(); }
};
const bool quiet_deadline_added =
    add_part<quiet_deadline<false>>("quiet-deadline", true, "runtime");
const bool quiet_cancel_added = add_part<quiet_deadline<true>>("quiet-cancel", true, "runtime");

}  // namespace

}  // namespace cairn::explore
