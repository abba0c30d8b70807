// The benchmark's own kernels: content for memory, a comparison of two ends of every span, and the
// neighbours beside which copies run. Knows nothing of what is measured with them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/copy_span.hpp"
#include "kernels/hip_names.hpp"
#include "kernels/scatter_gather_hip.hpp"

namespace cairn::bench {

using namespace cairn::kernels;

/// Writes bytes that follow from `seed` and the place.
struct fill_work {
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t seed = 0;
};

/// Compares the slot's end of every span with the unit's; adds up the bytes that differ.
struct compare_work {
  copy_tables tables;  ///< its tiles are the plan's spans here
  const std::uint32_t* words = nullptr;
  std::uint32_t images = 0;
  unsigned long long* differing = nullptr;
};

/// Arithmetic only: each thread makes `turns` turns. `sink` is never written, but the compiler
/// cannot know.
struct burn_work {
  std::uint64_t turns = 0;
  float never = 0.0F;
  float* sink = nullptr;
};

/// Memory traffic only: to[i] = a[i] + b[i], `passes` times over.
struct stream_work {
  float* to = nullptr;
  const float* a = nullptr;
  const float* b = nullptr;
  std::uint64_t count = 0;
  std::uint32_t passes = 1;
};

hipError_t launch(const fill_work& work, std::uint32_t groups, hipStream_t on);
hipError_t launch(const compare_work& work, std::uint32_t groups, hipStream_t on);
hipError_t launch(const burn_work& work, std::uint32_t groups, hipStream_t on);
hipError_t launch(const stream_work& work, std::uint32_t groups, hipStream_t on);

__global__ void fill_memory(fill_work work);
__global__ void compare_ends(compare_work work);
__global__ void burn_cycles(burn_work work);
__global__ void stream_memory(stream_work work);

}  // namespace cairn::bench
