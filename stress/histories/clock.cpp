// Whether the time-stamp counter can be trusted on this machine.
#include "stress/histories/clock.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace cairn::histories {
namespace {

#if defined(__x86_64__)

bool runs_at_one_rate() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

/// Threads hand the latest stamp on; nobody may read an earlier one after it.
bool cores_agree() {
  std::atomic<std::uint64_t> latest{0};
  std::atomic<bool> behind{false};
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 2U, 8U);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50'000; ++i) {
        std::uint64_t before = latest.load(std::memory_order_acquire);
        _mm_lfence();
        const std::uint64_t now = __rdtsc();
        _mm_lfence();
        if (now < before) behind.store(true, std::memory_order_relaxed);
        while (before < now &&
               !latest.compare_exchange_weak(before, now, std::memory_order_acq_rel)) {
        }
      }
    });
  for (std::thread& t : threads) t.join();
  return !behind.load();
}

#endif

}  // namespace

stamps::stamps(source wanted) {
#if defined(__x86_64__)
  cycles_ = wanted == source::cycles ||
            (wanted == source::automatic && runs_at_one_rate() && cores_agree());
#else
  static_cast<void>(wanted);
#endif
}

}  // namespace cairn::histories
