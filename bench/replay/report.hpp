// The figures of one replay, as a table for people and as JSON for programs.
#pragma once

#include <cairn/runtime.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "bench/replay/compute.hpp"
#include "bench/replay/engine.hpp"
#include "bench/replay/options.hpp"
#include "bench/replay/simulation.hpp"
#include "bench/replay/timeline.hpp"

namespace cairn::replay {

/// Three quantiles of one latency, in microseconds.
struct quantiles {
  double p50 = 0.0;
  double p99 = 0.0;
  double p999 = 0.0;
};

struct replay_figures {
  double seconds = 0.0;  ///< real time
  std::uint64_t seen_tokens = 0;
  simulation_figures run;
  unaided_figures unaided;
  engine_counts pool;
  compute_figures compute;
  std::vector<stream_stats> streams;
  overlap_figures overlap;
  quantiles submit;
  quantiles store;
  quantiles restore;

  /// What does not add up, one line each; empty when the ledger closes.
  [[nodiscard]] std::vector<std::string> broken_books(std::uint32_t units,
                                                      std::uint32_t image_units) const;
  [[nodiscard]] double token_hit_rate() const noexcept;
};

quantiles quantiles_of(const latency_histogram& from);
void write_table(std::ostream& to, const replay_options& opts, const replay_figures& figures);
void write_json(std::ostream& to, const replay_options& opts, const replay_figures& figures);

}  // namespace cairn::replay
