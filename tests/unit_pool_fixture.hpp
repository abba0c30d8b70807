// A unit pool under test, with the orphans it tells of, and its whole state as one comparable text.
#pragma once

#include <gtest/gtest.h>

#include <cairn/unit_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cairn::test {

using ids = std::vector<unit_id>;

inline checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL, n};
}

class UnitPool : public ::testing::Test {
 protected:
  void open(std::uint32_t units, std::uint32_t max_units = 0, std::uint32_t streams = 1) {
    auto opened = unit_pool::open({units, max_units, streams});
    ASSERT_TRUE(opened.ok()) << opened.why().message();
    pool = std::move(opened.value());
    pool->set_orphan_hook(
        [](void* self, const checkpoint_key& k) {
          auto* test = static_cast<UnitPool*>(self);
          test->orphans.push_back(k.lo);
          if (test->on_orphan) test->on_orphan(k);
        },
        this);
  }

  ids reserve(std::size_t n, owner_id owner) {
    ids out(n, no_unit);
    const auto got = pool->reserve(out, owner);
    return got.ok() ? out : ids{};
  }
  ids allocate(std::size_t n) {
    ids out(n, no_unit);
    const auto got = pool->allocate(out);
    return got.ok() ? out : ids{};
  }
  status free(unit_id id) { return pool->free(id).code(); }
  status publish(unit_id id, std::uint64_t k) { return pool->publish(id, key(k)).code(); }
  status release(const ids& units, owner_id owner) { return pool->release(units, owner).code(); }

  /// All units cached, freed in the order given, unit u under key 100 + u.
  void cache_in_order(const ids& order) {
    ASSERT_EQ(allocate(order.size()).size(), order.size());
    for (unit_id id : order) ASSERT_EQ(publish(id, 100 + id), status::ok);
    for (unit_id id : order) ASSERT_EQ(free(id), status::ok);
  }

  /// Every place of every unit, in words: what "changes nothing" is compared by.
  std::string snapshot() const {
    std::string text = "free " + std::to_string(pool->free_units()) + " indexed " +
                       std::to_string(pool->indexed());
    for (unit_id id = 0; id < pool->max_units(); ++id) {
      const unit_info u = pool->inspect(id);
      text += " | " + std::to_string(static_cast<int>(u.place)) + "," + std::to_string(u.shares) +
              "," + std::to_string(u.owner) + "," + std::to_string(u.has_key) + "," +
              std::to_string(u.key.lo) + (pool->lookup(u.key) == id ? "*" : "");
    }
    return text;
  }
  void expect_ledger_closes() const {
    const auto n = pool->counts();
    EXPECT_EQ(n.vacant + n.cached + n.live + n.reserved, n.total);
    EXPECT_EQ(n.vacant + n.cached, pool->free_units());
  }

  std::vector<std::uint64_t> orphans;
  std::function<void(const checkpoint_key&)> on_orphan;
  std::unique_ptr<unit_pool> pool;
};

}  // namespace cairn::test
