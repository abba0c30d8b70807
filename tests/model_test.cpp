// The sequential model against cases computed by hand from the specification: whoever trusts the
// differential tests must trust the model first. No cairn object is made here.
#include "tests/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using cairn_model::boundary;
using cairn_model::catalog;
using cairn_model::checkpoint_key;
using cairn_model::coordinator;
using cairn_model::no_slot;
using cairn_model::no_unit;
using cairn_model::place;
using cairn_model::placement_hint;
using cairn_model::pool;
using cairn_model::record_state;
using cairn_model::status;
using cairn_model::unit_id;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

checkpoint_key key(std::uint64_t n) {
  return {n, ~n};
}

/// Live units that bear keys first, first + 1, ... and become cached in the order of `ids`.
void cache(pool& units, const std::vector<unit_id>& ids, std::uint64_t first) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(units.publish(ids[i], key(first + i)), status::ok);
    ASSERT_EQ(units.free(ids[i]), status::ok);
  }
}

// ---- pool -------------------------------------------------------------------------

TEST(ModelPool, VacantLowestFirstThenCachedLeastRecentlyFreedFirst) {
  pool units(5);
  ASSERT_THAT(units.allocate(5).ids, ElementsAre(0, 1, 2, 3, 4));
  cache(units, {3, 0, 4}, 10);
  ASSERT_EQ(units.free(2), status::ok);
  ASSERT_EQ(units.free(1), status::ok);
  EXPECT_EQ(units.vacant(), 2U);
  EXPECT_EQ(units.cached(), 3U);
  EXPECT_THAT(units.reserve(4, 7).ids, ElementsAre(1, 2, 3, 0));
  EXPECT_EQ(units.lookup(key(10)), no_unit);
  EXPECT_EQ(units.lookup(key(12)), 4U);
  EXPECT_EQ(units.reserve(2, 7).code, status::no_room);
  EXPECT_EQ(units.free_units(), 1U);
}

TEST(ModelPool, ClaimedAndFreedAgainIsFreedLast) {
  pool units(2);
  ASSERT_THAT(units.allocate(2).ids, ElementsAre(0, 1));
  cache(units, {0, 1}, 10);
  EXPECT_EQ(units.claim(key(10)), 0U);
  EXPECT_EQ(units.claim(key(10)), 0U);
  EXPECT_EQ(units.inspect(0).shares, 2U);
  EXPECT_EQ(units.free(0), status::ok);
  EXPECT_EQ(units.inspect(0).where, place::live);
  EXPECT_EQ(units.free(0), status::ok);
  EXPECT_THAT(units.allocate(2).ids, ElementsAre(1, 0));
}

TEST(ModelPool, PublishingReplacesTheEntryAndLeavesTheOlderUnitCached) {
  pool units(3);
  ASSERT_THAT(units.allocate(3).ids, ElementsAre(0, 1, 2));
  cache(units, {0, 1}, 10);
  std::vector<checkpoint_key> orphans;
  units.on_orphan([&](const checkpoint_key& gone) { orphans.push_back(gone); });
  ASSERT_EQ(units.publish(2, key(10)), status::ok);
  EXPECT_EQ(units.lookup(key(10)), 2U);
  EXPECT_EQ(units.cached(), 2U);
  // Taking the unnamed unit orphans nobody; taking the named one does.
  EXPECT_THAT(units.allocate(2).ids, ElementsAre(0, 1));
  EXPECT_THAT(orphans, ElementsAre(key(11)));
  // A second key of one unit replaces its first, silently.
  ASSERT_EQ(units.publish(2, key(12)), status::ok);
  EXPECT_EQ(units.lookup(key(10)), no_unit);
  EXPECT_EQ(units.indexed(), 1U);
  EXPECT_THAT(orphans, ElementsAre(key(11)));
}

TEST(ModelPool, UnitsFreedByAnOrphanAreVacantForTheRestOfTheReservation) {
  pool units(4);
  ASSERT_THAT(units.reserve(1, 9).ids, ElementsAre(0));
  ASSERT_THAT(units.allocate(3).ids, ElementsAre(1, 2, 3));
  cache(units, {1, 2, 3}, 10);
  units.on_orphan([&](const checkpoint_key& gone) {
    if (gone != key(10)) return;
    EXPECT_EQ(units.release({0}, 9), status::ok);
  });
  EXPECT_THAT(units.reserve(3, 8).ids, ElementsAre(1, 0, 2));
}

TEST(ModelPool, CallersErrorsChangeNothing) {
  pool units(6);
  ASSERT_THAT(units.reserve(3, 5).ids, ElementsAre(0, 1, 2));
  EXPECT_EQ(units.release({0, 1, 2}, 6), status::invalid);
  EXPECT_EQ(units.release({0, 1}, 5), status::invalid);
  EXPECT_EQ(units.release({0, 2, 1}, 5), status::invalid);
  EXPECT_EQ(units.release({0, 1, 1}, 5), status::invalid);
  EXPECT_EQ(units.release({0, 1, 2, 3}, 5), status::invalid);
  EXPECT_EQ(units.free(0), status::invalid);
  EXPECT_EQ(units.free(3), status::invalid);
  EXPECT_EQ(units.claim_unit(0), status::invalid);
  EXPECT_EQ(units.claim_unit(3), status::invalid);
  EXPECT_EQ(units.publish(3, key(1)), status::invalid);
  EXPECT_EQ(units.allocate_at(1), status::busy);
  EXPECT_EQ(units.replace({0, 1, 2}, 5, 4, 5).code, status::invalid);
  EXPECT_EQ(units.reserve(1, 0).code, status::invalid);
  EXPECT_EQ(units.reserved(), 3U);
  EXPECT_EQ(units.release({0, 1, 2}, 5), status::ok);
  EXPECT_EQ(units.release({0, 1, 2}, 5), status::invalid);
  EXPECT_EQ(units.vacant(), 6U);
}

TEST(ModelPool, OneOwnerMayHoldSeveralReservationsAndReturnsEachWhole) {
  pool units(4);
  ASSERT_THAT(units.reserve(2, 5).ids, ElementsAre(0, 1));
  ASSERT_THAT(units.reserve(2, 5).ids, ElementsAre(2, 3));
  EXPECT_EQ(units.release({0, 3}, 5), status::invalid);
  EXPECT_EQ(units.release({2, 3}, 5), status::ok);
  EXPECT_EQ(units.release({0, 1}, 5), status::ok);
}

TEST(ModelPool, ReplaceReleasesBeforeItReserves) {
  pool units(4);
  ASSERT_THAT(units.reserve(3, 5).ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(units.replace({0, 1, 2}, 5, 2, 6).ids, ElementsAre(0, 1));
  EXPECT_EQ(units.vacant(), 2U);
}

TEST(ModelPool, ClearIndexMakesCachedVacantAndLeavesLiveOnes) {
  pool units(3);
  ASSERT_THAT(units.allocate(2).ids, ElementsAre(0, 1));
  cache(units, {0}, 10);
  ASSERT_EQ(units.publish(1, key(20)), status::ok);
  units.on_orphan([](const checkpoint_key&) { ADD_FAILURE() << "no hook is called"; });
  units.clear_index();
  EXPECT_EQ(units.vacant(), 2U);
  EXPECT_EQ(units.live(), 1U);
  EXPECT_EQ(units.indexed(), 0U);
  EXPECT_FALSE(units.inspect(1).key);
}

TEST(ModelPool, GrowsUpToItsMaximumAndRetiresItsTop) {
  pool units(2, 4);
  EXPECT_EQ(units.extend(5), 2U);
  EXPECT_EQ(units.extend(1), 0U);
  ASSERT_THAT(units.allocate(4).ids, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(units.begin_retire_top().code, status::no_room);
  cache(units, {1}, 10);
  ASSERT_EQ(units.publish(3, key(20)), status::ok);
  ASSERT_EQ(units.claim(key(20)), 3U);
  EXPECT_EQ(units.begin_retire_top().code, status::busy);
  ASSERT_EQ(units.free(3), status::ok);

  std::vector<checkpoint_key> orphans;
  units.on_orphan([&](const checkpoint_key& gone) { orphans.push_back(gone); });
  auto move = units.begin_retire_top();
  EXPECT_EQ(move.from, 3U);
  EXPECT_EQ(move.to, 1U);
  EXPECT_THAT(orphans, ElementsAre(key(10)));
  EXPECT_EQ(units.claim(key(20)), no_unit);
  EXPECT_EQ(units.begin_retire_top().code, status::busy);
  EXPECT_EQ(units.finish_retire(3, 1), status::ok);
  EXPECT_EQ(units.finish_retire(3, 1), status::invalid);
  EXPECT_EQ(units.lookup(key(20)), 1U);
  EXPECT_EQ(units.total(), 3U);

  ASSERT_EQ(units.free(2), status::ok);
  auto at_once = units.begin_retire_top();
  EXPECT_EQ(at_once.from, 2U);
  EXPECT_EQ(at_once.to, no_unit);
  EXPECT_EQ(units.total(), 2U);
}

// ---- catalog ----------------------------------------------------------------------

/// Ten units, three to an image: at most three checkpoints.
struct ModelCatalog : testing::Test {
  pool units{10};
  catalog cache{{3, 4, 1, 4096, 1024, nullptr}, units};

  void store(std::uint64_t n) {
    auto begun = cache.begin_store(key(n), 0);
    ASSERT_TRUE(begun.ok());
    ASSERT_TRUE(cache.finish(begun.stamp, 0, status::ok).ended);
    ASSERT_TRUE(cache.contains(key(n)));
  }
};

TEST_F(ModelCatalog, OnlyAFinishedStoreIsVisible) {
  auto begun = cache.begin_store(key(1), 0);
  EXPECT_EQ(begun.stamp, 1U);
  EXPECT_THAT(begun.units, ElementsAre(0, 1, 2));
  EXPECT_FALSE(cache.contains(key(1)));
  EXPECT_TRUE(cache.contains_or_copying(key(1)));
  EXPECT_THAT(cache.begin_store(key(1), 0).refusals, UnorderedElementsAre(status::duplicate));
  EXPECT_THAT(cache.begin_restore(key(1), 0).refusals, UnorderedElementsAre(status::not_found));
  auto end = cache.finish(begun.stamp, 0, status::ok);
  EXPECT_TRUE(end.counted && end.ended);
  EXPECT_FALSE(cache.finish(begun.stamp, 0, status::ok).counted);
  EXPECT_TRUE(cache.contains(key(1)));
  EXPECT_THAT(cache.begin_store(key(1), 0).refusals, UnorderedElementsAre(status::duplicate));
  EXPECT_EQ(cache.counted().kept, 1U);
}

TEST_F(ModelCatalog, EvictsTheLeastRecentlyUsedForTheShortfallOnly) {
  store(1);
  store(2);
  store(3);
  auto used = cache.begin_restore(key(1), 1);
  EXPECT_EQ(used.stamp, 4U);
  ASSERT_TRUE(cache.finish(used.stamp, 0, status::ok).ended);
  EXPECT_TRUE(cache.contains(key(2)));  // a lookup is no use
  // Unit 9 is vacant, the victim gives 3, 4, 5.
  auto begun = cache.begin_store(key(4), 0);
  EXPECT_THAT(begun.units, ElementsAre(3, 4, 5));
  EXPECT_FALSE(cache.contains(key(2)));
  EXPECT_TRUE(cache.contains(key(1)));
  EXPECT_TRUE(cache.contains(key(3)));
  EXPECT_EQ(cache.counted().evicted, 1U);
}

TEST_F(ModelCatalog, ARefusedStoreCostsNothing) {
  store(1);
  ASSERT_THAT(units.allocate(5).code, status::ok);
  ASSERT_TRUE(cache.begin_restore(key(1), 1).ok());
  EXPECT_THAT(cache.begin_store(key(2), 0).refusals, UnorderedElementsAre(status::no_room));
  EXPECT_THAT(cache.begin_store(key(2), 4).refusals,
              UnorderedElementsAre(status::no_room, status::invalid));
  EXPECT_TRUE(cache.contains(key(1)));
  EXPECT_EQ(cache.counted().evicted, 0U);
  EXPECT_EQ(units.free_units(), 2U);
  ASSERT_EQ(cache.cancel_restores(1), 1U);
  EXPECT_EQ(cache.begin_store(key(2), 0).stamp, 3U);
}

TEST_F(ModelCatalog, PinsFallWhenEachCopyHasFinishedFailedOrBeenCancelled) {
  store(1);
  auto first = cache.begin_restore(key(1), 1);
  auto second = cache.begin_restore(key(1), 2);
  auto third = cache.begin_restore(key(1), 3);
  EXPECT_EQ(cache.evictable(), 0U);
  EXPECT_TRUE(cache.forget(key(1)));
  EXPECT_FALSE(cache.forget(key(1)));
  EXPECT_EQ(cache.count(record_state::evicting), 1U);
  ASSERT_TRUE(cache.take(second.stamp));
  EXPECT_FALSE(cache.cancel(second.stamp));
  EXPECT_EQ(cache.cancel_restores(2), 0U);
  EXPECT_EQ(cache.cancel_restores(3), 1U);
  EXPECT_FALSE(cache.take(third.stamp));
  EXPECT_TRUE(cache.finish(first.stamp, 0, status::ok).ended);
  EXPECT_EQ(units.free_units(), 7U);
  EXPECT_TRUE(cache.finish(second.stamp, 0, status::failed).ended);
  EXPECT_EQ(units.free_units(), 10U);
  EXPECT_EQ(cache.counted().failed, 0U);
}

TEST_F(ModelCatalog, ARecordForgottenWhileCopyingReturnsItsUnitsWhenTheWriterIsDone) {
  auto begun = cache.begin_store(key(1), 0);
  EXPECT_TRUE(cache.forget(key(1)));
  EXPECT_EQ(units.free_units(), 7U);
  auto again = cache.begin_store(key(1), 0);
  EXPECT_THAT(again.units, ElementsAre(3, 4, 5));
  ASSERT_TRUE(cache.finish(begun.stamp, 0, status::ok).ended);
  EXPECT_FALSE(cache.contains(key(1)));
  ASSERT_TRUE(cache.finish(again.stamp, 0, status::ok).ended);
  EXPECT_TRUE(cache.contains(key(1)));
  EXPECT_EQ(units.free_units(), 7U);
}

TEST_F(ModelCatalog, AFailedStoreUnwindsAfterEveryRankHasReported) {
  catalog ranked({3, 4, 2, 4096, 1024, nullptr}, units);
  auto begun = ranked.begin_store(key(1), 0);
  auto first = ranked.finish(begun.stamp, 1, status::failed);
  EXPECT_TRUE(first.counted);
  EXPECT_FALSE(first.ended);
  EXPECT_FALSE(ranked.finish(begun.stamp, 1, status::ok).counted);
  EXPECT_EQ(units.free_units(), 7U);
  auto last = ranked.finish(begun.stamp, 0, status::ok);
  EXPECT_TRUE(last.ended);
  EXPECT_EQ(last.code, status::failed);
  EXPECT_EQ(units.free_units(), 10U);
  EXPECT_EQ(ranked.counted().kept, 1U);
  EXPECT_EQ(ranked.counted().failed, 1U);
  EXPECT_FALSE(ranked.contains_or_copying(key(1)));
}

TEST_F(ModelCatalog, RoomCountsWhatCouldBeEvictedWithoutTheProtectedKey) {
  store(1);
  store(2);
  store(3);
  checkpoint_key one = key(1), absent = key(9);
  EXPECT_TRUE(cache.has_available_units(10));
  EXPECT_FALSE(cache.has_available_units(11));
  EXPECT_TRUE(cache.has_available_units(7, &one));
  EXPECT_FALSE(cache.has_available_units(8, &one));
  EXPECT_TRUE(cache.has_available_units(10, &absent));
  ASSERT_TRUE(cache.begin_restore(key(1), 0).ok());
  EXPECT_TRUE(cache.has_available_units(7, &one));
  EXPECT_FALSE(cache.has_available_units(8));
  EXPECT_EQ(cache.ensure_free_units(8), status::no_room);
  EXPECT_EQ(cache.evictable(), 2U);
  EXPECT_EQ(cache.ensure_free_units(5), status::ok);
  EXPECT_EQ(cache.evictable(), 0U);
  EXPECT_EQ(units.free_units(), 7U);
}

TEST_F(ModelCatalog, BarePinsBlockEvictionUncounted) {
  store(1);
  ASSERT_EQ(units.allocate(7).code, status::ok);
  EXPECT_EQ(cache.pin_longest({key(8), key(1), key(9)}, 1).code, status::not_found);
  auto held = cache.pin_longest({key(8), key(1), key(9)}, 3);
  EXPECT_EQ(held.length, 2U);
  EXPECT_EQ(cache.evictable(), 1U);
  EXPECT_TRUE(cache.has_available_units(3));
  EXPECT_THAT(cache.begin_store(key(2), 0).refusals, UnorderedElementsAre(status::no_room));
  EXPECT_TRUE(cache.contains(key(1)));
  EXPECT_TRUE(cache.release_pin(held.pin));
  EXPECT_FALSE(cache.release_pin(held.pin));
  EXPECT_TRUE(cache.begin_store(key(2), 0).ok());
}

TEST_F(ModelCatalog, TakingCachedUnitsOrphansTheirCheckpointsWithoutEviction) {
  store(1);  // 0, 1, 2
  ASSERT_THAT(units.allocate(7).ids, ElementsAre(3, 4, 5, 6, 7, 8, 9));
  ::cache(units, {3, 4, 5}, 1);
  // Unit 3 bears key 1: taking it frees 0, 1, 2 for the rest.
  EXPECT_THAT(cache.begin_store(key(7), 0).units, ElementsAre(3, 0, 1));
  EXPECT_FALSE(cache.contains(key(1)));
  EXPECT_EQ(cache.counted().orphaned, 1U);
  EXPECT_EQ(cache.counted().evicted, 0U);
}

TEST_F(ModelCatalog, AStoreMayTakeTheUnitOfItsOwnKey) {
  ASSERT_EQ(units.allocate(10).code, status::ok);
  ::cache(units, {2, 1, 0}, 1);
  auto begun = cache.begin_store(key(2), 0);
  EXPECT_THAT(begun.units, ElementsAre(2, 1, 0));
  EXPECT_TRUE(cache.contains_or_copying(key(2)));
  EXPECT_EQ(cache.counted().orphaned, 0U);
}

TEST_F(ModelCatalog, AdmitHoldsAllOrNothing) {
  ASSERT_THAT(units.allocate(3).ids, ElementsAre(0, 1, 2));
  ::cache(units, {0, 1, 2}, 1);
  store(2);  // 3, 4, 5
  // 6 .. 9 are vacant, 2 stays cached: the keys beyond the boundary are not claimed.
  auto admitted = cache.admit({key(1), key(2), key(3), key(4)}, 1, 3);
  ASSERT_TRUE(admitted.ok());
  EXPECT_EQ(admitted.kv_hit, 3U);
  EXPECT_EQ(admitted.resumed, 2U);
  EXPECT_THAT(admitted.units, ElementsAre(0, 1, 6, 7, 8));
  EXPECT_EQ(admitted.restore.stamp, 2U);
  EXPECT_THAT(admitted.restore.units, ElementsAre(3, 4, 5));
  EXPECT_EQ(cache.evictable(), 0U);
  // 2 units are left, and the only checkpoint is pinned.
  auto refused = cache.admit({key(1), key(2)}, 3, 2);
  EXPECT_THAT(refused.refusals, UnorderedElementsAre(status::no_room));
  EXPECT_EQ(units.inspect(0).shares, 1U);
  EXPECT_EQ(units.free_units(), 2U);
}

TEST_F(ModelCatalog, APolicyMayPassOver) {
  catalog picky({3, 4, 1, 4096, 1024,
                 [](const auto& eligible) -> std::optional<std::size_t> {
                   for (std::size_t i = 0; i < eligible.size(); ++i)
                     if (eligible[i].hint != placement_hint::anchor) return i;
                   return std::nullopt;
                 }},
                units);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    auto begun = picky.begin_store(key(n), 0, placement_hint::anchor);
    ASSERT_TRUE(picky.finish(begun.stamp, 0, status::ok).ended);
  }
  EXPECT_TRUE(picky.has_available_units(10));
  EXPECT_THAT(picky.begin_store(key(4), 0).refusals, UnorderedElementsAre(status::passed_over));
  EXPECT_EQ(picky.evictable(), 3U);
  EXPECT_EQ(picky.counted().evicted, 0U);
}

// ---- coordinator ------------------------------------------------------------------

struct ModelCoordinator : ModelCatalog {
  coordinator filed{4, cache};
  std::vector<boundary> stored;

  std::uint32_t drain() {
    return filed.drain([this](const boundary& what) {
      stored.push_back(what);
      auto begun = cache.begin_store(what.key, what.slot, what.hint);
      return begun.ok() ? status::ok : *begun.refusals.begin();
    });
  }
};

TEST_F(ModelCoordinator, ANewerBoundarySupersedesAndTheSlotIsReadAtTheDrain) {
  ASSERT_EQ(filed.file(0, key(1)), status::ok);
  EXPECT_EQ(filed.pending(), 0U);  // no slot yet
  filed.set_slot(0, 2);
  filed.set_slot(1, 3);
  ASSERT_EQ(filed.file(0, key(1)), status::ok);
  ASSERT_EQ(filed.file(1, key(5)), status::ok);
  ASSERT_EQ(filed.file(0, key(1)), status::ok);
  EXPECT_EQ(cache.counted().dropped_superseded, 1U);
  filed.set_slot(0, 1);
  EXPECT_EQ(drain(), 2U);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].key, key(5));
  EXPECT_EQ(stored[1].key, key(1));
  EXPECT_EQ(stored[1].slot, 1U);
  EXPECT_EQ(filed.file(4, key(1)), status::invalid);
}

TEST_F(ModelCoordinator, TheDrainSkipsUncountedAndCountsWhatGetsNoUnits) {
  store(1);
  for (std::uint32_t sequence = 0; sequence < 4; ++sequence) filed.set_slot(sequence, sequence);
  filed.file(0, key(1));
  filed.file(1, key(2));
  filed.file(2, key(3));
  filed.file(3, key(2));
  filed.set_slot(2, no_slot);
  ASSERT_EQ(units.allocate(7).code, status::ok);
  ASSERT_TRUE(cache.begin_restore(key(1), 0).ok());
  EXPECT_EQ(drain(), 0U);
  EXPECT_EQ(stored.size(), 2U);
  EXPECT_EQ(cache.counted().dropped_no_room, 2U);
}

TEST_F(ModelCoordinator, ForgettingASequenceCancelsItsRestoreAndCountsNothing) {
  store(1);
  filed.set_slot(0, 2);
  filed.file(0, key(2));
  auto queued = cache.begin_restore(key(1), 2);
  ASSERT_TRUE(queued.ok());
  EXPECT_EQ(filed.forget(0), status::ok);
  EXPECT_EQ(filed.pending(), 0U);
  EXPECT_FALSE(cache.take(queued.stamp));
  EXPECT_EQ(cache.counted().dropped_superseded, 0U);
}

TEST_F(ModelCoordinator, UnindexCountsOneOrphanForPendingsAndCheckpointTogether) {
  store(1);
  filed.set_slot(0, 0);
  filed.set_slot(1, 1);
  filed.file(0, key(1));
  filed.file(1, key(1));
  EXPECT_TRUE(filed.unindex(key(1)));
  EXPECT_FALSE(filed.unindex(key(1)));
  EXPECT_EQ(cache.counted().orphaned, 1U);
  EXPECT_EQ(filed.pending(), 0U);
  EXPECT_FALSE(cache.contains(key(1)));
}

TEST_F(ModelCoordinator, TakingACachedUnitUnindexesPendingsToo) {
  ASSERT_EQ(units.allocate(10).code, status::ok);
  ::cache(units, {4}, 1);
  filed.set_slot(0, 0);
  filed.file(0, key(1));
  ASSERT_EQ(units.allocate(1).code, status::ok);
  EXPECT_EQ(filed.pending(), 0U);
  EXPECT_EQ(cache.counted().orphaned, 1U);
}

TEST_F(ModelCoordinator, ResetMovesNoCounter) {
  store(1);
  filed.set_slot(0, 0);
  filed.file(0, key(2));
  filed.reset();
  EXPECT_EQ(filed.pending(), 0U);
  EXPECT_EQ(units.free_units(), 10U);
  EXPECT_EQ(cache.counted().orphaned + cache.counted().evicted, 0U);
  EXPECT_EQ(cache.counted().kept, 1U);
}

TEST_F(ModelCoordinator, ResumableHitIsTheLongestLengthWhoseLastKeyIsReady) {
  store(2);
  store(4);
  std::vector<checkpoint_key> keys{key(1), key(2), key(3), key(4)};
  EXPECT_EQ(filed.resumable_hit(keys, 4), 4U);
  EXPECT_EQ(filed.resumable_hit(keys, 3), 2U);
  EXPECT_EQ(filed.resumable_hit(keys, 1), 0U);
  EXPECT_EQ(filed.resumable_hit(keys, 3, true), 3U);
  EXPECT_EQ(filed.resumable_hit(keys, 0, true), 0U);
}

}  // namespace
