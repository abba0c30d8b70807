// The catalog when calls do not overlap: room, bare pins, waiting, admission, policies.
#include <gtest/gtest.h>

#include <memory>

#include "runtime/order.hpp"
#include "runtime/wait_line.hpp"
#include "tests/catalog_fixture.hpp"

namespace cairn {
namespace {

using namespace catalog_tests;

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
  for (int i = 0; i < 1'000'000 && f.records->counts().oldest_pin_ns == 0; ++i) {
  }
  EXPECT_GT(f.records->counts().oldest_pin_ns, 0);
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
  f.store(2);  // none of them holds the record any more, nor does the one that was refused
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
