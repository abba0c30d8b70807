// What runtime/sync.hpp is under relacy: the same atomics over its simulated weak memory, where a
// load may return any value that the memory model allows; and a sleep that ends only by a wake-up,
// so that one that is lost is a deadlock. Include after all standard headers: relacy redefines new
// and delete.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace cairn::sync {

inline constexpr std::size_t cache_line = 64;
inline void point() noexcept {}
inline bool mutated(const char* fault) noexcept;  // the test says which

template <class T>
class atomic {
 public:
  atomic() noexcept { value_($).store(T{}, rl::mo_relaxed); }
  explicit atomic(T value) noexcept { value_($).store(value, rl::mo_relaxed); }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  [[nodiscard]] T load_relaxed() const noexcept { return value_($).load(rl::mo_relaxed); }
  [[nodiscard]] T load_acquire() const noexcept {
    return value_($).load(mutated("loads acquire nothing") ? rl::mo_relaxed : rl::mo_acquire);
  }
  void store_relaxed(T v) noexcept { value_($).store(v, rl::mo_relaxed); }
  void store_release(T v) noexcept { value_($).store(v, rl::mo_release); }
  T exchange_acq_rel(T v) noexcept { return value_($).exchange(v, rl::mo_acq_rel); }
  T fetch_add_relaxed(T v) noexcept { return value_($).fetch_add(v, rl::mo_relaxed); }
  T fetch_add_acq_rel(T v) noexcept { return value_($).fetch_add(v, both()); }
  T fetch_sub_acq_rel(T v) noexcept { return value_($).fetch_sub(v, both()); }
  T fetch_add_release(T v) noexcept { return value_($).fetch_add(v, rl::mo_release); }
  T fetch_sub_release(T v) noexcept { return value_($).fetch_sub(v, rl::mo_release); }
  T fetch_or_acq_rel(T v) noexcept { return value_($).fetch_or(v, rl::mo_acq_rel); }
  T fetch_or_release(T v) noexcept { return value_($).fetch_or(v, rl::mo_release); }
  T fetch_and_acq_rel(T v) noexcept { return value_($).fetch_and(v, rl::mo_acq_rel); }
  bool cas_acq_rel(T& expected, T desired) noexcept {
    return value_($).compare_exchange_strong(expected, desired, rl::mo_acq_rel, rl::mo_acquire);
  }
  bool cas_acquire(T& expected, T desired) noexcept {
    const auto how = mutated("entries taken relaxed") ? rl::mo_relaxed : rl::mo_acquire;
    return value_($).compare_exchange_strong(expected, desired, how, how);
  }

  bool cas_release(T& expected, T desired) noexcept {
    return value_($).compare_exchange_strong(expected, desired, rl::mo_release, rl::mo_relaxed);
  }
  bool cas_relaxed(T& expected, T desired) noexcept {
    return value_($).compare_exchange_strong(expected, desired, rl::mo_relaxed, rl::mo_relaxed);
  }
  [[nodiscard]] rl::atomic<T>& raw() const noexcept { return value_; }

 private:
  static rl::memory_order both() noexcept {
    return mutated("counts change relaxed") ? rl::mo_relaxed : rl::mo_acq_rel;
  }
  mutable rl::atomic<T> value_;
};

/// Where a simulation's threads sleep. Made before it and taken away after.
struct bedroom {
  rl::mutex door;
  rl::condition_variable bed;
};
inline bedroom* sleepers = nullptr;

/// As the kernel does: it compares under the lock that a waker takes too. Without a deadline.
inline void sleep_until(rl::atomic<std::uint32_t>& word, std::uint32_t seen,
                        std::chrono::steady_clock::time_point) noexcept {
  sleepers->door.lock($);
  // A read-modify-write: the kernel sees what is there.
  if (word($).fetch_add(0, rl::mo_relaxed) == seen) sleepers->bed.wait(sleepers->door, $);
  sleepers->door.unlock($);
}
inline void wake_all(rl::atomic<std::uint32_t>&) noexcept {
  sleepers->door.lock($);
  sleepers->bed.notify_all($);
  sleepers->door.unlock($);
}

// What is compiled for production words as well; nobody sleeps on one here.
inline void sleep_until(const std::atomic<std::uint32_t>&, std::uint32_t,
                        std::chrono::steady_clock::time_point) noexcept {
  std::abort();
}
inline void wake_all(const std::atomic<std::uint32_t>&) noexcept {
  std::abort();
}

}  // namespace cairn::sync
