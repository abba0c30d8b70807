// Reservations: an owner's, in order, whole and once; what a caller's error changes (nothing).
#include "tests/unit_pool_fixture.hpp"

namespace cairn::test {
namespace {

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

TEST_F(UnitPool, ARefusedReservationTakesNothing) {
  open(9);
  const ids one = reserve(4, 42);
  const ids two = reserve(4, 43);
  const std::string before = snapshot();
  for (int again = 0; again < 3; ++again) {
    ids out(4, no_unit);
    EXPECT_EQ(pool->reserve(out, 44).code(), status::no_room);
    EXPECT_EQ(out, ids(4, no_unit));
    EXPECT_EQ(snapshot(), before);
    EXPECT_EQ(pool->free_units(), 1U);
    expect_ledger_closes();
  }
  EXPECT_EQ(reserve(1, 44), (ids{8}));
  EXPECT_EQ(release(one, 42), status::ok);
  EXPECT_EQ(reserve(4, 44), one);
  EXPECT_EQ(release(two, 43), status::ok);
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

// Every third unit of five words of the set: as many parts as words, none of them without gaps.
TEST_F(UnitPool, AReservationOfScatteredUnitsIsReleasedWholeAndInOrder) {
  open(300);
  ASSERT_EQ(allocate(300).size(), 300U);
  for (unit_id id = 0; id < 300; id += 3) ASSERT_EQ(free(id), status::ok);
  const ids held = reserve(80, 42);
  ASSERT_EQ(held.size(), 80U);
  for (unit_id i = 0; i < 80; ++i) EXPECT_EQ(held[i], 3 * i);
  EXPECT_EQ(pool->inspect(63).owner, 42U);
  EXPECT_EQ(pool->inspect(63).place, unit_place::reserved);
  EXPECT_EQ(pool->inspect(240).place, unit_place::vacant);
  const std::string before = snapshot();
  for (std::size_t i = 0; i < held.size(); ++i) {
    ids wrong = held;
    wrong[i] = i % 2 == 0 ? 1 : 240;  // live, vacant
    EXPECT_EQ(release(wrong, 42), status::invalid);
    wrong = held;
    std::swap(wrong[i], wrong[(i + 1) % held.size()]);
    EXPECT_EQ(release(wrong, 42), status::invalid);
    wrong = held;
    wrong.resize(i);
    EXPECT_EQ(release(wrong, 42), status::invalid);
    EXPECT_EQ(release(ids(held.begin() + static_cast<std::ptrdiff_t>(i) + 1, held.end()), 42),
              status::invalid);
  }
  EXPECT_EQ(snapshot(), before);
  EXPECT_EQ(release(held, 42), status::ok);
  EXPECT_EQ(release(held, 42), status::invalid);
  EXPECT_EQ(reserve(80, 43), held);
  expect_ledger_closes();
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

}  // namespace
}  // namespace cairn::test
