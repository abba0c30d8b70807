// The doorbell of a copy thread. Knows nothing of what its sleeper looks for.
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

void doorbell::ring() noexcept {
  sync::point();
  // (1) acq_rel: releases what the ringer did to (3) and (4); acquires the announcement (5)
  // through (6) when that came first.
  rings_.fetch_add(1, std::memory_order_acq_rel);
  sync::point();
  // (2) relaxed: ordered behind (5) by (1).
  if (sleepers_.load(std::memory_order_relaxed) != 0) sync::wake_all(rings_);
}

std::uint32_t doorbell::seen() const noexcept {
  sync::point();
  return rings_.load(std::memory_order_acquire);  // (3) acquire: pairs with (1)
}

void doorbell::wait(std::uint32_t seen, deadline until) noexcept {
  sync::point();
  // (4) acquire: pairs with (1). Rung already: no announcement, no system call.
  if (rings_.load(std::memory_order_acquire) != seen) return;
  sync::point();
  sleepers_.fetch_add(1, std::memory_order_relaxed);  // (5) published by (6)
  for (;;) {
    sync::point();
    // (6) acq_rel: releases (5) to (1), or acquires (1).
    if (rings_.fetch_add(0, std::memory_order_acq_rel) != seen) break;
    if (clock::now() >= until) break;
    sync::sleep_until(rings_, seen, until);
  }
  sync::point();
  // (7) relaxed: a ringer that still reads the higher count wakes nobody, at worst.
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace cairn
