// What the tests of the replay share: small runs of it, over cairn and over the sequential model.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/replay.hpp"
#include "tests/replay_model_engine.hpp"

namespace cairn::replay {

/// Options as the program would parse them.
inline replay_options parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cairn_replay");
  replay_options opts;
  std::string help;
  EXPECT_TRUE(parse_options(static_cast<int>(arguments.size()), arguments.data(), opts, help));
  return opts;
}

/// What the model makes of the same run, with one thread.
struct model_outcome {
  simulation_figures run;
  engine_counts pool;
};
inline model_outcome replay_on_model(const replay_options& opts, const trace& from) {
  cairn_model::replay_engine model(opts.units, opts.slots, opts.image_units);
  model_outcome out;
  simulation_options alone = opts.simulation();
  alone.threads = 1;
  out.run = simulate(from, alone, model, nullptr);
  model.finish();
  out.pool = model.counts();
  return out;
}

/// Every figure but times, one a line: two runs are equal when these are.
inline std::string written(const simulation_figures& run, const engine_counts& pool) {
  std::string text;
  auto line = [&](const char* name, std::uint64_t value) {
    text += std::string(name) + " " + std::to_string(value) + "\n";
  };
  line("requests", run.requests);
  line("refused", run.refused);
  line("preempted", run.preempted);
  line("cold", run.cold);
  line("failed restores", run.failed_restores);
  line("total tokens", run.total_tokens);
  line("KV hit tokens", run.kv_hit_tokens);
  line("wanted tokens", run.wanted_tokens);
  line("resumed tokens", run.resumed_tokens);
  line("output tokens", run.output_tokens);
  line("computed tokens", run.computed_tokens);
  line("restores", run.restores);
  line("boundaries", run.boundaries);
  line("chunks", run.chunks);
  line("chunk cuts", run.chunk_cuts);
  line("virtual end", static_cast<std::uint64_t>(run.end_us));
  line("first token", static_cast<std::uint64_t>(run.first_token_us));
  line("kept", pool.fates.kept);
  for (std::size_t i = 0; i < pool.fates.dropped.size(); ++i)
    line(to_string(static_cast<drop_reason>(i)), pool.fates.dropped[i]);
  line("evicted", pool.fates.evicted);
  line("orphaned", pool.fates.orphaned);
  line("failed", pool.fates.failed);
  line("cancelled", pool.fates.cancelled);
  line("total", pool.total);
  line("vacant", pool.vacant);
  line("cached", pool.cached);
  line("live", pool.live);
  line("checkpoint", pool.checkpoint);
  line("quarantine", pool.quarantine);
  line("records", pool.records);
  line("unfinished records", pool.unfinished_records);
  return text;
}

/// Nothing was wrong and nothing was left behind.
inline void expect_sound(const replay_options& opts, const trace& from, const replay_outcome& out) {
  EXPECT_EQ(out.figures.compute.mismatches, 0U) << out.figures.compute.first_mismatch;
  EXPECT_THAT(out.figures.broken_books(opts.units, opts.image_units), testing::IsEmpty());
  EXPECT_EQ(out.figures.run.requests + out.figures.run.refused, from.requests.size());
}

}  // namespace cairn::replay
