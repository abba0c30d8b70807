// What a store costs in a cache in which nearly everything is pinned: counted in atomic accesses of
// the protocols, so that no clock is asked. Links the protocols with the hook (see CMakeLists.txt).
#include <gtest/gtest.h>

#include <algorithm>
#include <cairn/catalog.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/sync.hpp"

namespace cairn {
namespace {

std::uint64_t accesses = 0;

/// Atomic accesses of one call.
template <class Call>
std::uint64_t cost_of(Call&& call) {
  accesses = 0;
  sync::schedule_hook = []() noexcept { ++accesses; };
  call();
  sync::schedule_hook = nullptr;
  return accesses;
}

checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL + 1, n};
}

/// One unit per checkpoint, and as many checkpoints as there are units.
struct full_cache {
  explicit full_cache(std::uint32_t size) : records_in_it(size) {
    pool = std::move(unit_pool::open({size, size, 1})).value();
    catalog_options opts;
    opts.shape = {64, 64, 64, "one"};
    opts.slots = 1;
    opts.max_ops = size + 8;
    opts.max_pins = size + 8;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
    for (std::uint32_t n = 0; n < size; ++n) store(n);
  }
  status store(std::uint64_t n) {
    auto op = records->begin_store(key(n), 0);
    if (!op) return op.code();
    completion done;
    done.op = op->header.op;
    done.epoch = op->header.epoch;
    EXPECT_TRUE(records->finish(done).ended);
    return status::ok;
  }
  /// All but the last `spared`, which were used last.
  void pin_by_restores(std::uint32_t spared) {
    for (std::uint32_t n = 0; n + spared < records_in_it; ++n)
      ASSERT_TRUE(records->begin_restore(key(n), 0).ok());
  }
  void pin_barely(std::uint32_t spared, deadline until = clock::now() + std::chrono::hours(1)) {
    for (std::uint32_t n = 0; n + spared < records_in_it; ++n) {
      const checkpoint_key one[] = {key(n)};
      ASSERT_TRUE(records->pin_longest(one, 1, until).ok());
    }
  }

  std::uint32_t records_in_it;
  std::uint64_t newest = 1'000'000;  ///< key
  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
};

/// The most that any of a few stores in a row costs.
std::uint64_t dearest_store(full_cache& cache, status expected) {
  std::uint64_t most = 0;
  for (int again = 0; again < 4; ++again) {
    status said = status::pending;
    most = std::max(most, cost_of([&] { said = cache.store(++cache.newest); }));
    EXPECT_EQ(said, expected);
  }
  return most;
}

TEST(MostlyPinned, AStoreFindsItsVictimAtTheCostOfASmallCache) {
  full_cache small(16);
  small.pin_by_restores(8);
  full_cache large(4096);
  large.pin_by_restores(8);
  const std::uint64_t base = dearest_store(small, status::ok);
  EXPECT_LT(dearest_store(large, status::ok), 4 * base) << "base " << base;
}

TEST(MostlyPinned, ARefusalCostsNoMoreThanInASmallCache) {
  full_cache small(16);
  small.pin_by_restores(0);
  full_cache large(4096);
  large.pin_by_restores(0);
  const std::uint64_t base = dearest_store(small, status::no_room);
  EXPECT_LT(dearest_store(large, status::no_room), 4 * base) << "base " << base;
}

// Bare pins are not counted as they come: the first store behind them looks at each once and sets
// it aside. From then on they cost nothing.
TEST(MostlyPinned, BarePinsAreLookedAtOnce) {
  full_cache small(16);
  small.pin_barely(8);
  full_cache large(4096);
  large.pin_barely(8);
  (void)dearest_store(small, status::ok);
  const std::uint64_t first = cost_of([&] { EXPECT_EQ(large.store(++large.newest), status::ok); });
  const std::uint64_t base = dearest_store(small, status::ok);
  EXPECT_LT(first, 4096 * base);
  EXPECT_LT(dearest_store(large, status::ok), 4 * base) << "base " << base;
}

TEST(MostlyPinned, AllocationsDoNotLookAtEachBarePinAgain) {
  const auto dearest = [](std::uint32_t size) {
    full_cache cache(size);
    cache.pin_barely(8);
    std::uint64_t most = 0;
    for (int again = 0; again < 4; ++again) {
      unit_id unit[1];
      const std::uint64_t cost = cost_of([&] { EXPECT_TRUE(cache.records->allocate(unit).ok()); });
      if (again > 0) most = std::max(most, cost);  // the first looks at all
    }
    return most;
  };
  const std::uint64_t base = dearest(16);
  EXPECT_LT(dearest(4096), 4 * base) << "base " << base;
}

TEST(MostlyPinned, RefusalsDoNotLookAtEachBarePinAgain) {
  const auto dearest = [](std::uint32_t size) {
    full_cache cache(size);
    cache.pin_barely(0);
    (void)dearest_store(cache, status::no_room);
    return dearest_store(cache, status::no_room);
  };
  const std::uint64_t base = dearest(16);
  EXPECT_LT(dearest(4096), 4 * base) << "base " << base;
}

// What was not looked at again is still found when its time has come.
TEST(MostlyPinned, APinThatExpiresAfterTheLookIsFound) {
  full_cache cache(4);
  const deadline begun = clock::now();
  const auto pin = [&](std::uint64_t n, deadline until) {
    const checkpoint_key one[] = {key(n)};
    ASSERT_TRUE(cache.records->pin_longest(one, 1, until).ok());
  };
  pin(0, begun + std::chrono::hours(2));
  pin(1, begun + std::chrono::hours(1));
  EXPECT_EQ(cache.records->expire(begun), 0U);
  EXPECT_EQ(cache.records->expire(begun + std::chrono::minutes(59)), 0U);
  EXPECT_EQ(cache.records->expire(begun + std::chrono::hours(1)), 1U);
  pin(2, begun + std::chrono::minutes(30));  // earlier than what a walk has found
  EXPECT_EQ(cache.records->expire(begun + std::chrono::minutes(31)), 1U);
  EXPECT_EQ(cache.records->counts().pins, 1U);
  EXPECT_EQ(cache.records->expire(begun + std::chrono::hours(3)), 1U);
  EXPECT_EQ(cache.records->expire(begun + std::chrono::hours(4)), 0U);
}

// Steady clocks count from when the machine started, which may be long ago.
TEST(MostlyPinned, PinsThatAreNotDueAreLookedAtOnceHoweverLongTheMachineHasRun) {
  for (const int days : {1, 60, 400, 3000}) {
    SCOPED_TRACE(testing::Message() << days << " days");
    const deadline now{std::chrono::hours(24 * days)};
    full_cache cache(1024);
    cache.pin_barely(0, now + std::chrono::hours(1));
    EXPECT_GT(cost_of([&] { EXPECT_EQ(cache.records->expire(now), 0U); }), 1024U);
    EXPECT_LT(cost_of([&] { EXPECT_EQ(cache.records->expire(now), 0U); }), 32U);
  }
}

TEST(MostlyPinned, APinIsFoundAtItsNanosecondHoweverLongTheMachineHasRun) {
  constexpr std::chrono::nanoseconds one(1);
  for (const int days : {1, 60, 400, 3000, 5000}) {
    SCOPED_TRACE(testing::Message() << days << " days");
    const deadline due{std::chrono::hours(24 * days) + std::chrono::nanoseconds(12'345'678'901)};
    full_cache cache(4);
    cache.pin_barely(3, due);
    cache.pin_barely(2, due + one);  // the first once more, and the second
    EXPECT_EQ(cache.records->expire(due - std::chrono::seconds(1)), 0U);
    EXPECT_EQ(cache.records->expire(due - one), 0U);
    EXPECT_EQ(cache.records->expire(due), 1U);
    EXPECT_EQ(cache.records->expire(due), 0U);
    EXPECT_EQ(cache.records->expire(due + one), 2U);
    EXPECT_EQ(cache.records->counts().pins, 0U);
  }
}

}  // namespace
}  // namespace cairn
