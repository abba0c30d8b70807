// One replay from options to figures: devices, memory, compute, engine, simulation, in the order
// in which they must be built and torn down.
#pragma once

#include <vector>

#include "bench/replay/call_log.hpp"
#include "bench/replay/options.hpp"
#include "bench/replay/report.hpp"
#include "bench/replay/timeline.hpp"

namespace cairn::replay {

struct replay_outcome {
  replay_figures figures;
  std::vector<batch_span> copies;
  std::vector<compute_span> compute;
  std::vector<logged_call> calls;  ///< when the options or the caller ask for them
};

/// The trace that the options name, or the workload that they describe. Throws bad_input.
trace load_trace(const replay_options& opts);

/// Throws bad_input (what was asked for cannot be had here) and broken_run.
replay_outcome replay(const replay_options& opts, const trace& from,
                      simulation_progress* progress = nullptr, bool log_calls = false);

}  // namespace cairn::replay
