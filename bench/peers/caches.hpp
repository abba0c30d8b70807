// Caches that are asked for keys: a hit counts as use, a miss inserts, and a full one evicts for
// that.
#pragma once

#include <atomic>
#include <cairn/catalog.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "bench/peers/catalog_records.hpp"
#include "bench/peers/maps.hpp"

namespace cairn::bench {

/// A use is a whole restore, begun and finished; an insertion a whole store.
struct cairn_cache {
  catalog_records on;
  explicit cairn_cache(std::uint32_t entries, std::unique_ptr<eviction_policy> policy = nullptr)
      : on(entries, 1, 1024, std::move(policy)) {}
  /// True: a hit. Each thread serves a slot of its own.
  bool use(const checkpoint_key& key, std::uint32_t thread) {
    if (on.restore(key, thread)) return true;
    (void)on.store(key, thread);
    return false;
  }
};

/// No order of use at all: a hand goes round, and what it comes to goes first. A use writes nothing
/// here, so no order that puts its work off can gain more than this one does.
class hand_policy final : public eviction_policy {
 public:
  void bind(std::uint32_t records) override { records_ = records; }
  void place(std::uint32_t, const use_info&) noexcept override {}
  void drop(std::uint32_t) noexcept override {}
  std::uint32_t next() noexcept override {
    return hand_.fetch_add(1, std::memory_order_relaxed) % records_;  // relaxed: a number
  }

 private:
  std::uint32_t records_ = 0;
  std::atomic<std::uint32_t> hand_{0};
};

/// Lookup and Release, or Insert.
struct rocksdb_cache {
  rocksdb_map on;
  bool use(const checkpoint_key& key, std::uint32_t) {
    rocksdb_map::held held;
    std::uint32_t id = 0;
    if (on.pin(key, held, id)) {
      on.unpin(held);
      return true;
    }
    on.insert(key, 1);
    return false;
  }
};

}  // namespace cairn::bench
