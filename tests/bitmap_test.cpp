// The bitmap against std::set, and its members shared out among threads.
#include "runtime/bitmap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/threads.hpp"

namespace {

using cairn::detail::bit_run;
using cairn::detail::bitmap;
using cairn::test::dice;
using cairn::test::together;
using cairn::test::yields;

std::vector<std::uint32_t> members_of(const bitmap& map) {
  std::vector<std::uint32_t> seen;
  map.for_each([&](std::uint32_t i) { seen.push_back(i); });
  return seen;
}

TEST(Bitmap, StartsEmpty) {
  bitmap map(1000);
  EXPECT_EQ(map.capacity(), 1000U);
  EXPECT_EQ(map.take_lowest(), bitmap::none);
  EXPECT_FALSE(map.take(999));
  EXPECT_TRUE(members_of(map).empty());
}

TEST(Bitmap, HandsOutTheLowestFirst) {
  bitmap map(100'000);
  for (const std::uint32_t i : {99'999U, 64U, 7U, 63U, 50'000U}) map.put(i);
  EXPECT_EQ(members_of(map), (std::vector<std::uint32_t>{7, 63, 64, 50'000, 99'999}));
  for (const std::uint32_t i : {7U, 63U, 64U, 50'000U, 99'999U}) EXPECT_EQ(map.take_lowest(), i);
  EXPECT_EQ(map.take_lowest(), bitmap::none);
}

TEST(Bitmap, TakesNoneIntoNoRoom) {
  bitmap map(600);
  map.put(7);
  map.put(500);
  EXPECT_EQ(map.take_lowest(0).bits, 0U);
  EXPECT_EQ(members_of(map), (std::vector<std::uint32_t>{7, 500}));
}

TEST(Bitmap, TakesANamedMemberOnce) {
  bitmap map(70);
  map.put(69);
  EXPECT_TRUE(map.contains(69));
  EXPECT_TRUE(map.take(69));
  EXPECT_FALSE(map.contains(69));
  EXPECT_FALSE(map.take(69));
}

TEST(Bitmap, TakesOnlyFromOneWord) {
  bitmap map(300);
  for (const std::uint32_t i : {70U, 71U, 74U, 127U, 128U}) map.put(i);
  const auto two = map.take_lowest(2);
  EXPECT_EQ(two.base, 64U);
  EXPECT_EQ(two.bits, 0b11U << 6);
  const auto rest = map.take_lowest(300);
  EXPECT_EQ(rest.base, 64U);
  EXPECT_EQ(rest.bits, 1ULL << 10 | 1ULL << 63);
  map.put(two);
  EXPECT_EQ(members_of(map), (std::vector<std::uint32_t>{70, 71, 128}));
}

TEST(BitRun, ListsAndEqualsItsMembersAndNothingElse) {
  dice d(1);
  for (int n = 0; n < 2'000; ++n) {
    // Whole runs, and runs with gaps.
    const std::uint32_t length = 1 + d.below(64);
    const std::uint64_t whole = ~0ULL >> (64 - length) << d.below(65 - length);
    std::uint64_t some = whole;
    for (std::uint32_t gaps = d.below(4); gaps > 0; --gaps) some &= ~(1ULL << d.below(64));
    if (some == 0) continue;
    const bit_run run{128, some};
    std::vector<std::uint32_t> expected;
    for (std::uint32_t b = 0; b < 64; ++b)
      if ((some >> b & 1) != 0) expected.push_back(128 + b);
    std::vector<std::uint32_t> ids(64, 0);
    ids.resize(list(run, ids));
    ASSERT_EQ(ids, expected);
    ASSERT_TRUE(equals(run, ids));
    const std::uint32_t most = d.below(66);
    const std::uint64_t low = cairn::detail::lowest_bits(some, most);
    ids.assign(64, 0);
    ids.resize(low == 0 ? 0 : list(bit_run{128, low}, ids));
    expected.resize(std::min<std::size_t>(expected.size(), most));
    ASSERT_EQ(ids, expected);
    if (ids.empty()) continue;
    ASSERT_EQ(equals(run, ids), low == some);
    ids[d.below(static_cast<std::uint32_t>(ids.size()))] ^= 1U << d.below(10);
    ASSERT_FALSE(equals(bit_run{128, low}, ids));
  }
}

// One, two, three and four levels; full and nearly empty.
TEST(Bitmap, EqualsASetUnderRandomOperations) {
  for (const std::uint32_t capacity : {1U, 63U, 64U, 65U, 1'025U, 40'000U, 70'000U, 4'300'000U}) {
    for (const std::uint32_t puts : {2U, 5U}) {
      SCOPED_TRACE(testing::Message() << "capacity " << capacity << " puts " << puts);
      bitmap map(capacity);
      std::set<std::uint32_t> model;
      dice d(capacity + puts);
      for (int n = 0; n < 20'000; ++n) {
        const std::uint32_t i = d.below(capacity);
        const std::uint32_t what = d.below(7);
        if (what < puts) {
          if (model.insert(i).second) map.put(i);
        } else if (what == 6) {
          ASSERT_EQ(map.take(i), model.erase(i) == 1);
        } else if (model.empty()) {
          ASSERT_EQ(map.take_lowest(), bitmap::none);
        } else {
          ASSERT_EQ(map.take_lowest(), *model.begin());
          model.erase(model.begin());
        }
        ASSERT_EQ(map.contains(i), model.count(i) == 1);
      }
      EXPECT_EQ(members_of(map), std::vector<std::uint32_t>(model.begin(), model.end()));
    }
  }
}

// The holders' marks are plain memory: ThreadSanitizer sees a hand-over without order.
TEST(Bitmap, HandsEachMemberToOneTaker) {
  const yields hook;
  constexpr std::uint32_t threads = 4;
  for (const std::uint32_t capacity : {6U, 600U, 40'000U}) {
    bitmap map(capacity);
    // Few members, far apart: words run empty all the time.
    std::vector<std::uint32_t> members;
    for (std::uint32_t k = 0; k < 6; ++k) members.push_back(k * (capacity / 6));
    for (const std::uint32_t i : members) map.put(i);
    std::vector<std::uint32_t> holder(capacity, 0);
    std::atomic<std::uint32_t> doubles{0};
    together(threads, [&](std::uint32_t t) {
      dice d(t);
      std::vector<std::uint32_t> mine;
      for (int n = 0; n < 6'000; ++n) {
        std::uint32_t i = bitmap::none;
        if (d.below(2) == 0) {
          i = map.take_lowest();
        } else {
          const std::uint32_t wish = members[d.below(6)];
          if (map.take(wish)) i = wish;
        }
        if (i != bitmap::none) {
          if (holder[i] != 0) doubles.fetch_add(1, std::memory_order_relaxed);
          holder[i] = t + 1;
          mine.push_back(i);
        }
        if (!mine.empty() && d.below(3) != 0) {
          holder[mine.back()] = 0;
          map.put(mine.back());
          mine.pop_back();
        }
      }
      for (const std::uint32_t i : mine) {
        holder[i] = 0;
        map.put(i);
      }
    });
    EXPECT_EQ(doubles.load(), 0U);
    EXPECT_EQ(members_of(map), members);
    for (const std::uint32_t i : members) EXPECT_EQ(map.take_lowest(), i);  // the summary too
    EXPECT_EQ(map.take_lowest(), bitmap::none);
  }
}

// One thread puts a member and takes the lowest; others only empty the words around it. Whatever
// they are in the middle of, the member is there.
TEST(Bitmap, FindsAMemberWhileItsWordIsBeingEmptied) {
  const yields hook;
  for (const std::uint32_t capacity : {2'048U, 40'000U}) {
    bitmap map(capacity);
    const std::uint32_t steady = capacity - 1;
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> missed{0};
    std::atomic<bool> taken[2] = {};
    together(3, [&](std::uint32_t t) {
      if (t == 0) {
        for (int n = 0; n < 10'000; ++n) {
          map.put(steady);
          std::uint32_t i = map.take_lowest();
          for (; i != steady && i != bitmap::none; i = map.take_lowest())
            taken[steady - 1 - i].store(true, std::memory_order_release);
          if (i == bitmap::none) {
            missed.fetch_add(1, std::memory_order_relaxed);
            map.take(steady);
          }
        }
        stop.store(true, std::memory_order_release);
      } else {
        const std::uint32_t mine = steady - t;
        while (!stop.load(std::memory_order_acquire)) {
          map.put(mine);
          // Not ours to take: the other thread has it, and will say so.
          if (!map.take(mine))
            while (!taken[t - 1].exchange(false, std::memory_order_acq_rel))
              std::this_thread::yield();
        }
      }
    });
    EXPECT_EQ(missed.load(), 0U);
  }
}

}  // namespace
