// Holds one call up at one of its atomic accesses while another runs from beginning to end: in the
// same thread, from inside the hook of runtime/sync.hpp, which to the library is a second thread
// that ran while the first was not scheduled. Knows neither of the calls. One at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "runtime/sync.hpp"

#if !defined(CAIRN_SYNC_HOOK)
#error "this needs the hook at atomic accesses"
#endif

namespace cairn::tests {

/// Runs `first`, and `second` inside it, before the `nth` access (from 1). False: `first` has
/// fewer, and `second` did not run.
template <class First, class Second>
bool run_held_up(std::uint64_t nth, First&& first, Second&& second) {
  static std::uint64_t left;
  static std::function<void()> intruder;
  left = nth;
  bool came = false;
  intruder = [&] {
    came = true;
    second();
  };
  sync::schedule_hook = []() noexcept {
    if (left == 0 || --left != 0) return;
    const std::function<void()> run = std::move(intruder);
    run();
  };
  first();
  sync::schedule_hook = nullptr;
  intruder = nullptr;
  return came;
}

}  // namespace cairn::tests
