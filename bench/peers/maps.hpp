// The index's peers: each finds a record by its key, holds it, and lets it go. All have the same
// interface, the same keys of 16 bytes, the hash that cairn uses (RocksDB brings its own), and room
// for all entries from the beginning, so that none of them grows while it is measured. cairn's
// tables are in huge pages, and so is what malloc gives the peers (harness/huge_pages.hpp).
//
// RocksDB's caches hold an entry by the handle that Lookup returns. The other maps hold nothing
// once a lookup is over: there a reference count in the record is raised while the map still
// vouches for the record, and lowered to let go, as anybody must who may evict records of such a
// map. One fetch_add and one fetch_sub: cairn does no more. The count lies beside the value where
// the map allows it, so that it costs no cache miss of its own.
#pragma once

#include <rocksdb/cache.h>
#include <tbb/concurrent_hash_map.h>

#include <atomic>
#include <bit>
#include <cairn/types.hpp>
#include <cstdint>
#include <libcuckoo/cuckoohash_map.hh>
#include <memory>
#include <utility>
#include <vector>
#include <xenium/reclamation/generic_epoch_based.hpp>
#include <xenium/vyukov_hash_map.hpp>

#include "runtime/index_words.hpp"

namespace cairn::bench {

struct key_hash {
  std::size_t operator()(const checkpoint_key& key) const noexcept { return detail::hash_of(key); }
};

/// HyperClockCache, or LRUCache, as RocksDB 7.8 recommends: the estimated charge of an entry is the
/// charge of every entry, metadata is not charged (the capacity is the number of entries), and the
/// number of shards is its own choice for a cache of 4 KiB blocks.
class rocksdb_map {
 public:
  using held = rocksdb::Cache::Handle*;
  static constexpr std::size_t charge = 4096;

  /// `slack`: capacity beyond `entries`, in percent; shards fill unevenly.
  static rocksdb_map hyper_clock(std::size_t entries, std::size_t slack) {
    return rocksdb_map(rocksdb::HyperClockCacheOptions(charge * (entries + entries * slack / 100),
                                                       charge, -1, false, nullptr,
                                                       rocksdb::kDontChargeCacheMetadata)
                           .MakeSharedCache());
  }
  static rocksdb_map lru(std::size_t entries, std::size_t slack) {
    rocksdb::LRUCacheOptions options;
    options.capacity = charge * (entries + entries * slack / 100);
    options.metadata_charge_policy = rocksdb::kDontChargeCacheMetadata;
    return rocksdb_map(rocksdb::NewLRUCache(options));
  }

  void insert(const checkpoint_key& key, std::uint32_t id) {
    (void)cache_->Insert(slice(key), to_value(id), charge, [](const rocksdb::Slice&, void*) {});
  }
  bool pin(const checkpoint_key& key, held& into, std::uint32_t& id) {
    into = cache_->Lookup(slice(key));
    if (into == nullptr) return false;
    id = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(cache_->Value(into)));
    return true;
  }
  void unpin(held of) { cache_->Release(of); }
  bool miss(const checkpoint_key& key) {
    held none = cache_->Lookup(slice(key));
    if (none == nullptr) return true;
    cache_->Release(none);
    return false;
  }

 private:
  explicit rocksdb_map(std::shared_ptr<rocksdb::Cache> cache) : cache_(std::move(cache)) {}
  static rocksdb::Slice slice(const checkpoint_key& key) {
    return {reinterpret_cast<const char*>(&key), sizeof key};
  }
  static void* to_value(std::uint32_t id) { return std::bit_cast<void*>(std::uintptr_t{id}); }
  std::shared_ptr<rocksdb::Cache> cache_;
};

/// What the other maps count references in.
struct counted {
  std::atomic<std::uint32_t> references{0};
  std::uint32_t id = 0;

  counted() = default;
  explicit counted(std::uint32_t of) : id(of) {}
  counted(counted&& other) noexcept : id(other.id) {}  // before anybody holds it

  void hold() { references.fetch_add(1, std::memory_order_acquire); }
  void let_go() { references.fetch_sub(1, std::memory_order_release); }
};

/// oneTBB's map: find locks the bucket and the node, shared. Nodes stay where they are, so the
/// count is in the node. They come from malloc: TBB's own would leave them in small pages.
class tbb_map {
 public:
  using held = counted*;

  explicit tbb_map(std::size_t entries) : map_(entries) {}
  void insert(const checkpoint_key& key, std::uint32_t id) {
    map::accessor at;
    map_.insert(at, key);
    at->second.id = id;
  }
  bool pin(const checkpoint_key& key, held& into, std::uint32_t& id) {
    map::const_accessor at;
    if (!map_.find(at, key)) return false;
    into = const_cast<counted*>(&at->second);
    into->hold();
    id = into->id;
    return true;
  }
  void unpin(held of) { of->let_go(); }
  bool miss(const checkpoint_key& key) { return map_.count(key) == 0; }

 private:
  struct compare {
    static std::size_t hash(const checkpoint_key& key) { return detail::hash_of(key); }
    static bool equal(const checkpoint_key& a, const checkpoint_key& b) { return a == b; }
  };
  using map = tbb::concurrent_hash_map<checkpoint_key, counted, compare,
                                       std::allocator<std::pair<const checkpoint_key, counted>>>;
  map map_;
};

/// libcuckoo: find_fn runs under the locks of two buckets. Values move between buckets, so the
/// count is in a record of its own: one line beside the bucket's, as cairn has its record beside
/// its head.
class cuckoo_map {
 public:
  using held = counted*;

  explicit cuckoo_map(std::size_t entries)
      : map_(entries + entries / 4), records_(std::make_unique<line[]>(entries)) {}
  void insert(const checkpoint_key& key, std::uint32_t id) {
    records_[id].at.id = id;
    map_.insert(key, &records_[id].at);
  }
  bool pin(const checkpoint_key& key, held& into, std::uint32_t& id) {
    return map_.find_fn(key, [&](counted* found) {
      into = found;
      into->hold();
      id = into->id;
    });
  }
  void unpin(held of) { of->let_go(); }
  bool miss(const checkpoint_key& key) { return !map_.contains(key); }

 private:
  struct alignas(64) line {
    counted at;
  };
  libcuckoo::cuckoohash_map<checkpoint_key, counted*, key_hash> map_;
  std::unique_ptr<line[]> records_;
};

}  // namespace cairn::bench

template <>
struct xenium::hash<cairn::checkpoint_key> {
  xenium::hash_t operator()(const cairn::checkpoint_key& key) const noexcept {
    return cairn::detail::hash_of(key);
  }
};

namespace cairn::bench {

/// xenium's map after Vyukov: lookups lock nothing, an epoch protects the node while it is looked
/// at. The count is in the node. Of the ways to reclaim memory that it brings this one makes the
/// fastest hits here: 14 ns for one hot key, with new_epoch_based or hazard pointers 21.
class xenium_map {
 public:
  using held = counted*;

  explicit xenium_map(std::size_t entries) : map_(entries) {}
  void insert(const checkpoint_key& key, std::uint32_t id) { map_.emplace(key, counted(id)); }
  bool pin(const checkpoint_key& key, held& into, std::uint32_t& id) {
    map::accessor at;
    if (!map_.try_get_value(key, at)) return false;
    into = at.operator->();
    into->hold();
    id = into->id;
    return true;
  }
  void unpin(held of) { of->let_go(); }
  bool miss(const checkpoint_key& key) {
    map::accessor at;
    return !map_.try_get_value(key, at);
  }

 private:
  using reclaimer = xenium::reclamation::epoch_based<>;
  using map =
      xenium::vyukov_hash_map<checkpoint_key, counted, xenium::policy::reclaimer<reclaimer>>;
  map map_;
};

}  // namespace cairn::bench
