// Admission through the runtime: claimed KV, a restore on its way and fresh units, or nothing.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "tests/runtime_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

/// Puts KV units under keys 1..count into the pool's cache.
void cache_kv(runtime_rig& rig, std::uint64_t count) {
  std::vector<unit_id> kv(count);
  ASSERT_TRUE(rig.rt->records().allocate(kv).ok());
  for (std::uint64_t i = 0; i < count; ++i)
    ASSERT_TRUE(rig.rt->own_pool()->publish(kv[i], key_of(i + 1)).ok());
  for (std::uint64_t i = count; i-- > 0;) ASSERT_TRUE(rig.rt->own_pool()->free(kv[i]).ok());
}

constexpr std::array<checkpoint_key, 4> prefix = {key_of(1), key_of(2), key_of(3), key_of(4)};

TEST(Admit, HoldsClaimsRestoreAndFreshUnits) {
  runtime_rig rig({.ranks = 2, .units = 20});
  cache_kv(rig, 4);
  rig.keep(2);
  std::array<unit_id, 6> units{};
  ticket restored;
  const auto held = rig.rt->admit(prefix, 2, 5, units, 0, restored);
  ASSERT_TRUE(held.ok()) << held.why().message();
  EXPECT_EQ(held->resumed, 2U);
  EXPECT_EQ(held->kv_hit, 4U);
  ASSERT_TRUE(held->restore.has_value());
  EXPECT_EQ(held->restore->header.slot, 5U);
  ASSERT_TRUE(restored.valid());
  EXPECT_EQ(restored.op(), held->restore->header.op);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const unit_info unit = rig.rt->own_pool()->inspect(units[i]);
    EXPECT_EQ(unit.place, unit_place::live);
    EXPECT_EQ(unit.has_key, i < 2);
    if (i < 2) {
      EXPECT_EQ(unit.key, prefix[i]);
    }
  }
  std::sort(units.begin(), units.end());
  EXPECT_EQ(std::unique(units.begin(), units.end()), units.end());
  rig.expect_ledger(6);
  rig.run();
  EXPECT_EQ(restored.code(), status::ok);
  EXPECT_TRUE(rig.holds(5, 2));
  EXPECT_EQ(rig.rt->records().evictable(), 1U) << "the pin has fallen";
}

TEST(Admit, WithoutACheckpointEverythingIsFresh) {
  runtime_rig rig({.units = 20});
  cache_kv(rig, 4);
  std::array<unit_id, 5> units{};
  ticket restored;
  rig.keep(9);
  auto stale = rig.rt->restore(key_of(9), 0, 0);
  ASSERT_TRUE(stale.ok());
  restored = std::move(*stale);
  const auto held = rig.rt->admit(prefix, 1, 5, units, 0, restored);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->resumed, 0U);
  EXPECT_EQ(held->kv_hit, 4U);
  EXPECT_FALSE(restored.valid()) << "an old ticket does not pass for this admission's";
  rig.expect_ledger(5);
  ASSERT_TRUE(rig.rt->rank(0).try_room(copy_kind::restore, 31)) << "its room came back";
  rig.rt->rank(0).give_room(copy_kind::restore, 31);
  rig.run();
}

TEST(Admit, RefusedHoldsNothing) {
  runtime_rig rig({.ranks = 2, .units = 12});
  cache_kv(rig, 4);
  rig.keep(2);
  const pool_counts before = rig.rt->own_pool()->counts();
  std::array<unit_id, 24> units{};
  ticket restored;
  // Key 2's image and the claimed prefix cannot be had for it: 4 + 7 is one more than the rest.
  EXPECT_EQ(rig.rt->admit(prefix, 7, 5, std::span(units).first(11), 0, restored).code(),
            status::no_room);
  EXPECT_EQ(rig.rt->admit(prefix, 20, 5, units, 0, restored).code(), status::no_room);
  EXPECT_EQ(rig.rt->admit(prefix, 1, 8, std::span(units).first(5), 0, restored).code(),
            status::invalid);
  EXPECT_EQ(rig.rt->admit(prefix, 1, 5, std::span(units).first(5), 2, restored).code(),
            status::invalid);
  ASSERT_TRUE(rig.rt->rank(1).try_room(copy_kind::restore, 32));
  EXPECT_EQ(rig.rt->admit(prefix, 1, 5, std::span(units).first(5), 0, restored).code(),
            status::queue_full);
  rig.rt->rank(1).give_room(copy_kind::restore, 32);
  EXPECT_FALSE(restored.valid());
  const pool_counts after = rig.rt->own_pool()->counts();
  EXPECT_EQ(after.vacant, before.vacant);
  EXPECT_EQ(after.cached, before.cached);
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  for (const rank_id r : {0U, 1U}) {
    EXPECT_TRUE(rig.rt->rank(r).try_room(copy_kind::restore, 32));
    rig.rt->rank(r).give_room(copy_kind::restore, 32);
  }
}

TEST(Admit, SlotsRestoreCanBeCancelledAndTheUnitsStay) {
  runtime_rig rig({.units = 20});
  cache_kv(rig, 4);
  rig.keep(2);
  std::array<unit_id, 5> units{};
  ticket restored;
  ASSERT_TRUE(rig.rt->admit(prefix, 1, 5, units, 0, restored).ok());
  EXPECT_EQ(*rig.rt->release_slot(5, 0), 1U);
  EXPECT_EQ(restored.code(), status::cancelled);
  rig.expect_ledger(5);
  for (std::size_t i = units.size(); i-- > 0;) EXPECT_TRUE(rig.rt->own_pool()->free(units[i]).ok());
  rig.run();
  rig.expect_ledger(0);
}

// Scarce units, several threads: whatever an admission answers, it holds all of it or nothing.
TEST(Admit, UnderThreadsHoldsAllOrNothing) {
  const test::yields yields;  // before the threads that read the hook
  runtime_rig rig({.ranks = 2, .units = 22, .manual = false});
  cache_kv(rig, 4);
  std::atomic<std::uint64_t> admitted{0};
  std::atomic<std::uint64_t> resumed{0};
  test::together(3, [&](std::uint32_t t) {
    test::dice dice(t + 1);
    unit_pool& pool = *rig.rt->own_pool();
    std::array<unit_id, 8> units{};
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t keys = dice.below(5);
      const std::uint32_t fresh = dice.below(4);
      const auto wanted = std::span(units).first(keys + fresh);
      std::fill(wanted.begin(), wanted.end(), no_unit);
      ticket restored;
      const auto held =
          rig.rt->admit(std::span(prefix).first(keys), fresh, t, wanted, t % 2, restored);
      if (!held) {
        ASSERT_TRUE(held.code() == status::no_room || held.code() == status::passed_over)
            << held.why().message();
        continue;
      }
      ++admitted;
      for (const unit_id unit : wanted) ASSERT_LT(unit, 22U);
      if (held->resumed > 0) {
        ++resumed;
        ASSERT_EQ(restored.wait(runtime_rig::soon()), status::ok);
        ASSERT_TRUE(rig.holds(t, held->resumed)) << "state of the wrong boundary";
        for (std::uint32_t k = 0; k < held->resumed; ++k)
          ASSERT_EQ(pool.inspect(units[k]).key, prefix[k]);
      }
      // Computes the rest of the prefix: publishes its KV, keeps its last boundary.
      for (std::uint32_t k = held->resumed; k < keys; ++k)
        ASSERT_TRUE(pool.publish(units[k], prefix[k]).ok());
      if (keys > held->resumed) {
        rig.write(t, keys);
        auto stored = rig.rt->store(prefix[keys - 1], t, t % 2);
        if (stored) (void)stored->wait(runtime_rig::soon());
      }
      for (std::size_t u = wanted.size(); u-- > 0;) ASSERT_TRUE(pool.free(wanted[u]).ok());
    }
  });
  EXPECT_GT(admitted, 0U);
  EXPECT_GT(resumed, 0U);
  EXPECT_EQ(rig.rt->drain(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->records().evictable(), rig.rt->records().counts().ready) << "no pin is left";
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  rig.expect_ledger(0);
}

}  // namespace
}  // namespace cairn::tests
