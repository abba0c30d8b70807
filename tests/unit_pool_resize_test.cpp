// Growing the pool and retiring its highest unit.
#include "tests/unit_pool_fixture.hpp"

namespace cairn::test {
namespace {

// ---- size -----------------------------------------------------------------------------

TEST_F(UnitPool, ExtendGrowsUpToMaxUnits) {
  open(2, 5);
  EXPECT_EQ(pool->extend(2), 2U);
  EXPECT_EQ(pool->counts().total, 4U);
  EXPECT_EQ(pool->extend(4), 1U);
  EXPECT_EQ(pool->extend(1), 0U);
  EXPECT_EQ(allocate(5), (ids{0, 1, 2, 3, 4}));
}

TEST_F(UnitPool, RetiringAVacantTopIsOverAtOnce) {
  open(3);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(move->from, 2U);
  EXPECT_EQ(move->to, no_unit);
  EXPECT_EQ(pool->counts().total, 2U);
  EXPECT_EQ(pool->free_units(), 2U);
  EXPECT_EQ(pool->inspect(2).place, unit_place::absent);
  EXPECT_EQ(pool->finish_retire(*move).code(), status::invalid);
  EXPECT_EQ(allocate(2), (ids{0, 1}));
  EXPECT_EQ(pool->extend(5), 1U);
  EXPECT_EQ(allocate(1), (ids{2}));
}

TEST_F(UnitPool, RetiringACachedTopOrphansItsKey) {
  open(2);
  cache_in_order({1, 0});
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(move->to, no_unit);
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{101}));
  EXPECT_EQ(pool->lookup(key(101)), no_unit);
  EXPECT_EQ(pool->extend(1), 1U);
  EXPECT_FALSE(pool->inspect(1).has_key);
  EXPECT_EQ(allocate(2), (ids{1, 0}));
}

TEST_F(UnitPool, RetiringALiveTopMovesItsShareItsFencesAndItsKey) {
  open(3, 4, 2);
  allocate(3);
  publish(2, 5);
  ASSERT_TRUE(pool->claim_unit(2).ok());
  ASSERT_TRUE(pool->free(2, {1, 8}).ok());
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(move->from, 2U);
  EXPECT_EQ(move->to, 0U);
  // Under way: the share is on `to`; `from` is nobody's to use.
  EXPECT_EQ(pool->inspect(0).place, unit_place::live);
  EXPECT_EQ(pool->inspect(0).shares, 1U);
  EXPECT_EQ(pool->lookup(key(5)), no_unit);
  EXPECT_EQ(pool->claim(key(5)), no_unit);
  EXPECT_EQ(pool->claim_unit(2).code(), status::invalid);
  EXPECT_EQ(free(2), status::invalid);
  EXPECT_EQ(publish(2, 6), status::invalid);
  EXPECT_EQ(pool->allocate_at(2).code(), status::busy);
  EXPECT_EQ(pool->begin_retire_top().code(), status::busy);
  EXPECT_EQ(pool->extend(1), 0U);
  EXPECT_EQ(pool->counts().total, 3U);
  expect_ledger_closes();
  fence_set fences;
  pool->collect_fences(ids{0}, fences);
  EXPECT_EQ(fences.steps[1], 8U);

  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_EQ(pool->counts().total, 2U);
  EXPECT_EQ(pool->inspect(2).place, unit_place::absent);
  EXPECT_EQ(pool->lookup(key(5)), 0U);
  EXPECT_EQ(pool->inspect(0).key, key(5));
  EXPECT_EQ(pool->claim(key(5)), 0U);
  EXPECT_EQ(pool->finish_retire(*move).code(), status::invalid);
  EXPECT_EQ(pool->extend(3), 2U);
  EXPECT_TRUE(orphans.empty());
  expect_ledger_closes();
}

TEST_F(UnitPool, AMoveTakesACachedUnitAndOrphansItsKey) {
  open(2);
  allocate(2);
  publish(0, 7);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(move->to, 0U);
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{7}));
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_FALSE(pool->inspect(0).has_key);
  free(0);
  EXPECT_EQ(pool->inspect(0).place, unit_place::vacant);
}

TEST_F(UnitPool, AMovedUnitThatTheIndexDoesNotNameStaysUnnamed) {
  open(3);
  allocate(3);
  publish(2, 5);
  publish(1, 5);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  EXPECT_EQ(pool->inspect(0).key, key(5));
  EXPECT_EQ(pool->indexed(), 1U);
}

TEST_F(UnitPool, AKeyPublishedElsewhereDuringAMoveStaysThere) {
  open(3);
  allocate(3);
  publish(2, 5);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  publish(1, 5);
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  EXPECT_EQ(pool->inspect(0).key, key(5));
  EXPECT_EQ(pool->indexed(), 1U);
}

TEST_F(UnitPool, AKeyThatTheDestinationGetsDuringAMoveReplacesTheOneThatMoves) {
  open(3);
  allocate(3);
  publish(2, 5);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(publish(0, 6), status::ok);
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_EQ(pool->lookup(key(6)), 0U);
  EXPECT_EQ(pool->lookup(key(5)), no_unit);
  EXPECT_EQ(pool->indexed(), 1U);
}

TEST_F(UnitPool, AShareGivenBackDuringAMoveFreesTheDestinationWhenTheMoveEnds) {
  open(2);
  allocate(2);
  publish(1, 5);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(free(0), status::ok);
  EXPECT_EQ(pool->free_units(), 0U);  // the copy still writes it
  EXPECT_EQ(free(0), status::invalid);
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_EQ(pool->free_units(), 1U);
  EXPECT_EQ(pool->inspect(0).place, unit_place::cached);
  EXPECT_EQ(pool->lookup(key(5)), 0U);
  EXPECT_EQ(pool->claim(key(5)), 0U);
  expect_ledger_closes();
}

TEST_F(UnitPool, ClearIndexDuringAMoveDropsTheMovingKeyToo) {
  open(2);
  allocate(2);
  publish(1, 5);
  free(0);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  pool->clear_index();
  ASSERT_TRUE(pool->finish_retire(*move).ok());
  EXPECT_FALSE(pool->inspect(0).has_key);
  EXPECT_EQ(pool->indexed(), 0U);
}

TEST_F(UnitPool, RetiringASharedOrReservedTopIsRefused) {
  open(3);
  allocate(3);
  ASSERT_TRUE(pool->claim_unit(2).ok());
  free(0);
  std::string before = snapshot();
  EXPECT_EQ(pool->begin_retire_top().code(), status::busy);
  EXPECT_EQ(snapshot(), before);
  free(2);
  free(2);
  free(1);
  EXPECT_EQ(reserve(3, 1), (ids{0, 1, 2}));
  before = snapshot();
  EXPECT_EQ(pool->begin_retire_top().code(), status::busy);
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, RetiringALiveTopNeedsAUnitToMoveTo) {
  open(2);
  allocate(2);
  const std::string before = snapshot();
  EXPECT_EQ(pool->begin_retire_top().code(), status::no_room);
  EXPECT_EQ(snapshot(), before);
  free(0);
  EXPECT_TRUE(pool->begin_retire_top().ok());
}

TEST_F(UnitPool, FinishingAnotherMoveIsRefused) {
  open(3);
  allocate(3);
  free(0);
  EXPECT_EQ(pool->finish_retire({2, 0}).code(), status::invalid);
  const auto move = pool->begin_retire_top();
  ASSERT_TRUE(move.ok());
  const std::string before = snapshot();
  EXPECT_EQ(pool->finish_retire({1, 0}).code(), status::invalid);
  EXPECT_EQ(pool->finish_retire({2, 1}).code(), status::invalid);
  EXPECT_EQ(pool->finish_retire({2, no_unit}).code(), status::invalid);
  EXPECT_EQ(snapshot(), before);
  EXPECT_TRUE(pool->finish_retire(*move).ok());
}

TEST_F(UnitPool, APoolCanBeRetiredToNothingAndGrowAgain) {
  open(2);
  EXPECT_TRUE(pool->begin_retire_top().ok());
  EXPECT_TRUE(pool->begin_retire_top().ok());
  EXPECT_EQ(pool->begin_retire_top().code(), status::invalid);
  EXPECT_EQ(pool->counts().total, 0U);
  EXPECT_EQ(pool->extend(9), 2U);
  EXPECT_EQ(allocate(2), (ids{0, 1}));
}

}  // namespace
}  // namespace cairn::test
