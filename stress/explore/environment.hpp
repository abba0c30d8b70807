// What runtime/sync.hpp is in the explorer: the same atomics, of which every access is a step of
// the scheduler's and can be made faulty on purpose. Waiting is waiting for the scheduler. Knows
// nothing of what is being synchronised.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "stress/explore/fault.hpp"
#include "stress/explore/gate.hpp"

namespace cairn::sync {

inline constexpr std::size_t cache_line = 64;

/// For accesses that do not go through `atomic`.
inline void point() noexcept {
  explore::step(nullptr, true);
}

/// Whether this fault is switched on.
inline bool mutated(const char* name) noexcept {
  return explore::faults_armed && explore::fault_is(name);
}

template <class T>
class atomic {
  using place = explore::place;
  using order = std::memory_order;
  static constexpr order relaxed = std::memory_order_relaxed;
  static constexpr order acquire = std::memory_order_acquire;
  static constexpr order release = std::memory_order_release;
  static constexpr order acq_rel = std::memory_order_acq_rel;

 public:
  constexpr atomic() noexcept = default;
  constexpr explicit atomic(T value) noexcept : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  [[nodiscard]] T load_relaxed(place at = place::here()) const noexcept {
    return load(relaxed, at);
  }
  [[nodiscard]] T load_acquire(place at = place::here()) const noexcept {
    return load(acquire, at);
  }
  void store_relaxed(T v, place at = place::here()) noexcept { store(v, relaxed, at); }
  void store_release(T v, place at = place::here()) noexcept { store(v, release, at); }
  T exchange_acq_rel(T v, place at = place::here()) noexcept {
    return modify(at, acq_rel, [v](auto& a, order o) { return a.exchange(v, o); });
  }
  T exchange_relaxed(T v, place at = place::here()) noexcept {
    return modify(at, relaxed, [v](auto& a, order o) { return a.exchange(v, o); });
  }
  T fetch_add_relaxed(T v, place at = place::here()) noexcept { return add(v, relaxed, at); }
  T fetch_add_acquire(T v, place at = place::here()) noexcept { return add(v, acquire, at); }
  T fetch_add_release(T v, place at = place::here()) noexcept { return add(v, release, at); }
  T fetch_add_acq_rel(T v, place at = place::here()) noexcept { return add(v, acq_rel, at); }
  T fetch_sub_relaxed(T v, place at = place::here()) noexcept { return sub(v, relaxed, at); }
  T fetch_sub_release(T v, place at = place::here()) noexcept { return sub(v, release, at); }
  T fetch_sub_acq_rel(T v, place at = place::here()) noexcept { return sub(v, acq_rel, at); }
  T fetch_or_relaxed(T v, place at = place::here()) noexcept { return set(v, relaxed, at); }
  T fetch_or_release(T v, place at = place::here()) noexcept { return set(v, release, at); }
  T fetch_or_acq_rel(T v, place at = place::here()) noexcept { return set(v, acq_rel, at); }
  T fetch_and_acq_rel(T v, place at = place::here()) noexcept {
    return modify(at, acq_rel, [v](auto& a, order o) { return a.fetch_and(v, o); });
  }
  bool cas_acq_rel(T& expected, T desired, place at = place::here()) noexcept {
    return cas(expected, desired, acq_rel, acquire, at);
  }
  bool cas_acquire(T& expected, T desired, place at = place::here()) noexcept {
    return cas(expected, desired, acquire, acquire, at);
  }
  bool cas_release(T& expected, T desired, place at = place::here()) noexcept {
    return cas(expected, desired, release, relaxed, at);
  }
  bool cas_relaxed(T& expected, T desired, place at = place::here()) noexcept {
    return cas(expected, desired, relaxed, relaxed, at);
  }

  [[nodiscard]] const std::atomic<T>& raw() const noexcept { return value_; }

 private:
  [[nodiscard]] T load(order how, const place& at) const noexcept {
    explore::step(&value_, false);
    if (explore::faults_armed) [[unlikely]] {
      const explore::fault_kind kind = explore::fault_at(at);
      if (kind == explore::fault_kind::relaxed) how = relaxed;
      T seen = value_.load(how);
      if (kind == explore::fault_kind::stale) explore::recall(&value_, seen);
      if (kind == explore::fault_kind::nothing) seen = T{};
      explore::remember(&value_, seen);
      return seen;
    }
    return value_.load(how);
  }

  void store(T v, order how, const place& at) noexcept {
    explore::step(&value_, true);
    if (explore::faults_armed) [[unlikely]] {
      switch (explore::fault_at(at)) {
        case explore::fault_kind::skipped:
          return;
        case explore::fault_kind::relaxed:
          how = relaxed;
          break;
        default:
          break;
      }
      explore::remember(&value_, v);
    }
    value_.store(v, how);
  }

  template <class Change>
  T modify(const place& at, order how, Change&& change) noexcept {
    explore::step(&value_, true);
    if (explore::faults_armed) [[unlikely]] {
      switch (explore::fault_at(at)) {
        case explore::fault_kind::skipped:
          return value_.load(how == release ? relaxed : acquire);
        case explore::fault_kind::relaxed:
          how = relaxed;
          break;
        default:
          break;
      }
      return change(value_, how);
    }
    return change(value_, how);
  }
  T add(T v, order how, const place& at) noexcept {
    return modify(at, how, [v](auto& a, order o) { return a.fetch_add(v, o); });
  }
  T sub(T v, order how, const place& at) noexcept {
    return modify(at, how, [v](auto& a, order o) { return a.fetch_sub(v, o); });
  }
  T set(T v, order how, const place& at) noexcept {
    return modify(at, how, [v](auto& a, order o) { return a.fetch_or(v, o); });
  }

  bool cas(T& expected, T desired, order won, order lost, const place& at) noexcept {
    explore::step(&value_, true);
    if (explore::faults_armed) [[unlikely]] {
      switch (explore::fault_at(at)) {
        case explore::fault_kind::blind:
          value_.store(desired, won == acquire ? relaxed : release);
          return true;
        case explore::fault_kind::skipped:
          return true;
        case explore::fault_kind::relaxed:
          won = lost = relaxed;
          break;
        case explore::fault_kind::kept:
          explore::keep_low_half(expected, desired);
          break;
        default:
          break;
      }
      const bool done = value_.compare_exchange_strong(expected, desired, won, lost);
      explore::remember(&value_, done ? desired : expected);
      return done;
    }
    return value_.compare_exchange_strong(expected, desired, won, lost);
  }

  std::atomic<T> value_{};
};

void sleep_until(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                 std::chrono::steady_clock::time_point until) noexcept;
void wake_all(const std::atomic<std::uint32_t>& word) noexcept;

/// Fewer than there are threads in most scenes: some share one, others do not.
inline constexpr std::uint32_t thread_parts = 2;
inline std::uint32_t thread_part() noexcept {
  return explore::the_gate.thread % thread_parts;
}

}  // namespace cairn::sync
