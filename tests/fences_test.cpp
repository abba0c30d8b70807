// One test per fence of the data plane: order that events make and the queue does not. Each test
// runs the streams in the worst order that the fence must forbid.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/copy_batch.hpp"
#include "runtime/host_stream.hpp"
#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;

// 4a.
TEST(Fence, StoreReadsItsSlotAfterTheComputeThatWasMarked) {
  copier_bench b;
  std::function<void()> compute = [&] { b.rank().scribble(2, 40); };
  b.enqueue(b.compute(), compute);
  ASSERT_EQ(b.get().mark({0, 1}), status::ok);

  copy_op store = b.store(2, 0);
  store.header.fences.merge({0, 1});
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  while (b.run(b.copy_stream(0)) + b.run(b.copy_stream(1)) != 0) {
  }
  b.pump();
  EXPECT_TRUE(b.completions.empty()) << "the store ran before the compute";

  b.run(b.compute());
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
  b.model(store);
  EXPECT_TRUE(b.rank().matches());
}

// 4a: the position is the one at the mark, not at the launch.
TEST(Fence, StoreDoesNotWaitForComputeEnqueuedAfterTheMark) {
  copier_bench b;
  ASSERT_EQ(b.get().mark({0, 1}), status::ok);
  b.run(b.compute());
  std::function<void()> later = [] {};
  b.enqueue(b.compute(), later);
  copy_op store = b.store(2, 0);
  store.header.fences.merge({0, 1});
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  b.run(b.copy_stream(0));
  b.run(b.copy_stream(1));
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::ok});
}

// 4b, compute: the slot's old tenant still reads it.
TEST(Fence, RestoreWritesItsSlotAfterEarlierComputeOnIt) {
  copier_bench b;
  std::vector<std::byte> before = b.rank().model_image(4);
  std::vector<std::byte> read;
  std::function<void()> compute = [&] {
    EXPECT_TRUE(b.rank().matches()) << "the restore overtook the compute";
  };
  b.enqueue(b.compute(1), compute);
  ASSERT_EQ(b.get().mark({1, 9}), status::ok);
  copy_op restore = b.restore(4, 0);
  restore.header.fences.merge({1, 9});
  ASSERT_EQ(b.submit(restore), status::ok);
  b.pump();
  b.run(b.restore_stream());
  b.run(b.compute(1));
  b.settle();
  b.model(restore);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.codes(restore), codes{status::ok});
}

// 4b, copies: the store of the old tenant still reads the slot.
TEST(Fence, RestoreWritesItsSlotAfterEarlierCopiesOnIt) {
  copier_bench b;
  const copy_op store = b.store(4, 0);
  const copy_op restore = b.restore(4, 1);
  ASSERT_EQ(b.submit({store, restore}), status::ok);
  b.pump();
  b.run(b.restore_stream());
  b.settle();
  b.model(store);
  b.model(restore);
  EXPECT_TRUE(b.rank().matches());
}

// 4c: units come with the positions of their last users, on whatever stream those ran.
void store_after_last_users(std::initializer_list<std::size_t> order) {
  copier_bench b;
  std::function<void()> reader = [&] {
    EXPECT_TRUE(b.rank().matches()) << "the store overwrote units that were still read";
  };
  b.enqueue(b.compute(0), reader);
  ASSERT_EQ(b.get().mark({0, 5}), status::ok);
  b.enqueue(b.compute(1), reader);
  ASSERT_EQ(b.get().mark({1, 5}), status::ok);
  copy_op store = b.store(1, 3);
  store.header.fences.merge({0, 4});  // an earlier step, covered by the one that was marked
  store.header.fences.merge({1, 5});
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  for (const std::size_t next : order) {
    b.run(b.copy_stream(0));
    b.run(b.copy_stream(1));
    b.run(b.compute(next));
  }
  b.settle();
  b.model(store);
  EXPECT_TRUE(b.rank().matches());
}
TEST(Fence, StoreWritesUnitsAfterTheirLastUsersOnEveryStream) {
  store_after_last_users({0, 1});
  store_after_last_users({1, 0});
}

// 4c: a ring of events is used again and again.
TEST(Fence, StepsOutliveTheirEvents) {
  copier_bench b;
  bool done = false;
  std::function<void()> compute = [&] { done = true; };
  b.enqueue(b.compute(), compute);
  ASSERT_EQ(b.get().mark({0, 1}), status::ok);
  for (std::uint64_t step = 2; step <= 600; ++step) ASSERT_EQ(b.get().mark({0, step}), status::ok);
  for (const std::uint64_t step : {1U, 300U, 600U}) {
    copy_op store = b.store(static_cast<slot_id>(step % 12), step % 7);
    store.header.fences.merge({0, step});
    ASSERT_EQ(b.submit(store), status::ok);
  }
  b.on_completion = [&](const completion&) { EXPECT_TRUE(done); };
  b.pump();
  b.run(b.copy_stream(0));
  b.run(b.copy_stream(1));
  b.pump();
  b.settle();
  EXPECT_EQ(b.completions.size(), 3U);
}

// 4d: whatever the order of arrival.
TEST(Fence, OpsOfOneSlotRunInTheOrderOfTheirNumbers) {
  copier_bench b;
  std::vector<copy_op> ops = {b.store(5, 0, 1), b.restore(5, 1, 2), b.store(5, 2, 3),
                              b.store(5, 3, 4), b.restore(5, 4, 5), b.restore(5, 0, 6),
                              b.store(5, 5, 7)};
  for (const std::size_t i : {3U, 6U, 1U, 5U, 2U, 4U, 0U}) {
    ASSERT_EQ(b.submit(ops[i]), status::ok);
    b.pump();
  }
  // Later copies' streams first.
  for (int i = 0; i < 20; ++i) {
    b.run(b.restore_stream());
    b.run(b.copy_stream(1));
    b.run(b.copy_stream(0));
    b.pump();
  }
  b.settle();
  for (const copy_op& op : ops) {
    b.model(op);
    EXPECT_EQ(b.codes(op), codes{status::ok});
  }
  EXPECT_TRUE(b.rank().matches());
}

// 4e.
TEST(Fence, ComputeBehindOrderAfterWaitsForTheCopies) {
  copier_bench b;
  const copy_op store = b.store(2, 0);
  const copy_op other = b.store(3, 1);
  ASSERT_EQ(b.submit({store, other}), status::ok);
  const std::vector<op_id> ops = {store.header.op, other.header.op};
  ASSERT_EQ(b.get().order_after(0, ops, soon()), status::ok);
  std::function<void()> next_step = [&] {
    b.model(store);
    b.model(other);
    EXPECT_TRUE(b.rank().matches()) << "the next step ran before the store";
    b.rank().scribble(2, 77);
  };
  b.enqueue(b.compute(), next_step);
  b.run(b.compute());
  b.settle();
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.completions.size(), 2U);
}

TEST(Fence, OrderAfterReturnsOnlyOnceTheOpIsLaunched) {
  bench_options opts;
  opts.threaded = true;
  copier_bench b(opts);
  const copy_op first = b.store(2, 0, 1);
  const copy_op second = b.restore(2, 1, 2);
  ASSERT_EQ(b.submit(second), status::ok);

  // Not launched: the call times out, and orders nothing.
  ASSERT_EQ(b.get().order_after(0, {&second.header.op, 1}, now()), status::timed_out);
  bool ran = false;
  std::function<void()> free_step = [&] { ran = true; };
  b.enqueue(b.compute(), free_step);
  b.run(b.compute());
  EXPECT_TRUE(ran);

  std::thread caller([&] {
    EXPECT_EQ(b.get().order_after(0, {&second.header.op, 1}, soon()), status::ok);
    EXPECT_EQ(b.get().order_after_slot(1, 2, soon()), status::ok);
  });
  ASSERT_EQ(b.submit(first), status::ok);
  caller.join();
  std::function<void()> next_step = [&] {
    b.model(first);
    b.model(second);
    EXPECT_TRUE(b.rank().matches());
  };
  b.enqueue(b.compute(0), next_step);
  std::function<void()> nothing = [&] { EXPECT_TRUE(b.rank().matches()); };
  b.enqueue(b.compute(1), nothing);
  EXPECT_EQ(b.run(b.compute(0)), 0);
  EXPECT_EQ(b.run(b.compute(1)), 0);
  while (b.host().step()) {
  }
  EXPECT_EQ(b.get().drain(soon()), status::ok);
  EXPECT_EQ(b.codes(second), codes{status::ok});
}

TEST(Fence, ComputeBehindOrderAfterSlotWaitsForAllCopiesOnIt) {
  copier_bench b;
  const copy_op store = b.store(2, 0, 1);
  const copy_op restore = b.restore(2, 1, 2);
  ASSERT_EQ(b.submit(restore), status::ok);
  ASSERT_EQ(b.submit(store), status::ok);
  ASSERT_EQ(b.get().order_after_slot(0, 2, soon()), status::ok);
  std::function<void()> next_step = [&] {
    b.model(store);
    b.model(restore);
    EXPECT_TRUE(b.rank().matches());
  };
  b.enqueue(b.compute(), next_step);
  b.run(b.compute());
  b.settle();
  EXPECT_EQ(b.completions.size(), 2U);
}

TEST(Fence, OrderAfterSlotTimesOutWhileAnOpOnItIsHeld) {
  copier_bench b;
  ASSERT_EQ(b.submit(b.store(2, 0, 2)), status::ok);
  EXPECT_EQ(b.get().order_after_slot(0, 2, now()), status::timed_out);
  EXPECT_EQ(b.get().order_after_slot(0, 3, now()), status::ok);
}

// 4e: an op that has ended, and one whose index somebody else has by now, order nothing.
TEST(Fence, OrderAfterAnEndedOpReturnsAtOnce) {
  copier_bench b;
  copy_op first = b.store(2, 0);
  ASSERT_EQ(b.submit(first), status::ok);
  b.settle();
  EXPECT_EQ(b.get().order_after(0, {&first.header.op, 1}, now()), status::ok);
  EXPECT_EQ(b.get().order_after_slot(0, 2, now()), status::ok);

  copy_op second = b.store(3, 1);
  second.header.op = {first.header.op.index, first.header.op.generation + 1};
  ASSERT_EQ(b.submit(second), status::ok);
  b.pump();
  EXPECT_EQ(b.get().order_after(0, {&first.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 1) << "ordered behind a stranger";
  EXPECT_EQ(b.get().order_after(0, {&second.header.op, 1}, now()), status::ok);
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0);
  b.settle();
}

TEST(Fence, OrderAfterAnOpThatNeverCameTimesOut) {
  copier_bench b;
  const op_id unknown{77, 1};
  EXPECT_EQ(b.get().order_after(0, {&unknown, 1}, now()), status::timed_out);
  const op_id outside{1024, 1};
  EXPECT_EQ(b.get().order_after(0, {&outside, 1}, now()), status::invalid);
  EXPECT_EQ(b.get().order_after(2, {&unknown, 1}, now()), status::invalid);
}

// 4f: many more launches than batches; the host backend reads tasks and unit ids when it copies.
TEST(Fence, StagingIsNotReusedBeforeItsCopiesAreOver) {
  bench_options opts;
  opts.max_batch = 1;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 24; ++i) ops.push_back(b.store(i % 12, i));
  ASSERT_EQ(b.submit(ops), status::ok);
  b.pump();
  const std::size_t in_flight = b.faults().launched().size();
  EXPECT_EQ(in_flight, 8U) << "two streams with four batches each";
  for (std::size_t i = 0; i < in_flight; ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(b.faults().launched()[i].staging, b.faults().launched()[j].staging);
  // New ops must not take the rows of those in flight.
  for (std::uint32_t i = 24; i < 32; ++i) ops.push_back(b.store(i % 12, i));
  ASSERT_EQ(b.submit({ops.begin() + 24, ops.end()}), status::ok);
  b.settle();
  for (const copy_op& op : ops) {
    b.model(op);
    EXPECT_EQ(b.codes(op), codes{status::ok});
  }
  EXPECT_TRUE(b.rank().matches());
}

// 4f: a caller between finding a batch and waiting on its event keeps the event.
TEST(Fence, HeldBatchIsNotReused) {
  detail::batch_word word;
  word.open();
  ASSERT_TRUE(word.hold(0));
  EXPECT_FALSE(word.retire());
  EXPECT_FALSE(word.hold(0)) << "over: nothing to order";
  EXPECT_FALSE(word.unheld());
  EXPECT_TRUE(word.drop()) << "the last one wakes the copy thread";
  EXPECT_TRUE(word.unheld());
  word.recycle();
  EXPECT_EQ(word.turn(), 1U);
  EXPECT_FALSE(word.hold(1)) << "not recorded yet";
  word.open();
  EXPECT_FALSE(word.hold(0));
  EXPECT_TRUE(word.hold(1));
  EXPECT_FALSE(word.drop());
}

// 4g.
TEST(Fence, CapturingStreamIsRefused) {
  copier_bench b;
  const copy_op store = b.store(2, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  detail::set_capturing(b.compute(0), true);
  EXPECT_EQ(b.get().mark({0, 1}), status::busy);
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::busy);
  EXPECT_EQ(b.get().order_after_slot(0, 2, now()), status::busy);
  EXPECT_EQ(b.get().mark({1, 1}), status::ok);
  copy_op late = b.store(3, 1);
  late.header.fences.merge({0, 1});
  EXPECT_EQ(b.submit(late), status::invalid) << "the refused mark must not count";
  detail::set_capturing(b.compute(0), false);
  EXPECT_EQ(b.get().mark({0, 1}), status::ok);
  EXPECT_EQ(b.submit(late), status::ok);
  b.settle();
  EXPECT_EQ(b.completions.size(), 2U);
}

// Marks of one stream overlap; the later one may be recorded first.
TEST(Fence, OverlappingMarksCoverWhatWasEnqueuedBeforeTheStepWasDrawn) {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  opts.slots = 8;
  copier_bench b(opts);
  constexpr std::uint32_t rounds = 200;
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> done[4] = {};
  std::atomic<std::uint32_t> index{0};
  struct work {
    std::atomic<std::uint64_t>* done;
    std::uint64_t value;
  };
  std::vector<work> works(4 * rounds);
  std::atomic<std::uint32_t> failures{0};
  // Op index -> what must be done before its copy is over.
  std::vector<work*> needs(1024, nullptr);
  b.on_completion = [&](const completion& what) {
    const work& w = *needs[what.op.index];
    if (w.done->load() < w.value) failures.fetch_add(1);
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t r = 0; r < rounds; ++r) {
        work& w = works[t * rounds + r];
        w = {&done[t], r + 1};
        const auto run = [](void* p) {
          auto* each = static_cast<work*>(p);
          each->done->store(each->value);
        };
        while (b.faults().call(b.compute(), run, &w) == status::queue_full)
          std::this_thread::yield();
        const std::uint64_t step = steps.fetch_add(1) + 1;
        while (b.get().mark({0, step}) == status::queue_full) std::this_thread::yield();
        copy_op store;
        store.header.op = {index.fetch_add(1), 1};
        store.header.layout_fingerprint = b.shape().shape().fingerprint();
        store.header.image_bytes = b.shape().shape().image_bytes;
        store.header.slot = t;
        store.header.unit_count = b.shape().units_per_image;
        store.units = b.units(t);
        store.header.fences.merge({0, step});
        needs[store.header.op.index] = &w;
        while (!b.get().submit({&store, 1})) std::this_thread::yield();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(b.get().drain(soon()), status::ok);
  EXPECT_EQ(b.completions.size(), std::size_t{4} * rounds);
  EXPECT_EQ(failures.load(), 0U);
}

}  // namespace
}  // namespace cairn::tests
