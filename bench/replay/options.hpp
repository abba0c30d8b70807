// What cairn_replay can be told, and the checks that need no trace. Knows CLI11 in its source
// only.
#pragma once

#include <cstdint>
#include <string>

#include "bench/replay/geometry.hpp"
#include "bench/replay/placement.hpp"
#include "bench/replay/simulation.hpp"
#include "bench/replay/workload.hpp"

namespace cairn::replay {

struct replay_options {
  std::string trace_path;  ///< empty: a generated workload
  workload_options workload;
  std::uint32_t threads = 1;
  std::uint32_t live = 32;
  std::uint32_t slots = 0;  ///< 0: as many as live
  std::uint32_t devices = 1;
  std::string backend = "host";
  std::string geometry_name = "replay";
  std::uint32_t units = 20'000;
  std::string pool = "shared";
  std::uint32_t checkpoint_units = 0;  ///< separate pool only; 0: a quarter of units
  bool link = true;
  std::string place = "anchor,demand";
  std::uint32_t interval_tokens = 8192;
  std::uint32_t chunk_tokens = 8192;
  std::string policy = "lru";
  double prefill_rate = 8000.0;
  double decode_rate = 60.0;
  std::uint64_t spoil_step = 0;  ///< 0: no byte is made wrong
  std::string json_path;
  std::string timeline_path;
  std::string calls_path;

  // What follows from these.
  geometry shape;
  placement_rules rules;
  std::uint32_t image_units = 0;

  /// Units of the pool that live KV comes from.
  [[nodiscard]] bool separate_pool() const noexcept { return pool == "separate"; }
  [[nodiscard]] std::uint32_t kv_units() const noexcept {
    return separate_pool() ? units - checkpoint_units : units;
  }
  [[nodiscard]] simulation_options simulation() const;
};

/// Parses and checks. True: run. False: help was asked for and stands in `help`. Throws
/// bad_input.
bool parse_options(int argc, const char* const* argv, replay_options& into, std::string& help);

}  // namespace cairn::replay
