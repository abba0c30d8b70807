// Sleeping until a word changes, and numbers for threads. Knows futexes; knows nothing of what the
// sleepers wait for.
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

std::uint32_t next_thread() noexcept {
  // Relaxed: a number. No step of a protocol, hence without the hook. 0 means none: after 2^32
  // threads one of them draws again at each call, which is harmless.
  constinit static std::atomic<std::uint32_t> drawn{0};
  return drawn.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace cairn::sync

#endif
