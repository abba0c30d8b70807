#include "tests/virtual_clock.hpp"

#include <atomic>
#include <cstdint>

namespace {

std::atomic<std::int64_t> ahead_ns{0};

}  // namespace

// The linker sends calls of std::chrono::steady_clock::now here. A time point is its count of
// nanoseconds.
extern "C" {
std::int64_t __real__ZNSt6chrono3_V212steady_clock3nowEv() noexcept;
std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept;

std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept {
  return __real__ZNSt6chrono3_V212steady_clock3nowEv() + ahead_ns.load(std::memory_order_relaxed);
}
}

namespace cairn::tests {

void advance_clock(std::chrono::nanoseconds by) noexcept {
  ahead_ns.fetch_add(by.count(), std::memory_order_relaxed);
}

void put_clock_right() noexcept {
  ahead_ns.store(0, std::memory_order_relaxed);
}

}  // namespace cairn::tests
