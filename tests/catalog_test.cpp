// The catalog when calls do not overlap: states of records, ops, ranks, removal.
#include <gtest/gtest.h>

#include "tests/catalog_fixture.hpp"

namespace cairn {
namespace {

using namespace catalog_tests;

TEST(Catalog, OpenNamesTheOptionThatIsWrong) {
  auto pool = std::move(unit_pool::open({4, 4, 1})).value();
  const auto refused = [&](auto&& change) {
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.slots = 1;
    change(opts);
    auto made = catalog::open(std::move(opts), *pool);
    EXPECT_EQ(made.code(), status::invalid);
    return made ? std::string() : made.why().message();
  };
  EXPECT_NE(refused([](auto& o) { o.slots = 0; }).find("slots"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.ranks = 0; }).find("ranks"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.ranks = 33; }).find("ranks"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.max_ops = 0; }).find("max_ops"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.max_pins = 1 << 20; }).find("max_pins"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.shape.layout_id = ""; }).find("layout_id"), std::string::npos);
  // Five units, and the pool can never have more than four.
  EXPECT_NE(refused([](auto& o) { o.shape = {10, 50, 50, "x"}; }).find("5"), std::string::npos);
}

TEST(Catalog, OnlyAFinishedStoreIsVisible) {
  fixture f(9);
  const copy_op op = f.begin(1, 2);
  EXPECT_EQ(op.header.slot, 2U);
  EXPECT_EQ(op.header.image_bytes, 25U);
  EXPECT_EQ(op.header.layout_fingerprint, f.records->shape().fingerprint());
  EXPECT_EQ(ids(op), (std::vector<unit_id>{0, 1, 2}));
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_TRUE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.records->begin_restore(key(1), 0).code(), status::not_found);
  const finish_outcome done = f.finish(op);
  EXPECT_TRUE(done.counted && done.ended);
  EXPECT_EQ(done.code, status::ok);
  EXPECT_TRUE(f.records->lookup(key(1)).has_value());
  f.expect_ledger();
}

TEST(Catalog, AKeyThatIsCopyingOrReadyIsADuplicate) {
  fixture f(9);
  const copy_op op = f.begin(1);
  EXPECT_EQ(f.records->begin_store(key(1), 0).code(), status::duplicate);
  f.finish(op);
  EXPECT_EQ(f.records->begin_store(key(1), 0).code(), status::duplicate);
  EXPECT_EQ(f.records->fates().kept, 1U);
}

TEST(Catalog, ASlotOutOfRangeIsRefusedWithItsNumber) {
  fixture f(9);
  auto refused = f.records->begin_store(key(1), 8);
  ASSERT_EQ(refused.code(), status::invalid);
  EXPECT_NE(refused.why().message().find("8"), std::string::npos);
  EXPECT_EQ(f.records->begin_restore(key(1), 99).code(), status::invalid);
}

TEST(Catalog, AStoreEvictsOnlyTheShortfallLeastRecentlyUsedFirst) {
  fixture f(11);  // three images and two units more
  f.store(1);
  f.store(2);
  f.store(3);
  f.finish(*f.records->begin_restore(key(1), 0));  // 2 is the oldest now
  const copy_op op = f.begin(4);
  EXPECT_FALSE(f.records->contains(key(2)));
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_TRUE(f.records->contains(key(3)));
  EXPECT_EQ(f.records->fates().evicted, 1U);
  // The victim's units and the two vacant ones, lowest first.
  EXPECT_EQ(ids(op), (std::vector<unit_id>{3, 4, 5}));
  f.finish(op);
  f.expect_ledger();
}

TEST(Catalog, ALookupIsNoUse) {
  fixture f(6);
  f.store(1);
  f.store(2);
  EXPECT_TRUE(f.records->lookup(key(1)).has_value());
  f.store(3);
  EXPECT_FALSE(f.records->contains(key(1)));
}

TEST(Catalog, ARefusedStoreSpendsNothing) {
  fixture f(6);
  f.store(1);
  f.store(2);
  const copy_op restore1 = *f.records->begin_restore(key(1), 0);
  const copy_op restore2 = *f.records->begin_restore(key(2), 1);
  EXPECT_EQ(f.records->begin_store(key(3), 0).code(), status::no_room);
  EXPECT_EQ(f.records->fates().evicted, 0U);
  EXPECT_EQ(f.records->fates().kept, 2U);
  f.finish(restore1);
  f.finish(restore2);
  // The next identity follows the last accepted one.
  EXPECT_EQ(f.begin(4).header.begin_stamp, restore2.header.begin_stamp + 1);
}

TEST(Catalog, ARestorePinsUntilItsCopyHasEnded) {
  fixture f(3);
  f.store(1);
  const copy_op a = *f.records->begin_restore(key(1), 0);
  const copy_op b = *f.records->begin_restore(key(1), 1);
  EXPECT_EQ(ids(a), ids(b));
  EXPECT_FALSE(f.records->has_available_units(3));
  EXPECT_EQ(f.records->begin_store(key(2), 0).code(), status::no_room);
  f.finish(a);
  EXPECT_FALSE(f.records->has_available_units(3));
  f.finish(b, status::failed);  // a failed copy drops its pin too
  EXPECT_TRUE(f.records->has_available_units(3));
  EXPECT_TRUE(f.records->contains(key(1)));
  f.store(2);
  f.expect_ledger();
}

TEST(Catalog, ForgettingHidesAtOnceAndFreesWhenTheLastHolderIsDone) {
  fixture f(6);
  f.store(1);
  const copy_op restore = *f.records->begin_restore(key(1), 0);
  EXPECT_TRUE(f.records->forget(key(1)));
  EXPECT_FALSE(f.records->forget(key(1)));
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.pool->free_units(), 3U);
  f.store(1);  // the key is free again
  f.finish(restore);
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_TRUE(f.records->contains(key(1)));
  f.expect_ledger();
}

TEST(Catalog, AStoreForgottenDuringItsCopyNeverAppears) {
  fixture f(3);
  const copy_op op = f.begin(1);
  EXPECT_TRUE(f.records->forget(key(1)));
  EXPECT_EQ(f.pool->free_units(), 0U);  // the copy may still write
  f.finish(op);
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_EQ(f.pool->free_units(), 3U);
}

TEST(Catalog, AFailedStoreLeavesNothingBehind) {
  fixture f(3);
  const finish_outcome done = f.finish(f.begin(1), status::failed);
  EXPECT_EQ(done.code, status::failed);
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_EQ(f.records->fates().failed, 1U);
}

TEST(Catalog, ACorruptImageIsForgotten) {
  fixture f(3);
  f.store(1);
  f.finish(*f.records->begin_restore(key(1), 0), status::corrupt);
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_EQ(f.pool->free_units(), 3U);
}

TEST(Catalog, ACorruptImageIsForgottenWhateverElseFailedFirst) {
  for (const status other : {status::failed, status::device_lost, status::timed_out})
    for (const bool corrupt_first : {false, true}) {
      fixture f(3, 2);
      const copy_op store = f.begin(1);
      f.finish(store, status::ok, 0);
      f.finish(store, status::ok, 1);
      const copy_op restore = *f.records->begin_restore(key(1), 0);
      f.finish(restore, corrupt_first ? status::corrupt : other, 0);
      f.finish(restore, corrupt_first ? other : status::corrupt, 1);
      EXPECT_FALSE(f.records->contains(key(1))) << to_string(other);
    }
}

TEST(Catalog, WhatIsNoWayToEndIsAFailure) {
  for (const status odd : {status::pending, static_cast<status>(200)}) {
    fixture f(3);
    EXPECT_EQ(f.finish(f.begin(1), odd).code, status::failed);
    EXPECT_FALSE(f.records->contains(key(1)));
  }
}

TEST(Catalog, IdsOutOfRangeChangeNothing) {
  fixture f(3);
  f.store(1);
  const op_id far{1000000, 1};
  f.records->observe(far);
  f.records->unobserve(far);
  f.records->submitted(far);
  EXPECT_FALSE(f.records->take(far));
  EXPECT_FALSE(f.records->cancel(far));
  EXPECT_EQ(f.records->op_status(far), status::stale);
  EXPECT_EQ(f.records->lose_rank(7), 0U);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_EQ(f.records->epoch(), 0U);
}

TEST(Catalog, AQueuedRestoreCanBeCancelledBySlotUntilItIsTaken) {
  fixture f(6);
  f.store(1);
  f.store(2);
  const copy_op queued = *f.records->begin_restore(key(1), 3);
  const copy_op taken = *f.records->begin_restore(key(2), 3);
  const copy_op other = *f.records->begin_restore(key(2), 4);
  EXPECT_TRUE(f.records->take(taken.header.op));
  EXPECT_EQ(f.records->cancel_restores(3), 1U);
  EXPECT_FALSE(f.records->take(queued.header.op));
  EXPECT_FALSE(f.finish(queued).counted);
  EXPECT_EQ(f.records->evictable(), 1U);
  EXPECT_TRUE(f.finish(taken).ended);
  EXPECT_TRUE(f.finish(other).ended);
  EXPECT_EQ(f.records->evictable(), 2U);
}

TEST(Catalog, ACancelledStoreIsUnwound) {
  fixture f(3);
  const copy_op op = f.begin(1, 2);
  EXPECT_EQ(f.records->cancel_stores(2), 1U);
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_FALSE(f.finish(op).counted);
  EXPECT_EQ(f.records->fates().cancelled, 1U);
}

TEST(Catalog, EveryRankMustReportOnce) {
  fixture f(3, 3);
  const copy_op op = f.begin(1);
  EXPECT_TRUE(f.finish(op, status::ok, 2).counted);
  EXPECT_FALSE(f.finish(op, status::ok, 2).counted);
  EXPECT_FALSE(f.finish(op, status::ok, 3).counted);  // no such rank
  EXPECT_TRUE(f.finish(op, status::ok, 0).counted);
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_TRUE(f.finish(op, status::ok, 1).ended);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_FALSE(f.finish(op, status::failed, 1).counted);  // late and stale
  EXPECT_TRUE(f.records->contains(key(1)));
}

TEST(Catalog, WhatOneRankHasReportedCannotBeCancelled) {
  fixture f(6, 2);
  const copy_op op = f.begin(1);
  // The completion came by itself, without `take`: as from another process.
  EXPECT_TRUE(f.give_up(op, status::timed_out, 0).counted);
  EXPECT_FALSE(f.records->cancel(op.header.op)) << "rank 0 may still write the units";
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_TRUE(f.finish(op, status::ok, 1).ended);
  EXPECT_TRUE(f.prove(op, 0));
  EXPECT_EQ(f.pool->free_units(), 6U);
}

TEST(Catalog, OneFailingRankUnwindsAfterTheLastHasReported) {
  fixture f(3, 2);
  const copy_op op = f.begin(1);
  f.finish(op, status::failed, 0);
  EXPECT_EQ(f.pool->free_units(), 0U);  // the other rank may still write
  EXPECT_EQ(f.finish(op, status::ok, 1).code, status::failed);
  EXPECT_EQ(f.pool->free_units(), 3U);
  EXPECT_FALSE(f.records->contains(key(1)));
}

TEST(Catalog, ACompletionOfAnotherTenantOrEpochCountsForNothing) {
  fixture f(3);
  const copy_op first = f.begin(1);
  completion old = f.report(first);
  f.finish(first);
  f.records->forget(key(1));
  const copy_op second = f.begin(2);
  EXPECT_EQ(first.header.op.index, second.header.op.index);
  EXPECT_FALSE(f.records->finish(old).counted);
  completion other_epoch = f.report(second);
  ++other_epoch.epoch;
  EXPECT_FALSE(f.records->finish(other_epoch).counted);
  EXPECT_TRUE(f.finish(second).ended);
}

TEST(Catalog, LosingARankFailsItsOpsAndForgetsEveryRecord) {
  fixture f(12, 2);
  const copy_op done = f.begin(1);
  f.finish(done, status::ok, 0);
  f.finish(done, status::ok, 1);
  const copy_op half = f.begin(2);
  f.finish(half, status::ok, 0);
  const copy_op restore = *f.records->begin_restore(key(1), 1);
  const std::uint32_t before = f.records->epoch();
  EXPECT_EQ(f.records->lose_rank(1), 2U);
  EXPECT_EQ(f.records->epoch(), before + 1);
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_FALSE(f.records->contains_or_copying(key(2)));
  EXPECT_EQ(f.finish(restore, status::ok, 0).code, status::device_lost);
  EXPECT_EQ(f.pool->free_units(), 12U);
  f.expect_ledger();
}

TEST(Catalog, OpsInFlightAreLimited) {
  fixture f(3);
  f.store(1);
  std::vector<copy_op> ops;
  for (int i = 0; i < 64; ++i) ops.push_back(*f.records->begin_restore(key(1), 0));
  EXPECT_EQ(f.records->begin_restore(key(1), 0).code(), status::limit);
  for (const copy_op& op : ops) EXPECT_TRUE(f.finish(op).ended);
  EXPECT_EQ(f.records->evictable(), 1U);
  EXPECT_EQ(f.records->counts().ops, 0U);
}

TEST(Catalog, AnObservedOpKeepsItsStatusUntilItIsLetGo) {
  fixture f(6);
  const copy_op op = f.begin(1);
  f.records->observe(op.header.op);
  EXPECT_EQ(f.records->op_status(op.header.op), status::pending);
  EXPECT_EQ(f.records->wait(op.header.op, clock::now()), status::pending);
  f.finish(op, status::failed);
  EXPECT_EQ(f.records->wait(op.header.op, clock::now()), status::failed);
  const copy_op next = f.begin(2);  // does not take the entry
  EXPECT_NE(next.header.op.index, op.header.op.index);
  f.records->unobserve(op.header.op);
  EXPECT_EQ(f.records->op_status(op.header.op), status::stale);
  f.finish(next);
  EXPECT_EQ(f.records->counts().ops, 0U);
}

TEST(Catalog, ClearForgetsAllAndMovesNoFate) {
  fixture f(9);
  f.store(1);
  const copy_op copying = f.begin(2);
  f.records->clear();
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_FALSE(f.records->contains_or_copying(key(2)));
  EXPECT_EQ(f.pool->free_units(), 6U);
  f.finish(copying);
  EXPECT_EQ(f.pool->free_units(), 9U);
  const fate_counts fates = f.records->fates();
  EXPECT_EQ(fates.evicted + fates.orphaned + fates.failed + fates.cancelled, 0U);
}

TEST(Catalog, ResumableHitIsTheLongestReadyBoundary) {
  fixture f(9);
  f.store(2);
  const copy_op copying = f.begin(3);
  const checkpoint_key keys[] = {key(1), key(2), key(3), key(4)};
  EXPECT_EQ(f.records->resumable_hit(keys, 4), 2U);
  EXPECT_EQ(f.records->resumable_hit(keys, 1), 0U);
  EXPECT_EQ(f.records->resumable_hit(keys, 3, true), 3U);
  f.finish(copying);
  EXPECT_EQ(f.records->resumable_hit(keys, 4), 3U);
}

TEST(Catalog, ResumableHitOfEveryLengthReadsNoOtherKeys) {
  fixture f(9);
  f.store(3);
  for (std::uint32_t length = 0; length <= 20; ++length) {
    std::vector<checkpoint_key> keys;  // no longer than the hit: what is read beyond is not there
    for (std::uint32_t k = 1; k <= length; ++k) keys.push_back(key(k));
    keys.shrink_to_fit();
    EXPECT_EQ(f.records->resumable_hit(keys, length), length < 3 ? 0U : 3U) << length;
  }
}

TEST(Catalog, AfterCloseNothingBeginsAndWhatIsInFlightEnds) {
  fixture f(6);
  f.store(1);
  const copy_op op = f.begin(2);
  f.records->close();
  EXPECT_EQ(f.records->begin_store(key(3), 0).code(), status::closed);
  EXPECT_EQ(f.records->begin_restore(key(1), 0).code(), status::closed);
  std::vector<unit_id> units(1);
  EXPECT_EQ(f.records->allocate(units).code(), status::closed);
  EXPECT_TRUE(f.finish(op).ended);
}

}  // namespace
}  // namespace cairn
