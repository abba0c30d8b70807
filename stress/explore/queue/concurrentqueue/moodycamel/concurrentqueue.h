// Stands for moodycamel's queue in the explorer, where all logical threads are one real thread:
// that queue would take them for one producer, and ThreadSanitizer its places for races. Its calls
// are one step. All that this one promises is what the real one does: an entry's producer comes
// before whoever takes that entry. Fixed room; entries are plain values.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace moodycamel {

struct ConcurrentQueueDefaultTraits {};

template <class T, class Traits>
class ConcurrentQueue {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);

 public:
  ConcurrentQueue(std::size_t, std::size_t, std::size_t) {}

  bool enqueue(const T& one) noexcept {
    place& to = places_[last_.fetch_add(1, std::memory_order_relaxed) % places_.size()];
    if (to.full.load(std::memory_order_relaxed)) std::abort();  // a scene has fewer ops
    std::array<std::uint64_t, words> bits;
    std::memcpy(bits.data(), &one, sizeof one);
    for (std::size_t i = 0; i < words; ++i) to.bits[i].store(bits[i], std::memory_order_relaxed);
    to.full.store(true, std::memory_order_release);  // (1) pairs with (2)
    return true;
  }

  std::size_t try_dequeue_bulk(T* out, std::size_t most) noexcept {
    std::size_t n = 0;
    for (; n < most; ++n) {
      place& from = places_[first_ % places_.size()];
      if (!from.full.load(std::memory_order_acquire)) break;  // (2)
      std::array<std::uint64_t, words> bits;
      for (std::size_t i = 0; i < words; ++i)
        bits[i] = from.bits[i].load(std::memory_order_relaxed);
      std::memcpy(static_cast<void*>(out + n), bits.data(), sizeof(T));
      from.full.store(false, std::memory_order_relaxed);  // its bits are atomics: nothing to order
      ++first_;
    }
    return n;
  }

 private:
  static constexpr std::size_t words = sizeof(T) / sizeof(std::uint64_t);
  struct place {
    std::atomic<bool> full{false};
    std::array<std::atomic<std::uint64_t>, words> bits{};
  };
  std::array<place, 64> places_{};
  std::atomic<std::uint64_t> last_{0};
  std::uint64_t first_ = 0;  ///< the consumer's
};

}  // namespace moodycamel
