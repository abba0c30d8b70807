// The catalog's behaviour when calls do not overlap: states, room, eviction, pins, ops, ranks.
#include <gtest/gtest.h>

#include <cairn/catalog.hpp>
#include <map>
#include <string>
#include <vector>

#include "runtime/order.hpp"
#include "runtime/wait_line.hpp"

namespace cairn {
namespace {

using namespace std::chrono_literals;

checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL, n};
}

struct fixture {
  // 10-byte units and a 25-byte image: three units per checkpoint.
  explicit fixture(std::uint32_t units, std::uint32_t ranks = 1,
                   std::unique_ptr<eviction_policy> policy = nullptr) {
    pool = std::move(unit_pool::open({units, units, 1})).value();
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.ranks = ranks;
    opts.slots = 8;
    opts.max_ops = 64;
    opts.max_pins = 4;
    opts.max_threads = 4;
    opts.policy = std::move(policy);
    records = std::move(catalog::open(std::move(opts), *pool)).value();
  }

  completion report(const copy_op& op, status code = status::ok, rank_id rank = 0) const {
    completion c;
    c.op = op.header.op;
    c.rank = rank;
    c.epoch = op.header.epoch;
    c.code = code;
    return c;
  }
  finish_outcome finish(const copy_op& op, status code = status::ok, rank_id rank = 0) {
    return records->finish(report(op, code, rank));
  }
  copy_op begin(std::uint64_t n, slot_id slot = 0) {
    auto op = records->begin_store(key(n), slot);
    EXPECT_TRUE(op.ok()) << op.why().message();
    return *op;
  }
  void store(std::uint64_t n) { EXPECT_TRUE(finish(begin(n)).ended); }
  /// Every unit is in exactly one place.
  void expect_ledger() const {
    const pool_counts p = pool->counts();
    const catalog_counts c = records->counts();
    EXPECT_EQ(p.total, p.vacant + p.cached + p.live + p.reserved);
    EXPECT_EQ(p.reserved, c.checkpoint_units + c.quarantine_units);
    EXPECT_EQ(p.vacant + p.cached, pool->free_units());
  }

  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
};

std::vector<unit_id> ids(const copy_op& op) {
  return {op.units.begin(), op.units.end()};
}

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

TEST(Catalog, AnUnprovenCopyKeepsWhatItMayTouchHoweverItEnded) {
  fixture f(6, 2);
  f.finish(f.begin(9), status::ok, 0);
  const copy_op store = f.begin(1);
  completion lost = f.report(store, status::device_lost, 0);
  lost.unproven = true;
  EXPECT_TRUE(f.records->finish(lost).counted);
  EXPECT_EQ(f.finish(store, status::failed, 1).code, status::device_lost);
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_EQ(f.pool->free_units(), 0U);
}

TEST(Catalog, ATimedOutCopyKeepsWhatItMayTouch) {
  fixture f(9, 2);
  const copy_op store = f.begin(1);
  f.finish(store, status::failed, 0);
  const finish_outcome done = f.finish(store, status::timed_out, 1);
  EXPECT_EQ(done.code, status::timed_out);
  EXPECT_FALSE(f.records->contains_or_copying(key(1)));
  EXPECT_EQ(f.records->counts().quarantine_units, 3U);
  EXPECT_EQ(f.pool->free_units(), 6U);
  f.expect_ledger();
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

TEST(Catalog, AvailabilityCountsFreeAndEvictableButNotTheProtected) {
  fixture f(8);
  f.store(1);
  f.store(2);
  EXPECT_TRUE(f.records->has_available_units(8));
  EXPECT_FALSE(f.records->has_available_units(9));
  const checkpoint_key one = key(1);
  const checkpoint_key absent = key(7);
  EXPECT_TRUE(f.records->has_available_units(5, &one));
  EXPECT_FALSE(f.records->has_available_units(6, &one));
  EXPECT_TRUE(f.records->has_available_units(8, &absent));
  const copy_op restore = *f.records->begin_restore(key(2), 0);
  EXPECT_FALSE(f.records->has_available_units(6));
  f.finish(restore);
}

TEST(Catalog, EnsuringFreeUnitsSpendsNothingWhenItCannotReach) {
  fixture f(9);
  f.store(1);
  f.store(2);
  f.store(3);
  const copy_op pinned = *f.records->begin_restore(key(1), 0);
  EXPECT_EQ(f.records->ensure_free_units(7).code(), status::no_room);
  EXPECT_EQ(f.records->fates().evicted, 0U);
  EXPECT_TRUE(f.records->ensure_free_units(4).ok());  // two images, overshooting by two units
  EXPECT_EQ(f.pool->free_units(), 6U);
  EXPECT_TRUE(f.records->contains(key(1)));
  f.finish(pinned);
}

TEST(Catalog, TakingACachedUnitOrphansTheCheckpointOfItsKey) {
  fixture f(7);
  f.store(1);
  std::vector<unit_id> live(4);
  ASSERT_TRUE(f.records->allocate(live).ok());
  ASSERT_TRUE(f.pool->publish(live[0], key(1)).ok());
  ASSERT_TRUE(f.pool->free(live[0]).ok());  // cached: the only free unit
  std::vector<unit_id> one(1);
  ASSERT_TRUE(f.records->allocate(one).ok());
  EXPECT_EQ(one[0], live[0]);
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_EQ(f.records->fates().orphaned, 1U);
  EXPECT_EQ(f.records->fates().evicted, 0U);
  EXPECT_EQ(f.pool->free_units(), 3U);
  f.expect_ledger();
}

TEST(Catalog, AStoreWhoseOwnKeyIsOrphanedWhileItTakesItsUnitsStays) {
  fixture f(3);
  std::vector<unit_id> all(3);
  ASSERT_TRUE(f.records->allocate(all).ok());
  ASSERT_TRUE(f.pool->publish(all[0], key(1)).ok());
  for (unit_id id : all) ASSERT_TRUE(f.pool->free(id).ok());
  f.store(1);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_EQ(f.records->fates().orphaned, 0U);
}

TEST(Catalog, ABarePinBlocksEvictionWithoutBeingCounted) {
  fixture f(3);
  f.store(1);
  const checkpoint_key keys[] = {key(1), key(9)};
  const pin held = *f.records->pin_longest(keys, 2, clock::now() + 1h);
  EXPECT_EQ(held.length, 1U);
  EXPECT_TRUE(f.records->has_available_units(3));
  EXPECT_EQ(f.records->begin_store(key(2), 0).code(), status::no_room);
  EXPECT_EQ(f.records->counts().pins, 1U);
  EXPECT_GE(f.records->counts().oldest_pin_ns, 0);
  EXPECT_TRUE(f.records->release_pin(held));
  EXPECT_FALSE(f.records->release_pin(held));
  f.store(2);
  EXPECT_FALSE(f.records->contains(key(1)));
}

TEST(Catalog, ABarePinThatIsSetAsideComesBackAtItsOldPlace) {
  fixture f(6);
  f.store(1);
  f.store(2);
  const checkpoint_key keys[] = {key(1)};
  const pin held = *f.records->pin_longest(keys, 1, clock::now() + 1h);
  f.store(3);  // meets 1 pinned, sets it aside, evicts 2
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_FALSE(f.records->contains(key(2)));
  EXPECT_TRUE(f.records->release_pin(held));
  f.store(4);  // 1 is older than 3
  EXPECT_FALSE(f.records->contains(key(1)));
  EXPECT_TRUE(f.records->contains(key(3)));
}

TEST(Catalog, AnExpiredBarePinHoldsNobodyUp) {
  fixture f(3);
  f.store(1);
  const checkpoint_key keys[] = {key(1)};
  const pin held = *f.records->pin_longest(keys, 1, clock::now() - 1s);
  EXPECT_EQ(f.records->expire(clock::now() - 2s), 0U);
  f.store(2);  // expires it on the way
  EXPECT_FALSE(f.records->release_pin(held));
  EXPECT_EQ(f.records->counts().pins, 0U);
}

TEST(Catalog, PinsAreLimitedAndMissesAreSaid) {
  fixture f(3);
  f.store(1);
  const checkpoint_key keys[] = {key(1)};
  std::vector<pin> held;
  for (int i = 0; i < 4; ++i) held.push_back(*f.records->pin_longest(keys, 1, clock::now() + 1h));
  EXPECT_EQ(f.records->pin_longest(keys, 1, clock::now() + 1h).code(), status::limit);
  EXPECT_EQ(f.records->pin_longest(keys, 0, clock::now() + 1h).code(), status::not_found);
  EXPECT_EQ(f.records->pin_longest(keys, 2, clock::now() + 1h).code(), status::invalid);
  for (const pin& p : held) EXPECT_TRUE(f.records->release_pin(p));
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

TEST(WaitLine, AWaiterThatLeavesOutOfTurnHoldsNobodyUp) {
  detail::wait_line line;
  const deadline now = clock::now();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  ASSERT_TRUE(line.join(3, now + 1h, first));
  ASSERT_TRUE(line.join(5, now + 2h, second));
  EXPECT_EQ(line.demand(now), 3U);
  EXPECT_FALSE(line.first(second, now));
  line.leave(second, now + 2h);
  line.leave(first, now + 1h);
  EXPECT_EQ(line.demand(now), 0U);
  EXPECT_TRUE(line.empty());
}

TEST(WaitLine, AnExpiredWaiterIsPassed) {
  detail::wait_line line;
  const deadline now = clock::now();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  ASSERT_TRUE(line.join(3, now + 1s, first));
  ASSERT_TRUE(line.join(5, now + 1h, second));
  EXPECT_TRUE(line.first(second, now + 2s));
  EXPECT_TRUE(line.passed(first));
  EXPECT_EQ(line.demand(now + 2s), 5U);
  line.leave(second, now + 1h);
}

TEST(WaitLine, PlacesAreLimited) {
  detail::wait_line line;
  const deadline until = clock::now() + 1h;
  std::uint64_t ticket = 0;
  for (std::uint32_t i = 0; i < detail::wait_line::places; ++i)
    ASSERT_TRUE(line.join(1, until, ticket));
  EXPECT_FALSE(line.join(1, until, ticket));
}

TEST(Catalog, WaitReserveServesOrSaysThatItTimedOut) {
  fixture f(6);
  f.store(1);
  std::vector<unit_id> out(6);
  ASSERT_TRUE(f.records->wait_reserve(out, 77, clock::now() + 10s).ok());  // evicts
  std::vector<unit_id> more(1);
  EXPECT_EQ(f.records->wait_reserve(more, 78, clock::now() + 2ms).code(), status::timed_out);
  std::vector<unit_id> never(7);
  EXPECT_EQ(f.records->wait_reserve(never, 78, clock::now() + 10s).code(), status::no_room);
  ASSERT_TRUE(f.pool->release(out, 77).ok());
  f.store(2);  // an expired demand withholds nothing
}

// ---- admission ---------------------------------------------------------------------------

struct admit_fixture : fixture {
  explicit admit_fixture(std::uint32_t units) : fixture(units) {}
  /// Publishes one unit per key and frees it: cached KV.
  void cache(std::initializer_list<std::uint64_t> keys) {
    std::vector<unit_id> units(keys.size());
    ASSERT_TRUE(records->allocate(units).ok());
    std::size_t i = 0;
    for (std::uint64_t n : keys) ASSERT_TRUE(pool->publish(units[i++], key(n)).ok());
    for (unit_id id : units) ASSERT_TRUE(pool->free(id).ok());
  }
};

TEST(Admit, ClaimsThePrefixUpToTheLongestReadyBoundaryAndAllocatesTheRest) {
  admit_fixture f(12);
  f.cache({1, 2, 3});
  f.store(2);
  const checkpoint_key keys[] = {key(1), key(2), key(3), key(4)};
  std::vector<unit_id> units(5);
  auto made = f.records->admit(keys, 1, 6, units);
  ASSERT_TRUE(made.ok()) << made.why().message();
  EXPECT_EQ(made->kv_hit, 3U);
  EXPECT_EQ(made->resumed, 2U);
  ASSERT_TRUE(made->restore.has_value());
  EXPECT_EQ(made->restore->header.slot, 6U);
  EXPECT_EQ(units[0], f.pool->lookup(key(1)));
  EXPECT_EQ(units[1], f.pool->lookup(key(2)));
  EXPECT_EQ(f.pool->counts().live, 5U);
  EXPECT_EQ(f.records->evictable(), 0U);
  f.finish(*made->restore);
  EXPECT_EQ(f.records->evictable(), 1U);
}

TEST(Admit, WithoutABoundaryEverythingIsFresh) {
  admit_fixture f(8);
  f.cache({1, 2});
  const checkpoint_key keys[] = {key(1), key(2)};
  std::vector<unit_id> units(2);
  auto made = f.records->admit(keys, 0, 0, units);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->kv_hit, 2U);
  EXPECT_EQ(made->resumed, 0U);
  EXPECT_FALSE(made->restore.has_value());
}

TEST(Admit, ARefusedRequestHoldsNothing) {
  admit_fixture f(6);
  f.cache({1, 2});
  f.store(2);
  const pool_counts before = f.pool->counts();
  const checkpoint_key keys[] = {key(1), key(2)};
  std::vector<unit_id> units(5);
  // Three more units: one is vacant, the two cached ones are claimed, and the checkpoint that is
  // restored cannot be evicted.
  EXPECT_EQ(f.records->admit(keys, 3, 0, units).code(), status::no_room);
  EXPECT_EQ(f.pool->counts().cached, before.cached);
  EXPECT_EQ(f.pool->counts().vacant, before.vacant);
  EXPECT_EQ(f.records->evictable(), 1U);
  EXPECT_EQ(f.records->counts().ops, 0U);
  EXPECT_EQ(f.records->fates().evicted, 0U);
  EXPECT_EQ(f.records->admit(keys, 1, 0, units).code(), status::invalid);  // five ids, not three
}

TEST(Admit, EvictsForFreshUnitsButNeverTheRecordItRestores) {
  admit_fixture f(8);
  f.cache({1});
  f.store(1);
  f.store(2);
  const checkpoint_key keys[] = {key(1)};
  std::vector<unit_id> units(4);
  auto made = f.records->admit(keys, 3, 0, units);
  ASSERT_TRUE(made.ok()) << made.why().message();
  EXPECT_EQ(made->resumed, 1U);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_FALSE(f.records->contains(key(2)));
}

// ---- policies ----------------------------------------------------------------------------

/// Most recently used first, and never an anchor.
class newest_first final : public eviction_policy {
 public:
  void bind(std::uint32_t records) override { order_ = std::make_unique<detail::order>(records); }
  void place(std::uint32_t record, const use_info& use) noexcept override {
    if (use.hint == placement_hint::anchor)
      order_->clear(record);
    else
      order_->set(record, 1000000 - use.stamp);
  }
  void drop(std::uint32_t record) noexcept override { order_->clear(record); }
  std::uint32_t next() noexcept override {
    const std::uint32_t first = order_->first();
    return first == detail::order::none ? none : first;
  }

 private:
  std::unique_ptr<detail::order> order_;
};

TEST(Policy, AnotherPolicyChangesTheVictimAndNoAnswer) {
  fixture f(9, 1, std::make_unique<newest_first>());
  f.store(1);
  f.store(2);
  f.store(3);
  EXPECT_TRUE(f.records->has_available_units(9));
  f.store(4);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_FALSE(f.records->contains(key(3)));
  EXPECT_TRUE(f.records->has_available_units(9));
}

TEST(Policy, PassingOverEligibleRecordsRefusesTheStoreAndSpendsNoIdentity) {
  fixture f(3, 1, std::make_unique<newest_first>());
  auto anchored = f.records->begin_store(key(1), 0, placement_hint::anchor);
  ASSERT_TRUE(anchored.ok());
  f.finish(*anchored);
  EXPECT_TRUE(f.records->has_available_units(3));
  EXPECT_EQ(f.records->begin_store(key(2), 0).code(), status::passed_over);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_FALSE(f.records->contains_or_copying(key(2)));
  EXPECT_EQ(f.records->fates().kept, 1U);
  const copy_op restore = *f.records->begin_restore(key(1), 0);
  EXPECT_EQ(restore.header.begin_stamp, anchored->header.begin_stamp + 1);
  f.finish(restore);
}

}  // namespace
}  // namespace cairn
