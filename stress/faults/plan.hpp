// What goes wrong, drawn from a seed: which faults there are, how often each is drawn, how often
// each has come to pass. Knows nothing of devices or engines. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stress/world/image.hpp"

namespace cairn::stress {

enum class fault : std::uint8_t {
  launch_fails,       ///< nothing was enqueued
  launch_fails_late,  ///< all was enqueued, and may run
  launch_full,        ///< the stream holds all it can, for now
  copy_fails,         ///< the device says so when it is over
  copy_short,         ///< some images are left out, and nothing is said
  record_fails,
  record_full,
  wait_fails,
  wait_full,
  event_fails,       ///< instead of firing
  event_late,        ///< fires, and is not seen for a while: others overtake it
  event_lost,        ///< fires, and is not seen before the device comes back
  bit_flip,          ///< in a unit
  device_lost,       ///< for ever
  no_memory,         ///< while a runtime is opened
  queue_full,        ///< a store or restore found no room
  stalled,           ///< one rank's copy thread does not run for a while
  completion_again,  ///< a rank repeats what it has reported
  time_passes,       ///< all ops run out of time at once
  slot_changes,      ///< hands, with copies of it under way
  count
};

inline const char* to_string(fault f) noexcept {
  constexpr const char* names[] = {
      "launch_fails", "launch_fails_late", "launch_full",      "copy_fails",  "copy_short",
      "record_fails", "record_full",       "wait_fails",       "wait_full",   "event_fails",
      "event_late",   "event_lost",        "bit_flip",         "device_lost", "no_memory",
      "queue_full",   "stalled",           "completion_again", "time_passes", "slot_changes"};
  return names[static_cast<std::size_t>(f)];
}

using fault_counts = std::array<std::uint64_t, static_cast<std::size_t>(fault::count)>;

class fault_plan {
 public:
  fault_plan(std::uint64_t seed, fault_counts& met) : seed_(seed), met_(met) {}

  std::uint64_t draw() noexcept { return mixed(seed_ * 0x9e3779b97f4a7c15ULL + ++drawn_); }
  std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>(draw() % n); }
  bool one_in(std::uint32_t n) noexcept { return below(n) == 0; }

  /// Whether this fault comes to pass now, as it does once in so many calls while the plan is
  /// armed.
  bool meets(fault what, std::uint32_t once_in) noexcept {
    if (!armed || !one_in(once_in)) return false;
    met(what);
    return true;
  }
  void met(fault what) noexcept { ++met_[static_cast<std::size_t>(what)]; }

  bool armed = false;
  /// One fault in about so many calls; an episode has its own.
  std::uint32_t odds = 12;

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  fault_counts& met_;
};

}  // namespace cairn::stress
