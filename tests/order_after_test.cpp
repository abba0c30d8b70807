// What order_after meets between its look at an op and its wait: a batch that ends, a compute
// stream that holds all it can. That it orders is in fences_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;

// The copy ends, and others come, between a caller's look and its wait.
TEST(OrderAfter, TheBatchOfACallerInsideIsNotReused) {
  bench_options opts;
  opts.max_batch = 1;
  opts.store_streams = 1;
  copier_bench b(opts);
  const copy_op first = b.store(2, 0);
  ASSERT_EQ(b.submit(first), status::ok);
  b.pump();
  const copy_task* const its = b.faults().launched().at(0).staging;
  const auto others = [&] {
    std::vector<copy_op> ops;
    for (std::uint32_t i = 0; i < 9; ++i) ops.push_back(b.store(3 + i % 9, 1 + i));
    ASSERT_EQ(b.submit(ops), status::ok);
    b.settle();
    for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
  };
  b.faults().in_wait = [&] {
    b.settle();
    EXPECT_EQ(b.codes(first), codes{status::ok});
    others();
    for (std::size_t i = 1; i < b.faults().launched().size(); ++i)
      EXPECT_NE(b.faults().launched()[i].staging, its) << "launch " << i;
  };
  ASSERT_EQ(b.get().order_after(0, {&first.header.op, 1}, soon()), status::ok);
  ASSERT_EQ(b.faults().launched().size(), 10U);
  others();
  std::size_t again = 0;
  for (std::size_t i = 10; i < b.faults().launched().size(); ++i)
    if (b.faults().launched()[i].staging == its) ++again;
  EXPECT_GT(again, 0U) << "the caller has gone, and the batch does not come back";
}

TEST(OrderAfter, FullComputeStreamIsAskedAgain) {
  copier_bench b;
  const copy_op store = b.store(2, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  std::function<void()> step = [] {};
  b.faults().waits.at(1, status::queue_full);
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, soon()), status::ok);
  b.faults().waits.at(1, status::queue_full);
  EXPECT_EQ(b.get().order_after_slot(1, 2, soon()), status::ok);
  for (const std::size_t c : {0U, 1U}) {
    b.enqueue(b.compute(c), step);
    EXPECT_EQ(b.run(b.compute(c)), 0) << "compute " << c << " is not ordered";
  }
  b.settle();
}

TEST(OrderAfter, ComputeStreamThatStaysFullTimesOut) {
  copier_bench b;
  const copy_op store = b.store(2, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  b.faults().waits.always(status::queue_full);
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::timed_out);
  EXPECT_EQ(b.get().order_after_slot(0, 2, now()), status::timed_out);
  // Once the copy is over there is nothing to wait for.
  while (b.run(b.copy_stream(0)) + b.run(b.copy_stream(1)) != 0) {
  }
  b.pump();
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::ok);
  EXPECT_EQ(b.get().order_after_slot(0, 2, now()), status::ok);
}

}  // namespace
}  // namespace cairn::tests
