// The copier under many threads, and what its paths allocate.
#include <gtest/gtest.h>

#include <atomic>
#include <cairn/copier.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/allocations.hpp"
#include "tests/copier_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

using test::together;
using test::yields;

class CopierUnderLoad : public testing::TestWithParam<bool> {};

TEST_P(CopierUnderLoad, EveryAcceptedOpIsReportedOnceAtShutdown) {
  yields injected;
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t each_thread = 250;
  for (std::uint32_t round = 0; round < 6; ++round) {
    bench_options opts;
    opts.geometry = "tiny";
    opts.manual = false;
    opts.threaded = true;
    opts.store_depth = 48;
    opts.restore_depth = 32;
    opts.max_batch = 1 + round * 3;
    copier_bench b(opts);
    b.faults().poll = GetParam();
    if (round % 2 == 1) b.faults().launches.at(40, status::failed);
    std::vector<std::atomic<std::uint32_t>> reports(1024);
    std::vector<std::atomic<std::uint32_t>> accepted(1024);
    b.on_completion = [&](const completion& what) { reports[what.op.index].fetch_add(1); };
    std::atomic<std::uint32_t> refused{0};
    std::atomic<std::uint32_t> done{0};  // submitters
    std::vector<copy_op> ops;
    for (std::uint32_t i = 0; i < threads * each_thread; ++i)
      // An image per slot: nothing else orders two ops on one image.
      ops.push_back(i % 3 == 0 ? b.restore(i % 12, i % 12) : b.store(i % 12, i % 12));
    together(threads + 1, [&](std::uint32_t t) {
      if (t == threads) {
        while (b.get().outstanding() < 20 && refused.load() < 100 && done.load() < threads)
          std::this_thread::yield();
        if (round < 4)
          (void)b.get().close(round < 2 ? now() : soon());
        else
          b.faults().gone = true;
        return;
      }
      for (std::uint32_t i = 0; i < each_thread; ++i) {
        const copy_op& op = ops[t * each_thread + i];
        if (i % 5 == 0) {
          (void)b.get().mark({t % 2, i + 1});
          (void)b.get().order_after_slot(t % 2, op.header.slot, now());
        }
        if (i % 2 == 0) {
          if (b.get().submit({&op, 1}))
            accepted[op.header.op.index].fetch_add(1);
          else
            refused.fetch_add(1);
        } else if (b.get().try_room(op.header.kind, 1)) {
          accepted[op.header.op.index].fetch_add(1);
          b.get().enqueue(op);
          if (i % 7 == 0) (void)b.get().order_after(t % 2, {&op.header.op, 1}, soon());
        } else {
          refused.fetch_add(1);
        }
      }
      done.fetch_add(1);
    });
    (void)b.get().close(soon());
    EXPECT_EQ(b.get().outstanding(), 0U);
    for (std::size_t i = 0; i < reports.size(); ++i)
      ASSERT_EQ(reports[i].load(), accepted[i].load()) << "op " << i << " in round " << round;
    b.faults().gone = false;
  }
}
INSTANTIATE_TEST_SUITE_P(BellAndPolling, CopierUnderLoad, testing::Bool());

TEST(Copier, ManyThreadsKeepTheOrderOfEachSlot) {
  yields injected;
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  opts.slots = 4;
  copier_bench b(opts);
  // Slot s: restores images in the order of their numbers, from shuffled threads; the last one
  // is what it holds in the end.
  constexpr std::uint32_t each_slot = 60;
  std::vector<copy_op> ops;
  for (std::uint32_t n = 1; n <= each_slot; ++n)
    for (slot_id s = 0; s < 4; ++s) ops.push_back(b.restore(s, (n * 7 + s * 3) % b.images(), n));
  together(4, [&](std::uint32_t t) {
    test::dice d(t + 1);
    std::vector<std::size_t> mine;
    for (std::size_t i = t; i < ops.size(); i += 4) mine.push_back(i);
    // Each thread's ops come in disorder, but not so far apart that the queue fills with
    // numbers that wait for others.
    for (std::size_t i = 0; i + 1 < mine.size(); ++i)
      if (d.below(2) == 0) std::swap(mine[i], mine[i + 1]);
    for (const std::size_t i : mine)
      while (!b.get().submit({&ops[i], 1})) std::this_thread::yield();
  });
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  for (const copy_op& op : ops) b.model(op);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.completions.size(), ops.size());
}

// Ops are cancelled while they wait, arrive or are launched: each is dropped or reported, once.
TEST(Copier, CancellingWhileOthersSubmitLosesNoOp) {
  yields injected;
  bench_options opts;
  opts.geometry = "tiny";
  opts.manual = false;
  opts.threaded = true;
  opts.max_batch = 2;
  copier_bench b(opts);
  constexpr std::uint32_t each_thread = 200;
  // Per op: bit 0 cancelled, bit 1 taken; whichever comes first decides.
  std::vector<std::atomic<std::uint32_t>> fate(1024);
  std::atomic<std::uint32_t> refused{0};
  b.on_cancelled = [&](op_id op) { return fate[op.index].load() == 1; };
  b.on_take = [&](op_id op) {
    std::uint32_t fresh = 0;
    const bool taken = fate[op.index].compare_exchange_strong(fresh, 2);
    if (!taken) refused.fetch_add(1);
    return taken;
  };
  std::vector<copy_op> ops;
  // Restores: stores of one image would write it at once.
  for (std::uint32_t i = 0; i < 3 * each_thread; ++i) ops.push_back(b.restore(i % 12, i % 7));
  std::atomic<std::uint32_t> cancelled{0};
  together(3, [&](std::uint32_t t) {
    for (std::uint32_t i = 0; i < each_thread; ++i) {
      const copy_op& op = ops[t * each_thread + i];
      while (!b.get().submit({&op, 1})) std::this_thread::yield();
      if (i % 3 == 0) continue;
      std::uint32_t fresh = 0;
      if (!fate[op.header.op.index].compare_exchange_strong(fresh, 1)) continue;
      cancelled.fetch_add(1);
      b.get().drop_cancelled();
    }
  });
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  EXPECT_EQ(refused.load(), cancelled.load());
  EXPECT_EQ(b.completions.size(), ops.size() - cancelled.load());
}

TEST(Copier, SubmitDoesNotAllocateAfterAThreadsFirstCalls) {
  if (!allocations_are_counted) GTEST_SKIP() << "a sanitizer owns malloc";
  bench_options opts;
  opts.geometry = "tiny";
  opts.manual = false;
  opts.threaded = true;
  opts.store_depth = 512;
  copier_bench b(opts);
  b.completions.reserve(10'000);
  b.faults().quiet = true;
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 300; ++i) ops.push_back(b.store(i % 12, i % b.images()));
  ASSERT_TRUE(b.get().submit({ops.data(), 1}));
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  const std::uint64_t at_first = allocations_of_this_thread();
  ops.reserve(ops.capacity() + 1);
  ASSERT_GT(allocations_of_this_thread(), at_first) << "nothing is counted";
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = allocations_of_this_thread();
    const bool accepted = b.get().submit(ops).ok();
    const status marked = b.get().mark({0, static_cast<std::uint64_t>(round) + 1});
    const status ordered = b.get().order_after(0, {&ops[299].header.op, 1}, soon());
    const status drained = b.get().drain(soon());
    const std::uint64_t after = allocations_of_this_thread();
    EXPECT_TRUE(accepted);
    EXPECT_EQ(marked, status::ok);
    EXPECT_EQ(ordered, status::ok);
    EXPECT_EQ(drained, status::ok);
    EXPECT_EQ(after, before) << "round " << round;
  }
}

TEST(Copier, PassesDoNotAllocate) {
  if (!allocations_are_counted) GTEST_SKIP() << "a sanitizer owns malloc";
  bench_options opts;
  opts.geometry = "tiny";
  copier_bench b(opts);
  b.completions.reserve(10'000);
  b.faults().quiet = true;
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 40; ++i) ops.push_back(b.store(i % 12, i % b.images()));
  for (std::uint32_t i = 0; i < 40; ++i) ops.push_back(b.restore(i % 12, i % b.images()));
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(b.get().submit(ops));
    std::uint64_t in_pump = 0;
    bool did = true;
    while (did) {
      const std::uint64_t before = allocations_of_this_thread();
      did = b.get().pump();
      in_pump += allocations_of_this_thread() - before;
      while (b.host().step()) did = true;
    }
    if (round > 0) {
      EXPECT_EQ(in_pump, 0U);
    }
  }
}

}  // namespace
}  // namespace cairn::tests
