// What a call of the catalog leaves when it fails late, after it has taken something: nothing. When
// calls do not overlap.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/record.hpp"
#include "tests/catalog_fixture.hpp"

namespace cairn {
namespace {

using namespace catalog_tests;

/// Names the record that it is told to, or none.
class told final : public eviction_policy {
 public:
  explicit told(std::uint32_t& which) : which_(which) {}
  void bind(std::uint32_t) override {}
  void place(std::uint32_t, const use_info&) noexcept override {}
  void drop(std::uint32_t) noexcept override {}
  std::uint32_t next() noexcept override { return which_; }

 private:
  std::uint32_t& which_;
};

struct refusal_fixture : fixture {
  explicit refusal_fixture(std::uint32_t units)
      : fixture(units, 1, std::make_unique<told>(named)) {}
  /// Publishes a unit under each of these keys and frees them: cached KV.
  std::vector<unit_id> cache(std::initializer_list<std::uint64_t> keys) {
    std::vector<unit_id> units(keys.size());
    EXPECT_TRUE(records->allocate(units).ok());
    std::size_t i = 0;
    for (const std::uint64_t n : keys) EXPECT_TRUE(pool->publish(units[i++], key(n)).ok());
    for (const unit_id id : units) EXPECT_TRUE(pool->free(id).ok());
    return units;
  }
  void expect_as(const pool_counts& before) const {
    const pool_counts now = pool->counts();
    EXPECT_EQ(now.cached, before.cached);
    EXPECT_EQ(now.vacant, before.vacant);
    EXPECT_EQ(now.live, before.live);
    EXPECT_EQ(records->counts().ops, 0U);
    expect_ledger();
  }
  /// As many ops as the options allow, 64, can begin: no entry was lost.
  void expect_all_entries() {
    std::vector<copy_op> begun;
    for (int i = 0; i < 64; ++i) {
      auto op = records->begin_restore(key(2), 1);
      ASSERT_TRUE(op.ok()) << i << ": " << op.why().message();
      begun.push_back(*op);
    }
    for (const copy_op& op : begun) finish(op);
  }

  std::uint32_t named = eviction_policy::none;
};

// The policy passes over what is evictable, and says so when the prefix has been claimed.
TEST(Admit, WhatFailsAfterTheClaimsGivesThemBack) {
  refusal_fixture f(9);
  f.cache({1, 2});
  f.store(2);
  f.store(5);
  const pool_counts before = f.pool->counts();
  ASSERT_EQ(before.vacant, 1U);
  const checkpoint_key keys[] = {key(1), key(2)};
  std::vector<unit_id> units(4);
  EXPECT_EQ(f.records->admit(keys, 2, 0, units).code(), status::passed_over);
  f.expect_as(before);
  EXPECT_EQ(f.records->evictable(), 2U) << "the pin stays";
  f.expect_all_entries();
}

// A share more than can be counted: the second claim fails, and the first goes back.
TEST(Admit, AClaimThatFailsGivesTheOthersBack) {
  refusal_fixture f(12);
  const std::vector<unit_id> kv = f.cache({1, 2});
  f.store(2);
  constexpr std::uint32_t most = 65'535;
  for (std::uint32_t i = 0; i < most; ++i) ASSERT_TRUE(f.pool->claim_unit(kv[1]).ok());
  const pool_counts before = f.pool->counts();
  const checkpoint_key keys[] = {key(1), key(2)};
  std::vector<unit_id> units(3);
  auto made = f.records->admit(keys, 1, 0, units);
  ASSERT_TRUE(made.ok()) << made.why().message();
  EXPECT_EQ(made->resumed, 0U) << "nothing of the prefix, which is always right";
  for (const unit_id id : units) EXPECT_TRUE(f.pool->free(id).ok());
  f.expect_as(before);
  EXPECT_EQ(f.pool->inspect(kv[0]).shares, 0U);
  EXPECT_EQ(f.records->evictable(), 1U);
  f.expect_all_entries();
  for (std::uint32_t i = 0; i < most; ++i) ASSERT_TRUE(f.pool->free(kv[1]).ok());
}

// Bare pins are not counted as they come: whoever needs more than what they leave is told so first.
TEST(Room, WhatBarePinsMakeImpossibleEvictsNothing) {
  fixture f(9);
  for (const std::uint64_t n : {1U, 2U, 3U}) f.store(n);
  std::vector<pin> held;
  for (const std::uint64_t n : {1U, 2U}) {
    const checkpoint_key one[] = {key(n)};
    held.push_back(*f.records->pin_longest(one, 1, clock::now() + 1h));
  }
  EXPECT_TRUE(f.records->has_available_units(9));
  std::vector<unit_id> units(4);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(f.records->allocate(units).code(), status::no_room);
    EXPECT_EQ(f.records->ensure_free_units(4).code(), status::no_room);
    EXPECT_EQ(f.records->fates().evicted, 0U);
    EXPECT_TRUE(f.records->contains(key(3)));
  }
  EXPECT_TRUE(f.records->release_pin(held[0]));
  EXPECT_TRUE(f.records->allocate(units).ok());
  EXPECT_EQ(f.records->fates().evicted, 2U);
  EXPECT_TRUE(f.records->contains(key(2)));
}

// It is asked so often and no more, whoever cannot be evicted.
TEST(Policy, ThatNamesAPinnedRecordForEverEndsInARefusal) {
  refusal_fixture f(6);
  f.store(1);
  f.store(2);
  const auto pinned = f.records->begin_restore(key(1), 1);
  ASSERT_TRUE(pinned.ok());
  f.named = f.records->lookup(key(1))->index;
  EXPECT_EQ(f.records->begin_store(key(3), 0).code(), status::passed_over);
  std::vector<unit_id> one(1);
  EXPECT_EQ(f.records->allocate(one).code(), status::passed_over);
  EXPECT_TRUE(f.records->contains(key(1)));
  EXPECT_TRUE(f.records->contains(key(2)));
  f.expect_ledger();
  EXPECT_TRUE(f.finish(*pinned).ended);
  f.store(3);
  EXPECT_FALSE(f.records->contains(key(1)));
}

// As many pins and restores as options may ask for, all of one record: one more is refused for the
// table that is full, and a forgetter, who pins the record too, still finds it.
TEST(Catalog, ARecordBearsAllPinsAndRestoresThatThereCanBe) {
  constexpr std::uint32_t most = detail::record_word::max_count;
  auto pool = std::move(unit_pool::open({4, 4, 1})).value();
  catalog_options opts;
  opts.shape = {10, 10, 10, "tiny"};
  opts.slots = 8;
  opts.max_ops = most;
  opts.max_pins = most;
  const auto records = std::move(catalog::open(std::move(opts), *pool)).value();
  const auto end = [&](const copy_op& op) {
    completion done;
    done.op = op.header.op;
    done.epoch = op.header.epoch;
    return records->finish(done).ended;
  };
  const checkpoint_key keys[] = {key(1), key(2)};
  for (const checkpoint_key& each : keys) ASSERT_TRUE(end(*records->begin_store(each, 0)));
  const deadline until = clock::now() + std::chrono::hours(1);
  std::vector<pin> pins;
  std::vector<op_id> ops;
  for (std::uint32_t i = 0; i < most; ++i) {
    pins.push_back(*records->pin_longest(keys, 2, until));
    ASSERT_EQ(pins.back().length, 2U);
    const auto op = records->begin_restore(keys[1], i % 8);
    ASSERT_TRUE(op.ok());
    ops.push_back(op->header.op);
  }
  EXPECT_EQ(records->pin_longest(keys, 2, until).code(), status::limit);
  EXPECT_EQ(records->begin_restore(keys[1], 0).code(), status::limit);
  EXPECT_EQ(records->begin_store(keys[1], 0).code(), status::duplicate);
  EXPECT_TRUE(records->forget(keys[1]));
  EXPECT_FALSE(records->contains(keys[1]));
  EXPECT_EQ(pool->free_units(), 2U) << "held until the last pin has fallen";
  for (const pin& each : pins) ASSERT_TRUE(records->release_pin(each));
  for (const op_id op : ops) ASSERT_TRUE(records->cancel(op));
  EXPECT_EQ(pool->free_units(), 3U);
}

}  // namespace
}  // namespace cairn
