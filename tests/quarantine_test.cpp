// Copies that were given up: what the catalog keeps for them, until when, and what changes nothing.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/catalog_fixture.hpp"

namespace cairn::catalog_tests {
namespace {

TEST(Quarantine, AStoreThatWasGivenUpKeepsItsUnitsUntilTheProof) {
  fixture f(6);
  const copy_op store = f.begin(1);
  EXPECT_EQ(f.give_up(store).code, status::timed_out);
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_EQ(f.records->counts().checkpoint_units, 0U);
  EXPECT_EQ(f.pool->free_units(), 3U);
  f.expect_ledger();
  EXPECT_TRUE(f.prove(store));
  EXPECT_EQ(f.records->counts().quarantine_units, 0U);
  EXPECT_EQ(f.records->counts().evicting, 0U);
  EXPECT_EQ(f.pool->free_units(), 6U);
  f.expect_ledger();
}

// A completion comes as bytes from another process, and a byte need not be a bool's.
TEST(Quarantine, AnyByteButZeroIsTrue) {
  constexpr unsigned char bytes[] = {2, 128, 255};
  for (const unsigned char byte : bytes) {
    fixture f(6);
    const copy_op store = f.begin(1);
    completion c = f.report(store);
    std::memcpy(&c.unproven, &byte, 1);
    EXPECT_EQ(f.records->finish(c).code, status::timed_out);
    EXPECT_EQ(f.records->counts().quarantine_units, 3U);
    c.unproven = false;
    std::memcpy(&c.proven, &byte, 1);
    EXPECT_TRUE(f.records->finish(c).counted);
    EXPECT_EQ(f.records->counts().quarantine_units, 0U);
    f.expect_ledger();
  }
}

TEST(Quarantine, ARestoreThatWasGivenUpKeepsItsPinUntilTheProof) {
  fixture f(3);
  f.store(1);
  const copy_op restore = *f.records->begin_restore(key(1), 0);
  f.give_up(restore);
  EXPECT_EQ(f.records->evictable(), 0U);
  EXPECT_FALSE(f.records->has_available_units(3));
  f.records->forget(key(1));
  EXPECT_EQ(f.pool->free_units(), 0U) << "the copy may still read them";
  EXPECT_TRUE(f.prove(restore));
  EXPECT_EQ(f.pool->free_units(), 3U);
  f.expect_ledger();
}

TEST(Quarantine, ARestoreThatWasGivenUpLeavesItsRecordEvictableAgain) {
  fixture f(3);
  f.store(1);
  const copy_op restore = *f.records->begin_restore(key(1), 0);
  f.give_up(restore);
  EXPECT_TRUE(f.records->contains(key(1))) << "nothing is wrong with the image";
  EXPECT_TRUE(f.prove(restore));
  EXPECT_EQ(f.records->evictable(), 1U);
  f.store(2);
  EXPECT_TRUE(f.records->contains(key(2)));
}

TEST(Quarantine, EndsWithTheLastRankThatOwesAProof) {
  for (const bool first_zero : {true, false}) {
    fixture f(3, 3);
    const copy_op store = f.begin(1);
    f.give_up(store, status::timed_out, 0);
    f.give_up(store, status::device_lost, 2);
    const finish_outcome done = f.finish(store, status::ok, 1);
    EXPECT_TRUE(done.ended);
    EXPECT_EQ(done.code, status::timed_out);
    EXPECT_TRUE(f.prove(store, first_zero ? 0 : 2));
    EXPECT_EQ(f.records->counts().quarantine_units, 3U);
    EXPECT_FALSE(f.prove(store, 1)) << "it owes none";
    EXPECT_EQ(f.pool->free_units(), 0U);
    EXPECT_TRUE(f.prove(store, first_zero ? 2 : 0));
    EXPECT_EQ(f.records->counts().quarantine_units, 0U);
    EXPECT_EQ(f.pool->free_units(), 3U);
    f.expect_ledger();
  }
}

TEST(Quarantine, AProofBeforeTheOpHasEndedIsNotLost) {
  fixture f(3, 2);
  const copy_op store = f.begin(1);
  f.give_up(store, status::timed_out, 0);
  EXPECT_TRUE(f.prove(store, 0));
  EXPECT_EQ(f.pool->free_units(), 0U) << "the other rank may still write";
  EXPECT_EQ(f.finish(store, status::ok, 1).code, status::timed_out);
  EXPECT_EQ(f.records->counts().quarantine_units, 0U);
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_EQ(f.records->counts().ops, 0U);
  f.expect_ledger();
}

TEST(Quarantine, ATimeoutWithoutACopyKeepsNothing) {
  fixture f(3, 2);
  const copy_op store = f.begin(1);
  f.finish(store, status::failed, 0);
  EXPECT_EQ(f.finish(store, status::timed_out, 1).code, status::timed_out);
  EXPECT_EQ(f.records->counts().quarantine_units, 0U);
  EXPECT_EQ(f.pool->free_units(), 3U);
  f.expect_ledger();
}

TEST(Quarantine, WhateverTheCopyEndedAs) {
  for (const status code : {status::ok, status::failed, status::device_lost, status::corrupt}) {
    fixture f(3);
    const copy_op store = f.begin(1);
    const finish_outcome done = f.give_up(store, code);
    EXPECT_EQ(done.code, code == status::ok ? status::timed_out : code);
    EXPECT_EQ(f.records->counts().quarantine_units, 3U);
    EXPECT_TRUE(f.prove(store));
    EXPECT_EQ(f.pool->free_units(), 3U);
  }
}

TEST(Quarantine, ProofsThatNobodyOwesChangeNothing) {
  fixture f(9, 2);
  const copy_op running = f.begin(1);
  EXPECT_FALSE(f.prove(running, 0)) << "its copy was not given up";
  const copy_op store = f.begin(2);
  f.give_up(store, status::timed_out, 0);
  f.finish(store, status::ok, 1);
  completion late = f.report(store, status::ok, 0);
  late.proven = true;
  completion elsewhere = late;
  elsewhere.epoch += 1;
  EXPECT_FALSE(f.records->finish(elsewhere).counted) << "another epoch";
  elsewhere = late;
  elsewhere.rank = 7;
  EXPECT_FALSE(f.records->finish(elsewhere).counted) << "no such rank";
  elsewhere = late;
  elsewhere.op.generation += 1;
  EXPECT_FALSE(f.records->finish(elsewhere).counted) << "another op";
  elsewhere.op.index = 1000000;
  EXPECT_FALSE(f.records->finish(elsewhere).counted) << "no such op";
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_TRUE(f.records->finish(late).counted);
  EXPECT_FALSE(f.records->finish(late).counted) << "again";
  // The entry's next tenant gives its copy up too, and an old proof says nothing about that.
  const copy_op next = f.begin(3);
  ASSERT_EQ(next.header.op.index, store.header.op.index);
  f.give_up(next, status::timed_out, 0);
  EXPECT_FALSE(f.records->finish(late).counted) << "stale";
  f.finish(next, status::ok, 1);
  EXPECT_FALSE(f.records->finish(late).counted) << "stale";
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_TRUE(f.prove(next, 0));
  EXPECT_EQ(f.pool->free_units(), 6U);
  f.expect_ledger();
}

TEST(Quarantine, AnOpThatWaitsForAProofKeepsItsId) {
  fixture f(192, 1);
  std::vector<copy_op> kept;
  for (std::uint64_t n = 0; n < 64; ++n) {
    kept.push_back(f.begin(n));
    f.give_up(kept.back());
  }
  EXPECT_EQ(f.records->counts().ops, 64U);
  EXPECT_EQ(f.records->counts().quarantine_units, 192U);
  EXPECT_EQ(f.records->op_status(kept[5].header.op), status::stale) << "nobody observes it";
  EXPECT_TRUE(f.prove(kept[5]));
  EXPECT_EQ(f.records->counts().ops, 63U);
  const copy_op next = f.begin(100);
  EXPECT_EQ(next.header.op.index, kept[5].header.op.index);
  EXPECT_EQ(f.records->begin_store(key(101), 0).code(), status::no_room);
  EXPECT_TRUE(f.prove(kept[6]));
  EXPECT_TRUE(f.prove(kept[7]));
  (void)f.begin(102);
  (void)f.begin(103);
  EXPECT_EQ(f.records->counts().ops, 64U);
}

TEST(Quarantine, AnOpWithoutAnEntryIsRefused) {
  fixture f(3, 1);
  f.store(1);
  std::vector<copy_op> kept;
  for (std::uint32_t n = 0; n < 64; ++n) {
    kept.push_back(*f.records->begin_restore(key(1), 0));
    f.give_up(kept.back());
  }
  EXPECT_EQ(f.records->begin_restore(key(1), 0).code(), status::limit);
  EXPECT_TRUE(f.prove(kept.back()));
  EXPECT_TRUE(f.records->begin_restore(key(1), 0).ok());
}

TEST(Quarantine, AnObserverReadsTheEndBeforeAndAfterTheProof) {
  for (const bool leaves_first : {true, false}) {
    fixture f(3);
    const copy_op store = f.begin(1);
    f.records->observe(store.header.op);
    f.give_up(store);
    EXPECT_EQ(f.records->op_status(store.header.op), status::timed_out);
    if (leaves_first) f.records->unobserve(store.header.op);
    EXPECT_EQ(f.records->counts().ops, 1U);
    EXPECT_TRUE(f.prove(store));
    EXPECT_EQ(f.records->counts().ops, leaves_first ? 0U : 1U);
    if (leaves_first) continue;
    EXPECT_EQ(f.records->op_status(store.header.op), status::timed_out);
    f.records->unobserve(store.header.op);
    EXPECT_EQ(f.records->counts().ops, 0U);
  }
}

TEST(Quarantine, ARankThatIsProvenIdleKeepsNothing) {
  fixture f(9, 2);
  f.finish(f.begin(8), status::ok, 0);  // another rank's share: stays open
  const copy_op store = f.begin(1);
  f.give_up(store, status::device_lost, 1);
  f.finish(store, status::ok, 0);
  const copy_op open = f.begin(2);
  f.give_up(open, status::device_lost, 1);
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_EQ(f.records->lose_rank(0), 1U) << "of the ops, one lacked its report";
  EXPECT_EQ(f.records->counts().quarantine_units, 6U) << "rank 1 still owes both";
  EXPECT_EQ(f.records->lose_rank(1), 1U);
  EXPECT_EQ(f.records->counts().quarantine_units, 0U);
  EXPECT_EQ(f.records->counts().ops, 0U);
  EXPECT_EQ(f.pool->free_units(), 9U);
  EXPECT_FALSE(f.prove(store, 1)) << "late";
  f.expect_ledger();
}

TEST(Quarantine, ACancelledOpOwesNothing) {
  fixture f(3);
  const copy_op store = f.begin(1);
  EXPECT_TRUE(f.records->cancel(store.header.op));
  EXPECT_FALSE(f.give_up(store).counted);
  EXPECT_FALSE(f.prove(store));
  EXPECT_EQ(f.records->counts().quarantine_units, 0U);
  EXPECT_EQ(f.pool->free_units(), 3U);
}

TEST(Quarantine, SurvivesTheClosingOfTheCatalog) {
  fixture f(3);
  const copy_op store = f.begin(1);
  f.give_up(store);
  f.records->close();
  f.records->clear();
  EXPECT_EQ(f.pool->free_units(), 0U);
  EXPECT_TRUE(f.prove(store));
  EXPECT_EQ(f.pool->free_units(), 3U);
}

}  // namespace
}  // namespace cairn::catalog_tests
