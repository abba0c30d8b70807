// The peer of the whole library: checkpoints in a map behind one mutex, each copied by the calling
// thread. The least that keeps checkpoints at all: no pool shared with live KV, no failures, no
// ranks. Its memory is taken at the beginning, images of one piece each, the least recently used
// goes first: the map's order, as splice keeps it, costs less than cairn's. It is in huge pages,
// as cairn's units are (harness/huge_pages.hpp).
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "bench/peers/maps.hpp"

namespace cairn::bench {

class locked_store {
 public:
  locked_store(const rank_memory& memory, std::uint64_t image_bytes, std::uint32_t images)
      : segments_(memory.segments), image_bytes_(image_bytes), bytes_(image_bytes * images) {
    where_.reserve(images + 1);
    std::memset(bytes_.data(), 1, bytes_.size());  // resident, as cairn's units are
    for (std::uint32_t i = 0; i < images; ++i) free_.push_back(i);
  }

  /// The longest length <= hit whose last key is there.
  std::uint32_t resumable_hit(std::span<const checkpoint_key> keys, std::uint32_t hit) {
    const std::lock_guard lock(mutex_);
    while (hit > 0 && !where_.contains(keys[hit - 1])) --hit;
    return hit;
  }
  bool store(const checkpoint_key& key, slot_id slot) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = where_.try_emplace(key);
    if (!is_new) return false;
    if (free_.empty()) {
      where_.erase(order_.back().key);
      order_.splice(order_.begin(), order_, std::prev(order_.end()));
      order_.front().key = key;
    } else {
      order_.push_front({key, free_.back()});
      free_.pop_back();
    }
    at->second = order_.begin();
    std::byte* to = image(order_.front().image);
    for (const strided& each : segments_) {
      std::memcpy(to, each.base + each.stride * static_cast<std::int64_t>(slot), each.bytes);
      to += each.bytes;
    }
    return true;
  }
  bool restore(const checkpoint_key& key, slot_id slot) {
    const std::lock_guard lock(mutex_);
    const auto at = where_.find(key);
    if (at == where_.end()) return false;
    order_.splice(order_.begin(), order_, at->second);
    const std::byte* from = image(order_.front().image);
    for (const strided& each : segments_) {
      std::memcpy(each.base + each.stride * static_cast<std::int64_t>(slot), from, each.bytes);
      from += each.bytes;
    }
    return true;
  }

 private:
  struct entry {
    checkpoint_key key;
    std::uint32_t image;
  };
  std::byte* image(std::uint32_t which) { return bytes_.data() + image_bytes_ * which; }

  std::vector<strided> segments_;
  std::uint64_t image_bytes_;
  std::vector<std::byte> bytes_;
  std::mutex mutex_;
  std::list<entry> order_;
  std::unordered_map<checkpoint_key, std::list<entry>::iterator, key_hash> where_;
  std::vector<std::uint32_t> free_;
};

}  // namespace cairn::bench
