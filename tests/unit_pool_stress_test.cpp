// The unit pool under overlapping calls: no unit has two holders, content and key belong together,
// and when all is quiet every unit is in one place.
#include <gtest/gtest.h>

#include <barrier>

#include "tests/unit_pool_world.hpp"

namespace cairn::test {
namespace {

TEST(UnitPoolStress, NoUnitHasTwoHoldersAndTheLedgerCloses) {
  const yields injected;
  for (std::uint64_t seed = 1; seed <= 6 && !::testing::Test::HasFailure(); ++seed) {
    // From hardly enough for one reservation each to plenty.
    const std::uint32_t units = seed % 3 == 0 ? 36 : seed % 3 == 1 ? 5 : 12;
    auto pool = open_pool(units);
    ASSERT_NE(pool, nullptr);
    world w(*pool);
    together(threads, [&](std::uint32_t t) { w.run(t, seed, 20000); });
    w.finish();
    const auto n = pool->counts();
    EXPECT_EQ(n.vacant + n.cached, units) << "seed " << seed;
    expect_ledger_closes(*pool);
  }
}

TEST(UnitPoolStress, OfManyPublishersOfOneKeyExactlyOneUnitIsNamed) {
  const yields injected;
  auto pool = open_pool(threads * 3);
  ASSERT_NE(pool, nullptr);
  std::barrier step(threads);
  std::atomic<bool> failed{false};
  together(threads, [&](std::uint32_t t) {
    for (std::uint32_t round = 0; round < 1500; ++round) {
      ids mine(1 + t % 3, no_unit);
      if (!pool->allocate(mine).ok()) failed = true;
      step.arrive_and_wait();
      for (unit_id id : mine)
        if (!pool->publish(id, key(1)).ok()) failed = true;
      // A second time: has it been superseded meanwhile, it is named anew.
      if (round % 2 == 0 && !pool->publish(mine[0], key(1)).ok()) failed = true;
      step.arrive_and_wait();
      const unit_id named = pool->lookup(key(1));
      if (pool->indexed() != 1 || named == no_unit || pool->inspect(named).key != key(1))
        failed = true;
      step.arrive_and_wait();
      for (unit_id id : mine)
        if (!pool->free(id).ok()) failed = true;
      step.arrive_and_wait();
      if (failed) return;
    }
  });
  EXPECT_FALSE(failed);
  expect_ledger_closes(*pool);
}

TEST(UnitPoolStress, AReservationIsReleasedByOneOfTwoThreads) {
  const yields injected;
  auto pool = open_pool(6);
  ASSERT_NE(pool, nullptr);
  std::barrier step(2);
  std::atomic<int> won{0};
  ids held(4, no_unit);
  together(2, [&](std::uint32_t t) {
    for (int round = 0; round < 3000; ++round) {
      if (t == 0 && !pool->reserve(held, 5).ok()) ADD_FAILURE() << "reserve";
      step.arrive_and_wait();
      ids out(4, no_unit);
      if (t == 0 ? pool->release(held, 5).ok() : pool->replace(held, 5, out, 6).ok()) ++won;
      if (out[0] != no_unit && !pool->release(out, 6).ok()) ADD_FAILURE() << "release";
      step.arrive_and_wait();
    }
  });
  EXPECT_EQ(won, 3000);
  EXPECT_EQ(pool->free_units(), 6U);
  expect_ledger_closes(*pool);
}

TEST(UnitPoolStress, CachedUnitsComeInTheOrderOfFreesThatDidNotOverlap) {
  const yields injected;
  constexpr std::uint32_t count = 6;
  auto pool = open_pool(count);
  ASSERT_NE(pool, nullptr);
  std::barrier step(threads);
  std::atomic<std::uint64_t> now{0};
  // When the frees of a unit began and ended, of one round. The one that made it cached drew its
  // stamp in between; it ended after all others had begun.
  struct frees {
    std::atomic<std::uint32_t> count{0};
    std::array<std::uint64_t, 32> begin{};
    std::array<std::uint64_t, 32> end{};
    std::uint64_t last_end() const { return *std::max_element(end.begin(), end.begin() + count); }
    std::uint64_t first_begin() const {
      const std::uint64_t last = *std::max_element(begin.begin(), begin.begin() + count);
      std::uint64_t first = last;
      for (std::uint32_t i = 0; i < count; ++i)
        if (end.at(i) > last) first = std::min(first, begin.at(i));
      return first;
    }
  };
  std::array<frees, count> log;
  const auto free = [&](unit_id id) {
    const std::uint32_t i = log.at(id).count++;
    log.at(id).begin.at(i) = ++now;
    if (!pool->free(id).ok()) ADD_FAILURE() << "free";
    log.at(id).end.at(i) = ++now;
  };
  together(threads, [&](std::uint32_t t) {
    dice d(t + 1);
    for (int round = 0; round < 1000; ++round) {
      if (t == 0) {
        ids all(count, no_unit);
        if (!pool->allocate(all).ok()) ADD_FAILURE() << "allocate";
        for (std::uint32_t i = 1; i < count; ++i)
          for (std::uint32_t j = 0; round != 0 && j < i; ++j)
            if (log.at(all[i]).last_end() < log.at(all[j]).first_begin())
              ADD_FAILURE() << all[i] << " was freed before " << all[j] << ", round " << round;
        for (unit_id id : all)
          if (!pool->publish(id, key(id)).ok()) ADD_FAILURE() << "publish";
        for (frees& each : log) each.count = 0;
        for (unit_id id : all) free(id);
      }
      step.arrive_and_wait();
      for (int i = 0; i < 6; ++i)
        if (const unit_id id = pool->claim(key(d.below(count))); id != no_unit) free(id);
      step.arrive_and_wait();
    }
  });
  expect_ledger_closes(*pool);
}

TEST(UnitPoolStress, ReservingNeverTakesPartAndReplaceNeverComesUpShort) {
  const yields injected;
  // Two reservations of 4 fit into 9 units, three do not.
  auto pool = open_pool(9);
  ASSERT_NE(pool, nullptr);
  std::atomic<std::uint32_t> held{0};
  together(threads, [&](std::uint32_t t) {
    for (int i = 0; i < 10000; ++i) {
      ids units(4, no_unit);
      if (!pool->reserve(units, t + 1).ok()) {
        if (units != ids(4, no_unit)) ADD_FAILURE() << "a refusal handed out units";
        continue;
      }
      if (held.fetch_add(4) + 4 > 9) ADD_FAILURE() << "more units than there are";
      ids next(4, no_unit);
      if (!pool->replace(units, t + 1, next, t + 11).ok()) ADD_FAILURE() << "replace came up short";
      held.fetch_sub(4);
      if (!pool->release(next, t + 11).ok()) ADD_FAILURE() << "release";
    }
  });
  expect_ledger_closes(*pool);
}

TEST(UnitPoolStress, TheTopIsRetiredAndExtendedUnderReservations) {
  const yields injected;
  auto pool = open_pool(8, 12);
  ASSERT_NE(pool, nullptr);
  std::atomic<std::uint32_t> moves{0};
  together(threads, [&](std::uint32_t t) {
    dice d(t + 1);
    for (int i = 0; i < 10000; ++i) {
      if (t != 0) {  // reserves, drops keys
        ids units(1 + d.below(3), no_unit);
        if (d.below(64) == 0) pool->clear_index();
        if (!pool->reserve(units, t).ok()) continue;
        if (!pool->release(units, t).ok()) ADD_FAILURE() << "release";
        continue;
      }
      // Holds all live units, so that only it needs to know where one has moved.
      ids mine(1 + d.below(2), no_unit);
      if (!pool->allocate(mine).ok()) continue;
      for (unit_id id : mine)
        if (!pool->publish(id, key(d.below(keys_max))).ok()) ADD_FAILURE() << "publish";
      const auto move = pool->begin_retire_top();
      if (move.ok() && move->to != no_unit) {
        ++moves;
        for (unit_id& id : mine)
          if (id == move->from) id = move->to;
        if (!pool->finish_retire(*move).ok()) ADD_FAILURE() << "finish_retire";
      }
      for (unit_id id : mine)
        if (!pool->free(id).ok()) ADD_FAILURE() << "free";
      pool->extend(d.below(3));
    }
  });
  EXPECT_GT(moves, 0U);
  EXPECT_EQ(pool->counts().live + pool->counts().reserved, 0U);
  expect_ledger_closes(*pool);
}

TEST(UnitPoolStress, CallersInErrorDoNotBreakTheLedger) {
  const yields injected;
  auto pool = open_pool(6, 8);
  ASSERT_NE(pool, nullptr);
  together(threads, [&](std::uint32_t t) {
    dice d(t + 100);
    for (int i = 0; i < 20000; ++i) {
      const unit_id id = d.below(9);
      ids some(1 + d.below(2), id);
      switch (d.below(12)) {
        case 0:
          (void)pool->reserve(some, 1);
          break;
        case 1:
          if (some.size() == 2) some[1] = d.below(9);
          (void)pool->release(some, 1);
          break;
        case 2:
          (void)pool->allocate(some);
          break;
        case 3:
        case 4:
        case 5:
          (void)pool->free(id, {0, d.below(9)});
          break;
        case 6:
          (void)pool->publish(id, key(d.below(3)));
          break;
        case 7:
          (void)pool->claim(key(d.below(3)));
          break;
        case 8:
          (void)pool->claim_unit(id);
          break;
        case 9:
          (void)pool->allocate_at(id);
          break;
        case 10:
          if (d.below(8) == 0) pool->clear_index();
          break;
        default: {
          const auto move = pool->begin_retire_top();
          if (move.ok() && move->to != no_unit) (void)pool->finish_retire(*move);
          (void)pool->extend(d.below(3));
        }
      }
    }
  });
  // Whatever was lost to whom: the books balance, and what is free can be had.
  expect_ledger_closes(*pool);
}

}  // namespace
}  // namespace cairn::test
