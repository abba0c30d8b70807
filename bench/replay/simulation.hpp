// The replay in virtual time: requests arrive, wait for a place, are admitted, computed chunk by
// chunk and decoded, while threads call the engine. Knows the engine only by its interface.
#pragma once

#include <atomic>
#include <cstdint>

#include "bench/replay/engine.hpp"
#include "bench/replay/placement.hpp"
#include "bench/replay/trace.hpp"

namespace cairn::replay {

struct simulation_options {
  std::uint32_t threads = 1;
  std::uint32_t live = 32;        ///< requests in flight
  std::uint32_t slots = 32;       ///< >= live
  std::uint32_t kv_units = 0;     ///< that live KV can ever have
  std::uint32_t image_units = 0;  ///< per checkpoint
  std::uint32_t chunk_tokens = 8192;
  double prefill_rate = 8000.0;  ///< tokens/s of one request
  double decode_rate = 60.0;
  placement_rules place;
};

/// What happened, in requests, tokens and virtual time. A request counts at its first
/// admission; what preemption made it compute again is counted apart.
struct simulation_figures {
  std::uint64_t requests = 0;   ///< ran to their end
  std::uint64_t refused = 0;    ///< larger than the pool
  std::uint64_t preempted = 0;  ///< runs cut short
  std::uint64_t cold = 0;       ///< admitted without their checkpoint, for want of room
  std::uint64_t failed_restores = 0;
  std::uint64_t total_tokens = 0;
  std::uint64_t kv_hit_tokens = 0;   ///< KV that was there
  std::uint64_t wanted_tokens = 0;   ///< of these, what a hit may cover
  std::uint64_t resumed_tokens = 0;  ///< of these, what a checkpoint made usable
  std::uint64_t output_tokens = 0;
  std::uint64_t computed_tokens = 0;  ///< prompt tokens, all runs
  std::uint64_t restores = 0;
  std::uint64_t boundaries = 0;  ///< filed
  std::uint64_t chunks = 0;
  std::uint64_t chunk_cuts = 0;     ///< chunks that a placement made shorter
  std::int64_t end_us = 0;          ///< virtual time of the last event
  std::int64_t first_token_us = 0;  ///< arrival to the end of the prompt, all requests
};

/// Read by a progress line while the simulation runs.
struct simulation_progress {
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::int64_t> now_us{0};
};

/// Replays `from` to its end. `compute` may be null (no device). Rethrows the first exception
/// of any thread.
simulation_figures simulate(const trace& from, const simulation_options& opts, engine& on,
                            forward* compute, simulation_progress* progress = nullptr);

/// Virtual time of the same trace when nothing can be resumed: every prompt is computed whole.
struct unaided_figures {
  std::int64_t end_us = 0;
  std::int64_t first_token_us = 0;
};
unaided_figures without_checkpoints(const trace& from, const simulation_options& opts);

}  // namespace cairn::replay
