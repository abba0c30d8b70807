// The index against std::map, and under threads that recycle nodes in few buckets.
#include "runtime/index.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <vector>

#include "runtime/bitmap.hpp"
#include "tests/threads.hpp"

namespace {

using cairn::checkpoint_key;
using cairn::detail::edge;
using cairn::detail::head_word;
using cairn::detail::index_node;
using cairn::detail::link_word;
using cairn::test::dice;
using cairn::test::together;
using cairn::test::yields;

/// Nodes and an index over them. `capacity` only sizes the buckets: 1 gives two of them.
class Index : public testing::Test {
 protected:
  struct node_of {
    std::vector<index_node>* nodes;
    index_node& operator()(std::uint32_t id) const { return (*nodes)[id]; }
  };
  using map = cairn::detail::index<node_of>;
  static constexpr std::uint32_t none = map::none;
  static constexpr auto always = [](std::uint32_t) { return true; };
  static constexpr auto never = [](std::uint32_t) { return false; };

  static checkpoint_key key(std::uint64_t k) { return {k / 2, k}; }

  std::vector<index_node> nodes_{std::vector<index_node>(1024)};
};

TEST_F(Index, FindsWhatWasInserted) {
  map names(16, node_of{&nodes_});
  EXPECT_EQ(names.find(key(1), always), none);
  EXPECT_EQ(names.insert_unless(7, key(1), always), none);
  EXPECT_EQ(names.find(key(1), always), 7U);
  EXPECT_EQ(names.find(key(2), always), none);
  names.erase(7);
  EXPECT_EQ(names.find(key(1), always), none);
}

TEST_F(Index, BothHalvesOfAKeyIdentify) {
  map names(1, node_of{&nodes_});
  for (std::uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(names.insert_unless(i, {i / 4, i % 4}, always), none);
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(names.find({i / 4, i % 4}, always), i);
}

TEST_F(Index, ADeniedNodeDoesNotHideTheNextOne) {
  map names(16, node_of{&nodes_});
  EXPECT_EQ(names.insert_unless(1, key(5), always), none);
  EXPECT_EQ(names.insert_unless(2, key(5), never), none);
  EXPECT_EQ(names.find(key(5), always), 2U);  // newest first
  EXPECT_EQ(names.find(key(5), [](std::uint32_t id) { return id == 1; }), 1U);
  EXPECT_EQ(names.find(key(5), never), none);
}

TEST_F(Index, ABlockedInsertionChangesNothing) {
  map names(16, node_of{&nodes_});
  EXPECT_EQ(names.insert_unless(1, key(5), always), none);
  EXPECT_EQ(names.insert_unless(2, key(5), always), 1U);
  EXPECT_EQ(names.insert_unless(2, key(6), always), none);  // the node is free for another key
  EXPECT_EQ(names.find(key(5), always), 1U);
  EXPECT_EQ(names.find(key(6), always), 2U);
}

// From nearly one node a bucket to all nodes in two.
TEST_F(Index, EqualsAMapUnderRandomOperations) {
  for (const std::uint32_t capacity : {1U, 8U, 1024U}) {
    SCOPED_TRACE(capacity);
    map names(capacity, node_of{&nodes_});
    std::map<std::uint64_t, std::uint32_t> model;
    std::vector<std::uint32_t> spare(capacity == 1024 ? 1024 : 40);
    std::iota(spare.begin(), spare.end(), 0U);
    dice d(capacity);
    for (int n = 0; n < 60'000; ++n) {
      const std::uint64_t k = d.below(static_cast<std::uint32_t>(2 * model.size() + 20));
      const auto it = model.find(k);
      const std::uint32_t expected = it == model.end() ? none : it->second;
      ASSERT_EQ(names.find(key(k), always), expected);
      if (d.below(2) == 0 && !spare.empty()) {
        ASSERT_EQ(names.insert_unless(spare.back(), key(k), always), expected);
        if (expected == none) {
          model[k] = spare.back();
          spare.pop_back();
        }
      } else if (expected != none) {
        names.erase(expected);
        spare.insert(spare.begin(), expected);
        model.erase(it);
      }
    }
    for (const auto& [k, id] : model) names.erase(id);
  }
}

// A node lives more often than its life has numbers.
TEST_F(Index, OutlivesTheWrapOfALife) {
  map names(1, node_of{&nodes_});
  ASSERT_EQ(names.insert_unless(0, key(0), always), none);
  for (std::uint32_t n = 0; n < 70'000; ++n) {
    ASSERT_EQ(names.insert_unless(1, key(1 + n % 3), always), none);
    ASSERT_EQ(names.find(key(1 + n % 3), always), 1U);
    names.erase(1);
  }
  EXPECT_EQ(names.find(key(0), always), 0U);
}

TEST_F(Index, WordsKeepTheirFields) {
  const edge first{0xabcdef, 0x12, 0x7fff, true};
  const head_word head{first, 0xffff};
  const head_word h = head_word::unpack(head.pack());
  EXPECT_EQ(h.first.id, first.id);
  EXPECT_EQ(h.first.print, first.print);
  EXPECT_EQ(h.first.life, first.life);
  EXPECT_TRUE(h.first.last);
  EXPECT_EQ(h.version, 0xffff);
  const head_word last_of_period{first, 0xfffe};
  EXPECT_EQ(last_of_period.next_version(), 0) << "a period that shares no factor with the lives'";
  const link_word link{edge{}, 0x7fff, true};
  EXPECT_EQ(link.next_life(), 0);
  const link_word l = link_word::unpack(edge::replace(link.pack(), first));
  EXPECT_EQ(l.next.pack(), first.pack());
  EXPECT_EQ(l.life, link.life);
  EXPECT_TRUE(l.erased);
  EXPECT_TRUE(edge::unpack(link.pack()).ends());
}

// Whoever inserts a key owns it until he erases it: a lock, made of the index. `owner` is plain
// memory, so that ThreadSanitizer checks what insertion and erasure order.
TEST_F(Index, OneOfManyInsertionsOfAKeyWins) {
  const yields hook;
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t keys = 3;
  map names(1, node_of{&nodes_});
  std::uint32_t owner[keys] = {};
  std::atomic<std::uint32_t> doubles{0};
  std::atomic<std::uint32_t> losses{0};
  together(threads, [&](std::uint32_t t) {
    dice d(t);
    for (int n = 0; n < 6'000; ++n) {
      // Alternates between nodes, so that lives pass in and out of front.
      const std::uint32_t id = t * 2 + d.below(2);
      const std::uint32_t k = d.below(keys);
      const std::uint32_t other = names.insert_unless(id, key(k), always);
      if (other != none) {
        if (other / 2 == t) doubles.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      if (owner[k] != 0) doubles.fetch_add(1, std::memory_order_relaxed);
      owner[k] = t + 1;
      if (names.find(key(k), always) != id) losses.fetch_add(1, std::memory_order_relaxed);
      if (names.insert_unless(id ^ 1, key(k), always) != id)
        losses.fetch_add(1, std::memory_order_relaxed);
      owner[k] = 0;
      names.erase(id);
    }
  });
  EXPECT_EQ(doubles.load(), 0U);
  EXPECT_EQ(losses.load(), 0U);
  for (std::uint32_t k = 0; k < keys; ++k) EXPECT_EQ(names.find(key(k), always), none);
}

// Nodes come from one free set and move between buckets, two indexes and threads, while steady
// keys, some of them under the churn and some above, are looked up.
TEST_F(Index, ChurnNeverHidesASteadyKey) {
  const yields hook;
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t steady = 4;
  constexpr std::uint32_t loose = 14;
  map names(2, node_of{&nodes_});
  map others(1, node_of{&nodes_});
  cairn::detail::bitmap spare(steady + loose);
  for (std::uint32_t i = 0; i < loose; ++i) spare.put(steady + i);
  // Churn below the steady keys, so that they lose successors too.
  std::vector<std::uint32_t> below;
  for (std::uint32_t i = 0; i < 4; ++i) {
    below.push_back(spare.take_lowest());
    ASSERT_EQ(names.insert_unless(below.back(), key(100 + i), always), none);
  }
  for (std::uint32_t i = 0; i < steady; ++i)
    ASSERT_EQ(names.insert_unless(i, key(i), always), none);

  struct inserted {
    map* where;
    checkpoint_key under;
    std::uint32_t id;
  };
  std::atomic<std::uint32_t> lost{0};
  std::atomic<std::uint32_t> wrong{0};
  together(threads, [&](std::uint32_t t) {
    dice d(t);
    if (t == 0)
      for (const std::uint32_t id : below) {
        names.erase(id);
        spare.put(id);
      }
    // Held for a while, so that most nodes leave from the middle of a chain.
    std::deque<inserted> mine;
    const auto drop_oldest = [&] {
      const inserted gone = mine.front();
      mine.pop_front();
      if (gone.where->find(gone.under, always) != gone.id)
        lost.fetch_add(1, std::memory_order_relaxed);
      gone.where->erase(gone.id);
      if (gone.where->find(gone.under, always) != none)
        wrong.fetch_add(1, std::memory_order_relaxed);
      spare.put(gone.id);
    };
    std::uint64_t next_key = 0;
    for (int n = 0; n < 6'000; ++n) {
      const std::uint32_t k = d.below(steady);
      const auto right = [&](std::uint32_t id) {
        if (id != k) wrong.fetch_add(1, std::memory_order_relaxed);
        return true;
      };
      if (names.find(key(k), right) != k) lost.fetch_add(1, std::memory_order_relaxed);
      const std::uint32_t id = spare.take_lowest();
      if (id != cairn::detail::bitmap::none) {
        if (names.insert_unless(id, key(k), right) != k)
          lost.fetch_add(1, std::memory_order_relaxed);
        // A key that only this thread uses, so nothing blocks it.
        const inserted in{d.below(3) == 0 ? &others : &names, key(200 + t * 8 + next_key++ % 8),
                          id};
        if (in.where->insert_unless(id, in.under, always) != none)
          wrong.fetch_add(1, std::memory_order_relaxed);
        mine.push_back(in);
      }
      if (mine.size() > d.below(4)) drop_oldest();
    }
    while (!mine.empty()) drop_oldest();
  });
  EXPECT_EQ(lost.load(), 0U);
  EXPECT_EQ(wrong.load(), 0U);
  for (std::uint32_t i = 0; i < steady; ++i) EXPECT_EQ(names.find(key(i), always), i);
  // Nothing else is left: every spare node can go in again.
  for (std::uint32_t i = 0; i < loose; ++i)
    EXPECT_EQ(names.insert_unless(steady + i, key(500 + i), always), none);
  for (std::uint32_t i = 0; i < loose; ++i) EXPECT_EQ(names.find(key(500 + i), always), steady + i);
}

// A reader may see one half of a node's earlier key and one of its later key. Such a node does not
// block: blocks() has answered for a life that never had the key.
TEST_F(Index, TwoHalvesOfTwoKeysDoNotBlock) {
  const yields hook;
  map names(1, node_of{&nodes_});
  const checkpoint_key absent{7, 8};
  const auto prints_alike = [&](const checkpoint_key& other) {
    using cairn::detail::hash_of;
    using cairn::detail::print_of;
    return print_of(hash_of(other)) == print_of(hash_of(absent)) &&
           hash_of(other) % 2 == hash_of(absent) % 2;
  };
  checkpoint_key left{7, 9};
  while (!prints_alike(left)) ++left.lo;
  checkpoint_key right{8, 8};
  while (!prints_alike(right)) ++right.hi;
  std::atomic<std::uint32_t> wrong{0};
  std::atomic<bool> stop{false};
  together(3, [&](std::uint32_t t) {
    if (t == 0) {
      for (int n = 0; n < 8'000; ++n) {
        if (names.insert_unless(0, absent, always) != none)
          wrong.fetch_add(1, std::memory_order_relaxed);
        else
          names.erase(0);
      }
      stop.store(true, std::memory_order_release);
    } else {
      while (!stop.load(std::memory_order_acquire))
        for (const checkpoint_key& k : {left, right})
          if (names.insert_unless(t, k, always) == none) names.erase(t);
    }
  });
  EXPECT_EQ(wrong.load(), 0U);
}

// What was written before insertion is there for whoever finds the node.
TEST_F(Index, FindSeesWhatWasWrittenBeforeInsertion) {
  const yields hook;
  constexpr std::uint32_t count = 400;
  map names(64, node_of{&nodes_});
  std::vector<std::uint32_t> payload(count, 0);  // plain memory: ThreadSanitizer watches
  together(2, [&](std::uint32_t t) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (t == 0) {
        payload[i] = i + 1;
        EXPECT_EQ(names.insert_unless(i, key(i), always), none);
      } else {
        while (names.find(key(i), always) != i) std::this_thread::yield();
        EXPECT_EQ(payload[i], i + 1);
      }
    }
  });
}

}  // namespace
