// Quiet copiers: between quiesce and resume the device is left alone, and nothing is lost by it.
#include <gtest/gtest.h>

#include <atomic>
#include <cairn/copier.hpp>
#include <cairn/runtime.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "tests/copier_fixture.hpp"
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;

bench_options threads() {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  return opts;
}

/// Long after the test has been ended: only what it waits for may wake the caller.
deadline much_later() {
  return clock::now() + std::chrono::hours(1);
}

/// A copier with a copy thread, and compute that does not go on before `open`.
struct gated_bench {
  gated_bench() : b(threads()) {
    b.enqueue(b.compute(), held);
    EXPECT_EQ(b.get().mark({0, 1}), status::ok);
  }
  ~gated_bench() {
    open = true;
    b.destroy_copier();  // before what its thread reports to
  }
  /// A store that the device has and that waits for the compute.
  copy_op stuck() {
    copy_op op = b.store(0, 0);
    op.header.fences.merge({0, 1});
    EXPECT_EQ(b.submit(op), status::ok);
    EXPECT_EQ(b.get().order_after(1, {&op.header.op, 1}, soon()), status::ok) << "launched";
    return op;
  }

  /// Until ops that come are not handed over any more: somebody asks for quiet.
  void until_asked() {
    for (std::uint32_t i = 1;; ++i) {
      const copy_op op = b.restore(1 + i % 8, 1 + i % 8);
      ASSERT_EQ(b.submit(op), status::ok);
      const deadline soon_enough = clock::now() + std::chrono::milliseconds(5);
      if (b.get().order_after(1, {&op.header.op, 1}, soon_enough) == status::timed_out) return;
    }
  }

  std::atomic<bool> open{false};
  std::function<void()> held = [this] {
    while (!open) std::this_thread::yield();
  };
  copier_bench b;
};

// ---- quiet ---------------------------------------------------------------------------------

TEST(Quiesce, NoCallOfTheDeviceUntilResume) {
  bench_options opts;
  opts.store_depth = 3;
  copier_bench b(opts);
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const std::uint64_t calls = b.faults().calls;
  const std::vector<copy_op> ops = {b.store(0, 0), b.restore(1, 1), b.store(1, 2), b.store(2, 3)};
  ASSERT_EQ(b.submit(ops), status::ok);
  EXPECT_EQ(b.submit(b.store(3, 4)), status::queue_full) << "the rooms bound what waits";
  for (int i = 0; i < 5; ++i) b.settle();
  EXPECT_EQ(b.get().drain(now()), status::timed_out);
  EXPECT_EQ(b.faults().calls, calls);
  EXPECT_TRUE(b.completions.empty());
  b.get().resume();
  b.settle();
  for (const copy_op& op : ops) {
    EXPECT_EQ(b.codes(op), codes{status::ok});
    b.model(op);
  }
  EXPECT_TRUE(b.rank().matches());
}

// A cancelled op that is dropped shows that the copy thread has passed.
TEST(Quiesce, CopyThreadMakesNoCallUntilResume) {
  copier_bench b(threads());
  ASSERT_EQ(b.submit(b.store(5, 5)), status::ok);
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  ASSERT_EQ(b.get().quiesce(much_later()), status::ok);
  const std::uint64_t calls = b.faults().calls;
  const std::vector<copy_op> ops = {b.store(0, 0), b.restore(1, 1)};
  const copy_op cancelled = b.store(2, 2);
  b.on_cancelled = [&](op_id op) { return op == cancelled.header.op; };
  b.on_take = [&](op_id op) { return op != cancelled.header.op; };
  ASSERT_EQ(b.submit(ops), status::ok);
  ASSERT_EQ(b.submit(cancelled), status::ok);
  b.get().drop_cancelled();
  while (b.get().outstanding() > 2) std::this_thread::yield();
  EXPECT_EQ(b.faults().calls, calls);
  EXPECT_EQ(b.completions.size(), 1U) << "of the op before";
  b.get().resume();
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
  EXPECT_TRUE(b.codes(cancelled).empty());
}

TEST(Quiesce, ReturnsWhenWhatTheDeviceHasEnded) {
  for (const bool polling : {false, true}) {
    gated_bench g;
    copier_bench& b = g.b;
    b.faults().poll = polling;
    const copy_op stuck = g.stuck();
    std::atomic<bool> quiet{false};
    std::thread engine([&] {
      EXPECT_EQ(b.get().quiesce(soon()), status::ok);
      quiet = true;
      EXPECT_EQ(b.codes(stuck), codes{status::ok}) << "reported before, and seen here";
      EXPECT_EQ(b.completions.size(), 1U);
      b.get().resume();
    });
    EXPECT_EQ(b.get().drain(clock::now() + std::chrono::milliseconds(1)), status::timed_out);
    EXPECT_FALSE(quiet);
    g.open = true;
    engine.join();
    ASSERT_EQ(b.submit(b.restore(1, 1)), status::ok);
    EXPECT_EQ(b.get().drain(soon()), status::ok);
  }
}

TEST(Quiesce, BatchWithoutAnEventGetsItFirst) {
  copier_bench b;
  b.faults().records.always(status::queue_full);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  EXPECT_EQ(b.get().quiesce(now()), status::timed_out);
  b.faults().records.always(status::ok);
  EXPECT_EQ(b.get().quiesce(now()), status::timed_out) << "recorded, and not fired";
  while (b.host().step()) {
  }
  EXPECT_EQ(b.get().quiesce(now()), status::ok);
  EXPECT_EQ(b.codes(store), codes{status::ok});
}

TEST(Quiesce, BatchThatTheDeviceRefusedForNowWaits) {
  copier_bench b;
  b.faults().launches.always(status::queue_full);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  EXPECT_EQ(b.get().quiesce(now()), status::ok);
  b.faults().launches.always(status::ok);
  const std::uint64_t calls = b.faults().calls;
  b.settle();
  EXPECT_EQ(b.faults().calls, calls);
  b.get().resume();
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
}

// ---- not quiet in time ---------------------------------------------------------------------

TEST(Quiesce, TimedOutLeavesTheCopierAtWork) {
  copier_bench b;
  const copy_op flying = b.store(0, 0);
  ASSERT_EQ(b.submit(flying), status::ok);
  b.pump();
  const copy_op next = b.restore(1, 1);
  ASSERT_EQ(b.submit(next), status::ok);
  EXPECT_EQ(b.get().quiesce(now()), status::timed_out);
  EXPECT_EQ(b.faults().launched().size(), 1U) << "handed over nothing while it was asked";
  b.pump();
  EXPECT_EQ(b.faults().launched().size(), 2U);
  b.settle();
  for (const copy_op& op : {flying, next}) EXPECT_EQ(b.codes(op), codes{status::ok});
}

TEST(Quiesce, TimedOutWakesTheCopyThread) {
  gated_bench g;
  const copy_op stuck = g.stuck();
  EXPECT_EQ(g.b.get().quiesce(clock::now() + std::chrono::milliseconds(1)), status::timed_out);
  const copy_op next = g.b.restore(1, 1);
  ASSERT_EQ(g.b.submit(next), status::ok);
  EXPECT_EQ(g.b.get().order_after(1, {&next.header.op, 1}, soon()), status::ok);
  g.open = true;
  EXPECT_EQ(g.b.get().drain(soon()), status::ok);
  for (const copy_op& op : {stuck, next}) EXPECT_EQ(g.b.codes(op), codes{status::ok});
}

// ---- several -------------------------------------------------------------------------------

TEST(Quiesce, GoesOnWhenTheLastHasResumed) {
  copier_bench b;
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.get().resume();
  b.settle();
  EXPECT_TRUE(b.completions.empty());
  b.get().resume();
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
  // One too many changes nothing.
  b.get().resume();
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const copy_op other = b.store(1, 1);
  ASSERT_EQ(b.submit(other), status::ok);
  b.settle();
  EXPECT_TRUE(b.codes(other).empty());
  b.get().resume();
  b.settle();
  EXPECT_EQ(b.codes(other), codes{status::ok});
}

TEST(Quiesce, AskingAgainAfterResumeWaitsAgain) {
  copier_bench b;
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  b.get().resume();
  ASSERT_EQ(b.submit(b.store(0, 0)), status::ok);
  b.pump();
  EXPECT_EQ(b.get().quiesce(now()), status::timed_out) << "the earlier quiet is over";
}

// ---- what goes on meanwhile ----------------------------------------------------------------

TEST(Quiesce, WaitingOpsCanBeCancelled) {
  copier_bench b;
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const std::uint64_t calls = b.faults().calls;
  const copy_op first = b.store(0, 0, 1);
  const copy_op second = b.restore(0, 1, 2);
  const copy_op third = b.store(0, 2, 3);
  ASSERT_EQ(b.submit({first, second, third}), status::ok);
  b.on_take = [&](op_id op) { return op == third.header.op; };
  b.on_cancelled = [&](op_id op) { return op != third.header.op; };
  b.get().drop_cancelled();
  b.pump();
  EXPECT_EQ(b.get().outstanding(), 1U);
  EXPECT_EQ(b.faults().calls, calls);
  b.get().resume();
  b.settle();
  ASSERT_EQ(b.completions.size(), 1U);
  EXPECT_EQ(b.codes(third), codes{status::ok});
}

TEST(Quiesce, OrderingBehindAnOpThatWaitsTimesOut) {
  copier_bench b;
  const copy_op before = b.store(0, 0);
  ASSERT_EQ(b.submit(before), status::ok);
  b.settle();
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  EXPECT_EQ(b.get().mark({0, 1}), status::ok);
  EXPECT_EQ(b.get().order_after(0, {&before.header.op, 1}, now()), status::ok);
  EXPECT_EQ(b.get().order_after_slot(0, 0, now()), status::ok);
  const copy_op waits = b.store(1, 1);
  ASSERT_EQ(b.submit(waits), status::ok);
  EXPECT_EQ(b.get().order_after(0, {&waits.header.op, 1}, now()), status::timed_out);
  EXPECT_EQ(b.get().order_after_slot(0, 1, now()), status::timed_out);
  b.get().resume();
  b.pump();
  EXPECT_EQ(b.get().order_after(0, {&waits.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 1) << "the mark alone: the step is behind the store";
  b.settle();
  EXPECT_EQ(b.codes(waits), codes{status::ok});
}

// ---- the end -------------------------------------------------------------------------------

TEST(Quiesce, CloseEndsTheQuiet) {
  copier_bench b(threads());
  ASSERT_EQ(b.get().quiesce(soon()), status::ok);
  const copy_op waits = b.store(0, 0);
  ASSERT_EQ(b.submit(waits), status::ok);
  EXPECT_EQ(b.get().close(soon()), status::ok);
  EXPECT_EQ(b.codes(waits), codes{status::ok});
  EXPECT_EQ(b.get().quiesce(soon()), status::closed);
  b.get().resume();
}

TEST(Quiesce, CloseWithoutTimeReportsWhatWaits) {
  copier_bench b;
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const copy_op waits = b.store(0, 0);
  ASSERT_EQ(b.submit(waits), status::ok);
  EXPECT_EQ(b.get().close(now()), status::ok);
  EXPECT_EQ(b.codes(waits), codes{status::cancelled});
}

TEST(Quiesce, CloseAnswersWhoStillWaits) {
  gated_bench g;
  (void)g.stuck();
  std::thread engine([&] { EXPECT_EQ(g.b.get().quiesce(much_later()), status::closed); });
  g.until_asked();
  EXPECT_EQ(g.b.get().close(now()), status::timed_out);
  engine.join();
}

TEST(Quiesce, LostDeviceFailsWhatWaits) {
  copier_bench b;
  ASSERT_EQ(b.get().quiesce(now()), status::ok);
  const std::vector<copy_op> ops = {b.store(0, 0), b.restore(0, 1)};
  ASSERT_EQ(b.submit(ops), status::ok);
  b.pump();
  b.faults().gone = true;
  EXPECT_EQ(b.get().mark({0, 1}), status::device_lost);
  const std::uint64_t calls = b.faults().calls;
  b.settle();
  EXPECT_EQ(b.faults().calls, calls);
  for (const copy_op& op : ops) {
    EXPECT_EQ(b.codes(op), codes{status::device_lost});
    EXPECT_EQ(b.unproven(op), std::vector<bool>{false});
  }
  EXPECT_EQ(b.get().outstanding(), 0U);
  EXPECT_EQ(b.get().quiesce(now()), status::device_lost);
  b.get().resume();
  b.settle();
  EXPECT_EQ(b.completions.size(), 2U);
}

TEST(Quiesce, LostDeviceAnswersWhoStillWaits) {
  gated_bench g;
  (void)g.stuck();
  std::thread engine([&] { EXPECT_EQ(g.b.get().quiesce(much_later()), status::device_lost); });
  g.until_asked();
  g.b.faults().gone = true;
  EXPECT_EQ(g.b.get().mark({0, 2}), status::device_lost);
  engine.join();
  g.b.faults().gone = false;
}

// ---- several ranks -------------------------------------------------------------------------

TEST(Quiesce, RuntimeIsQuietOnAllRanksOrOnNone) {
  runtime_rig rig({.ranks = 2});
  auto stuck = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stuck.ok());
  (void)rig.rt->pump();
  while (rig.devices.step(rig.compute(0, 0))) {
  }
  for (std::uint32_t s = 0; s < 3; ++s)
    while (rig.devices.step(rig.copy_stream(0, s))) {
    }
  ASSERT_EQ(rig.rt->rank(0).quiesce(clock::now()), status::ok);
  rig.rt->rank(0).resume();
  EXPECT_EQ(rig.rt->quiesce(clock::now()), status::timed_out) << "rank 1 has not copied";
  auto other = rig.rt->restore(key_of(1), 1, 0);
  EXPECT_EQ(other.code(), status::not_found);
  auto more = rig.rt->store(key_of(2), 2, 0);
  ASSERT_TRUE(more.ok());
  (void)rig.rt->pump();
  EXPECT_EQ(rig.rt->rank(0).order_after_slot(0, 2, clock::now()), status::ok)
      << "rank 0, which was quiet, goes on";
  rig.run();
  EXPECT_EQ(stuck->code(), status::ok);
  EXPECT_EQ(more->code(), status::ok);

  ASSERT_EQ(rig.rt->quiesce(clock::now()), status::ok);
  auto waits = rig.rt->restore(key_of(1), 3, 0);
  ASSERT_TRUE(waits.ok());
  auto cancelled = rig.rt->restore(key_of(2), 4, 0);
  ASSERT_TRUE(cancelled.ok());
  const std::uint64_t calls = rig.devices.faulty(0).calls + rig.devices.faulty(1).calls;
  EXPECT_TRUE(cancelled->cancel());
  rig.run();
  EXPECT_EQ(rig.devices.faulty(0).calls + rig.devices.faulty(1).calls, calls);
  EXPECT_EQ(waits->code(), status::pending);
  EXPECT_EQ(cancelled->code(), status::cancelled);
  rig.rt->resume();
  rig.run();
  EXPECT_EQ(waits->code(), status::ok);
}

TEST(Quiesce, RuntimeWithCopyThreads) {
  runtime_rig rig({.ranks = 2, .manual = false});
  rig.write(0, 1);
  auto before = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(before.ok());
  ASSERT_EQ(rig.rt->quiesce(runtime_rig::soon()), status::ok);
  auto waits = rig.rt->store(key_of(2), 1, 0);
  ASSERT_TRUE(waits.ok());
  rig.write(1, 2);  // what waits sees what was written in the quiet
  rig.rt->resume();
  ASSERT_EQ(waits->wait(runtime_rig::soon()), status::ok);
  auto back = rig.rt->restore(key_of(2), 2, 0);
  ASSERT_TRUE(back.ok());
  ASSERT_EQ(back->wait(runtime_rig::soon()), status::ok);
  EXPECT_TRUE(rig.holds(2, 2));
  EXPECT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->quiesce(runtime_rig::soon()), status::closed);
}

}  // namespace
}  // namespace cairn::tests
