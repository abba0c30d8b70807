// A lock-free map from 128-bit keys to small ids: fixed capacity, chained buckets whose links live
// in the nodes, one CAS on the bucket's head per insertion.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

/// Part of whatever an id stands for (a record, a unit).
struct index_node {
  sync::atomic<std::uint64_t> hi;
  sync::atomic<std::uint64_t> lo;
  sync::atomic<std::uint64_t> link;
};

/// `Nodes` is a copyable callable: `index_node& operator()(std::uint32_t id) const`.
template <class Nodes>
class index {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  index(std::uint32_t capacity, Nodes nodes);

  /// Calls accept(id) -> bool for each node under `key`, newest first, until one is accepted;
  /// returns it or none. The node may be leaving the index: accept decides (by its own
  /// state word) whether the id still means what it seems to. Bounded number of hops.
  template <class Accept>
  std::uint32_t find(const checkpoint_key& key, Accept&& accept) const;

  /// Inserts `id` under `key` unless a node under `key` is accepted by blocks(other) -> bool;
  /// returns none when inserted, else that node. Two concurrent insertions of one key never
  /// both succeed unless blocks() denies one. Precondition: `id` is in no index.
  template <class Blocks>
  std::uint32_t insert_unless(std::uint32_t id, const checkpoint_key& key, Blocks&& blocks);

  /// Removes `id`, which the caller alone may remove now and which is in the index. On
  /// return the node may be inserted again (here or elsewhere).
  void erase(std::uint32_t id);
};

}  // namespace cairn::detail
