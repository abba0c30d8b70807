// Ops whose time is up, in one copier: when they end, as what, what stays taken until they are
// proven over, and what their slot takes meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/deadline_line.hpp"
#include "tests/copier_fixture.hpp"
#include "tests/virtual_clock.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;
using flags = std::vector<bool>;
using namespace std::chrono_literals;

// Far beyond what a test takes, so that real time that passes meanwhile makes nothing late.
constexpr auto limit = std::chrono::nanoseconds(10min);
constexpr auto half = limit / 2;

bench_options timed() {
  bench_options opts;
  opts.op_timeout = limit;
  return opts;
}

TEST(Deadlines, AnOpThatWaitsEndsInTimeAndNeverRuns) {
  copier_bench b(timed());
  const copy_op early = b.restore(0, 0, 2);  // waits for the first number
  ASSERT_EQ(b.submit(early), status::ok);
  advance_clock(half);
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  advance_clock(half);
  b.pump();
  EXPECT_EQ(b.codes(early), codes{status::timed_out});
  EXPECT_EQ(b.unproven(early), flags{false});
  EXPECT_EQ(b.get().outstanding(), 0U);
  // Its number has passed with it.
  const copy_op first = b.store(0, 1, 1);
  const copy_op third = b.restore(0, 2, 3);
  ASSERT_EQ(b.submit({first, third}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(third), codes{status::ok});
  b.model(first);
  b.model(third);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.completions.size(), 3U);
  EXPECT_TRUE(b.proofs.empty());
}

TEST(Deadlines, AnOpThatTheDeviceHasIsGivenUpAndProvenOverLater) {
  copier_bench b(timed());
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::timed_out});
  EXPECT_EQ(b.unproven(store), flags{true});
  EXPECT_EQ(b.get().outstanding(), 0U);
  EXPECT_TRUE(b.proofs.empty());
  // Compute can still be ordered behind it.
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0);
  b.settle();
  ASSERT_EQ(b.proofs.size(), 1U);
  EXPECT_EQ(b.proofs[0].op, store.header.op);
  EXPECT_EQ(b.proofs[0].rank, 3U);
  EXPECT_EQ(b.proofs[0].epoch, 5U);
  EXPECT_NE(b.proofs[0].code, status::ok) << "to somebody who overlooks what it is";
  EXPECT_EQ(b.completions.size(), 1U) << "the end was reported once";
  b.model(store);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Deadlines, EachOpHasItsOwn) {
  copier_bench b(timed());
  const copy_op early = b.store(0, 0);
  const copy_op waits = b.restore(1, 1, 2);
  ASSERT_EQ(b.submit({early, waits}), status::ok);
  advance_clock(half);
  const copy_op later = b.store(2, 2);
  const copy_op waits_too = b.restore(3, 3, 2);
  ASSERT_EQ(b.submit({later, waits_too}), status::ok);
  b.pump();
  ASSERT_EQ(b.faults().launched().size(), 1U) << "in one batch";
  advance_clock(half);
  b.pump();
  EXPECT_EQ(b.codes(early), codes{status::timed_out});
  EXPECT_EQ(b.codes(waits), codes{status::timed_out});
  EXPECT_EQ(b.completions.size(), 2U);
  b.settle();
  EXPECT_EQ(b.codes(later), codes{status::ok});
  EXPECT_EQ(b.proofs.size(), 1U);
  advance_clock(half);
  b.pump();
  EXPECT_EQ(b.codes(waits_too), codes{status::timed_out});
  EXPECT_EQ(b.completions.size(), 4U);
}

TEST(Deadlines, WhatTheDeviceRefusedForNowLeavesItsBatch) {
  copier_bench b(timed());
  b.faults().launches.always(status::queue_full);
  const copy_op late = b.store(0, 0);
  const copy_op alone = b.restore(4, 4);
  ASSERT_EQ(b.submit({late, alone}), status::ok);
  advance_clock(half);
  const copy_op in_time = b.store(1, 1);
  const copy_op behind = b.restore(0, 2);
  ASSERT_EQ(b.submit(in_time), status::ok);
  b.pump();
  ASSERT_EQ(b.submit(behind), status::ok);
  b.pump();
  advance_clock(half);
  b.pump();
  for (const copy_op& op : {late, alone}) {
    EXPECT_EQ(b.codes(op), codes{status::timed_out});
    EXPECT_EQ(b.unproven(op), flags{false});
  }
  b.faults().launches.always(status::ok);
  b.settle();
  EXPECT_EQ(b.codes(in_time), codes{status::ok});
  EXPECT_EQ(b.codes(behind), codes{status::ok}) << "the slot goes on";
  for (const faulty_device::launch_note& each : b.faults().launched())
    EXPECT_NE(each.slots, std::vector<slot_id>{4});
  b.model(in_time);
  b.model(behind);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_TRUE(b.proofs.empty());
}

TEST(Deadlines, ACopyWithoutAnEventIsGivenUpToo) {
  copier_bench b(timed());
  b.faults().records.always(status::queue_full);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::timed_out});
  EXPECT_EQ(b.unproven(store), flags{true});
  EXPECT_EQ(b.get().slot_status(0), status::busy);
  b.faults().records.always(status::ok);
  b.settle();
  EXPECT_EQ(b.proofs.size(), 1U);
  EXPECT_EQ(b.get().slot_status(0), status::ok);
}

TEST(Deadlines, NoTimeMeansNever) {
  bench_options opts;
  opts.op_timeout = 0ns;
  copier_bench b(opts);
  ASSERT_EQ(b.submit({b.store(0, 0), b.store(1, 1, 2)}), status::ok);
  b.pump();
  advance_clock(std::chrono::hours(24 * 365));
  b.pump();
  EXPECT_TRUE(b.completions.empty());
}

TEST(Deadlines, ALongTimeDoesNotOverflow) {
  bench_options opts;
  opts.op_timeout = std::chrono::nanoseconds::max();
  copier_bench b(opts);
  const copy_op op = b.store(0, 0);
  ASSERT_EQ(b.submit(op), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(op), codes{status::ok});
}

TEST(Deadlines, ANegativeTimeIsRefused) {
  copier_bench b;
  copier_options opts = b.options();
  opts.op_timeout = -1ns;
  const auto opened = copier::open(opts, b.faults());
  EXPECT_EQ(opened.code(), status::invalid);
  EXPECT_NE(opened.why().message().find("op_timeout"), std::string::npos);
}

TEST(Deadlines, RunOnWhileTheCopierIsQuiet) {
  copier_bench b(timed());
  ASSERT_EQ(b.get().quiesce(soon()), status::ok);
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  const std::uint64_t calls = b.faults().calls;
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::timed_out});
  EXPECT_EQ(b.unproven(store), flags{false});
  EXPECT_EQ(b.faults().calls, calls) << "the device was called";
  b.get().resume();
  b.settle();
  EXPECT_EQ(b.completions.size(), 1U);
  EXPECT_TRUE(b.rank().matches()) << "it ran";
}

TEST(Deadlines, QuietIsOnlyThereWhenWhatWasGivenUpIsOver) {
  copier_bench b(timed());
  ASSERT_EQ(b.submit(b.store(0, 0)), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.completions.size(), 1U);
  EXPECT_EQ(b.get().quiesce(now()), status::timed_out);
  b.settle();
  EXPECT_EQ(b.get().quiesce(now()), status::ok);
  b.get().resume();
}

TEST(Deadlines, ARoomComesBackWithTheProof) {
  bench_options opts = timed();
  opts.store_depth = 2;
  copier_bench b(opts);
  ASSERT_EQ(b.submit({b.store(0, 0), b.store(1, 1, 2)}), status::ok);
  b.pump();
  EXPECT_EQ(b.submit(b.store(2, 2)), status::queue_full);
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.completions.size(), 2U);
  // The one that never ran gave its room back.
  const copy_op next = b.store(3, 3);
  ASSERT_EQ(b.submit(next), status::ok);
  EXPECT_EQ(b.submit(b.store(2, 2)), status::queue_full);
  b.settle();
  EXPECT_EQ(b.codes(next), codes{status::ok});
  ASSERT_EQ(b.submit({b.store(2, 2), b.store(4, 4)}), status::ok);
  b.settle();
  EXPECT_EQ(b.get().close(now()), status::ok);
}

TEST(Deadlines, CloseReportsWhatTimedOutNoSecondTime) {
  copier_bench b(timed());
  const copy_op late = b.store(0, 0);
  ASSERT_EQ(b.submit(late), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  const copy_op flying = b.store(1, 1);
  const copy_op waits = b.store(2, 2, 2);
  ASSERT_EQ(b.submit({flying, waits}), status::ok);
  b.pump();
  EXPECT_EQ(b.get().close(now()), status::timed_out);
  EXPECT_EQ(b.codes(late), codes{status::timed_out});
  EXPECT_EQ(b.codes(flying), codes{status::timed_out});
  EXPECT_EQ(b.unproven(flying), flags{true});
  EXPECT_EQ(b.codes(waits), codes{status::cancelled});
  b.settle();
  EXPECT_EQ(b.proofs.size(), 2U) << "also after the end of time";
  EXPECT_EQ(b.get().close(now()), status::ok);
  EXPECT_EQ(b.completions.size(), 3U);
}

TEST(Deadlines, ALostDeviceProvesNothingOfWhatTimedOut) {
  copier_bench b(timed());
  const copy_op late = b.store(0, 0);
  ASSERT_EQ(b.submit(late), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  b.faults().gone = true;
  b.pump();
  EXPECT_TRUE(b.get().lost());
  EXPECT_EQ(b.codes(late), codes{status::timed_out});
  EXPECT_TRUE(b.proofs.empty());
  EXPECT_EQ(b.get().close(now()), status::timed_out);
  EXPECT_EQ(b.get().slot_status(0), status::device_lost);
  EXPECT_EQ(b.get().reset_slot(0), status::device_lost);
}

TEST(Deadlines, ACancelledOpIsNotReported) {
  copier_bench b(timed());
  const copy_op op = b.store(0, 0, 2);
  b.on_take = [](op_id) { return false; };
  ASSERT_EQ(b.submit(op), status::ok);
  b.pump();
  advance_clock(limit);
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_EQ(b.get().outstanding(), 0U);
}

TEST(Deadlines, TheSlotOfACopyThatWasGivenUpIsBusyUntilTheProof) {
  copier_bench b(timed());
  for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
    const slot_id slot = kind == copy_kind::store ? 0 : 1;
    const copy_op late = b.op(kind, slot, 0);
    ASSERT_EQ(b.submit(late), status::ok);
    b.pump();
    const copy_op before = b.restore(slot, 1);  // waits on the device, behind it
    ASSERT_EQ(b.submit(before), status::ok);
    b.pump();
    EXPECT_EQ(b.get().slot_status(slot), status::ok);
    advance_clock(limit);
    b.pump();
    EXPECT_EQ(b.codes(late), codes{status::timed_out});
    EXPECT_EQ(b.get().slot_status(slot), status::busy);
    EXPECT_EQ(b.get().reset_slot(slot), status::busy);
    EXPECT_EQ(b.submit(b.restore(slot, 2)), status::busy);
    EXPECT_EQ(b.submit(b.store(slot, 2)), status::busy);
    // Who looked too early, or not at all.
    const copy_op unchecked = b.restore(slot, 3);
    ASSERT_TRUE(b.get().try_room(copy_kind::restore, 1));
    b.get().enqueue(unchecked);
    b.pump();
    EXPECT_EQ(b.codes(unchecked), codes{status::busy});
    EXPECT_EQ(b.unproven(unchecked), flags{false});
    const copy_op elsewhere = b.store(5, 4);
    EXPECT_EQ(b.submit(elsewhere), status::ok);
    b.settle();
    EXPECT_EQ(b.codes(elsewhere), codes{status::ok});
    EXPECT_NE(b.get().slot_status(slot), status::busy);
    EXPECT_EQ(b.submit(b.restore(slot, 2)), status::ok);
    b.settle();
  }
}

TEST(Deadlines, EventsThatAreSeenLateProveWhatTheyShould) {
  copier_bench b(timed());
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.faults().withhold = true;
  b.settle();
  EXPECT_TRUE(b.completions.empty());
  advance_clock(limit);
  b.pump();
  EXPECT_EQ(b.codes(store), codes{status::timed_out});
  b.faults().withhold = false;
  b.settle();
  EXPECT_EQ(b.proofs.size(), 1U);
}

// A copy thread that has nothing else to do sleeps until the time has come, and then reports.
TEST(Deadlines, WakeTheCopyThread) {
  put_clock_right();
  for (const bool flies : {false, true}) {
    bench_options opts;
    opts.threaded = true;
    opts.op_timeout = 3ms;
    copier_bench b(opts);
    std::atomic<bool> reported{false};
    b.on_completion = [&](const completion&) { reported = true; };
    const copy_op op = flies ? b.store(0, 0) : b.store(0, 0, 2);
    ASSERT_EQ(b.submit(op), status::ok);
    while (!reported) std::this_thread::yield();
    ASSERT_EQ(b.get().drain(soon()), status::ok);
    EXPECT_EQ(b.codes(op), codes{status::timed_out});
    // A copy thread that runs late finds an op late that it has not handed over.
    const bool unproven = b.unproven(op) == flags{true};
    EXPECT_TRUE(flies || !unproven);
    while (b.host().step()) {
    }
    EXPECT_EQ(b.get().close(soon()), status::ok);
    EXPECT_EQ(b.proofs.size(), unproven ? 1U : 0U);
  }
}

// ---- the line -------------------------------------------------------------------------------

TEST(DeadlineLine, GivesTheFirstWhateverTheOrderOfArrival) {
  detail::deadline_line line(6);
  const std::int64_t times[] = {50, 20, 20, 70, 10, 60};
  for (std::uint32_t row = 0; row < 6; ++row) line.add(row, times[row]);
  line.remove(2);
  line.remove(2);
  line.remove(4);
  std::vector<std::int64_t> seen;
  while (!line.empty()) {
    const std::int64_t first = line.first_ns();
    seen.push_back(first);
    for (std::uint32_t row = 0; row < 6; ++row)
      if (line.due(row, first)) line.remove(row);
  }
  EXPECT_EQ(seen, (std::vector<std::int64_t>{20, 50, 60, 70}));
  line.add(3, 5);
  line.add(1, 9);
  EXPECT_EQ(line.first_ns(), 5);
  EXPECT_FALSE(line.due(1, 8));
  EXPECT_TRUE(line.due(1, 9));
  EXPECT_FALSE(line.due(0, 1000)) << "not in line";
}

}  // namespace
}  // namespace cairn::tests
