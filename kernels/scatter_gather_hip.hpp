// The copy kernels of GPUs, and how they are launched. A batch names its images by words: for each
// image the slot and the direction, then its unit ids. Everything else lies on the device already.
// Knows no streams' order, no events and no staging.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>

#include "kernels/copy_span.hpp"
#include "kernels/hip_names.hpp"
#include "kernels/image_words.hpp"
#include "kernels/scatter_gather.hpp"

namespace cairn::kernels {

/// What the device holds of a plan and of one rank's addresses.
struct copy_tables {
  const copy_span* tiles = nullptr;
  const strided* regions = nullptr;
  const strided* segments = nullptr;
  std::uint32_t tiles_per_image = 0;
  std::uint32_t units_per_image = 0;
};

/// Where the checksums of a launch come together. One board serves one stream's launches, one after
/// another; each leaves it as it found it, all zeros.
struct sum_board {
  unsigned long long* sums = nullptr;  ///< device memory, one per image of the largest launch
  unsigned* waves_done = nullptr;      ///< device memory
};
/// Images of one launch that sums.
inline constexpr std::uint32_t board_images = 1024;
inline constexpr std::size_t board_bytes = (board_images + 1) * sizeof(unsigned long long);

/// Arguments of a kernel hold at most 4,096 bytes on every platform.
inline constexpr std::uint32_t inline_words = 990;

/// A batch whose words travel with the launch.
struct inline_batch {
  copy_tables tables;
  sum_board board;
  std::uint64_t* checksums = nullptr;  ///< mapped memory, one per image; null: none wanted
  std::uint32_t images = 0;
  std::uint32_t words[inline_words];
};
static_assert(sizeof(inline_batch) <= 4096);

/// A batch whose words lie in device memory, written by earlier work of the stream.
struct staged_batch {
  copy_tables tables;
  sum_board board;
  std::uint64_t* checksums = nullptr;  ///< as above
  std::uint32_t images = 0;
  const std::uint32_t* words = nullptr;
};

/// Threads of a work group; a multiple of every wave size in use, which the kernels do not know.
inline constexpr std::uint32_t group_threads = 256;

/// Enqueue a batch with at most `groups` work groups (never more than it has tiles). Preconditions:
/// the stream's device is current; images > 0; every slot and unit is in range.
hipError_t launch_copy(const inline_batch& batch, std::uint32_t groups, hipStream_t on);
hipError_t launch_copy(const staged_batch& batch, std::uint32_t groups, hipStream_t on);

/// Whether the current device can run the kernels: an error where none of what they were compiled
/// for is its architecture. Here, because only the device compiler knows what a kernel is called.
hipError_t find_kernels();

/// The kernels themselves; one-dimensional grids of group_threads.
__global__ void copy_inline_batch(CAIRN_KERNEL_ARGUMENT inline_batch batch);
__global__ void copy_staged_batch(CAIRN_KERNEL_ARGUMENT staged_batch batch);

}  // namespace cairn::kernels
