// The books on bare pins: each falls once, all entries are used before none is left, and walks meet
// every pin but none that they have met before.
#include "runtime/pin_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace cairn::detail {
namespace {

using namespace std::chrono_literals;

struct held {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

constexpr deadline never = deadline::max();

bool open(pin_table& pins, std::uint32_t record, held& into, deadline until = never) {
  return pins.open({record, record + 1}, until, into.index, into.generation);
}

/// The record of the pin that ends; none if it had ended.
std::uint32_t shut(pin_table& pins, held which) {
  record_handle record;
  if (!pins.shut(which.index, which.generation, record)) return entry_choice::none;
  EXPECT_EQ(record.generation, record.index + 1);
  return record.index;
}

std::multiset<std::uint32_t> met(pin_table& pins) {
  std::multiset<std::uint32_t> all;
  pins.for_each_new([&](record_handle which) { all.insert(which.index); });
  return all;
}

TEST(PinTable, EveryEntryIsTakenBeforeNoneIs) {
  for (const std::uint32_t capacity : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 100U})
    for (const bool apart : {false, true}) {
      SCOPED_TRACE(testing::Message() << capacity << " entries" << (apart ? ", by threads" : ""));
      pin_table pins(capacity);
      std::vector<held> all(capacity);
      std::set<std::uint32_t> entries;
      for (std::uint32_t i = 0; i < capacity; ++i) {
        const auto one = [&] { ASSERT_TRUE(open(pins, i, all[i])); };
        if (apart)
          std::thread(one).join();
        else
          one();
        entries.insert(all[i].index);
      }
      ASSERT_EQ(entries.size(), capacity);
      ASSERT_EQ(*entries.rbegin(), capacity - 1);
      ASSERT_EQ(pins.live(), capacity);
      held more;
      for (std::uint32_t i = 0; i < capacity; ++i) {
        ASSERT_FALSE(open(pins, 1000, more));
        ASSERT_EQ(shut(pins, all[i]), i);
        ASSERT_TRUE(open(pins, i + 500, more)) << "the only one, whose ever it is";
        ASSERT_EQ(more.index, all[i].index);
        ASSERT_EQ(shut(pins, all[i]), entry_choice::none) << "another's by now";
        all[i] = more;
      }
      for (std::uint32_t i = 0; i < capacity; ++i) ASSERT_EQ(shut(pins, all[i]), i + 500);
      ASSERT_EQ(pins.live(), 0U);
    }
}

TEST(PinTable, WhatWasNeverHandedOutEndsNothing) {
  pin_table pins(4);
  std::vector<held> all(4);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(open(pins, i, all[i]));
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(shut(pins, {i, 0}), entry_choice::none) << "a pin as it is made";
    EXPECT_EQ(shut(pins, {i, 2}), entry_choice::none);
  }
  EXPECT_EQ(pins.live(), 4U);
}

TEST(PinTable, EachThreadOfAFewHasAnEntryOfItsOwn) {
  pin_table pins(64);
  std::set<std::uint32_t> entries;
  for (std::uint32_t i = 0; i < sync::thread_parts; ++i)
    std::thread([&] {
      held first;
      held again;
      ASSERT_TRUE(open(pins, i, first));
      ASSERT_EQ(shut(pins, first), i);
      ASSERT_TRUE(open(pins, i, again));
      EXPECT_EQ(again.index, first.index);
      EXPECT_NE(again.generation, first.generation);
      EXPECT_EQ(shut(pins, again), i);
      entries.insert(first.index);
    }).join();
  EXPECT_EQ(entries.size(), sync::thread_parts);
}

// Both in an entry of one's own and in a shared one: the same thread opens the first and the
// second.
TEST(PinTable, AWalkMeetsEachPinThatIsNewAndRestsUntilOneIs) {
  pin_table pins(8);
  std::vector<held> all(3);
  EXPECT_TRUE(met(pins).empty());
  ASSERT_TRUE(open(pins, 7, all[0]));
  EXPECT_EQ(met(pins), (std::multiset<std::uint32_t>{7}));
  EXPECT_TRUE(met(pins).empty()) << "none has been opened since";
  ASSERT_TRUE(open(pins, 8, all[1]));
  EXPECT_NE(all[0].index, all[1].index);
  EXPECT_EQ(met(pins), (std::multiset<std::uint32_t>{7, 8}));
  EXPECT_EQ(shut(pins, all[0]), 7U);
  EXPECT_EQ(shut(pins, all[1]), 8U);
  EXPECT_TRUE(met(pins).empty()) << "an end is nothing new";
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(open(pins, 9 + i, all[i]));
    EXPECT_EQ(met(pins).count(9 + i), 1U) << "an entry that was used before";
  }
}

TEST(PinTable, ThoseFallWhoseTimeHasPassed) {
  pin_table pins(8);
  const deadline now = clock::now();
  std::vector<held> all(4);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(open(pins, i, all[i], now + i * 10s));
  const auto fall = [&](deadline at) {
    std::multiset<std::uint32_t> fell;
    const std::uint32_t count = pins.expire(at, [&](record_handle r) { fell.insert(r.index); });
    EXPECT_EQ(count, fell.size());
    return fell;
  };
  EXPECT_EQ(fall(now), (std::multiset<std::uint32_t>{0})) << "at its deadline";
  EXPECT_TRUE(fall(now + 9s).empty());
  EXPECT_EQ(fall(now + 20s), (std::multiset<std::uint32_t>{1, 2}));
  EXPECT_EQ(shut(pins, all[1]), entry_choice::none);
  ASSERT_TRUE(open(pins, 5, all[0], now + 5s)) << "earlier than what a walk has seen";
  EXPECT_EQ(fall(now + 21s), (std::multiset<std::uint32_t>{5}));
  EXPECT_EQ(pins.live(), 1U);
  EXPECT_EQ(shut(pins, all[3]), 3U);
}

TEST(PinTable, AgesAreNeverTooYoung) {
  pin_table pins(4);
  const deadline before = clock::now();
  EXPECT_EQ(pins.oldest_ns(before), 0);
  held first;
  held second;
  ASSERT_TRUE(open(pins, 1, first));
  const deadline after = clock::now();
  ASSERT_TRUE(open(pins, 2, second));
  const auto least = (1h - (after - before)).count();
  EXPECT_GE(pins.oldest_ns(before + 1h), least);
  EXPECT_LT(pins.oldest_ns(before + 1h), std::chrono::nanoseconds(1h + 1min).count());
  EXPECT_EQ(shut(pins, first), 1U);
  EXPECT_EQ(shut(pins, second), 2U);
  EXPECT_EQ(pins.oldest_ns(before + 1h), 0);
}

}  // namespace
}  // namespace cairn::detail
