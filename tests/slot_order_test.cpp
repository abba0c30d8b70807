// Sequence numbers of a slot that are missing, skipped or repeated. That ops run in the order of
// their numbers is in fences_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;

// A number missing in between holds the slot, and no other.
TEST(SlotOrder, MissingNumberHoldsItsSlotOnly) {
  copier_bench b;
  const copy_op held = b.store(5, 0, 2);
  const copy_op other = b.store(6, 1, 1);
  ASSERT_EQ(b.submit({held, other}), status::ok);
  b.settle();
  EXPECT_TRUE(b.codes(held).empty());
  EXPECT_EQ(b.codes(other), codes{status::ok});
  b.get().skip(5, 1);
  b.settle();
  EXPECT_EQ(b.codes(held), codes{status::ok});
}

TEST(SlotOrder, NumbersToSkipMayComeEarly) {
  copier_bench b;
  for (std::uint64_t n = 40; n >= 3; --n) b.get().skip(5, n);
  const copy_op first = b.store(5, 0, 1);
  const copy_op last = b.store(5, 1, 41);
  ASSERT_EQ(b.submit({last, first}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(first), codes{status::ok});
  EXPECT_TRUE(b.codes(last).empty());
  b.get().skip(5, 2);
  b.settle();
  EXPECT_EQ(b.codes(last), codes{status::ok});
}

TEST(SlotOrder, NumberThatCameTwiceIsInvalid) {
  copier_bench b;
  const copy_op first = b.store(5, 0, 1);
  const copy_op passed = b.store(5, 1, 1);
  const copy_op waits = b.store(5, 2, 3);
  const copy_op twice = b.store(5, 3, 3);
  ASSERT_EQ(b.submit({first, waits, twice}), status::ok);
  b.settle();
  ASSERT_EQ(b.submit(passed), status::ok);
  b.get().skip(5, 2);
  b.settle();
  EXPECT_EQ(b.codes(first), codes{status::ok});
  EXPECT_EQ(b.codes(passed), codes{status::invalid});
  EXPECT_EQ(b.codes(waits), codes{status::ok});
  EXPECT_EQ(b.codes(twice), codes{status::invalid});
}

// ---- dropping what was cancelled while it waits ------------------------------------------------

/// Cancels as a catalog does: says so when asked, and refuses when the op would be taken.
struct cancellations {
  explicit cancellations(copier_bench& b) {
    b.on_cancelled = [this](op_id op) { return holds(op); };
    b.on_take = [this](op_id op) {
      if (!holds(op)) return true;
      refused.push_back(op);
      return false;
    };
  }
  [[nodiscard]] bool holds(op_id op) const {
    return std::find(cancelled.begin(), cancelled.end(), op) != cancelled.end();
  }
  std::vector<op_id> cancelled;
  std::vector<op_id> refused;
};

// All batches of the restore stream are in flight: nothing is taken for long.
struct full_stream {
  static constexpr std::uint32_t flying = 4;
  static bench_options options() {
    bench_options opts;
    opts.max_batch = 1;
    opts.restore_depth = flying + 2;
    return opts;
  }
  full_stream() {
    for (std::uint32_t i = 0; i < flying; ++i) EXPECT_EQ(b.submit(b.restore(i, i)), status::ok);
    b.pump();
    EXPECT_EQ(b.faults().launched().size(), flying);
  }
  copier_bench b{options()};
  cancellations log{b};
};

TEST(CancelledOps, AreDroppedWhileNoStreamIsFree) {
  full_stream f;
  const copy_op live = f.b.restore(6, 5, 1);
  const copy_op gone = f.b.restore(7, 4, 1);
  ASSERT_EQ(f.b.submit({live, gone}), status::ok);
  f.b.pump();
  EXPECT_FALSE(f.b.get().try_room(copy_kind::restore, 1));
  f.log.cancelled = {gone.header.op};
  f.b.get().drop_cancelled();
  f.b.pump();
  EXPECT_EQ(f.log.refused, f.log.cancelled) << "asked once, by on_take";
  EXPECT_EQ(f.b.get().outstanding(), full_stream::flying + 1);
  EXPECT_EQ(f.b.get().order_after(0, {&gone.header.op, 1}, now()), status::ok);
  EXPECT_EQ(f.b.get().order_after_slot(0, 7, now()), status::ok);
  const copy_op next = f.b.restore(7, 4, 2);
  ASSERT_EQ(f.b.submit(next), status::ok) << "its room came back";
  f.b.settle();
  EXPECT_TRUE(f.b.codes(gone).empty());
  EXPECT_EQ(f.b.codes(live), codes{status::ok});
  EXPECT_EQ(f.b.codes(next), codes{status::ok}) << "its turn passed";
}

// The op is in the queue still when the copy thread is told.
TEST(CancelledOps, AreDroppedAlsoWhenTheyJustCame) {
  full_stream f;
  const copy_op gone = f.b.restore(7, 4, 1);
  ASSERT_EQ(f.b.submit(gone), status::ok);
  f.log.cancelled = {gone.header.op};
  f.b.get().drop_cancelled();
  f.b.pump();
  EXPECT_EQ(f.log.refused, f.log.cancelled);
  EXPECT_EQ(f.b.get().outstanding(), full_stream::flying);
}

TEST(CancelledOps, AreDroppedOutOfTheMiddleOfALane) {
  bench_options opts;
  opts.max_batch = 1;
  copier_bench b(opts);
  cancellations log(b);
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_EQ(b.submit(b.store(i, i)), status::ok);
  b.pump();
  // Slot 9: 1 is live and ready, 6 has not come. Slot 10: without numbers. Slot 11: all go.
  std::vector<copy_op> numbered;
  for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U, 7U, 8U})
    numbered.push_back(b.store(9, static_cast<std::size_t>(n), n));
  std::vector<copy_op> plain;
  for (std::size_t i = 0; i < 5; ++i) plain.push_back(b.store(10, i));
  std::vector<copy_op> all;
  for (std::uint64_t n = 1; n <= 3; ++n) all.push_back(b.store(11, static_cast<std::size_t>(n), n));
  for (const auto& each : {numbered, plain, all}) ASSERT_EQ(b.submit(each), status::ok);
  b.pump();
  for (const std::size_t i : {1U, 3U, 4U, 5U}) log.cancelled.push_back(numbered[i].header.op);
  for (const std::size_t i : {0U, 2U, 4U}) log.cancelled.push_back(plain[i].header.op);
  for (const copy_op& op : all) log.cancelled.push_back(op.header.op);
  b.get().drop_cancelled();
  b.pump();
  EXPECT_EQ(log.refused.size(), log.cancelled.size());
  EXPECT_EQ(b.get().outstanding(), 8U + 3U + 2U);
  EXPECT_EQ(b.get().order_after_slot(0, 11, now()), status::ok);
  // Every lane still takes what comes: at its end, and in the gap.
  numbered.push_back(b.store(9, 0, 6));
  plain.push_back(b.store(10, 6));
  all.push_back(b.store(11, 0, 4));
  ASSERT_EQ(b.submit({numbered.back(), plain.back(), all.back()}), status::ok);
  b.settle();
  for (const auto& each : {numbered, plain, all})
    for (const copy_op& op : each)
      EXPECT_EQ(b.codes(op), log.holds(op.header.op) ? codes{} : codes{status::ok})
          << "slot " << op.header.slot << ", number " << op.header.slot_sequence;
  EXPECT_EQ(log.refused.size(), log.cancelled.size()) << "asked twice";
  EXPECT_EQ(b.get().drain(now()), status::ok);
}

}  // namespace
}  // namespace cairn::tests
