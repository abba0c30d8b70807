// Slots whose content nobody knows since a restore failed: which stores end as poisoned, which do
// not, in whatever order things end.
#include <gtest/gtest.h>

#include "tests/copier_fixture.hpp"
#include "tests/virtual_clock.hpp"

namespace cairn::tests {
namespace {

using ends = std::vector<status>;
using namespace std::chrono_literals;

constexpr auto limit = std::chrono::nanoseconds(10min);

struct poison_bench : copier_bench {
  static bench_options options_of(bool threaded) {
    bench_options opts;
    opts.op_timeout = limit;
    opts.threaded = threaded;
    opts.manual = !threaded;
    return opts;
  }
  explicit poison_bench(bool threaded = false) : copier_bench(options_of(threaded)) {
    EXPECT_EQ(submit({store(8, 0), store(9, 1)}), status::ok);
    if (threaded)
      EXPECT_EQ(get().drain(soon()), status::ok);
    else
      settle();
    // A restore of image 0 is corrupt from now on, one of image 1 is good.
    const strided& where = rank().memory().regions[0];
    where.base[static_cast<std::int64_t>(units(0)[0]) * where.stride] ^= std::byte{1};
  }
  copy_op bad_restore(slot_id slot, std::uint64_t sequence = 0) {
    return restore(slot, 0, sequence);
  }
  copy_op good_restore(slot_id slot, std::uint64_t sequence = 0) {
    return restore(slot, 1, sequence);
  }
  ends ran(const copy_op& op) {
    EXPECT_EQ(submit(op), status::ok);
    settle();
    return codes(op);
  }
};

TEST(Poison, StaysUntilARestoreSucceeds) {
  poison_bench b;
  EXPECT_EQ(b.ran(b.bad_restore(0)), ends{status::corrupt});
  EXPECT_EQ(b.get().slot_status(0), status::poisoned);
  EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::poisoned});
  EXPECT_EQ(b.ran(b.store(0, 3)), ends{status::poisoned});
  EXPECT_EQ(b.ran(b.store(1, 4)), ends{status::ok}) << "another slot";
  EXPECT_EQ(b.ran(b.good_restore(0)), ends{status::ok});
  EXPECT_EQ(b.get().slot_status(0), status::ok);
  EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::ok});
}

TEST(Poison, StaysUntilTheSlotIsReset) {
  poison_bench b;
  EXPECT_EQ(b.ran(b.bad_restore(0)), ends{status::corrupt});
  EXPECT_EQ(b.get().reset_slot(0), status::ok);
  EXPECT_EQ(b.get().slot_status(0), status::ok) << "about to be known";
  EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::ok});
  EXPECT_EQ(b.get().reset_slot(12), status::invalid);
  EXPECT_EQ(b.get().slot_status(12), status::invalid);
}

TEST(Poison, EveryWayForARestoreToFailCounts) {
  {
    poison_bench b;
    b.faults().launches.at(1, status::failed);
    EXPECT_EQ(b.ran(b.good_restore(0)), ends{status::failed});
    EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::poisoned});
  }
  {
    poison_bench b;
    copy_op odd = b.good_restore(0);
    odd.units = odd.units.first(1);
    ASSERT_TRUE(b.get().try_room(copy_kind::restore, 1));
    b.get().enqueue(odd);
    b.settle();
    EXPECT_EQ(b.codes(odd), ends{status::invalid});
    EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::poisoned});
  }
  {
    poison_bench b;
    const copy_op waits = b.good_restore(0, 2);
    ASSERT_EQ(b.submit(waits), status::ok);
    b.pump();
    advance_clock(limit);
    b.pump();
    b.get().skip(0, 1);
    EXPECT_EQ(b.ran(b.store(0, 2, 3)), ends{status::poisoned});
  }
}

TEST(Poison, AFailedStoreOrACancelledRestoreLeavesTheSlotAsItWas) {
  poison_bench b;
  b.faults().launches.at(1, status::failed);
  EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::failed});
  EXPECT_EQ(b.ran(b.store(0, 2)), ends{status::ok});
  b.on_take = [](op_id) { return false; };
  EXPECT_EQ(b.ran(b.bad_restore(0)), ends{});
  b.on_take = nullptr;
  EXPECT_EQ(b.get().slot_status(0), status::ok);
  EXPECT_EQ(b.ran(b.store(0, 3)), ends{status::ok});
  EXPECT_EQ(b.ran(b.bad_restore(0)), ends{status::corrupt});
  b.on_take = [](op_id) { return false; };
  EXPECT_EQ(b.ran(b.good_restore(0)), ends{});
  b.on_take = nullptr;
  EXPECT_EQ(b.get().slot_status(0), status::poisoned);
  EXPECT_EQ(b.ran(b.store(0, 3)), ends{status::poisoned});
}

// The store's batch is the first that a pass would look at, and its event has fired.
TEST(Poison, AStoreThatRanBehindAFailingRestoreIsJudgedAfterIt) {
  poison_bench b;
  const copy_op bad = b.bad_restore(0);
  const copy_op behind = b.store(0, 2);
  ASSERT_EQ(b.submit({bad, behind}), status::ok);
  b.pump();
  while (b.host().step()) {
  }
  EXPECT_EQ(b.completions.size(), 2U) << "the two that made the bench";
  b.pump();
  EXPECT_EQ(b.codes(bad), ends{status::corrupt});
  EXPECT_EQ(b.codes(behind), ends{status::poisoned});
}

TEST(Poison, WhatAStoreReadIsWhatCountsNotWhatIsKnownLater) {
  poison_bench b;
  const std::vector<copy_op> ops = {
      b.store(0, 2),      // before all of it
      b.bad_restore(0),   //
      b.store(0, 3),      // of nobody knows what
      b.good_restore(0),  //
      b.store(0, 4),      // good again
      b.bad_restore(0),   //
      b.store(0, 5),      // bad
  };
  const ends expected = {status::ok, status::corrupt, status::poisoned, status::ok,
                         status::ok, status::corrupt, status::poisoned};
  ASSERT_EQ(b.submit(ops), status::ok);
  b.settle();
  for (std::size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(b.codes(ops[i]), ends{expected[i]}) << i;
}

TEST(Poison, AResetHasItsPlaceAmongTheOpsOfItsSlot) {
  poison_bench b;
  const copy_op bad = b.bad_restore(0, 1);
  const copy_op before = b.store(0, 2, 2);
  const copy_op after = b.store(0, 3, 4);
  const copy_op bad_again = b.bad_restore(0, 5);
  const copy_op last = b.store(0, 4, 6);
  // The reset comes first, and takes effect third.
  EXPECT_EQ(b.get().reset_slot(0, 3), status::ok);
  b.pump();
  ASSERT_EQ(b.submit({last, bad_again, after, before, bad}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(before), ends{status::poisoned});
  EXPECT_EQ(b.codes(after), ends{status::ok});
  EXPECT_EQ(b.codes(last), ends{status::poisoned});
}

// The restore is decided at once, before the store that was launched ahead of it has ended.
TEST(Poison, ARestoreThatNeverRanSpoilsNothingAheadOfIt) {
  poison_bench b;
  const copy_op ahead = b.store(0, 2);
  ASSERT_EQ(b.submit(ahead), status::ok);
  b.pump();
  copy_op odd = b.good_restore(0);
  odd.units = odd.units.first(1);
  ASSERT_TRUE(b.get().try_room(copy_kind::restore, 1));
  b.get().enqueue(odd);
  const copy_op behind = b.store(0, 3);
  ASSERT_EQ(b.submit(behind), status::ok);
  b.pump();
  EXPECT_EQ(b.codes(odd), ends{status::invalid});
  b.settle();
  EXPECT_EQ(b.codes(ahead), ends{status::ok});
  EXPECT_EQ(b.codes(behind), ends{status::poisoned});
}

TEST(Poison, AResetBehindARestoreThatNeverRanMakesGood) {
  for (const bool expires : {true, false}) {
    poison_bench b;
    const copy_op late = b.good_restore(0, 1);
    if (!expires) b.faults().waits.always(status::ok);
    ASSERT_EQ(b.get().quiesce(soon()), status::ok);
    ASSERT_EQ(b.submit(late), status::ok);
    EXPECT_EQ(b.get().reset_slot(0, 2), status::ok);
    b.pump();
    if (expires) advance_clock(limit);
    b.pump();
    b.get().resume();
    EXPECT_EQ(b.ran(b.store(0, 2, 3)), ends{status::ok});
  }
}

TEST(Poison, ARestoreThatWasGivenUpSpoilsWhatRunsBehindIt) {
  poison_bench b;
  const copy_op late = b.good_restore(0);
  ASSERT_EQ(b.submit(late), status::ok);
  b.pump();
  advance_clock(limit / 2);
  const copy_op behind = b.store(0, 2);
  ASSERT_EQ(b.submit(behind), status::ok);
  b.pump();
  advance_clock(limit / 2);
  b.pump();
  EXPECT_EQ(b.codes(late), ends{status::timed_out});
  EXPECT_EQ(b.codes(behind), ends{});
  b.settle();
  EXPECT_EQ(b.proofs.size(), 1U);
  EXPECT_EQ(b.codes(behind), ends{status::poisoned});
  EXPECT_EQ(b.get().slot_status(0), status::poisoned);
}

TEST(Poison, IsOfOneSlotWhateverTheBatch) {
  poison_bench b;
  b.faults().launches.at(1, status::failed);
  ASSERT_EQ(b.submit({b.good_restore(0), b.good_restore(1)}), status::ok);
  b.settle();
  std::vector<copy_op> stores;
  for (slot_id slot = 0; slot < 4; ++slot) stores.push_back(b.store(slot, 2 + slot));
  ASSERT_EQ(b.submit(stores), status::ok);
  b.settle();
  for (slot_id slot = 0; slot < 4; ++slot)
    EXPECT_EQ(b.codes(stores[slot]), ends{slot < 2 ? status::poisoned : status::ok});
}

TEST(Poison, UnderAThreadEveryStoreIsJudgedByItsPlace) {
  put_clock_right();
  poison_bench b(true);
  std::vector<copy_op> ops;
  std::vector<status> expected;
  for (std::uint32_t round = 0; round < 12; ++round)
    for (slot_id slot = 0; slot < 4; ++slot) {
      const bool bad = (round + slot) % 3 == 0;
      ops.push_back(bad ? b.bad_restore(slot) : b.good_restore(slot));
      expected.push_back(bad ? status::corrupt : status::ok);
      ops.push_back(b.store(slot, 2 + slot));
      expected.push_back(bad ? status::poisoned : status::ok);
    }
  for (const copy_op& op : ops)
    while (b.submit(op) != status::ok) (void)b.get().drain(soon());
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  for (std::size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(b.codes(ops[i]), ends{expected[i]}) << i;
}

}  // namespace
}  // namespace cairn::tests
