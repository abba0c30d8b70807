// What every atomic access of the explored library passes through: a step counter, and the hash of
// the order of accesses per word. The hot path of the scheduler, apart so that it can be inlined
// into the library. Knows neither threads nor strategies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAIRN_EXPLORE_TSAN 1
#endif
#endif

// The explorer's own data is touched by all fibers without any order that ThreadSanitizer knows.
#if defined(CAIRN_EXPLORE_TSAN)
#define CAIRN_UNSEEN inline __attribute__((no_sanitize("thread")))
#else
#define CAIRN_UNSEEN inline
#endif

namespace cairn::explore {

struct gate {
  static constexpr std::size_t cells = 1024;

  bool running = false;    ///< inside a schedule, on a logical thread
  std::uint64_t step = 0;  ///< accesses so far in this schedule
  std::uint64_t next = 0;  ///< at this step the scheduler is asked
  std::uint32_t thread = 0;
  std::uint32_t own_step[16] = {};

  // Two schedules are the same work if each word saw the same accesses in the same order, reads
  // between two writes in any. `order` is a sum over all accesses of a hash of (who, its how
  // many-th access, the version of the word), so it does not depend on how independent accesses
  // were interleaved. A failed CAS counts as a write, which tells a few equal ones apart.
  std::uint64_t order = 0;
  std::uint32_t version[cells] = {};

  CAIRN_UNSEEN void reset() noexcept {
    step = 0;
    order = 0;
    for (std::uint32_t& s : own_step) s = 0;
    std::memset(version, 0, sizeof version);
  }
  CAIRN_UNSEEN void note(const void* word, bool writes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(word) >> 3;
    std::uint32_t& seen = version[at % cells];
    std::uint64_t x = (std::uint64_t{seen} << 32 | ++own_step[thread] << 4 | thread) + at % cells;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    order += x;
    if (writes) seen = static_cast<std::uint32_t>(x >> 32 ^ x);
  }
};

extern gate the_gate;

/// Asks the scheduler who goes on; returns when this thread does.
void decide() noexcept;

/// Before each access.
CAIRN_UNSEEN void step(const void* word, bool writes) noexcept {
  gate& g = the_gate;
  if (!g.running) return;
  if (++g.step >= g.next) decide();
  g.note(word, writes);
}

}  // namespace cairn::explore
