// What one call costs in one thread, by Google Benchmark: where there is no peer whose rounds
// should stand between.
#pragma once

#include <functional>

#include "bench/harness/contest.hpp"

namespace cairn::bench {

/// Nanoseconds of processor time per call: the median of repetitions.
double single_ns(effort how, const std::function<void()>& call);

}  // namespace cairn::bench
