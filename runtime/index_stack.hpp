// A lock-free stack of the integers below a number: which of them are free. The one put back last
// comes out first, for what it names is likely still in the cache. Knows nothing of what they name.
//
//   free    --take, any thread-->        taken: its alone
//   taken   --put, any thread-->         free
//
// The head is one word: the index on top, and a tag that each take and put changes. Without the
// tag, a taker that read `next` of an index which others took and put back meanwhile would install
// a stale link.
//
// Orders: what was done to an index before its put is visible to its next taker, for the head goes
// through read-modify-writes only: a put releases, and a take acquires all puts before it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class index_stack {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t count_max = (std::uint32_t{1} << 26) - 1;

  /// All in, 0 on top. Precondition: at most count_max.
  explicit index_stack(std::uint32_t count)
      : next_(new sync::atomic<std::uint32_t>[count]), head_(count == 0 ? bottom : 0) {
    // Relaxed: before any thread knows the stack.
    for (std::uint32_t i = 0; i < count; ++i)
      next_[i].store_relaxed(i + 1 == count ? bottom : i + 1);
  }

  /// none: all are taken. Lock-free.
  std::uint32_t take() noexcept {
    std::uint64_t seen = head_.load_acquire();  // (1) acquire: pairs with (3)
    for (;;) {
      const std::uint32_t top = index_of(seen);
      if (top == bottom) return none;
      const std::uint32_t below = next_[top].load_relaxed();       // stale only if the CAS fails
      if (head_.cas_acquire(seen, make(below, seen))) return top;  // (2) acquire: pairs with (3)
    }
  }

  /// Precondition: taken, and not put back since. Lock-free.
  void put(std::uint32_t i) noexcept {
    std::uint64_t seen = head_.load_relaxed();
    do {
      next_[i].store_relaxed(index_of(seen));
    } while (!head_.cas_release(seen, make(i, seen)));  // (3) release: pairs with (1), (2)
  }

 private:
  static constexpr std::uint32_t bottom = count_max;

  // The head: index : 26, tag : 38.
  static constexpr unsigned index_bits = 26;
  static std::uint32_t index_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head) & count_max;
  }
  static std::uint64_t make(std::uint32_t index, std::uint64_t before) noexcept {
    const std::uint64_t tag = (before >> index_bits) + (sync::mutated("row tag kept") ? 0U : 1U);
    return tag << index_bits | index;
  }

  std::unique_ptr<sync::atomic<std::uint32_t>[]> next_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> head_;
};

}  // namespace cairn::detail
