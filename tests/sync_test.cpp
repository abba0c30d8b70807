// The ordered atomics, sleeping, and the doorbell. A lost wake shows as a sleep that lasts until
// its far deadline.
#include "runtime/sync.hpp"

#include <gtest/gtest.h>

#include <cairn/backend.hpp>
#include <set>
#include <thread>

#include "runtime/spread_sum.hpp"
#include "tests/threads.hpp"

namespace {

using cairn::deadline;
using cairn::doorbell;
using cairn::test::together;
using cairn::test::yields;

deadline far_off() {
  return cairn::clock::now() + std::chrono::seconds(30);
}

TEST(Sync, ReadModifyWritesReturnWhatWasThere) {
  cairn::sync::atomic<std::uint32_t> word(5);
  EXPECT_EQ(word.fetch_add_acq_rel(3), 5U);
  EXPECT_EQ(word.fetch_sub_release(2), 8U);
  EXPECT_EQ(word.fetch_or_acq_rel(8), 6U);
  EXPECT_EQ(word.fetch_and_acq_rel(12), 14U);
  EXPECT_EQ(word.exchange_acq_rel(1), 12U);
  EXPECT_EQ(word.load_acquire(), 1U);
}

TEST(Sync, AFailedCasTellsTheCurrentValue) {
  cairn::sync::atomic<std::uint32_t> word(5);
  std::uint32_t expected = 4;
  EXPECT_FALSE(word.cas_acq_rel(expected, 9));
  EXPECT_EQ(expected, 5U);
  EXPECT_TRUE(word.cas_acq_rel(expected, 9));
  EXPECT_EQ(word.load_relaxed(), 9U);
}

TEST(Sync, DoesNotSleepOnceTheWordHasChanged) {
  const std::atomic<std::uint32_t> word{1};
  const deadline until = far_off();
  cairn::sync::sleep_until(word, 0, until);
  EXPECT_LT(cairn::clock::now(), until);
}

TEST(Sync, WakesAtItsDeadline) {
  const std::atomic<std::uint32_t> word{0};
  cairn::sync::sleep_until(word, 0, deadline::min());
  cairn::sync::sleep_until(word, 0, deadline{});
  const deadline until = cairn::clock::now() + std::chrono::milliseconds(1);
  while (cairn::clock::now() < until) cairn::sync::sleep_until(word, 0, until);
}

TEST(Sync, ThreadsThatBeginOneAfterAnotherHaveDifferentParts) {
  std::set<std::uint32_t> parts;
  for (std::uint32_t i = 0; i < cairn::sync::thread_parts; ++i)
    std::thread([&] {
      const std::uint32_t mine = cairn::sync::thread_part();
      EXPECT_EQ(cairn::sync::thread_part(), mine) << "it stays the same";
      EXPECT_LT(mine, cairn::sync::thread_parts);
      parts.insert(mine);
    }).join();
  EXPECT_EQ(parts.size(), cairn::sync::thread_parts);
}

TEST(SpreadSum, IsTheSumOfWhatAllThreadsHaveAdded) {
  cairn::detail::spread_sum sum;
  EXPECT_EQ(sum.sum(), 0);
  sum.add(-1);
  together(20, [&](unsigned t) {
    for (unsigned i = 0; i < 1000; ++i) sum.add(i % 5 < 3 ? 1 : -1);
    for (unsigned i = 0; i < t; ++i) sum.add(1);
  });
  EXPECT_EQ(sum.sum(), -1 + 20 * 200 + 20 * 19 / 2);
  std::thread([&] { EXPECT_EQ(sum.sum(), 4189) << "whoever asks"; }).join();
}

TEST(Doorbell, ARingBeforeTheWaitIsNotMissed) {
  doorbell bell;
  const std::uint32_t seen = bell.seen();
  bell.ring();
  const deadline until = far_off();
  bell.wait(seen, until);
  EXPECT_LT(cairn::clock::now(), until);
  EXPECT_NE(bell.seen(), seen);
}

TEST(Doorbell, WaitEndsAtItsDeadline) {
  doorbell bell;
  bell.wait(bell.seen(), deadline::min());
  const deadline until = cairn::clock::now() + std::chrono::milliseconds(1);
  bell.wait(bell.seen(), until);
  EXPECT_GE(cairn::clock::now(), until);
}

// Two threads pass a ball: each sleeps until the other has rung.
TEST(Doorbell, NoRingIsLostBetweenTwoThreads) {
  const yields hook;
  doorbell bell[2];
  std::uint32_t turns = 0;  // plain: the bells alone order it
  std::uint32_t passed[2] = {};
  const deadline until = far_off();
  together(2, [&](std::uint32_t t) {
    for (std::uint32_t n = 0; n < 5'000; ++n) {
      const std::uint32_t awaited = n + 1 - (t == 0 ? 1 : 0);
      for (std::uint32_t seen = bell[t].seen(); seen != awaited; seen = bell[t].seen())
        bell[t].wait(seen, until);
      ++turns;
      ++passed[t];
      bell[1 - t].ring();
    }
  });
  EXPECT_EQ(turns, 10'000U);
  EXPECT_LT(cairn::clock::now(), until);
}

// Work is filed before the bell rings; the sleeper looks for work after it has read the bell.
TEST(Doorbell, AllWorkOfManyRingersIsFound) {
  const yields hook;
  doorbell bell;
  std::atomic<std::uint32_t> work{0};
  constexpr std::uint32_t each = 4'000;
  const deadline until = far_off();
  together(3, [&](std::uint32_t t) {
    if (t != 0) {
      for (std::uint32_t n = 0; n < each; ++n) {
        work.fetch_add(1, std::memory_order_relaxed);
        bell.ring();
      }
    } else {
      for (std::uint32_t found = 0; found < 2 * each;) {
        const std::uint32_t seen = bell.seen();
        const std::uint32_t more = work.exchange(0, std::memory_order_relaxed);
        found += more;
        if (more == 0) bell.wait(seen, until);
      }
    }
  });
  EXPECT_LT(cairn::clock::now(), until);
}

}  // namespace
