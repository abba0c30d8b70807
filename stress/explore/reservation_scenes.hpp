// Scenes on reservations alone: who may release one, and what a later one at the same units must
// not meet. Over the pool by its public header; pools large enough for reservations of several
// words.
#pragma once

#include <array>
#include <cairn/unit_pool.hpp>
#include <span>

#include "stress/explore/part.hpp"

namespace cairn::explore {

/// A pool, and what its units hold: plain, so that ThreadSanitizer sees who is not ordered.
template <std::uint32_t Units>
struct reservations {
  static constexpr std::uint32_t units = Units;
  std::unique_ptr<unit_pool> pool = std::move(unit_pool::open({Units, Units, 1})).value();
  std::array<owner_id, Units> bytes{};

  /// Marks them as the owner's; nobody else may have them.
  void seize(std::span<const unit_id> ids, owner_id owner) {
    for (const unit_id id : ids) {
      require(bytes[id] == 0, "two hold one unit");
      bytes[id] = owner;
    }
  }
  bool reserve(std::span<unit_id> out, owner_id owner) {
    if (!pool->reserve(out, owner).ok()) return false;
    seize(out, owner);
    return true;
  }
  bool release(std::span<const unit_id> ids, owner_id owner) {
    for (const unit_id id : ids) {
      require(bytes[id] == owner, "somebody else wrote a unit");
      bytes[id] = 0;
    }
    return pool->release(ids, owner).ok();
  }
  /// Takes one, and must be able to give it back.
  void reserve_and_release(owner_id owner) {
    std::array<unit_id, 1> one{};
    if (reserve(one, owner)) require(release(one, owner), "a reservation is not its owner's");
  }
  /// At rest: all units but `held` are vacant, and can be had in order.
  void expect_rest(std::uint32_t held) {
    require(pool->free_units() == Units - held, "a credit was lost, or is there twice");
    require(pool->counts().vacant == Units - held, "a unit was lost, or is there twice");
    std::array<unit_id, Units> all{};
    const auto rest = std::span(all).first(Units - held);
    require(rest.empty() || pool->reserve(rest, 99).ok(), "free units cannot be had");
    for (std::size_t i = 1; i < rest.size(); ++i)
      require(rest[i - 1] < rest[i], "units come out of order");
  }
};

/// Two release the same reservation; a third wants its units.
struct reservation_twice : reservations<3> {
  static constexpr std::uint32_t threads = 3;
  std::array<unit_id, 2> held{};
  std::atomic<std::uint32_t> released{0};

  reservation_twice() { require(pool->reserve(held, 1).ok(), "an empty pool has room"); }
  void run(std::uint32_t t) {
    if (t == 2) {
      std::array<unit_id, 2> out{};
      if (reserve(out, 2)) require(release(out, 2), "a reservation is not its owner's");
    } else if (pool->release(held, 1).ok()) {
      released.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void judge() {
    require(released.load() == 1, "a reservation is released once");
    expect_rest(0);
  }
};

/// The owner releases 0 and 1 and reserves 0 and 2, while a second release of 0 and 1 is under way.
struct reservation_aba : reservations<3> {
  static constexpr std::uint32_t threads = 2;
  std::array<unit_id, 2> held{};
  std::uint32_t live = 0;

  reservation_aba() { require(pool->reserve(held, 1).ok(), "an empty pool has room"); }
  void run(std::uint32_t t) {
    const bool released = pool->release(held, 1).ok();
    if (t == 1 || !released) return;
    if (!pool->allocate_at(1).ok()) return;
    live = 1;
    std::array<unit_id, 2> out{};
    if (!pool->reserve(out, 1).ok()) return;
    require(out[0] == 0 && out[1] == 2, "the lowest units come first");
    require(pool->release(out, 1).ok(), "a release of other units has ended a reservation");
  }
  void judge() { expect_rest(live); }
};

/// A reservation across two words is released; its second part begins another one at once. The unit
/// beyond it is free, so that there is a credit before the release has ended.
struct reservation_parts : reservations<66> {
  static constexpr std::uint32_t threads = 3;
  std::array<unit_id, 63> below{};
  std::array<unit_id, 2> across{};

  reservation_parts() {
    require(pool->reserve(below, 9).ok() && reserve(across, 1), "an empty pool has room");
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      require(release(across, 1), "a reservation is not its owner's");
    } else {
      reserve_and_release(t + 1);
      reserve_and_release(t + 1);
    }
  }
  void judge() { expect_rest(63); }
};

/// 62, 63 and 64 are released; then 62, 63 and 65 are that owner's, and a late release of the first
/// three must not fit.
struct reservation_parts_aba : reservations<66> {
  static constexpr std::uint32_t threads = 2;
  std::array<unit_id, 62> below{};
  std::array<unit_id, 3> across{};
  std::uint32_t live = 0;

  reservation_parts_aba() {
    require(pool->reserve(below, 9).ok() && pool->reserve(across, 1).ok(),
            "an empty pool has room");
  }
  void run(std::uint32_t t) {
    const bool released = pool->release(across, 1).ok();
    if (t == 1 || !released) return;
    if (!pool->allocate_at(64).ok()) return;
    live = 1;
    std::array<unit_id, 3> out{};
    if (!pool->reserve(out, 1).ok()) return;
    require(out[2] == 65, "the lowest units come first");
    require(!pool->release(across, 1).ok(), "a release of other units has ended a reservation");
    require(pool->release(out, 1).ok(), "a reservation is not its owner's");
  }
  void judge() { expect_rest(62 + live); }
};

/// One unit by its id, and units in order.
struct reservation_named : reservations<2> {
  static constexpr std::uint32_t threads = 3;

  void run(std::uint32_t t) {
    if (t != 0) return reserve_and_release(t + 1);
    if (!pool->allocate_at(0).ok()) return;
    const std::array<unit_id, 1> one{0};
    seize(one, 77);
    require(bytes[0] == 77, "somebody else wrote a unit");
    bytes[0] = 0;
    require(pool->free(0).ok(), "a share was lost");
  }
  void judge() { expect_rest(0); }
};

/// A cached unit loses its key: from then on it comes in the order of vacant ones.
struct reservation_cleared : reservations<4> {
  static constexpr std::uint32_t threads = 3;

  reservation_cleared() {
    allocate(2);
    free(1, 7);
    free(0);
  }
  void allocate(std::size_t count) {
    std::array<unit_id, 4> some{};
    require(pool->allocate(std::span(some).first(count)).ok(), "an empty pool has room");
  }
  /// The unit's only share, under `key` unless that is 0.
  void free(unit_id id, std::uint64_t key = 0) {
    require(key == 0 || pool->publish(id, {key, key}).ok(), "a share cannot be published");
    require(pool->free(id).ok(), "a share was lost");
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      pool->clear_index();
    } else {
      reserve_and_release(t + 1);
    }
  }
  void judge() { expect_rest(0); }
};

/// The same when takers have been told of cleared units, the last of which has just been taken.
struct reservation_cleared_anew : reservation_cleared {
  reservation_cleared_anew() {
    pool->clear_index();
    allocate(2);
    free(1, 8);
    free(0);
  }
};

/// A cleared unit that comes before a vacant one, and as many takers as units: each finds one,
/// whoever is held up.
struct reservation_cleared_first : reservations<2> {
  static constexpr std::uint32_t threads = 2;

  reservation_cleared_first() {
    std::array<unit_id, 2> both{};
    require(pool->allocate(both).ok() && pool->publish(0, {7, 7}).ok(), "an empty pool has room");
    require(pool->free(0).ok() && pool->free(1).ok(), "a share was lost");
    pool->clear_index();
  }
  void run(std::uint32_t t) {
    std::array<unit_id, 1> one{};
    require(reserve(one, t + 1), "there is a unit for each");
  }
  void judge() { expect_rest(2); }
};

}  // namespace cairn::explore
