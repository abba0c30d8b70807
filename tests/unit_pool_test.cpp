// The unit pool, one call after another: who gets which unit, what a caller's error changes
// (nothing), what happens to keys. Overlapping calls are in unit_pool_stress_test.cpp.
#include <gtest/gtest.h>

#include <cairn/unit_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using cairn::checkpoint_key;
using cairn::fence_set;
using cairn::no_unit;
using cairn::owner_id;
using cairn::retirement;
using cairn::status;
using cairn::unit_id;
using cairn::unit_info;
using cairn::unit_place;
using cairn::unit_pool;
using ids = std::vector<unit_id>;

checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL, n};
}

class UnitPool : public ::testing::Test {
 protected:
  void open(std::uint32_t units, std::uint32_t max_units = 0, std::uint32_t streams = 1) {
    auto opened = unit_pool::open({units, max_units, streams});
    ASSERT_TRUE(opened.ok()) << opened.why().message();
    pool = std::move(opened.value());
    pool->set_orphan_hook(
        [](void* self, const checkpoint_key& k) {
          auto* test = static_cast<UnitPool*>(self);
          test->orphans.push_back(k.lo);
          if (test->on_orphan) test->on_orphan(k);
        },
        this);
  }

  ids reserve(std::size_t n, owner_id owner) {
    ids out(n, no_unit);
    const auto got = pool->reserve(out, owner);
    return got.ok() ? out : ids{};
  }
  ids allocate(std::size_t n) {
    ids out(n, no_unit);
    const auto got = pool->allocate(out);
    return got.ok() ? out : ids{};
  }
  status free(unit_id id) { return pool->free(id).code(); }
  status publish(unit_id id, std::uint64_t k) { return pool->publish(id, key(k)).code(); }
  status release(const ids& units, owner_id owner) { return pool->release(units, owner).code(); }

  /// All units cached, freed in the order given, unit u under key 100 + u.
  void cache_in_order(const ids& order) {
    ASSERT_EQ(allocate(order.size()).size(), order.size());
    for (unit_id id : order) ASSERT_EQ(publish(id, 100 + id), status::ok);
    for (unit_id id : order) ASSERT_EQ(free(id), status::ok);
  }

  /// Every place of every unit, in words: what "changes nothing" is compared by.
  std::string snapshot() const {
    std::string text = "free " + std::to_string(pool->free_units()) + " indexed " +
                       std::to_string(pool->indexed());
    for (unit_id id = 0; id < pool->max_units(); ++id) {
      const unit_info u = pool->inspect(id);
      text += " | " + std::to_string(static_cast<int>(u.place)) + "," + std::to_string(u.shares) +
              "," + std::to_string(u.owner) + "," + std::to_string(u.has_key) + "," +
              std::to_string(u.key.lo) + (pool->lookup(u.key) == id ? "*" : "");
    }
    return text;
  }
  void expect_ledger_closes() const {
    const auto n = pool->counts();
    EXPECT_EQ(n.vacant + n.cached + n.live + n.reserved, n.total);
    EXPECT_EQ(n.vacant + n.cached, pool->free_units());
  }

  std::vector<std::uint64_t> orphans;
  std::function<void(const checkpoint_key&)> on_orphan;
  std::unique_ptr<unit_pool> pool;
};

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

// ---- reservations ---------------------------------------------------------------------

TEST_F(UnitPool, AReservationBelongsToAnOwnerAndIsReleasedWhole) {
  open(4);
  const ids held = reserve(3, 42);
  EXPECT_EQ(held, (ids{0, 1, 2}));
  for (unit_id id : held) {
    EXPECT_EQ(pool->inspect(id).place, unit_place::reserved);
    EXPECT_EQ(pool->inspect(id).owner, 42U);
  }
  EXPECT_EQ(release(held, 42), status::ok);
  EXPECT_EQ(pool->counts().vacant, 4U);
  EXPECT_EQ(pool->inspect(0).owner, 0U);
}

TEST_F(UnitPool, AWrongReleaseChangesNothing) {
  open(10, 11);
  const ids held = reserve(3, 42);   // 0 1 2
  const ids twin = reserve(3, 42);   // 3 4 5, same owner
  const ids other = reserve(3, 43);  // 6 7 8
  const std::string before = snapshot();
  EXPECT_EQ(release(held, 43), status::invalid);             // another owner
  EXPECT_EQ(release(held, 0), status::invalid);              // no owner
  EXPECT_EQ(release({}, 42), status::invalid);               // nothing
  EXPECT_EQ(release({0, 2, 1}, 42), status::invalid);        // wrong order
  EXPECT_EQ(release({2, 1, 0}, 42), status::invalid);        //
  EXPECT_EQ(release({0, 1}, 42), status::invalid);           // a prefix
  EXPECT_EQ(release({1, 2}, 42), status::invalid);           // a suffix
  EXPECT_EQ(release({0, 1, 1}, 42), status::invalid);        // a duplicate
  EXPECT_EQ(release({0, 1, 2, 2}, 42), status::invalid);     //
  EXPECT_EQ(release({0, 1, 2, 9}, 42), status::invalid);     // one too many
  EXPECT_EQ(release({0, 4, 2}, 42), status::invalid);        // another reservation's place
  EXPECT_EQ(release({0, 1, 8}, 42), status::invalid);        // another owner's unit
  EXPECT_EQ(release({0, 1, 11}, 42), status::invalid);       // no unit at all
  EXPECT_EQ(release({0, 1, no_unit}, 42), status::invalid);  //
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(release(twin, 42), status::ok);
  EXPECT_EQ(release(held, 42), status::ok);
  EXPECT_EQ(release(other, 43), status::ok);
}

TEST_F(UnitPool, AReservationIsReleasedOnce) {
  open(2);
  const ids held = reserve(2, 42);
  EXPECT_EQ(release(held, 42), status::ok);
  const std::string before = snapshot();
  EXPECT_EQ(release(held, 42), status::invalid);
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(reserve(2, 43), held);
  EXPECT_EQ(release(held, 42), status::invalid);  // somebody else's now
  EXPECT_EQ(pool->counts().reserved, 2U);
}

TEST_F(UnitPool, ASecondReleaseIsRefusedWhileAnotherReservationTakesTheUnits) {
  open(2);
  allocate(2);
  publish(1, 5);
  free(1);
  free(0);
  const ids held = reserve(1, 42);
  EXPECT_EQ(release(held, 42), status::ok);
  // The hook runs when owner 43 has got unit 0 and is about to get unit 1.
  on_orphan = [&](const checkpoint_key&) { EXPECT_EQ(release(held, 42), status::invalid); };
  EXPECT_EQ(reserve(2, 43), (ids{0, 1}));
  EXPECT_EQ(orphans.size(), 1U);
  EXPECT_EQ(pool->counts().reserved, 2U);
}

TEST_F(UnitPool, ARefusalSaysWhatWasExpectedAndWhatCame) {
  open(4);
  const ids held = reserve(3, 42);
  const auto owner = pool->release(held, 43).why().message();
  EXPECT_NE(owner.find("expected 43, got 42"), std::string::npos) << owner;
  const auto size = pool->release(ids{0, 1}, 42).why().message();
  EXPECT_NE(size.find("expected 3, got 2"), std::string::npos) << size;
  const auto place = pool->release(ids{0, 2, 1}, 42).why().message();
  EXPECT_NE(place.find("(2: expected 2, got 1)"), std::string::npos) << place;
}

TEST_F(UnitPool, ReservedUnitsAreNotLiveKv) {
  open(1);
  reserve(1, 42);
  const std::string before = snapshot();
  EXPECT_EQ(free(0), status::invalid);
  EXPECT_EQ(publish(0, 1), status::invalid);
  EXPECT_EQ(pool->claim_unit(0).code(), status::invalid);
  EXPECT_EQ(pool->allocate_at(0).code(), status::busy);
  EXPECT_EQ(snapshot(), before);
}

TEST_F(UnitPool, AReservationNeedsAnOwnerAndAUnit) {
  open(2);
  ids out(1, no_unit);
  EXPECT_EQ(pool->reserve(out, 0).code(), status::invalid);
  EXPECT_EQ(pool->reserve({}, 1).code(), status::invalid);
  EXPECT_EQ(pool->free_units(), 2U);
}

// ---- replace --------------------------------------------------------------------------

TEST_F(UnitPool, ReplaceEqualsReleaseThenReserve) {
  open(6);
  reserve(1, 9);                    // 0
  const ids given = reserve(3, 1);  // 1 2 3
  EXPECT_EQ(allocate(2), (ids{4, 5}));
  publish(4, 104);
  free(4);
  ids out(2, no_unit);
  ASSERT_TRUE(pool->replace(given, 1, out, 2).ok());
  EXPECT_EQ(out, (ids{1, 2}));  // vacant lowest first, before the cached one
  EXPECT_EQ(pool->free_units(), 2U);
  EXPECT_EQ(pool->inspect(3).place, unit_place::vacant);
  EXPECT_EQ(release(out, 2), status::ok);
  expect_ledger_closes();
}

TEST_F(UnitPool, ReplaceWorksInAFullPool) {
  open(3);
  const ids given = reserve(3, 1);
  ids out(3, no_unit);
  ASSERT_TRUE(pool->replace(given, 1, out, 2).ok());
  EXPECT_EQ(out, (ids{0, 1, 2}));
  EXPECT_EQ(pool->free_units(), 0U);
  EXPECT_EQ(pool->inspect(0).owner, 2U);
}

TEST_F(UnitPool, AWrongReplaceChangesNothing) {
  open(5);
  const ids given = reserve(2, 1);
  const std::string before = snapshot();
  ids out(2, no_unit);
  ids more(3, no_unit);
  EXPECT_EQ(pool->replace(given, 1, more, 2).code(), status::invalid);
  EXPECT_EQ(pool->replace(given, 1, {}, 2).code(), status::invalid);
  EXPECT_EQ(pool->replace(given, 1, out, 0).code(), status::invalid);
  EXPECT_EQ(pool->replace(given, 3, out, 2).code(), status::invalid);
  EXPECT_EQ(pool->replace(ids{1, 0}, 1, out, 2).code(), status::invalid);
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(out, ids(2, no_unit));
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
