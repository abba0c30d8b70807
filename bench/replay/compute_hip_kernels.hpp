// The kernels of compute on a HIP device, and what they are told. The same steps and patterns as on
// the host; verified pieces leave a verdict each. Knows no streams' order and no figures.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>

#include "bench/replay/engine.hpp"
#include "bench/replay/geometry.hpp"
#include "kernels/hip_names.hpp"

namespace cairn::replay {

/// One rank's memory, as it lies on the device.
struct step_tables {
  const strided* regions = nullptr;
  const strided* segments = nullptr;
  const stretch* gaps = nullptr;
  std::byte* slots = nullptr;
  std::uint64_t slot_bytes = 0;
  std::uint32_t region_count = 0;
  std::uint32_t segment_count = 0;
  std::uint32_t gap_count = 0;
  rank_id rank = 0;
};

/// What a piece was found to be: the lowest piece that is wrong, and in it the lowest byte.
using verdict = unsigned long long;
inline constexpr verdict all_right = ~verdict{0};
inline constexpr std::uint32_t verdict_byte_bits = 40;

struct verify_work {
  step_tables tables;
  checkpoint_key from;  ///< of the image, if there is one to verify
  const kv_content* claimed = nullptr;
  /// First the image's, then one per claimed unit; all_right before.
  verdict* verdicts = nullptr;
  slot_id slot = no_slot;
  std::uint32_t claimed_count = 0;
  std::uint32_t continues = 0;
};

struct write_work {
  step_tables tables;
  checkpoint_key to;
  const kv_content* computed = nullptr;
  slot_id slot = no_slot;
  std::uint32_t computed_count = 0;
};

/// Bytes set to one value.
struct set_work {
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t value = 0;
};

/// One byte made wrong.
struct spoil_work {
  std::byte* at = nullptr;
};

hipError_t launch(const verify_work& work, hipStream_t on);
hipError_t launch(const write_work& work, hipStream_t on);
hipError_t launch(const set_work& work, hipStream_t on);
hipError_t launch(const spoil_work& work, hipStream_t on);

__global__ void verify_step(verify_work work);
__global__ void write_step(write_work work);
__global__ void set_bytes(set_work work);
__global__ void spoil_byte(spoil_work work);

}  // namespace cairn::replay
