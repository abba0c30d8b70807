// Atomics whose memory order is in the name of the call, cache lines, and the hook through
// which tests steer schedules. Everything lock-free in cairn is written against this file, so
// that an explorer can replace it: CAIRN_SYNC_ENVIRONMENT names a header with the same names in
// it (atomic, point, mutated, sleep_until, wake_all, thread_part). Knows nothing of what is being
// synchronised.
#pragma once

#if defined(CAIRN_SYNC_ENVIRONMENT)
#include CAIRN_SYNC_ENVIRONMENT
#else

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cairn::sync {

inline constexpr std::size_t cache_line = 64;

#if defined(CAIRN_SYNC_HOOK)
/// Called before each atomic access in test builds; may yield. Set before threads start.
extern void (*schedule_hook)() noexcept;
inline void point() noexcept {
  if (schedule_hook != nullptr) schedule_hook();
}
#else
inline void point() noexcept {}
#endif

/// Whether an explorer has switched this fault on, to see that it is found. Never in this build.
constexpr bool mutated(const char* fault) noexcept {
  static_cast<void>(fault);
  return false;
}

/// std::atomic with the order in each name; there is no sequentially consistent access.
/// Where two threads each write one place and read the other's, both do a read-modify-write
/// on a common word instead (the later one sees the earlier's writes).
template <class T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr explicit atomic(T value) noexcept : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  [[nodiscard]] T load_relaxed() const noexcept {
    point();
    return value_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] T load_acquire() const noexcept {
    point();
    return value_.load(std::memory_order_acquire);
  }
  void store_relaxed(T v) noexcept {
    point();
    value_.store(v, std::memory_order_relaxed);
  }
  void store_release(T v) noexcept {
    point();
    value_.store(v, std::memory_order_release);
  }
  T exchange_acq_rel(T v) noexcept {
    point();
    return value_.exchange(v, std::memory_order_acq_rel);
  }
  T exchange_relaxed(T v) noexcept {
    point();
    return value_.exchange(v, std::memory_order_relaxed);
  }

  T fetch_add_relaxed(T v) noexcept {
    point();
    return value_.fetch_add(v, std::memory_order_relaxed);
  }
  T fetch_add_acquire(T v) noexcept {
    point();
    return value_.fetch_add(v, std::memory_order_acquire);
  }
  T fetch_add_release(T v) noexcept {
    point();
    return value_.fetch_add(v, std::memory_order_release);
  }
  T fetch_add_acq_rel(T v) noexcept {
    point();
    return value_.fetch_add(v, std::memory_order_acq_rel);
  }
  T fetch_sub_relaxed(T v) noexcept {
    point();
    return value_.fetch_sub(v, std::memory_order_relaxed);
  }
  T fetch_sub_release(T v) noexcept {
    point();
    return value_.fetch_sub(v, std::memory_order_release);
  }
  T fetch_sub_acq_rel(T v) noexcept {
    point();
    return value_.fetch_sub(v, std::memory_order_acq_rel);
  }
  T fetch_or_relaxed(T v) noexcept {
    point();
    return value_.fetch_or(v, std::memory_order_relaxed);
  }
  T fetch_or_acq_rel(T v) noexcept {
    point();
    return value_.fetch_or(v, std::memory_order_acq_rel);
  }
  T fetch_or_release(T v) noexcept {
    point();
    return value_.fetch_or(v, std::memory_order_release);
  }
  T fetch_and_acq_rel(T v) noexcept {
    point();
    return value_.fetch_and(v, std::memory_order_acq_rel);
  }

  /// On failure `expected` holds the current value, read with the failure order (acquire for
  /// acq_rel and acquire, relaxed otherwise). May fail spuriously only where named weak.
  bool cas_acq_rel(T& expected, T desired) noexcept {
    point();
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }
  bool cas_acquire(T& expected, T desired) noexcept {
    point();
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acquire,
                                          std::memory_order_acquire);
  }
  bool cas_release(T& expected, T desired) noexcept {
    point();
    return value_.compare_exchange_strong(expected, desired, std::memory_order_release,
                                          std::memory_order_relaxed);
  }
  bool cas_relaxed(T& expected, T desired) noexcept {
    point();
    return value_.compare_exchange_strong(expected, desired, std::memory_order_relaxed,
                                          std::memory_order_relaxed);
  }

  /// For sleep_until and wake_all only.
  [[nodiscard]] const std::atomic<T>& raw() const noexcept { return value_; }

 private:
  std::atomic<T> value_{};
};

/// Sleeps until `word` may differ from `seen` or until `until`; may return early. Wakers call
/// wake_all after changing the word. Carries no order: the word's accesses do.
void sleep_until(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                 std::chrono::steady_clock::time_point until) noexcept;
void wake_all(const std::atomic<std::uint32_t>& word) noexcept;

/// Of what threads keep apart, so as not to take lines from each other: how many parts it has, and
/// the calling thread's, which stays the same. Threads that ask for the first time one after
/// another have different ones. Wait-free.
inline constexpr std::uint32_t thread_parts = 8;
std::uint32_t next_thread() noexcept;  ///< from 1
inline std::uint32_t thread_part() noexcept {
  constinit thread_local std::uint32_t number = 0;
  if (number == 0) number = next_thread();
  return number % thread_parts;
}

}  // namespace cairn::sync

#endif
