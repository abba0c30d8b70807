// Stands between the library and its wake_all.
#include "bench/harness/wakes.hpp"

#include <algorithm>
#include <atomic>

#include "bench/harness/team.hpp"

// The names that the linker's --wrap makes: NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void __real__ZN5cairn4sync8wake_allERKSt6atomicIjE(const std::atomic<std::uint32_t>& word);
void __wrap__ZN5cairn4sync8wake_allERKSt6atomicIjE(const std::atomic<std::uint32_t>& word);
}

namespace cairn::bench {
namespace {

thread_local bool counting = false;
thread_local std::int64_t spent_ns = 0;

/// What looking at the clock takes: half of it on each side of the span that is measured.
std::int64_t look_ns() {
  static const std::int64_t one = [] {
    std::int64_t least = 1'000'000;
    for (int i = 0; i < 200; ++i) {
      const std::int64_t begin = thread_cpu_ns();
      least = std::min(least, thread_cpu_ns() - begin);
    }
    return least;
  }();
  return one;
}

}  // namespace

void count_thread_wakes() {
  counting = true;
}

std::int64_t thread_wakes_ns() {
  return spent_ns;
}

}  // namespace cairn::bench

void __wrap__ZN5cairn4sync8wake_allERKSt6atomicIjE(const std::atomic<std::uint32_t>& word) {
  // Not where a wake is timed as a whole: to look at this clock is a system call, too.
  if (!cairn::bench::counting) {
    __real__ZN5cairn4sync8wake_allERKSt6atomicIjE(word);
    return;
  }
  const std::int64_t look = cairn::bench::look_ns();
  const std::int64_t begin = cairn::bench::thread_cpu_ns();
  __real__ZN5cairn4sync8wake_allERKSt6atomicIjE(word);
  cairn::bench::spent_ns += cairn::bench::thread_cpu_ns() - begin + look;
}
// NOLINTEND(bugprone-reserved-identifier)
