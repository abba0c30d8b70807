// A doorbell: a copy thread's, or that of the callers who wait for one. Any thread rings, any
// number may sleep. Knows nothing of what its sleepers look for.
//
//   rings     + 1   a ringer (1), after what it brings
//   rings     + 0   a sleeper (6), before each sleep
//   sleepers  + 1   a sleeper (5), before its last look
//   sleepers  - 1   the same (7), awake
//
// A ringer changes `rings_` and looks whether anybody sleeps; a sleeper announces
// itself in `sleepers_` and looks whether anybody rang. If each wrote one word and read the
// other's, both could read old values, and the sleeper would miss its ring. So the sleeper, once
// announced, also does a read-modify-write of `rings_` that adds nothing, and the two
// read-modify-writes of that one word decide:
//   * the ringer's is later: it acquires the sleeper's announcement, reads sleepers_ != 0, wakes;
//   * the sleeper's is later: it returns a value other than `seen`, and the sleeper stays awake.
// Between the sleeper's look and its sleep the kernel compares the word again, under the lock
// that a wake takes too.
//
// `rings_` wraps: a sleeper that missed exactly 2^32 rings would sleep. It reads `seen` before
// each look for work, so that many rings would have to fall into one such look.
#include <cairn/backend.hpp>

#include "runtime/sync.hpp"

namespace cairn {

namespace detail {
namespace {

// Over any two words with the operations of std::atomic, as some are simulated.

template <class Word>
void ring_bell(Word& rings, const Word& sleepers) noexcept {
  sync::point();
  // (1) acq_rel: releases what the ringer did to (3) and (4); acquires the announcement (5)
  // through (6) when that came first.
  rings.fetch_add(1, std::memory_order_acq_rel);
  sync::point();
  // (2) relaxed: ordered behind (5) by (1).
  if (sleepers.load(std::memory_order_relaxed) != 0) sync::wake_all(rings);
}

template <class Word>
std::uint32_t bell_seen(const Word& rings) noexcept {
  sync::point();
  return rings.load(std::memory_order_acquire);  // (3) acquire: pairs with (1)
}

template <class Word>
void wait_for_bell(Word& rings, Word& sleepers, std::uint32_t seen, deadline until) noexcept {
  sync::point();
  // (4) acquire: pairs with (1). Rung already: no announcement, no system call.
  if (rings.load(std::memory_order_acquire) != seen) return;
  sync::point();
  if (!sync::mutated("sleeper unannounced"))
    sleepers.fetch_add(1, std::memory_order_relaxed);  // (5) relaxed: published by (6)
  for (;;) {
    sync::point();
    // (6) acq_rel: releases (5) to (1), or acquires (1).
    if (rings.fetch_add(0, std::memory_order_acq_rel) != seen) break;
    if (clock::now() >= until) break;
    sync::sleep_until(rings, seen, until);
  }
  sync::point();
  // (7) relaxed: a ringer that still reads the higher count wakes nobody, at worst.
  if (!sync::mutated("sleeper unannounced")) sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace
}  // namespace detail

void doorbell::ring() noexcept {
  detail::ring_bell(rings_, sleepers_);
}

std::uint32_t doorbell::seen() const noexcept {
  return detail::bell_seen(rings_);
}

void doorbell::wait(std::uint32_t seen, deadline until) noexcept {
  detail::wait_for_bell(rings_, sleepers_, seen, until);
}

}  // namespace cairn
