// Stamps for the two ends of a call, such that a call which ended before another began, as any
// program could observe it, has the smaller stamps. Knows nothing of what is being called.
//
// On x86-64 the stamp is the time-stamp counter, if it runs at one rate and the cores agree on it
// (both are looked at). The fences widen an interval, never narrow it: after the first stamp no
// later load has begun (lfence); before the second every store of the call has left the store
// buffer (mfence) and both have ended before the counter is read (lfence). Without the mfence a
// call could end, by the clock, before others can see what it did; C++ promises no more, but then
// the clock is no clock of what happened.
//
// Elsewhere, and when asked, the stamp is one counter that all threads add to. Its acquire and
// release make "ended before" a happens-before, which the checker may then rely on; the price is
// that it orders the threads more than their own calls do and hides races from tools.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace cairn::histories {

class stamps {
 public:
  enum class source : std::uint8_t { automatic, cycles, counter };

  /// Looks at the machine. Before any thread stamps.
  explicit stamps(source wanted = source::automatic);

  [[nodiscard]] bool counts_cycles() const noexcept { return cycles_; }

  [[nodiscard]] std::uint64_t begin() noexcept {
#if defined(__x86_64__)
    if (cycles_) {
      const std::uint64_t now = __rdtsc();
      _mm_lfence();
      return now;
    }
#endif
    return next_.fetch_add(1, std::memory_order_acq_rel);
  }
  [[nodiscard]] std::uint64_t end() noexcept {
#if defined(__x86_64__)
    if (cycles_) {
      _mm_mfence();
      _mm_lfence();
      return __rdtsc();
    }
#endif
    return next_.fetch_add(1, std::memory_order_acq_rel);
  }

 private:
  bool cycles_ = false;
  alignas(64) std::atomic<std::uint64_t> next_{1};
};

}  // namespace cairn::histories
