// Caches that are asked for keys: a hit counts as use, a miss inserts, and a full one evicts for
// that.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "bench/peers/catalog_records.hpp"
#include "bench/peers/maps.hpp"

namespace cairn::bench {

/// A use is a whole restore, begun and finished; an insertion a whole store.
struct cairn_cache {
  catalog_records on;
  explicit cairn_cache(std::uint32_t entries) : on(entries) {}
  /// True: a hit. Each thread serves a slot of its own.
  bool use(const checkpoint_key& key, std::uint32_t thread) {
    if (on.restore(key, thread)) return true;
    (void)on.store(key, thread);
    return false;
  }
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
