// The unit pool's keys: publishing, replacing, dropping them, and the orphans that taking makes.
#include "tests/unit_pool_fixture.hpp"

namespace cairn::test {
namespace {

// ---- the index ------------------------------------------------------------------------

TEST_F(UnitPool, PublishNeedsALiveUnit) {
  open(3, 4);
  cache_in_order({0});
  EXPECT_EQ(reserve(1, 9), (ids{1}));
  const std::string before = snapshot();
  for (unit_id id : ids{0, 1, 2, 3, 4, no_unit}) EXPECT_EQ(publish(id, 7), status::invalid) << id;
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, PublishUnderAnothersKeyReplacesTheEntryAndTheOlderUnitStays) {
  open(3);
  allocate(3);
  publish(0, 5);
  publish(1, 5);
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  EXPECT_EQ(pool->inspect(0).place, unit_place::live);
  EXPECT_TRUE(pool->inspect(0).has_key);
  EXPECT_EQ(pool->indexed(), 1U);
  free(0);
  EXPECT_EQ(pool->inspect(0).place, unit_place::cached);
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  publish(2, 5);  // and once more, over a live one and a cached one
  EXPECT_EQ(pool->lookup(key(5)), 2U);
  EXPECT_TRUE(pool->inspect(1).has_key);
  EXPECT_EQ(pool->indexed(), 1U);
  EXPECT_TRUE(orphans.empty());
}

TEST_F(UnitPool, TakingAUnitThatTheIndexDoesNotNameOrphansNothing) {
  open(2);
  allocate(2);
  publish(0, 5);
  publish(1, 5);
  free(0);
  EXPECT_EQ(allocate(1), (ids{0}));
  EXPECT_TRUE(orphans.empty());
  EXPECT_EQ(pool->lookup(key(5)), 1U);
  free(1);
  EXPECT_EQ(allocate(1), (ids{1}));
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(pool->lookup(key(5)), no_unit);
}

TEST_F(UnitPool, TheOlderUnitIsNotNamedAgainWhenTheNewerIsTaken) {
  open(3);
  allocate(3);
  publish(0, 5);
  publish(1, 5);
  free(1);
  free(0);
  EXPECT_EQ(allocate(1), (ids{1}));
  EXPECT_EQ(pool->lookup(key(5)), no_unit);
  EXPECT_EQ(pool->claim(key(5)), no_unit);
  EXPECT_EQ(pool->inspect(0).place, unit_place::cached);
}

TEST_F(UnitPool, PublishingAgainUnderTheSameKeyChangesNothingWhileItIsNamed) {
  open(2);
  allocate(2);
  publish(0, 5);
  const std::string before = snapshot();
  EXPECT_EQ(publish(0, 5), status::ok);
  EXPECT_EQ(snapshot(), before);
  publish(1, 5);
  EXPECT_EQ(publish(0, 5), status::ok);  // not named any more: it is now
  EXPECT_EQ(pool->lookup(key(5)), 0U);
  EXPECT_TRUE(pool->inspect(1).has_key);
  EXPECT_EQ(pool->indexed(), 1U);
}

TEST_F(UnitPool, PublishDropsTheKeyThatTheUnitBoreBefore) {
  open(1);
  allocate(1);
  publish(0, 5);
  publish(0, 6);
  EXPECT_EQ(pool->lookup(key(5)), no_unit);
  EXPECT_EQ(pool->lookup(key(6)), 0U);
  EXPECT_EQ(pool->inspect(0).key, key(6));
  EXPECT_EQ(pool->indexed(), 1U);
  EXPECT_TRUE(orphans.empty());
}

TEST_F(UnitPool, KeysThatShareOneHalfAreDifferent) {
  open(3);
  allocate(3);
  ASSERT_TRUE(pool->publish(0, {1, 2}).ok());
  ASSERT_TRUE(pool->publish(1, {1, 3}).ok());
  ASSERT_TRUE(pool->publish(2, {2, 2}).ok());
  EXPECT_EQ(pool->lookup({1, 2}), 0U);
  EXPECT_EQ(pool->lookup({1, 3}), 1U);
  EXPECT_EQ(pool->lookup({2, 2}), 2U);
  EXPECT_EQ(pool->lookup({2, 1}), no_unit);
}

TEST_F(UnitPool, ClearIndexDropsEveryKeyAndLeavesLiveUnitsAlone) {
  open(4);
  cache_in_order({2, 1, 3, 0});
  EXPECT_EQ(pool->claim(key(101)), 1U);
  pool->clear_index();
  EXPECT_EQ(pool->counts().vacant, 3U);
  EXPECT_EQ(pool->counts().cached, 0U);
  EXPECT_EQ(pool->indexed(), 0U);
  EXPECT_EQ(pool->inspect(1).place, unit_place::live);
  EXPECT_FALSE(pool->inspect(1).has_key);
  for (std::uint64_t k = 100; k < 104; ++k) EXPECT_EQ(pool->lookup(key(k)), no_unit);
  EXPECT_EQ(allocate(3), (ids{0, 2, 3}));  // lowest id first again
  EXPECT_TRUE(orphans.empty());
  free(1);
  EXPECT_EQ(pool->inspect(1).place, unit_place::vacant);
  expect_ledger_closes();
}

// ---- orphans --------------------------------------------------------------------------

TEST_F(UnitPool, UnitsThatAnOrphanGivesBackAreVacantForTheRestOfTheReservation) {
  open(6);
  const ids checkpoint = reserve(2, 50);  // 0, 1
  EXPECT_EQ(allocate(4), (ids{2, 3, 4, 5}));
  for (unit_id id : ids{2, 3, 4, 5}) publish(id, 100 + id);
  for (unit_id id : ids{5, 4, 3, 2}) free(id);
  // The checkpoint hangs on the key of unit 5, the first to go.
  on_orphan = [&](const checkpoint_key& k) {
    if (k == key(105)) {
      EXPECT_EQ(release(checkpoint, 50), status::ok);
    }
  };
  EXPECT_EQ(reserve(4, 51), (ids{5, 0, 1, 4}));
  EXPECT_EQ(orphans, (std::vector<std::uint64_t>{105, 104}));
  EXPECT_EQ(pool->free_units(), 2U);
  expect_ledger_closes();
}

TEST_F(UnitPool, TheHookFindsTheUnitTakenAndTheKeyGone) {
  open(1);
  cache_in_order({0});
  on_orphan = [&](const checkpoint_key& k) {
    EXPECT_EQ(pool->lookup(k), no_unit);
    EXPECT_EQ(pool->claim(k), no_unit);
    EXPECT_EQ(pool->free_units(), 0U);
  };
  EXPECT_EQ(allocate(1), (ids{0}));
  EXPECT_EQ(orphans.size(), 1U);
}

TEST_F(UnitPool, ClaimsAndFreesOrphanNothing) {
  open(2);
  cache_in_order({0, 1});
  EXPECT_EQ(pool->claim(key(100)), 0U);
  EXPECT_EQ(pool->claim_unit(1).code(), status::ok);
  free(0);
  free(1);
  EXPECT_TRUE(orphans.empty());
}

}  // namespace
}  // namespace cairn::test
