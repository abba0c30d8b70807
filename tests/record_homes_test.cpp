// Where records lie: at the home of their key while there is room, and found wherever they are.
#include "runtime/record_homes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "runtime/catalog_state.hpp"
#include "tests/catalog_fixture.hpp"

namespace cairn {

struct catalog_internals {
  static const detail::record* record_at(const catalog& of, std::uint32_t id) {
    return &of.state_->records[id];
  }
  static detail::guest_word guest_of(const catalog& of, std::uint32_t home) {
    return detail::guest_word::unpack(of.state_->records[home].guest.load_relaxed());
  }
};

namespace {

using namespace catalog_tests;
using detail::record_homes;

TEST(RecordHomes, EveryHomeIsARecordAndThereAreEnough) {
  for (const std::uint32_t live : {1U, 2U, 64U, 65U, 1000U, 1U << 20, max_index - 1, max_index}) {
    const record_homes homes(live);
    EXPECT_GE(homes.records(), live);
    EXPECT_LE(homes.records(), max_index);
    for (const std::uint64_t hash : {0ULL, 1ULL, 0x7fff'ffffULL, 0xffff'ffffULL, ~0ULL})
      EXPECT_LT(homes.of(hash), homes.records()) << live;
    EXPECT_EQ(homes.of(~0ULL), homes.records() - 1) << live;
  }
}

TEST(RecordHomes, TwoAndTwoHomesAreNeighbours) {
  for (const std::uint32_t live : {65U, 79U, 1000U, max_index - 1, max_index}) {
    const record_homes homes(live);
    const std::uint32_t first = homes.of(0);
    for (const std::uint32_t home : {first, first + 1, homes.records() - 1, homes.records() - 2}) {
      const std::uint32_t next = homes.next_to(home);
      EXPECT_EQ(next / 2, home / 2) << live;
      EXPECT_NE(next, home) << live;
      EXPECT_EQ(homes.next_to(next), home) << live;
      EXPECT_GE(next, first) << live;
      EXPECT_LT(next, homes.records()) << live;
    }
  }
  const record_homes small(64);
  EXPECT_EQ(small.next_to(small.of(1)), small.of(2));  // one home for all
}

TEST(RecordHomes, HomesOfManyRecordsDiffer) {
  const record_homes homes(1000);
  std::set<std::uint32_t> seen;
  for (std::uint64_t n = 0; n < 1000; ++n) seen.insert(homes.of(detail::hash_of(key(n))));
  EXPECT_GT(seen.size(), 700U);
}

constexpr std::uint32_t many = 200;  // checkpoints that fit: more than have one home for all

/// The record that holds key `n`.
std::uint32_t place_of(const fixture& f, std::uint64_t n) {
  const auto found = f.records->lookup(key(n));
  EXPECT_TRUE(found.has_value()) << n;
  return found ? found->index : ~0U;
}

TEST(RecordHomes, NeighboursShareAPairOfLines) {
  const auto pair_of = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) / (2 * sync::cache_line);
  };
  for (const std::uint32_t live : {65U, 100U, 1000U, 8000U}) {
    const fixture f(3 * (live - 4));
    const record_homes homes(live);
    const std::uint32_t home = homes.of(0);
    EXPECT_EQ(pair_of(catalog_internals::record_at(*f.records, home)),
              pair_of(catalog_internals::record_at(*f.records, homes.next_to(home))))
        << live;
  }
}

TEST(RecordHomes, AKeyWhoseHomeIsVacantLiesThere) {
  fixture f(3 * many);
  const record_homes homes(many + 4);  // the fixture's max_threads
  std::set<std::uint32_t> taken;
  std::map<std::uint32_t, std::uint64_t> guests;  ///< the last key that found its home taken
  std::uint32_t at_home = 0;
  std::uint32_t next_door = 0;
  for (std::uint64_t n = 0; n < many; ++n) {
    f.store(n);
    const std::uint32_t home = homes.of(detail::hash_of(key(n)));
    const std::uint32_t place = place_of(f, n);
    if (taken.count(home) == 0) {
      EXPECT_EQ(place, home);
      ++at_home;
    } else if (taken.count(homes.next_to(home)) == 0) {
      EXPECT_EQ(place, homes.next_to(home));
      ++next_door;
    }
    if (place != home) guests[home] = n;
    EXPECT_TRUE(taken.insert(place).second);
  }
  EXPECT_GT(at_home, many / 2);
  EXPECT_GT(next_door, 0U);
  EXPECT_LT(at_home + next_door, many);  // or nothing was tried that is neither
  for (const auto& [home, n] : guests) {
    const auto guest = catalog_internals::guest_of(*f.records, home);
    EXPECT_EQ(guest.id, place_of(f, n));
    EXPECT_EQ(guest.print, detail::print_of(detail::hash_of(key(n))));
  }
}

TEST(RecordHomes, WhatIsNotAtHomeIsHeldAllTheSame) {
  // Stores take each other's place for a while: evicted, forgotten, stored again.
  fixture f(3 * many);
  std::set<std::uint64_t> there;
  for (std::uint64_t n = 0; n < 5 * many; ++n) {
    f.store(n);
    there.insert(n);
    if (n % 3 == 0 && f.records->forget(key(n / 2))) there.erase(n / 2);
  }
  std::uint32_t ready = 0;
  for (std::uint64_t n = 0; n < 5 * many; ++n) {
    const checkpoint_key wanted = key(n);
    const auto held = f.records->pin_longest({&wanted, 1}, 1, clock::now() + 1h);
    EXPECT_EQ(held.ok(), f.records->contains(wanted)) << n;
    if (!held) continue;
    ++ready;
    EXPECT_EQ(there.count(n), 1U) << n;
    EXPECT_EQ(held->record.index, place_of(f, n));
    EXPECT_TRUE(f.records->release_pin(*held));
    auto restore = f.records->begin_restore(wanted, 0);
    ASSERT_TRUE(restore.ok());
    EXPECT_TRUE(f.finish(*restore).ended);
  }
  EXPECT_EQ(ready, f.records->counts().ready);
  EXPECT_GT(ready, many / 2);
  f.records->clear();
  EXPECT_EQ(f.records->counts().ready, 0U);
  EXPECT_EQ(f.pool->free_units(), 3 * many);
  f.expect_ledger();
}

}  // namespace
}  // namespace cairn
