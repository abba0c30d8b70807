// Time in a fault campaign: it stands still until somebody moves it. The linker sends the library's
// calls of steady_clock::now here.
#include "stress/faults/clock.hpp"

#include <atomic>
#include <cstdint>

namespace {

// Long past for the real clock, so that a sleep until a time of this one ends at once.
constexpr std::int64_t first_ns = 1'000'000;
std::atomic<std::int64_t> now_{first_ns};

}  // namespace

extern "C" std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept;
extern "C" std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept {
  return now_.load(std::memory_order_relaxed);
}

namespace cairn::stress {

void restart_clock() noexcept {
  now_.store(first_ns, std::memory_order_relaxed);
}
void advance_clock(std::chrono::nanoseconds by) noexcept {
  now_.fetch_add(by.count(), std::memory_order_relaxed);
}

}  // namespace cairn::stress
