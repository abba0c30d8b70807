// Many schedules of one scene, in several processes: how many there were, how many were different,
// and the first that failed, with what finds it again. Knows scenes and strategies, no library.
#pragma once

#include <cstdint>
#include <string>

#include "stress/explore/fault.hpp"
#include "stress/explore/scene.hpp"
#include "stress/explore/sketch.hpp"

namespace cairn::explore {

struct plan {
  std::string strategy = "mix";   ///< exhaustive, random, pct, hunt, freeze, mix
  std::uint32_t preemptions = 2;  ///< exhaustive
  std::uint32_t troubles = 2;     ///< exhaustive: draws that come out unusual
  std::uint64_t seed = 1;
  std::uint64_t schedules = 100'000;
  double seconds = 10;
  std::uint32_t jobs = 1;
  std::uint64_t replay = ~std::uint64_t{0};  ///< only this number
  std::string decisions;                     ///< only this schedule
  bool shrink = true;
  bool trace = false;  ///< print the hash of each schedule
};

struct tally {
  std::uint64_t schedules = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_max = 0;
  std::uint64_t traces = 0;  ///< sum of the schedules' hashes: equal for equal runs
  std::uint64_t chain = 0;   ///< the same, in order (of one process)
  std::uint64_t fault_hits = 0;
  double seconds = 0;
  bool failed = false;
  bool complete = false;  ///< exhaustive, freeze: nothing is left up to the bound
  std::uint64_t failed_after = 0;
  char why[256] = {};
  char again[4096] = {};  ///< options that repeat it
  char shortest[4096] = {};
  sketch orders;
  sketch states;
};

/// In this process: builds the scene and runs its share of the plan. Call once per process.
void explore_here(const scene_entry& which, const plan& how, std::uint32_t slice, tally& out);
/// Arms each known fault in turn (or the one of this name) and looks for it with its scene (or with
/// this one); prints the score. True when all that this build can see were found, and the median of
/// the schedules that they took is not above `median_max` (0: whatever it is).
bool explore_faults(const plan& how, const std::string& only, const std::string& scene,
                    std::uint64_t median_max);
/// In `how.jobs` processes.
tally explore_apart(const scene_entry& which, const plan& how, const fault* with = nullptr);

/// Seconds by a clock that is not virtual.
double real_seconds() noexcept;

}  // namespace cairn::explore
