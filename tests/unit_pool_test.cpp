// The unit pool, one call after another: who gets which unit, shares of live KV, fences.
// Overlapping calls are in unit_pool_stress_test.cpp.
#include "tests/unit_pool_fixture.hpp"

namespace cairn::test {
namespace {

// ---- opening --------------------------------------------------------------------------

TEST_F(UnitPool, OpeningRefusesSizesAndStreamsThatCannotBe) {
  EXPECT_EQ(unit_pool::open({0, 0, 1}).code(), status::invalid);
  EXPECT_EQ(unit_pool::open({5, 4, 1}).code(), status::invalid);
  EXPECT_EQ(unit_pool::open({1, cairn::max_index + 1, 1}).code(), status::invalid);
  EXPECT_EQ(unit_pool::open({1, 1, 0}).code(), status::invalid);
  EXPECT_EQ(unit_pool::open({1, 1, cairn::max_compute_streams + 1}).code(), status::invalid);
  const auto refused = unit_pool::open({5, 4, 1});
  EXPECT_NE(refused.why().message().find("expected 4, got 5"), std::string::npos)
      << refused.why().message();
}

TEST_F(UnitPool, OpensWithEveryUnitVacantAndMayStartEmpty) {
  open(3);
  EXPECT_EQ(pool->counts().vacant, 3U);
  EXPECT_EQ(pool->max_units(), 3U);
  open(0, 4);
  EXPECT_EQ(pool->max_units(), 4U);
  EXPECT_EQ(pool->counts().total, 0U);
  EXPECT_EQ(pool->free_units(), 0U);
}

// ---- order of hand-out ----------------------------------------------------------------

TEST_F(UnitPool, HandsOutVacantUnitsLowestIdFirst) {
  open(200);
  EXPECT_EQ(allocate(3), (ids{0, 1, 2}));
  EXPECT_EQ(free(1), status::ok);
  EXPECT_EQ(reserve(2, 7), (ids{1, 3}));
  EXPECT_EQ(free(2), status::ok);
  EXPECT_EQ(free(0), status::ok);
  EXPECT_EQ(allocate(3), (ids{0, 2, 4}));
}

TEST_F(UnitPool, HandsOutVacantUnitsBeforeCachedOnes) {
  open(4);
  const ids held = allocate(4);
  publish(0, 1);
  publish(1, 2);
  free(0);
  free(1);
  free(3);
  free(2);
  EXPECT_EQ(allocate(2), (ids{2, 3}));
  EXPECT_TRUE(orphans.empty());
}

TEST_F(UnitPool, HandsOutCachedUnitsLeastRecentlyFreedFirst) {
  open(5);
  cache_in_order({3, 0, 4, 1, 2});
  EXPECT_EQ(pool->claim(key(103)), 3U);  // freed again: the most recent now
  EXPECT_EQ(free(3), status::ok);
  EXPECT_EQ(reserve(5, 1), (ids{0, 4, 1, 2, 3}));
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{100, 104, 101, 102, 103}));
}

TEST_F(UnitPool, AllocatesAllOrNothing) {
  open(3);
  EXPECT_EQ(allocate(2).size(), 2U);
  const std::string before = snapshot();
  ids out(2, no_unit);
  EXPECT_EQ(pool->allocate(out).code(), status::no_room);
  EXPECT_EQ(pool->reserve(out, 1).code(), status::no_room);
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(pool->allocate({}).code(), status::ok);
}

// ---- live KV --------------------------------------------------------------------------

TEST_F(UnitPool, AUnitIsFreeWhenItsLastShareIsGiven) {
  open(2);
  allocate(1);
  EXPECT_EQ(pool->claim_unit(0).code(), status::ok);
  EXPECT_EQ(pool->inspect(0).shares, 2U);
  EXPECT_EQ(free(0), status::ok);
  EXPECT_EQ(pool->inspect(0).place, unit_place::live);
  EXPECT_EQ(pool->free_units(), 1U);
  EXPECT_EQ(free(0), status::ok);
  EXPECT_EQ(pool->inspect(0).place, unit_place::vacant);
  EXPECT_EQ(pool->free_units(), 2U);
}

TEST_F(UnitPool, AUnitFreedWithAKeyIsCached) {
  open(2);
  allocate(1);
  publish(0, 5);
  free(0);
  EXPECT_EQ(pool->inspect(0).place, unit_place::cached);
  EXPECT_TRUE(pool->is_cached(0));
  EXPECT_FALSE(pool->is_cached(1));
  EXPECT_FALSE(pool->is_cached(no_unit));
  EXPECT_EQ(pool->inspect(0).key, key(5));
  EXPECT_EQ(pool->free_units(), 2U);
}

TEST_F(UnitPool, ClaimTakesAShareOfACachedOrLiveUnitAndKeepsItsContent) {
  open(2);
  allocate(1);
  publish(0, 5);
  EXPECT_EQ(pool->claim(key(5)), 0U);
  EXPECT_EQ(pool->inspect(0).shares, 2U);
  free(0);
  free(0);
  EXPECT_EQ(pool->claim(key(5)), 0U);
  EXPECT_EQ(pool->inspect(0).place, unit_place::live);
  EXPECT_EQ(pool->inspect(0).shares, 1U);
  EXPECT_EQ(pool->inspect(0).key, key(5));
  EXPECT_EQ(pool->lookup(key(5)), 0U);
  EXPECT_EQ(pool->free_units(), 1U);
  EXPECT_EQ(pool->claim(key(6)), no_unit);
  EXPECT_TRUE(orphans.empty());
}

TEST_F(UnitPool, ALookupClaimsNothing) {
  open(1);
  cache_in_order({0});
  const std::string before = snapshot();
  EXPECT_EQ(pool->lookup(key(100)), 0U);
  EXPECT_EQ(pool->lookup(key(101)), no_unit);
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, ClaimUnitNeedsALiveOrCachedUnit) {
  open(3, 4);
  cache_in_order({0});
  EXPECT_EQ(pool->claim_unit(0).code(), status::ok);
  EXPECT_EQ(reserve(1, 9), (ids{1}));
  const std::string before = snapshot();
  EXPECT_EQ(pool->claim_unit(1).code(), status::invalid);  // reserved
  EXPECT_EQ(pool->claim_unit(2).code(), status::invalid);  // vacant
  EXPECT_EQ(pool->claim_unit(3).code(), status::invalid);  // absent
  EXPECT_EQ(pool->claim_unit(4).code(), status::invalid);  // never
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, SharesAreCountedToALimit) {
  open(1);
  allocate(1);
  publish(0, 1);
  for (int i = 1; i < 65535; ++i) ASSERT_EQ(pool->claim(key(1)), 0U);
  EXPECT_EQ(pool->claim(key(1)), no_unit);
  EXPECT_EQ(pool->claim_unit(0).code(), status::limit);
  EXPECT_EQ(pool->inspect(0).shares, 65535U);
}

TEST_F(UnitPool, FreeingWhatIsNotLiveChangesNothing) {
  open(3, 4);
  cache_in_order({0});
  EXPECT_EQ(reserve(1, 9), (ids{1}));
  const std::string before = snapshot();
  for (unit_id id : ids{0, 1, 2, 3, 4, no_unit}) EXPECT_EQ(free(id), status::invalid) << id;
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, AllocateAtDropsTheKeyAsAnyTakingDoes) {
  open(4, 5);
  cache_in_order({0, 1});
  EXPECT_EQ(pool->allocate_at(1).code(), status::ok);
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{101}));
  EXPECT_EQ(pool->lookup(key(101)), no_unit);
  EXPECT_FALSE(pool->inspect(1).has_key);
  EXPECT_EQ(pool->allocate_at(3).code(), status::ok);
  EXPECT_EQ(pool->free_units(), 2U);
  const std::string before = snapshot();
  EXPECT_EQ(pool->allocate_at(3).code(), status::busy);
  EXPECT_EQ(pool->allocate_at(4).code(), status::invalid);
  EXPECT_EQ(pool->allocate_at(5).code(), status::invalid);
  EXPECT_EQ(snapshot(), before);
  free(3);
  EXPECT_EQ(reserve(2, 1), (ids{2, 3}));
  EXPECT_EQ(pool->allocate_at(2).code(), status::busy);
  expect_ledger_closes();
}

TEST_F(UnitPool, AUnitTakenByItsIdIsNotHandedOutAgainAndLaterKeepsItsPlaceInTheOrder) {
  open(3);
  EXPECT_EQ(pool->allocate_at(0).code(), status::ok);
  EXPECT_EQ(pool->allocate_at(1).code(), status::ok);
  publish(1, 5);
  publish(0, 6);
  free(1);
  free(0);
  // Both are cached now: the vacant one goes first, then these by the time freed.
  EXPECT_EQ(allocate(3), (ids{2, 1, 0}));
}

/// Each of `units` is taken by its id, given a key and freed: cached, and its bit stale.
class StaleBits : public UnitPool {
 protected:
  void cache_by_id(const ids& units) {
    for (const unit_id id : units) {
      ASSERT_EQ(pool->allocate_at(id).code(), status::ok);
      ASSERT_EQ(publish(id, 100 + id), status::ok);
      ASSERT_EQ(free(id), status::ok);
    }
  }
};

TEST_F(StaleBits, ManyBelowTheFirstVacantUnitDoNotMakeACachedOneGoBeforeIt) {
  open(20);
  cache_by_id({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(allocate(1), (ids{10}));
  EXPECT_TRUE(orphans.empty());
  expect_ledger_closes();
}

TEST_F(StaleBits, ManyBetweenVacantUnitsDoNotMakeACachedOneGoBeforeThem) {
  open(20);
  cache_by_id({0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(allocate(2), (ids{6, 13}));
  EXPECT_TRUE(orphans.empty());
  expect_ledger_closes();
}

TEST_F(StaleBits, OfAllUnitsLeaveTheOrderByTheTimeFreed) {
  open(20);
  ids all(20);
  for (unit_id id = 0; id < 20; ++id) all[id] = 19 - id;
  cache_by_id(all);
  EXPECT_EQ(allocate(20), all);
}

// ---- fences ---------------------------------------------------------------------------

TEST_F(UnitPool, FencesOfAllFormerSharesAreCollected) {
  open(3, 0, 3);
  allocate(2);
  ASSERT_TRUE(pool->claim_unit(0).ok());
  ASSERT_TRUE(pool->free(0, {2, 7}).ok());
  ASSERT_TRUE(pool->free(0, {1, 4}).ok());
  ASSERT_TRUE(pool->free(1, {2, 9}).ok());
  fence_set one;
  pool->collect_fences(ids{0}, one);
  EXPECT_EQ(one.steps[0], 0U);
  EXPECT_EQ(one.steps[1], 4U);
  EXPECT_EQ(one.steps[2], 7U);
  pool->collect_fences(ids{0, 1, 2}, one);
  EXPECT_EQ(one.steps[1], 4U);
  EXPECT_EQ(one.steps[2], 9U);
  allocate(1);  // unit 0 again: an earlier step does not hide a later one
  ASSERT_TRUE(pool->free(0, {2, 3}).ok());
  fence_set again;
  pool->collect_fences(ids{0}, again);
  EXPECT_EQ(again.steps[2], 7U);
}

TEST_F(UnitPool, AFenceOnAnUnknownStreamIsRefusedAndChangesNothing) {
  open(1, 0, 2);
  allocate(1);
  const std::string before = snapshot();
  EXPECT_EQ(pool->free(0, {2, 1}).code(), status::invalid);
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(pool->free(0, {2, 0}).code(), status::ok);  // step 0 is no fence
}

}  // namespace
}  // namespace cairn::test
