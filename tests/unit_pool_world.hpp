// An engine and a catalog in small, for threads that use one unit pool: who holds which unit, and
// what is in it. The content is plain memory, so that ThreadSanitizer sees whether the pool orders
// one holder before the next.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cairn/unit_pool.hpp>
#include <memory>
#include <span>
#include <vector>

#include "tests/threads.hpp"

namespace cairn::test {

using ids = std::vector<unit_id>;

inline constexpr std::uint32_t units_max = 40;
inline constexpr std::uint32_t keys_max = 12;
inline constexpr std::uint32_t threads = 4;
inline constexpr std::uint32_t exclusive = 1U << 20;

inline checkpoint_key key(std::uint32_t n) {
  return {n * 0x9e3779b97f4a7c15ULL, n};
}

inline std::unique_ptr<unit_pool> open_pool(std::uint32_t units, std::uint32_t max_units = 0) {
  auto opened = unit_pool::open({units, max_units, 2});
  return opened.ok() ? std::move(opened.value()) : nullptr;
}

/// Everything is free: the books balance, and every free unit can be had.
inline void expect_ledger_closes(unit_pool& pool) {
  const auto n = pool.counts();
  EXPECT_EQ(n.vacant + n.cached + n.live + n.reserved, n.total);
  EXPECT_EQ(n.vacant + n.cached, pool.free_units());
  std::uint32_t named = 0;
  for (std::uint32_t k = 0; k < keys_max; ++k) {
    const unit_id id = pool.lookup(key(k));
    if (id == no_unit) continue;
    ++named;
    EXPECT_TRUE(pool.inspect(id).has_key);
    EXPECT_EQ(pool.inspect(id).key, key(k));
  }
  EXPECT_EQ(pool.indexed(), named);
  for (unit_id id = 0; id < pool.max_units(); ++id)
    if (pool.inspect(id).place == cairn::unit_place::vacant) {
      EXPECT_FALSE(pool.inspect(id).has_key) << id;
    }

  pool.set_orphan_hook(nullptr, nullptr);
  // The unit freed just now goes last: none has fallen out of the order of cached ones.
  unit_id latest = no_unit;
  for (unit_id id = 0; id < pool.max_units(); ++id)
    if (pool.is_cached(id)) latest = id;
  if (latest != no_unit) {
    ASSERT_TRUE(pool.claim_unit(latest).ok());
    ASSERT_TRUE(pool.free(latest).ok());
  }
  ids all(pool.free_units(), no_unit);
  if (all.empty()) return;
  ASSERT_TRUE(pool.reserve(all, 99).ok());
  std::array<int, units_max> seen{};
  for (unit_id id : all) EXPECT_EQ(seen.at(id)++, 0) << id;
  // Vacant ones first and in order: whatever lay between, exact when calls do not overlap.
  for (std::uint32_t i = 1; i < n.vacant; ++i) EXPECT_LT(all[i - 1], all[i]);
  if (latest != no_unit) {
    EXPECT_EQ(all.back(), latest);
  }
  EXPECT_EQ(pool.counts().reserved, n.reserved + all.size());
  ASSERT_TRUE(pool.release(all, 99).ok());
  EXPECT_EQ(pool.free_units(), all.size());
}

/// An engine and a catalog in small: who holds what, and what is in the units.
class world {
 public:
  explicit world(unit_pool& pool) : pool_(pool) {
    pool_.set_orphan_hook(
        [](void* self, const checkpoint_key& k) {
          static_cast<world*>(self)->orphan(static_cast<std::uint32_t>(k.lo));
        },
        this);
  }

  void run(std::uint32_t thread, std::uint64_t seed, int steps) {
    dice d(seed * 64 + thread);
    std::vector<ids> reservations;
    ids shares;
    const std::uint64_t owner = thread + 1;
    for (int i = 0; i < steps && !failed_.load(std::memory_order_relaxed); ++i) {
      switch (d.below(12)) {
        case 0:
        case 1:
          reserve(d, owner, reservations);
          break;
        case 2:
        case 3:
          release(d, owner, reservations);
          break;
        case 4:
          replace(d, owner, reservations);
          break;
        case 5:
          attach(d, owner, reservations);
          break;
        case 6:
        case 7:
          allocate(d, shares);
          break;
        case 8:
        case 9:
          claim(d, shares);
          break;
        case 10:
          free_some(d, shares);
          break;
        default:
          if (d.below(16) == 0) pool_.clear_index();
          free_some(d, shares);
      }
    }
    while (!reservations.empty()) release(d, owner, reservations);
    while (!shares.empty()) free_some(d, shares);
  }

  /// What hangs on keys is given back too.
  void finish() {
    for (std::uint32_t k = 0; k < keys_max; ++k) orphan(k);
  }
  [[nodiscard]] bool failed() const { return failed_.load(); }

 private:
  struct checkpoint {
    std::atomic<int> state{0};  // 0 none, 1 being attached or detached, 2 attached
    std::array<unit_id, 3> units{};
    std::uint32_t count = 0;
    std::uint64_t owner = 0;
  };

  void expect(bool truth, const char* what) {
    if (!truth && !failed_.exchange(true)) ADD_FAILURE() << what;
  }
  void seize(const ids& taken, std::uint32_t as) {
    for (unit_id id : taken) {
      std::uint32_t nobody = 0;
      expect(holders_.at(id).compare_exchange_strong(nobody, as, std::memory_order_relaxed),
             "a unit was handed out that somebody holds");
      content_.at(id) = ~std::uint32_t{0};
    }
  }
  void yield(std::span<const unit_id> given) {
    for (unit_id id : given) {
      content_.at(id) = ~std::uint32_t{1};
      expect(holders_.at(id).exchange(0, std::memory_order_relaxed) == exclusive,
             "a reserved unit was held by somebody else too");
    }
  }

  void reserve(dice& d, std::uint64_t owner, std::vector<ids>& mine) {
    ids out(1 + d.below(3), no_unit);
    if (!pool_.reserve(out, owner).ok()) return;
    seize(out, exclusive);
    mine.push_back(std::move(out));
  }
  ids pick(dice& d, std::vector<ids>& mine) {
    std::swap(mine[d.below(static_cast<std::uint32_t>(mine.size()))], mine.back());
    ids out = std::move(mine.back());
    mine.pop_back();
    return out;
  }
  void release(dice& d, std::uint64_t owner, std::vector<ids>& mine) {
    if (mine.empty()) return;
    const ids given = pick(d, mine);
    yield(given);
    expect(pool_.release(given, owner).ok(), "a right release was refused");
  }
  void replace(dice& d, std::uint64_t owner, std::vector<ids>& mine) {
    if (mine.empty()) return;
    const ids given = pick(d, mine);
    yield(given);
    ids out(1 + d.below(static_cast<std::uint32_t>(given.size())), no_unit);
    expect(pool_.replace(given, owner, out, owner).ok(), "replace came up short");
    seize(out, exclusive);
    mine.push_back(std::move(out));
  }
  void attach(dice& d, std::uint64_t owner, std::vector<ids>& mine) {
    checkpoint& c = checkpoints_.at(d.below(keys_max));
    int none = 0;
    if (mine.empty() || !c.state.compare_exchange_strong(none, 1, std::memory_order_acquire))
      return;
    const ids given = pick(d, mine);
    std::copy(given.begin(), given.end(), c.units.begin());
    c.count = static_cast<std::uint32_t>(given.size());
    c.owner = owner;
    c.state.store(2, std::memory_order_release);
  }
  void orphan(std::uint32_t k) {
    checkpoint& c = checkpoints_.at(k);
    int attached = 2;
    if (!c.state.compare_exchange_strong(attached, 1, std::memory_order_acquire)) return;
    const std::span<const unit_id> given(c.units.data(), c.count);
    yield(given);
    expect(pool_.release(given, c.owner).ok(), "a release within the hook was refused");
    c.state.store(0, std::memory_order_release);
  }

  void allocate(dice& d, ids& shares) {
    ids out(1 + d.below(2), no_unit);
    if (d.below(8) == 0) {
      out.assign(1, d.below(pool_.max_units()));
      if (!pool_.allocate_at(out[0]).ok()) return;
    } else if (!pool_.allocate(out).ok()) {
      return;
    }
    seize(out, 1);
    for (unit_id id : out) {
      const std::uint32_t k = d.below(keys_max);
      content_.at(id) = k;
      if (d.below(4) != 0) expect(pool_.publish(id, key(k)).ok(), "publish was refused");
      shares.push_back(id);
    }
  }
  void claim(dice& d, ids& shares) {
    const std::uint32_t k = d.below(keys_max);
    const unit_id id = pool_.claim(key(k));
    if (id == no_unit) return;
    expect(holders_.at(id).fetch_add(1, std::memory_order_relaxed) < exclusive,
           "a claimed unit is reserved");
    expect(content_.at(id) == k, "a claimed unit holds other content");
    if (d.below(4) == 0) expect(pool_.publish(id, key(k)).code() != status::invalid, "republish");
    shares.push_back(id);
  }
  void free_some(dice& d, ids& shares) {
    for (std::uint32_t n = 1 + d.below(2); n != 0 && !shares.empty(); --n) {
      std::swap(shares[d.below(static_cast<std::uint32_t>(shares.size()))], shares.back());
      const unit_id id = shares.back();
      shares.pop_back();
      expect(content_.at(id) < keys_max, "content changed under a share");
      expect(holders_.at(id).fetch_sub(1, std::memory_order_relaxed) >= 1, "shares ran out");
      expect(pool_.free(id, {d.below(2), 1 + d.below(100)}).ok(), "a right free was refused");
    }
  }

  unit_pool& pool_;
  std::array<std::atomic<std::uint32_t>, units_max> holders_{};
  std::array<std::uint32_t, units_max> content_{};
  std::array<checkpoint, keys_max> checkpoints_{};
  std::atomic<bool> failed_{false};
};

}  // namespace cairn::test
