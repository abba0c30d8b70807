// The min tree against std::map, and its exactness after many threads have moved entries.
#include "runtime/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/threads.hpp"

namespace {

using cairn::detail::order;
using cairn::test::dice;
using cairn::test::together;
using cairn::test::yields;

TEST(Order, StartsEmpty) {
  order tree(100);
  EXPECT_EQ(tree.first(), order::none);
  EXPECT_EQ(tree.first_by_scan(), order::none);
}

TEST(Order, DrawsStampsFromOne) {
  order tree(1);
  EXPECT_EQ(tree.next_stamp(), 1U);
  EXPECT_EQ(tree.next_stamp(), 2U);
}

TEST(Order, NamesTheLowestStamp) {
  order tree(1000);
  tree.set(999, 5);
  EXPECT_EQ(tree.first(), 999U);
  tree.set(0, 7);
  EXPECT_EQ(tree.first(), 999U);
  tree.set(500, 3);
  EXPECT_EQ(tree.first(), 500U);
  tree.set(500, 8);  // used again
  EXPECT_EQ(tree.first(), 999U);
  tree.clear(999);
  EXPECT_EQ(tree.first(), 0U);
  tree.set(999, 5);  // comes back to its old place
  EXPECT_EQ(tree.first(), 999U);
}

TEST(Order, EqualsAMapUnderRandomOperations) {
  for (const std::uint32_t capacity : {1U, 15U, 16U, 17U, 256U, 257U, 5'000U, 70'000U}) {
    SCOPED_TRACE(capacity);
    order tree(capacity);
    std::map<std::uint64_t, std::uint32_t> model;  // stamp -> entry
    std::vector<std::uint64_t> last(capacity, 0);  // 0: never in
    dice d(capacity);
    for (int n = 0; n < 20'000; ++n) {
      const std::uint32_t i = d.below(capacity);
      const std::uint32_t what = d.below(4);
      if (what == 0) {
        model.erase(last[i]);
        tree.clear(i);
      } else {
        model.erase(last[i]);
        if (what > 1 || last[i] == 0) last[i] = tree.next_stamp();
        model[last[i]] = i;
        tree.set(i, last[i]);
      }
      const std::uint32_t expected = model.empty() ? order::none : model.begin()->second;
      ASSERT_EQ(tree.first(), expected);
      if (n % 256 == 0) {
        ASSERT_EQ(tree.first_by_scan(), expected);
      }
    }
    while (!model.empty()) {
      ASSERT_EQ(tree.first(), model.begin()->second);
      tree.clear(model.begin()->second);
      model.erase(model.begin());
    }
    ASSERT_EQ(tree.first(), order::none);
  }
}

/// What must come out of `tree` by first and clear, in this order.
void expect_drains_to(order& tree, std::vector<std::pair<std::uint64_t, std::uint32_t>> in) {
  std::sort(in.begin(), in.end());
  for (const auto& [stamp, i] : in) {
    ASSERT_EQ(tree.first(), i);
    tree.clear(i);
  }
  ASSERT_EQ(tree.first(), order::none);
}

// Many short rounds: only what is wrong when all have stopped counts, and any later update could
// repair it.
TEST(Order, IsExactOnceAllHaveStopped) {
  const yields hook;
  constexpr std::uint32_t threads = 3;
  for (const std::uint32_t capacity : {12U, 36U, 300U}) {
    SCOPED_TRACE(capacity);
    order tree(capacity);
    for (std::uint64_t round = 0; round < 250; ++round) {
      SCOPED_TRACE(round);
      std::vector<std::uint64_t> place(capacity, 0);  // 0: out
      together(threads, [&](std::uint32_t t) {
        dice d(round * threads + t);
        for (int n = 0; n < 24; ++n) {
          // Its own entries, but neighbours of the others'.
          const std::uint32_t i = d.below(capacity / threads) * threads + t;
          switch (d.below(4)) {
            case 0:
              tree.clear(i);
              place[i] = 0;
              break;
            case 1:
              if (place[i] != 0) {  // leaves and comes back to the same place
                tree.clear(i);
                tree.set(i, place[i]);
                break;
              }
              [[fallthrough]];
            case 2:
              place[i] = tree.next_stamp();
              tree.set(i, place[i]);
              break;
            default:
              if (tree.first() == i && place[i] == 0) ADD_FAILURE() << "named an entry that is out";
          }
        }
      });
      std::vector<std::pair<std::uint64_t, std::uint32_t>> in;
      for (std::uint32_t i = 0; i < capacity; ++i)
        if (place[i] != 0) in.emplace_back(place[i], i);
      ASSERT_NO_FATAL_FAILURE(expect_drains_to(tree, std::move(in)));
    }
  }
}

// All threads move the same entries, between the same few places.
TEST(Order, IsExactAfterOneEntryWasMovedByAll) {
  const yields hook;
  constexpr std::uint32_t capacity = 20;
  order tree(capacity);
  for (std::uint64_t round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    together(3, [&](std::uint32_t t) {
      dice d(round * 3 + t);
      for (int n = 0; n < 16; ++n) {
        const std::uint32_t i = d.below(2) * 19;
        if (d.below(2) == 0)
          tree.clear(i);
        else
          tree.set(i, 1 + d.below(3));
        if (d.below(4) == 0) (void)tree.first();
      }
    });
    for (int left = 0; left < 3; ++left) {
      const std::uint32_t expected = tree.first_by_scan();
      ASSERT_EQ(tree.first(), expected);
      if (expected == order::none) break;
      tree.clear(expected);
    }
  }
}

// Entries enter and leave once, in order. What a scan has found gone stays gone for `first`, even
// while the call that takes it out is half way up.
TEST(Order, NeverNamesWhatHasLeft) {
  const yields hook;
  constexpr std::uint32_t entries = 1'200;
  order tree(entries);
  for (std::uint32_t i = 0; i < entries; ++i) tree.set(i, tree.next_stamp());
  std::uint32_t named_too_late = 0;
  together(2, [&](std::uint32_t t) {
    if (t == 0) {
      for (std::uint32_t i = 0; i + 1 < entries; ++i) tree.clear(i);
    } else {
      for (std::uint32_t at_least = 0; at_least + 1 < entries;) {
        at_least = tree.first_by_scan();
        if (tree.first() < at_least) ++named_too_late;
      }
    }
  });
  EXPECT_EQ(named_too_late, 0U);
  EXPECT_EQ(tree.first(), entries - 1);
}

// An evictor takes what first names; the writes of whoever put the entry in are visible to him.
TEST(Order, HandsOverWhatWasWrittenBeforeSet) {
  const yields hook;
  constexpr std::uint32_t entries = 400;
  order tree(entries);
  std::vector<std::uint32_t> payload(entries, 0);  // plain memory: ThreadSanitizer watches
  std::uint32_t got = 0;
  together(2, [&](std::uint32_t t) {
    if (t == 0) {
      for (std::uint32_t i = 0; i < entries; ++i) {
        payload[i] = i + 1;
        tree.set(i, tree.next_stamp());
      }
    } else {
      while (got < entries) {
        const std::uint32_t i = tree.first();
        if (i == order::none) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_EQ(payload[i], i + 1);
        tree.clear(i);
        ++got;
      }
    }
  });
  EXPECT_EQ(got, entries);
}

}  // namespace
