// Boundaries of sequences: filing, draining, dropping, orphans. The catalog and the pool are
// the real ones; copies are reported by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cairn/coordinator.hpp>
#include <thread>
#include <vector>

#include "runtime/pending_table.hpp"
#include "tests/threads.hpp"

namespace cairn {
namespace {

constexpr checkpoint_key key(std::uint64_t n) {
  return {n * 0x9E3779B97F4A7C15U, n};
}

class Coordinator : public ::testing::Test {
 protected:
  void SetUp() override { open(12); }

  /// Images are of three units.
  void open(std::uint32_t units) {
    sequences.reset();
    records.reset();
    pool = std::move(*unit_pool::open({.units = units, .max_units = units, .compute_streams = 1}));
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.slots = 8;
    records = std::move(*catalog::open(std::move(opts), *pool));
    sequences = std::move(*coordinator::open({.max_sequences = 200, .max_threads = 4}, *records));
  }

  /// Drains into the catalog and reports each store at once if `finish`.
  std::uint32_t drain(bool finish = true) {
    struct context {
      Coordinator& test;
      bool finish;
    } c{*this, finish};
    drained.clear();
    return sequences->drain(
        [](void* opaque, const boundary& what) {
          auto& into = *static_cast<context*>(opaque);
          into.test.drained.push_back(what);
          auto op = into.test.records->begin_store(what.key, what.slot, what.hint);
          if (!op) return op.code();
          into.test.began.push_back(op->header.op);
          if (into.finish) into.test.report(op->header.op);
          return status::ok;
        },
        &c);
  }
  void report(op_id op) { records->finish({op, 0, 0, status::ok, {}}); }
  [[nodiscard]] std::uint64_t dropped(drop_reason why) const {
    return records->fates().dropped[static_cast<std::size_t>(why)];
  }
  void place(sequence_id s, slot_id slot) { ASSERT_TRUE(sequences->set_slot(s, slot).ok()); }
  void file(sequence_id s, std::uint64_t n) { ASSERT_TRUE(sequences->file(s, key(n)).ok()); }

  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
  std::unique_ptr<coordinator> sequences;
  std::vector<boundary> drained;
  std::vector<op_id> began;
};

TEST_F(Coordinator, RefusesImpossibleOptionsAndUnknownSequences) {
  EXPECT_EQ(coordinator::open({.max_sequences = 0, .max_threads = 1}, *records).code(),
            status::invalid);
  EXPECT_EQ(coordinator::open({.max_sequences = 1, .max_threads = 0}, *records).code(),
            status::invalid);
  EXPECT_EQ(coordinator::open({.max_sequences = max_index, .max_threads = 1}, *records).code(),
            status::invalid);
  EXPECT_EQ(sequences->set_slot(200, 1).code(), status::invalid);
  EXPECT_EQ(sequences->file(200, key(1)).code(), status::invalid);
  EXPECT_EQ(sequences->forget(200).code(), status::invalid);
  EXPECT_EQ(sequences->slot_of(200), no_slot);
  EXPECT_EQ(sequences->slot_of(199), no_slot);
}

TEST_F(Coordinator, DrainStoresOldestFirstWithSlotAndHint) {
  for (const sequence_id s : {150U, 3U, 70U}) place(s, s % 8);
  ASSERT_TRUE(sequences->file(150, key(1), placement_hint::anchor).ok());
  ASSERT_TRUE(sequences->file(3, key(2), placement_hint::demand).ok());
  ASSERT_TRUE(sequences->file(70, key(3)).ok());
  EXPECT_EQ(sequences->pending(), 3U);
  EXPECT_EQ(drain(), 3U);
  ASSERT_EQ(drained.size(), 3U);
  EXPECT_EQ(drained[0].key, key(1));
  EXPECT_EQ(drained[0].sequence, 150U);
  EXPECT_EQ(drained[0].slot, 6U);
  EXPECT_EQ(drained[0].hint, placement_hint::anchor);
  EXPECT_EQ(drained[1].key, key(2));
  EXPECT_EQ(drained[1].hint, placement_hint::demand);
  EXPECT_EQ(drained[2].key, key(3));
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_EQ(drain(), 0U);
  EXPECT_TRUE(drained.empty());
  EXPECT_EQ(records->fates().kept, 3U);
  EXPECT_EQ(records->fates().dropped_total(), 0U);
}

TEST_F(Coordinator, NewerBoundaryReplacesTheOlderAndIsTheNewest) {
  place(0, 0);
  place(1, 1);
  file(0, 1);
  file(1, 2);
  file(0, 3);  // the slot has moved on
  EXPECT_EQ(dropped(drop_reason::superseded), 1U);
  file(0, 3);  // the same key too
  EXPECT_EQ(dropped(drop_reason::superseded), 2U);
  EXPECT_EQ(sequences->pending(), 2U);
  EXPECT_EQ(drain(), 2U);
  ASSERT_EQ(drained.size(), 2U);
  EXPECT_EQ(drained[0].key, key(2));
  EXPECT_EQ(drained[1].key, key(3));
  EXPECT_FALSE(records->contains(key(1)));
}

TEST_F(Coordinator, SequenceWithoutASlotFilesNothing) {
  file(5, 1);
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_EQ(records->fates().dropped_total(), 0U);
}

TEST_F(Coordinator, SlotIsReadAtTheDrain) {
  place(0, 1);
  place(1, 2);
  file(0, 1);
  file(1, 2);
  place(0, 7);
  place(1, no_slot);  // skipped, not counted
  EXPECT_EQ(drain(), 1U);
  ASSERT_EQ(drained.size(), 1U);
  EXPECT_EQ(drained[0].slot, 7U);
  EXPECT_EQ(records->fates().dropped_total(), 0U);
  EXPECT_EQ(sequences->pending(), 0U);
}

TEST_F(Coordinator, KeyThatIsReadyOrCopyingByThenIsSkipped) {
  place(0, 0);
  place(1, 1);
  place(2, 2);
  file(0, 1);
  file(1, 1);  // the same boundary, reached by another sequence
  EXPECT_EQ(drain(false), 1U);
  file(2, 1);  // COPYING
  EXPECT_EQ(drain(), 0U);
  report(began[0]);
  file(2, 1);  // READY
  EXPECT_EQ(drain(), 0U);
  EXPECT_TRUE(drained.empty());
  EXPECT_EQ(records->fates().dropped_total(), 0U);
}

TEST_F(Coordinator, RefusedBoundaryCountsAsDroppedByReason) {
  place(0, 0);
  status answer = status::ok;
  const auto drain_with = [&](status code) {
    answer = code;
    EXPECT_TRUE(sequences->file(0, key(9)).ok());
    return sequences->drain(
        [](void* opaque, const boundary&) { return *static_cast<status*>(opaque); }, &answer);
  };
  EXPECT_EQ(drain_with(status::no_room), 0U);
  EXPECT_EQ(drain_with(status::passed_over), 0U);
  EXPECT_EQ(dropped(drop_reason::no_room), 2U);
  EXPECT_EQ(drain_with(status::queue_full), 0U);
  EXPECT_EQ(dropped(drop_reason::queue_full), 1U);
  EXPECT_EQ(drain_with(status::closed), 0U);
  EXPECT_EQ(dropped(drop_reason::closed), 1U);
  EXPECT_EQ(drain_with(status::duplicate), 0U);
  EXPECT_EQ(records->fates().dropped_total(), 4U);
  EXPECT_EQ(drain_with(status::ok), 1U);
  EXPECT_EQ(records->fates().dropped_total(), 4U);
}

TEST_F(Coordinator, BoundaryThatGetsNoUnitsIsDropped) {
  open(4);
  place(0, 0);
  place(1, 1);
  file(0, 1);
  file(1, 2);
  EXPECT_EQ(drain(false), 1U);
  EXPECT_EQ(dropped(drop_reason::no_room), 1U);
  report(began[0]);
}

TEST_F(Coordinator, ForgettingDropsThePendingUncountedAndCancelsTheQueuedRestore) {
  place(0, 0);
  file(0, 1);
  ASSERT_EQ(drain(), 1U);
  const auto restore = records->begin_restore(key(1), 0);
  ASSERT_TRUE(restore.ok());
  records->observe(restore->header.op);
  const auto other = records->begin_restore(key(1), 3);
  ASSERT_TRUE(other.ok());
  file(0, 2);
  ASSERT_TRUE(sequences->forget(0).ok());
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_EQ(records->op_status(restore->header.op), status::cancelled);
  EXPECT_TRUE(records->take(other->header.op)) << "another slot's restore stays";
  EXPECT_EQ(sequences->slot_of(0), 0U);
  EXPECT_EQ(drain(), 0U);
  EXPECT_EQ(records->fates().dropped_total(), 0U);
  EXPECT_EQ(records->fates().orphaned, 0U);
  records->unobserve(restore->header.op);
  report(other->header.op);
}

TEST_F(Coordinator, UnindexDropsAllPendingsAndTheCheckpointAsOneOrphan) {
  place(0, 0);
  place(1, 1);
  place(2, 2);
  file(0, 1);
  ASSERT_EQ(drain(), 1U);
  EXPECT_FALSE(sequences->unindex(key(7)));
  EXPECT_EQ(records->fates().orphaned, 0U);

  file(0, 1);
  file(1, 1);
  file(2, 2);
  EXPECT_TRUE(sequences->unindex(key(1)));
  EXPECT_EQ(records->fates().orphaned, 1U);
  EXPECT_FALSE(records->contains_or_copying(key(1)));
  EXPECT_EQ(sequences->pending(), 1U);

  EXPECT_TRUE(sequences->unindex(key(2)));  // only pending
  EXPECT_EQ(records->fates().orphaned, 2U);
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_FALSE(sequences->unindex(key(2)));
  EXPECT_EQ(records->fates().orphaned, 2U);
  EXPECT_EQ(drain(), 0U);
  EXPECT_EQ(records->fates().dropped_total(), 0U);
}

TEST_F(Coordinator, TakingACachedUnitOrphansItsKeyPendingIncluded) {
  open(3);
  std::vector<unit_id> kv(1);
  ASSERT_TRUE(pool->allocate(kv).ok());
  ASSERT_TRUE(pool->publish(kv[0], key(1)).ok());
  ASSERT_TRUE(pool->free(kv[0]).ok());  // cached now
  place(0, 0);
  file(0, 1);
  std::vector<unit_id> all(3);
  ASSERT_TRUE(pool->allocate(all).ok());
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_EQ(records->fates().orphaned, 1U);
}

TEST_F(Coordinator, ClosingGivesTheOrphanHookBackToTheCatalog) {
  place(0, 0);
  file(0, 1);
  ASSERT_EQ(drain(), 1U);
  std::vector<unit_id> kv(1);
  ASSERT_TRUE(pool->allocate(kv).ok());
  ASSERT_TRUE(pool->publish(kv[0], key(1)).ok());
  ASSERT_TRUE(pool->free(kv[0]).ok());
  sequences.reset();
  std::vector<unit_id> all(9);
  ASSERT_TRUE(pool->allocate(all).ok());
  EXPECT_FALSE(records->contains(key(1)));
  EXPECT_EQ(records->fates().orphaned, 1U);
}

TEST_F(Coordinator, ResetDropsEverythingAndMovesNoCounter) {
  place(0, 0);
  place(1, 1);
  file(0, 1);
  ASSERT_EQ(drain(), 1U);
  file(1, 2);
  const fate_counts before = records->fates();
  sequences->reset();
  EXPECT_EQ(sequences->pending(), 0U);
  EXPECT_FALSE(records->contains(key(1)));
  EXPECT_EQ(drain(), 0U);
  const fate_counts after = records->fates();
  EXPECT_EQ(after.kept, before.kept);
  EXPECT_EQ(after.dropped_total(), 0U);
  EXPECT_EQ(after.orphaned, 0U);
  EXPECT_EQ(after.evicted, 0U);
  EXPECT_EQ(sequences->slot_of(1), 1U);
}

TEST_F(Coordinator, ResumableHitIsTheLongestReadyPrefix) {
  place(0, 0);
  file(0, 2);
  ASSERT_EQ(drain(), 1U);
  const std::vector<checkpoint_key> keys = {key(1), key(2), key(3)};
  EXPECT_EQ(sequences->resumable_hit(keys, 3), 2U);
  EXPECT_EQ(sequences->resumable_hit(keys, 1), 0U);
  EXPECT_EQ(sequences->resumable_hit(keys, 3, true), 3U);
}

// Every filing ends in exactly one way: stored, superseded, unindexed or still pending.
void account_for_every_filing(std::uint32_t sequences) {
  const test::yields yields;
  constexpr int filers = 3;
  constexpr int rounds = 20000;
  detail::pending_table table(sequences, filers + 2);
  std::atomic<std::uint64_t> replaced{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> collected{0};
  std::atomic<int> running{filers};
  std::vector<std::thread> threads;
  for (int t = 0; t < filers; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        const auto n = static_cast<std::uint64_t>(i * filers + t);
        // The key tells the sequence, so that a mixed-up entry shows.
        const auto s = static_cast<std::uint32_t>(n * 7 % sequences);
        const auto outcome = table.put(s, {s, n % 5}, placement_hint::rung);
        ASSERT_NE(outcome, detail::pending_table::put_outcome::no_entry);
        if (outcome == detail::pending_table::put_outcome::replaced) ++replaced;
      }
      --running;
    });
  threads.emplace_back([&] {
    std::vector<detail::pending_table::item> items;
    items.reserve(sequences);
    bool last = false;
    do {
      last = running == 0;
      table.collect(items);
      ASSERT_TRUE(std::is_sorted(items.begin(), items.end(),
                                 [](const auto& a, const auto& b) { return a.age > b.age; }));
      for (const auto& i : items) {
        ASSERT_EQ(i.key.hi, i.sequence);
        ASSERT_EQ(i.hint, placement_hint::rung);
      }
      collected += items.size();
    } while (!last);
  });
  threads.emplace_back([&] {
    for (std::uint64_t i = 0; running != 0; ++i) dropped += table.drop({i % sequences, i % 5});
  });
  for (auto& t : threads) t.join();
  std::vector<detail::pending_table::item> left;
  left.reserve(sequences);
  table.collect(left);
  EXPECT_EQ(replaced + dropped + collected + left.size(), std::uint64_t{filers} * rounds);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_FALSE(table.take(0));
}

TEST(PendingTable, ThreadsAccountForEveryFiling) {
  account_for_every_filing(70);
}
TEST(PendingTable, ThreadsAccountForEveryFilingOfFewSequences) {
  account_for_every_filing(2);
}

TEST(PendingTable, DropFindsEveryFilingOfTheKeyAndNoOther) {
  detail::pending_table table(130, 2);
  for (std::uint32_t s = 0; s < 130; ++s) table.put(s, key(s % 3), placement_hint::none);
  EXPECT_EQ(table.drop(key(1)), 43U);
  EXPECT_EQ(table.drop(key(1)), 0U);
  EXPECT_EQ(table.size(), 87U);
  EXPECT_FALSE(table.take(1));
  EXPECT_TRUE(table.take(2));
}

TEST(PendingTable, SaysWhenMoreThreadsAreInsideThanAnnounced) {
  detail::pending_table table(1, 0);
  using outcome = detail::pending_table::put_outcome;
  EXPECT_EQ(table.put(0, key(1), placement_hint::none), outcome::filed);
  EXPECT_EQ(table.put(0, key(2), placement_hint::none), outcome::no_entry);
  EXPECT_TRUE(table.take(0));
  EXPECT_EQ(table.put(0, key(2), placement_hint::none), outcome::filed);
}

}  // namespace
}  // namespace cairn
