// Sleeping until a word changes. Knows futexes; knows nothing of what the sleepers wait for.
#include "runtime/sync.hpp"

#if !defined(CAIRN_SYNC_ENVIRONMENT)

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace cairn::sync {

#if defined(CAIRN_SYNC_HOOK)
void (*schedule_hook)() noexcept = nullptr;
#endif

void sleep_until(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                 std::chrono::steady_clock::time_point until) noexcept {
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  using std::chrono::duration_cast;
  const auto since_boot = until.time_since_epoch();
  if (since_boot.count() < 0) return;  // before the clock began; the kernel would refuse it
  const auto seconds = duration_cast<std::chrono::seconds>(since_boot);
  timespec at{};
  at.tv_sec = static_cast<std::time_t>(seconds.count());
  at.tv_nsec =
      static_cast<long>(duration_cast<std::chrono::nanoseconds>(since_boot - seconds).count());
  // The bitset form takes an absolute time of CLOCK_MONOTONIC, which is steady_clock. Every
  // outcome (woken, changed, interrupted, timed out) means the same to the caller: look again.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, seen, &at, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cairn::sync

#endif
