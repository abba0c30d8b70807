// A workload of the shape of real traces, for runs without one: a shared system prompt,
// conversations that grow turn by turn. Equal options give equal traces on every machine.
#pragma once

#include <cstdint>

#include "bench/replay/trace.hpp"

namespace cairn::replay {

struct workload_options {
  std::uint32_t requests = 3000;
  std::uint64_t seed = 1;
  double requests_per_second = 3.4;
};

trace make_workload(const workload_options& opts);

}  // namespace cairn::replay
