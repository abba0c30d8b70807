// How ops end when something fails, when the device is lost, and when the copier closes.
#include <gtest/gtest.h>

#include <atomic>
#include <cairn/copier.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;
using flags = std::vector<bool>;

// ---- failures ------------------------------------------------------------------------------

TEST(Copier, FailedLaunchFailsItsOpsAndNoOthers) {
  bench_options opts;
  opts.max_batch = 2;
  copier_bench b(opts);
  const std::vector<copy_op> ops = {b.store(0, 0), b.store(1, 1), b.store(2, 2), b.store(3, 3)};
  b.faults().launches.at(1, status::failed);
  ASSERT_EQ(b.submit(ops), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(ops[0]), codes{status::failed});
  EXPECT_EQ(b.codes(ops[1]), codes{status::failed});
  EXPECT_EQ(b.codes(ops[2]), codes{status::ok});
  EXPECT_EQ(b.codes(ops[3]), codes{status::ok});
  b.model(ops[2]);
  b.model(ops[3]);
  EXPECT_TRUE(b.rank().matches());
  // The slot is not stuck.
  const copy_op again = b.store(0, 5);
  ASSERT_EQ(b.submit(again), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(again), codes{status::ok});
}

// Two ways for a device to say that a copy went wrong which it had taken.
TEST(Copier, ACopyThatTheDeviceCallsFailedIsNoSuccess) {
  for (const bool by_event : {false, true}) {
    copier_bench b;
    (by_event ? b.faults().fail_events : b.faults().fail_copies) = true;
    const copy_op store = b.store(0, 0);
    const copy_op restore = b.restore(1, 1);
    ASSERT_EQ(b.submit({store, restore}), status::ok);
    b.settle();
    EXPECT_EQ(b.codes(store), codes{status::failed}) << by_event;
    EXPECT_EQ(b.codes(restore), codes{status::failed}) << by_event;
    EXPECT_EQ(b.get().slot_status(1), status::poisoned);
    EXPECT_FALSE(b.get().lost()) << "a copy failed, not the device";
    (by_event ? b.faults().fail_events : b.faults().fail_copies) = false;
    const copy_op next = b.store(0, 2);
    ASSERT_EQ(b.submit(next), status::ok);
    b.settle();
    EXPECT_EQ(b.codes(next), codes{status::ok}) << by_event;
  }
}

// A launch that failed may have enqueued a part: its ops end when the stream has passed it.
TEST(Copier, OpsOfAFailedLaunchEndOnlyWhenNothingCanRunAnyMore) {
  copier_bench b;
  b.faults().launches.at(1, status::failed);
  b.faults().launch_then_fail = true;
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0) << "ordered behind what may still run";
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::failed});
}

TEST(Copier, ALaunchThatIsRefusedForNowPutsItsWaitsOnce) {
  copier_bench b;
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  ASSERT_EQ(b.get().mark({0, 1}), status::ok);
  b.faults().launches.always(status::queue_full);
  copy_op store = b.store(0, 0);
  store.header.fences.steps[0] = 1;
  ASSERT_EQ(b.submit(store), status::ok);
  for (int i = 0; i < 10; ++i) (void)b.get().pump();
  EXPECT_EQ(b.faults().waits_put.load(), 1U);
  b.faults().launches.always(status::ok);
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
  // The next batch of the same place waits for itself.
  b.enqueue(b.compute(), step);
  ASSERT_EQ(b.get().mark({0, 2}), status::ok);
  for (slot_id slot = 1; slot <= 8; ++slot) {
    copy_op next = b.store(slot, slot);
    next.header.fences.steps[0] = 2;
    ASSERT_EQ(b.submit(next), status::ok);
    b.pump();
  }
  EXPECT_GT(b.faults().waits_put.load(), 1U);
  b.settle();
}

TEST(Copier, FailedRecordHoldsItsOpsUntilTheyAreProvenOver) {
  copier_bench b;
  b.faults().records.always(status::failed);
  const copy_op store = b.store(0, 0);
  const copy_op next = b.restore(0, 1);
  ASSERT_EQ(b.submit({store, next}), status::ok);
  b.pump();
  while (b.host().step()) {
  }
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::timed_out);
  b.faults().records.always(status::ok);
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::failed});
  EXPECT_EQ(b.codes(next), codes{status::ok});
}

TEST(Copier, FailedWaitFailsItsOpsBeforeTheyRun) {
  copier_bench b;
  const copy_op store = b.store(0, 0);
  const copy_op restore = b.restore(0, 1);
  const copy_op last = b.store(0, 2);
  b.faults().waits.at(1, status::failed);
  ASSERT_EQ(b.submit({store, restore, last}), status::ok);
  b.pump();
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
  EXPECT_EQ(b.codes(restore), codes{status::failed});
  EXPECT_EQ(b.codes(last), codes{status::poisoned}) << "of a slot that should have been restored";
  b.model(store);
  b.model(last);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Copier, FullStreamIsNotAFailure) {
  bench_options opts;
  opts.stream_depth = 4;
  opts.max_batch = 1;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.store(i, i));
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.restore(i, 12 + i));
  ASSERT_EQ(b.submit(ops), status::ok);
  b.settle();
  for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
}

TEST(Copier, LostDeviceFailsWhatIsOutstandingAndRefusesMore) {
  bench_options opts;
  opts.max_batch = 1;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.store(i, i));
  ops.push_back(b.restore(3, 3, 2));  // waits for a number
  ASSERT_EQ(b.submit(ops), status::ok);
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 1));
  b.pump();
  b.faults().gone = true;
  EXPECT_EQ(b.get().mark({0, 1}), status::device_lost);
  EXPECT_TRUE(b.get().lost());
  b.pump();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(b.codes(ops[i]), codes{status::device_lost});
    EXPECT_EQ(b.unproven(ops[i]), flags{i < 8}) << "the device had the first eight";
  }
  EXPECT_EQ(b.submit(b.store(0, 0)), status::device_lost);
  EXPECT_FALSE(b.get().try_room(copy_kind::restore, 1));
  EXPECT_EQ(b.get().order_after(0, {&ops[0].header.op, 1}, now()), status::device_lost);
  // An op whose room was taken before is reported all the same.
  const copy_op late = b.store(1, 1);
  b.get().enqueue(late);
  b.pump();
  EXPECT_EQ(b.codes(late), codes{status::device_lost});
  EXPECT_EQ(b.get().close(now()), status::timed_out) << "the first eight may still run";
}

// Its events fail before any call does. The stream may go on copying all the same.
TEST(Copier, FailedEventOfALostDeviceProvesNothing) {
  copier_bench b;
  const copy_op flying = b.store(0, 0, 1);
  const copy_op held = b.store(1, 1, 2);
  ASSERT_EQ(b.submit({flying, held}), status::ok);
  b.pump();
  b.faults().gone = true;
  b.pump();
  EXPECT_TRUE(b.get().lost());
  EXPECT_EQ(b.codes(flying), codes{status::device_lost});
  EXPECT_EQ(b.unproven(flying), flags{true});
  EXPECT_EQ(b.codes(held), codes{status::device_lost});
  EXPECT_EQ(b.unproven(held), flags{false});
  EXPECT_EQ(b.get().outstanding(), 0U);
  EXPECT_EQ(b.get().close(now()), status::timed_out);
  // The copy does run, from a row and a batch that were kept for it.
  b.faults().gone = false;
  b.settle();
  b.model(flying);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.get().close(now()), status::ok);
  EXPECT_EQ(b.completions.size(), 2U) << "nothing is reported twice";
}

TEST(Copier, LaunchThatLostTheDeviceMayHaveEnqueuedAPart) {
  copier_bench b;
  b.faults().launches.at(1, status::device_lost);
  b.faults().launch_then_fail = true;
  b.faults().records.always(status::device_lost);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::device_lost});
  EXPECT_EQ(b.unproven(store), flags{true});
  EXPECT_EQ(b.get().close(now()), status::timed_out);
}

// ---- ops that were not checked ---------------------------------------------------------------

TEST(Copier, UncheckedOpEndsInvalidAndItsNeighboursRun) {
  copier_bench b;
  ASSERT_EQ(b.get().mark({0, 4}), status::ok);
  const std::vector<unit_id> none;
  std::vector<unit_id> outside = b.units(2);
  outside.back() = 96;
  std::vector<unit_id> far = b.units(2);
  far.front() = no_unit;
  std::vector<unit_id> many(5000, 0);
  copy_op out = b.store(1, 2);
  out.units = outside;
  copy_op off = b.restore(2, 2);
  off.units = far;
  copy_op unmarked = b.store(3, 3);
  unmarked.header.fences.merge({0, 5});
  copy_op nowhere = b.store(4, 4);
  nowhere.header.fences.merge({7, 1});
  copy_op empty = b.store(5, 5);
  empty.units = none;
  copy_op full = b.store(6, 5);
  full.units = many;
  copy_op first = b.store(0, 0);
  first.header.fences.merge({0, 3});
  const copy_op last = b.store(7, 1);
  const copy_op after = b.store(1, 3);  // the slot is not stuck
  const std::vector<copy_op> bad = {out, off, unmarked, nowhere, empty, full};
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 8));
  ASSERT_TRUE(b.get().try_room(copy_kind::restore, 1));
  b.get().enqueue(first);
  for (const copy_op& op : bad) b.get().enqueue(op);
  b.get().enqueue(last);
  b.get().enqueue(after);
  b.settle();
  for (const copy_op& op : bad) {
    EXPECT_EQ(b.codes(op), codes{status::invalid}) << "op " << op.header.op.index;
    EXPECT_EQ(b.unproven(op), flags{false});
  }
  for (const copy_op& op : {first, last, after}) {
    EXPECT_EQ(b.codes(op), codes{status::ok});
    b.model(op);
  }
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.get().drain(now()), status::ok);
}

TEST(Copier, DeviceLostInALaunchEndsAllThatWaits) {
  copier_bench b;
  b.faults().launches.at(1, status::device_lost);
  const copy_op store = b.store(0, 0);
  const copy_op behind = b.restore(0, 1);
  ASSERT_EQ(b.submit({store, behind}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::device_lost});
  EXPECT_EQ(b.codes(behind), codes{status::device_lost});
  EXPECT_EQ(b.get().outstanding(), 0U);
}

// ---- closing -------------------------------------------------------------------------------

TEST(Copier, CloseReportsTheRestWhenTimeIsUp) {
  copier_bench b;
  const copy_op flying = b.store(0, 0, 1);
  const copy_op held = b.store(1, 1, 2);
  const copy_op dropped = b.store(2, 2, 2);
  b.on_take = [&](op_id op) { return op != dropped.header.op; };
  ASSERT_EQ(b.submit({flying, held, dropped}), status::ok);
  b.pump();
  EXPECT_EQ(b.get().close(now()), status::timed_out);
  EXPECT_EQ(b.codes(flying), codes{status::timed_out});
  EXPECT_EQ(b.unproven(flying), flags{true});
  EXPECT_EQ(b.codes(held), codes{status::cancelled});
  EXPECT_EQ(b.unproven(held), flags{false});
  EXPECT_TRUE(b.codes(dropped).empty());
  EXPECT_EQ(b.submit(b.store(3, 3)), status::closed);
  // Still ordered behind what may run, and proven over later.
  EXPECT_EQ(b.get().order_after(0, {&flying.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0);
  b.settle();
  EXPECT_EQ(b.get().close(now()), status::ok);
  EXPECT_EQ(b.completions.size(), 2U) << "nothing is reported twice";
  b.model(flying);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Copier, CloseLetsAcceptedOpsFinish) {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 30; ++i) ops.push_back(b.store(i % 12, i));
  ASSERT_EQ(b.submit(ops), status::ok);
  EXPECT_EQ(b.get().close(soon()), status::ok);
  for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
  EXPECT_EQ(b.get().close(soon()), status::ok);
}

TEST(Copier, CloseWaitsForRoomsThatAreStillOut) {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  copier_bench b(opts);
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 2));
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    // Long after the test has been ended: only the room that comes back may wake it.
    EXPECT_EQ(b.get().close(clock::now() + std::chrono::hours(1)), status::ok);
    closed = true;
  });
  while (b.get().try_room(copy_kind::restore, 1)) b.get().give_room(copy_kind::restore, 1);
  const copy_op late = b.store(0, 0);
  b.get().enqueue(late);
  while (b.get().outstanding() != 0) std::this_thread::yield();
  EXPECT_FALSE(closed.load());
  b.get().give_room(copy_kind::store, 1);
  closer.join();
  EXPECT_EQ(b.codes(late), codes{status::ok});
}

TEST(Copier, DestructionReportsWhatIsLeft) {
  copier_bench b;
  const copy_op held = b.store(1, 1, 2);
  ASSERT_EQ(b.submit(held), status::ok);
  b.destroy_copier();
  EXPECT_EQ(b.codes(held), codes{status::cancelled});
}

TEST(Copier, DrainWithoutTimeTimesOut) {
  copier_bench b;
  EXPECT_EQ(b.get().drain(now()), status::ok);
  ASSERT_EQ(b.submit(b.store(0, 0)), status::ok);
  EXPECT_EQ(b.get().drain(now()), status::timed_out);
  b.settle();
  EXPECT_EQ(b.get().drain(now()), status::ok);
}

}  // namespace
}  // namespace cairn::tests
