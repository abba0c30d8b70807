// A catalog of three units per checkpoint over a small pool, for tests in one thread.
#pragma once

#include <gtest/gtest.h>

#include <cairn/catalog.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cairn::catalog_tests {

using namespace std::chrono_literals;

inline checkpoint_key key(std::uint64_t n) {
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
  /// The rank gives its copy up.
  finish_outcome give_up(const copy_op& op, status code = status::timed_out, rank_id rank = 0) {
    completion c = report(op, code, rank);
    c.unproven = true;
    return records->finish(c);
  }
  /// The copy that was given up is over; true when that counts.
  bool prove(const copy_op& op, rank_id rank = 0) {
    completion c = report(op, status::ok, rank);
    c.proven = true;
    const finish_outcome found = records->finish(c);
    EXPECT_FALSE(found.ended);
    return found.counted;
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

inline std::vector<unit_id> ids(const copy_op& op) {
  return {op.units.begin(), op.units.end()};
}

}  // namespace cairn::catalog_tests
