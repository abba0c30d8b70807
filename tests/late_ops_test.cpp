// Ops that wait for compute and ops that wait for nothing: the former hold up the latter only where
// a stream's order leaves no choice, and neither starves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;
using testing::ElementsAre;

/// Compute stream 0 is busy with step 1, compute stream 1 has passed step 1.
struct late_bench : copier_bench {
  explicit late_bench(const bench_options& opts = {}) : copier_bench(opts) {
    enqueue(compute(0), busy);
    EXPECT_EQ(get().mark({0, 1}), status::ok);
    EXPECT_EQ(get().mark({1, 1}), status::ok);
    run(compute(1));
  }
  copy_op late(copy_op op) {
    op.header.fences.merge({0, 1});
    return op;
  }
  copy_op passed(copy_op op) {
    op.header.fences.merge({1, 1});
    return op;
  }
  std::uint64_t calls() { return faults().calls; }

  std::function<void()> busy = [] {};
};

TEST(LateOps, HoldUpNoneThatAreReadyWithThem) {
  late_bench b;
  const std::vector<copy_op> ops = {b.late(b.restore(1, 1)), b.restore(2, 2),
                                    b.passed(b.restore(3, 3)), b.late(b.restore(4, 4))};
  ASSERT_EQ(b.submit(ops), status::ok);
  b.pump();
  b.run(b.restore_stream());
  b.pump();
  EXPECT_TRUE(b.codes(ops[0]).empty());
  EXPECT_EQ(b.codes(ops[1]), codes{status::ok});
  EXPECT_EQ(b.codes(ops[2]), codes{status::ok});
  EXPECT_TRUE(b.codes(ops[3]).empty());
  b.run(b.compute());
  b.settle();
  for (const copy_op& op : ops) {
    EXPECT_EQ(b.codes(op), codes{status::ok});
    b.model(op);
  }
  EXPECT_TRUE(b.rank().matches());
}

// It waits for nothing itself, but the store before it on its slot does.
TEST(LateOps, AreThoseBehindALateOneToo) {
  late_bench b;
  const copy_op store = b.late(b.store(1, 0));
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  const copy_op behind = b.restore(1, 1);
  const copy_op ready = b.restore(2, 2);
  ASSERT_EQ(b.submit({behind, ready}), status::ok);
  b.pump();
  b.run(b.restore_stream());
  b.pump();
  EXPECT_TRUE(b.codes(behind).empty());
  EXPECT_EQ(b.codes(ready), codes{status::ok});
  b.settle();
  EXPECT_EQ(b.codes(behind), codes{status::ok});
}

// A restore that waits for nothing is on a stream behind one that does, and a store comes behind
// it.
TEST(LateOps, AreThoseBehindALateStreamToo) {
  late_bench b;
  ASSERT_EQ(b.submit(b.late(b.restore(1, 1))), status::ok);
  b.pump();
  ASSERT_EQ(b.submit(b.restore(2, 2)), status::ok);
  b.pump();
  const copy_op behind = b.store(2, 3);
  const copy_op ready = b.store(3, 4);
  ASSERT_EQ(b.submit({behind, ready}), status::ok);
  b.pump();
  b.run(b.copy_stream(0));
  b.run(b.copy_stream(1));
  b.pump();
  EXPECT_TRUE(b.codes(behind).empty());
  EXPECT_EQ(b.codes(ready), codes{status::ok});
  b.settle();
  EXPECT_EQ(b.codes(behind), codes{status::ok});
}

TEST(LateOps, HaveTheirOwnStreamAsLongAsAnotherCanTakeTheRest) {
  bench_options opts;
  opts.max_batch = 1;
  late_bench b(opts);
  ASSERT_EQ(b.submit(b.late(b.store(0, 0))), status::ok);
  b.pump();
  for (std::uint32_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(b.submit(b.store(i, i)), status::ok);
    b.pump();
  }
  const auto& launched = b.faults().launched();
  ASSERT_EQ(launched.size(), 4U);
  for (std::uint32_t i = 1; i <= 3; ++i) EXPECT_NE(launched[i].on, launched[0].on);
  // Late ones take turns on all streams: compute is no reason to leave one idle.
  ASSERT_EQ(b.submit({b.late(b.store(4, 4)), b.late(b.store(5, 5)), b.late(b.store(6, 6))}),
            status::ok);
  b.pump();
  ASSERT_EQ(launched.size(), 7U);
  EXPECT_EQ(launched[4].on, launched[0].on);
  EXPECT_EQ(launched[5].on, launched[0].on);
  b.settle();
  EXPECT_EQ(b.completions.size(), 7U);
}

TEST(LateOps, AreNotStarved) {
  bench_options opts;
  opts.max_batch = 1;
  opts.store_depth = 64;
  late_bench b(opts);
  const copy_op late = b.late(b.store(0, 0));
  ASSERT_EQ(b.submit(late), status::ok);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(b.submit({b.store(1 + i, 1 + i), b.store(1 + i, 1 + i)}), status::ok);
    ASSERT_TRUE(b.get().pump());
    EXPECT_EQ(b.get().order_after(1, {&late.header.op, 1}, now()), status::ok) << "pass " << i;
    if (i == 5) b.run(b.compute());
    b.run(b.copy_stream(0));
    b.run(b.copy_stream(1));
  }
  EXPECT_EQ(b.codes(late), codes{status::ok});
  b.settle();
  EXPECT_EQ(b.completions.size(), 21U);
}

// Ready ones come faster than the only stream takes them.
TEST(LateOps, HaveTheirTurnWhenAllPlacesAreTaken) {
  bench_options opts;
  opts.max_batch = 1;
  late_bench b(opts);
  for (std::uint32_t i = 0; i < 6; ++i) ASSERT_EQ(b.submit(b.restore(i, i)), status::ok);
  const copy_op late = b.late(b.restore(11, 11));
  ASSERT_EQ(b.submit(late), status::ok);
  b.pump();
  for (std::uint32_t round = 0; round < 2; ++round) {
    ASSERT_EQ(b.submit(b.restore(6 + round, 6 + round)), status::ok);
    ASSERT_TRUE(b.step(b.restore_stream()));  // a copy
    ASSERT_TRUE(b.step(b.restore_stream()));  // its event
    b.pump();
  }
  EXPECT_EQ(b.get().order_after(1, {&late.header.op, 1}, now()), status::ok);
  b.settle();
  EXPECT_EQ(b.completions.size(), 9U);
}

TEST(LateOps, StarveNobody) {
  bench_options opts;
  opts.max_batch = 1;
  late_bench b(opts);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(b.submit(b.late(b.store(i, i))), status::ok);
    ASSERT_EQ(b.submit(b.late(b.store(3 + i, 3 + i))), status::ok);
    const copy_op ready = b.store(6 + i, 6 + i);
    ASSERT_EQ(b.submit(ready), status::ok);
    ASSERT_TRUE(b.get().pump());
    EXPECT_EQ(b.get().order_after(1, {&ready.header.op, 1}, now()), status::ok) << "pass " << i;
  }
  b.settle();
  EXPECT_EQ(b.completions.size(), 9U);
}

TEST(LateOps, KeepTheirOrderWhenTheyAreMoreThanABatch) {
  bench_options opts;
  opts.max_batch = 2;
  late_bench b(opts);
  ASSERT_EQ(b.submit({b.late(b.restore(0, 0)), b.restore(1, 1), b.late(b.restore(2, 2)),
                      b.late(b.restore(3, 3)), b.restore(4, 4), b.restore(5, 5)}),
            status::ok);
  b.pump();
  const auto& launched = b.faults().launched();
  ASSERT_EQ(launched.size(), 4U);
  EXPECT_THAT(launched[0].slots, ElementsAre(1U, 4U));
  EXPECT_THAT(launched[1].slots, ElementsAre(5U));
  EXPECT_THAT(launched[2].slots, ElementsAre(0U, 2U));
  EXPECT_THAT(launched[3].slots, ElementsAre(3U));
  b.settle();
  EXPECT_EQ(b.completions.size(), 6U);
}

TEST(LateOps, KeepTheirOrderBehindReadyOnesThatAreLeft) {
  bench_options opts;
  opts.max_batch = 2;
  late_bench b(opts);
  ASSERT_EQ(b.submit({b.late(b.store(0, 0)), b.store(1, 1), b.store(2, 2), b.store(3, 3),
                      b.late(b.store(4, 4)), b.late(b.store(5, 5))}),
            status::ok);
  b.pump();
  const auto& launched = b.faults().launched();
  ASSERT_EQ(launched.size(), 4U);
  EXPECT_THAT(launched[0].slots, ElementsAre(1U, 2U));
  EXPECT_THAT(launched[1].slots, ElementsAre(0U, 4U));
  EXPECT_THAT(launched[2].slots, ElementsAre(3U));
  EXPECT_THAT(launched[3].slots, ElementsAre(5U));
  b.settle();
  EXPECT_EQ(b.completions.size(), 6U);
}

TEST(LateOps, StepThatNobodyMarkedIsNotAskedFor) {
  late_bench b;
  copy_op op = b.store(0, 0);
  op.header.fences.merge({1, 9});
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 1));
  const std::uint64_t before = b.calls();
  b.get().enqueue(op);
  b.pump();
  EXPECT_EQ(b.calls(), before);
  EXPECT_EQ(b.codes(op), codes{status::invalid});
}

TEST(LateOps, CostNoMoreCallsOfTheDevice) {
  late_bench b;
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 4; ++i) ops.push_back(b.late(b.restore(i, i)));
  ASSERT_EQ(b.submit(ops), status::ok);
  std::uint64_t before = b.calls();
  ASSERT_TRUE(b.get().pump());
  EXPECT_EQ(b.calls() - before, 4U) << "query, wait, launch, record";
  b.settle();
  ops.clear();
  for (std::uint32_t i = 0; i < 4; ++i) ops.push_back(b.passed(b.restore(i, i)));
  ASSERT_EQ(b.submit(ops), status::ok);
  before = b.calls();
  ASSERT_TRUE(b.get().pump());
  EXPECT_EQ(b.calls() - before, 3U) << "query, launch, record";
  b.settle();
  ASSERT_EQ(b.submit(b.passed(b.restore(5, 5))), status::ok);
  before = b.calls();
  ASSERT_TRUE(b.get().pump());
  EXPECT_EQ(b.calls() - before, 2U) << "launch, record: the step is known to have passed";
  b.settle();
}

}  // namespace
}  // namespace cairn::tests
