// cairn's side of the index's benchmarks: a catalog full of READY records, and its three ways to
// find one. Images have one unit, so that the number of records is the number of units.
#pragma once

#include <cairn/catalog.hpp>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "bench/harness/keys.hpp"
#include "runtime/catalog_state.hpp"

namespace cairn {

/// What the catalog's own calls do to find and hold a record: begin_restore and admit pin so.
struct catalog_internals {
  using held = std::uint32_t;

  static bool pin(catalog& of, const checkpoint_key& key, held& into, std::uint32_t& id) {
    detail::record_word found;
    into = of.state_->pin_key(
        key, detail::record_word::one_pin,
        [](detail::record_word w) { return w.state == detail::record_state::ready; }, found);
    id = into;
    return into != catalog::state::none;
  }
  static void unpin(catalog& of, held which) {
    of.state_->unpin(which, detail::record_word::one_pin);
  }
};

namespace bench {

class catalog_records {
 public:
  using held = catalog_internals::held;

  static constexpr slot_id slots = 8;  ///< one for each thread of a suite

  /// `units`: of the pool, each room for one record. Images are of `per_image` units.
  /// `policy`: null is the catalog's own.
  explicit catalog_records(std::uint32_t units, std::uint32_t per_image = 1,
                           std::uint32_t max_pins = 1024,
                           std::unique_ptr<eviction_policy> policy = nullptr) {
    unit_pool::options pool;
    pool.units = units;
    pool_ = std::move(unit_pool::open(pool)).value();
    catalog_options options;
    options.shape = {1, per_image, per_image, "bench"};
    options.slots = slots;
    options.max_pins = max_pins;
    options.policy = std::move(policy);
    catalog_ = std::move(catalog::open(std::move(options), *pool_)).value();
  }

  /// A whole store: begun, and reported by the only rank. False: refused.
  bool store(const checkpoint_key& key, slot_id slot = 0) {
    auto op = catalog_->begin_store(key, slot);
    if (!op) return false;
    finish(*op);
    return true;
  }
  bool restore(const checkpoint_key& key, slot_id slot = 0) {
    auto op = catalog_->begin_restore(key, slot);
    if (!op) return false;
    finish(*op);
    return true;
  }

  void insert(const checkpoint_key& key, std::uint32_t) {
    if (!store(key)) std::abort();
  }
  bool pin(const checkpoint_key& key, held& into, std::uint32_t& id) {
    return catalog_internals::pin(*catalog_, key, into, id);
  }
  void unpin(held of) { catalog_internals::unpin(*catalog_, of); }
  bool miss(const checkpoint_key& key) { return !catalog_->contains(key); }

  [[nodiscard]] catalog& records() { return *catalog_; }
  [[nodiscard]] unit_pool& pool() { return *pool_; }

 private:
  void finish(const copy_op& op) {
    completion done;
    done.op = op.header.op;
    done.epoch = op.header.epoch;
    (void)catalog_->finish(done);
  }

  std::unique_ptr<unit_pool> pool_;
  std::unique_ptr<catalog> catalog_;
};

}  // namespace bench
}  // namespace cairn
