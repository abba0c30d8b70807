// The copy kernels of GPUs: a bounded number of work groups, each of which takes every n-th tile of
// the batch. No tile depends on another, and lanes meet only to add up checksums, by whatever size
// a wave has; nothing here assumes that groups run at once. Compiled by the platform's device
// compiler, and as plain C++ for the test double of the runtime.
#include "kernels/scatter_gather_hip.hpp"

#include <algorithm>

namespace cairn::kernels {
namespace {

__device__ inline unsigned long long wave_sum(unsigned long long value) {
  for (int distance = warpSize / 2; distance > 0; distance /= 2)
#if defined(CAIRN_HIP_NVIDIA)
    value += __shfl_xor_sync(~0U, value, distance);
#else
    value += __shfl_xor(value, distance);
#endif
  return value;
}

/// What `value` is in the wave's first lane. All that happened before it in that lane happens
/// before what the others do next: a shuffle alone hands over a register and orders no memory.
__device__ inline unsigned after_first_lane(unsigned value) {
#if defined(CAIRN_HIP_NVIDIA)
  __syncwarp();
  return __shfl_sync(~0U, value, 0);
#elif defined(__HIPCC__)
  // No instructions: a wave's accesses are issued in order. The compiler has to keep them so.
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  const unsigned firsts = __shfl(value, 0);
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  return firsts;
#else
  __syncwarp();
  return __shfl(value, 0);
#endif
}

/// The wave that is the last to come here hands the sums over and clears the board.
///
///   every wave:     additions to sums    (1) fence    count itself (2)
///   the last wave:  count itself (2)     (3) fence    take the sums, clear the count
///
/// A wave's first lane makes its additions and counts it, so (1) puts the wave's additions before
/// its count, and (3) whatever came before a count that (2) has read before what follows. The first
/// lane that finds all waves counted has thus seen all additions, and its wave's other lanes after
/// it.
__device__ inline void publish(const sum_board& board, std::uint64_t* checksums,
                               std::uint32_t images) {
  const auto lanes = static_cast<std::uint32_t>(warpSize);
  const std::uint32_t lane = threadIdx.x % lanes;
  unsigned last = 0;
  if (lane == 0) {
    __threadfence();                                                                 // (1)
    last = atomicAdd(board.waves_done, 1U) + 1 == gridDim.x * (blockDim.x / lanes);  // (2)
    __threadfence();                                                                 // (3)
  }
  if (after_first_lane(last) == 0) return;
  for (std::uint32_t i = lane; i < images; i += lanes)
    checksums[i] = atomicExch(&board.sums[i], 0ULL);
  if (lane == 0) *board.waves_done = 0;
  __threadfence_system();  // checksums lie in the host's memory
}

template <class Batch>
__device__ inline void copy_images(const Batch& batch, const std::uint32_t* words) {
  const copy_tables& tables = batch.tables;
  const std::uint64_t total = std::uint64_t{batch.images} * tables.tiles_per_image;
  const bool first_lane = threadIdx.x % static_cast<std::uint32_t>(warpSize) == 0;
  std::uint64_t sum = 0;
  for (std::uint64_t i = blockIdx.x; i < total; i += gridDim.x) {
    const auto image = static_cast<std::uint32_t>(i / tables.tiles_per_image);
    const copy_span tile = tables.tiles[i % tables.tiles_per_image];
    const std::uint32_t* const named =
        words + std::uint64_t{image} * words_per_image(tables.units_per_image);
    const copy_kind kind = (named[0] & store_bit) != 0 ? copy_kind::store : copy_kind::restore;
    const tile_ends ends =
        locate(tile, kind, tables.regions, tables.segments, named[0] & ~store_bit, named + 1);
    if (kind == copy_kind::store)
      sum += copy_tile<copy_kind::store>(ends.to, ends.from, tile.bytes, tile.image_offset,
                                         threadIdx.x, blockDim.x);
    else
      sum += copy_tile<copy_kind::restore>(ends.to, ends.from, tile.bytes, tile.image_offset,
                                           threadIdx.x, blockDim.x);
    if (batch.checksums == nullptr) continue;
    // Once per image that the group has tiles of.
    const std::uint64_t next = i + gridDim.x;
    if (next < total && next / tables.tiles_per_image == image) continue;
    const unsigned long long whole = wave_sum(sum);
    if (first_lane) atomicAdd(&batch.board.sums[image], whole);
    sum = 0;
  }
  if (batch.checksums != nullptr) publish(batch.board, batch.checksums, batch.images);
}

template <class Batch>
hipError_t launch(void (*kernel)(Batch), const Batch& batch, std::uint32_t groups, hipStream_t on) {
  const std::uint64_t tiles = std::uint64_t{batch.images} * batch.tables.tiles_per_image;
  const auto used = static_cast<std::uint32_t>(std::min<std::uint64_t>(groups, tiles));
  void* arguments[] = {const_cast<Batch*>(&batch)};  // read, and copied by the launch
  return hipLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(used), dim3(group_threads),
                         arguments, 0, on);
}

hipError_t find(const void* kernel) {
  hipFuncAttributes unused;
  return hipFuncGetAttributes(&unused, kernel);
}

}  // namespace

__global__ __launch_bounds__(group_threads) void copy_inline_batch(
    CAIRN_KERNEL_ARGUMENT inline_batch batch) {
  copy_images(batch, batch.words);
}

__global__ __launch_bounds__(group_threads) void copy_staged_batch(
    CAIRN_KERNEL_ARGUMENT staged_batch batch) {
  copy_images(batch, batch.words);
}

hipError_t launch_copy(const inline_batch& batch, std::uint32_t groups, hipStream_t on) {
  return launch(&copy_inline_batch, batch, groups, on);
}

hipError_t launch_copy(const staged_batch& batch, std::uint32_t groups, hipStream_t on) {
  return launch(&copy_staged_batch, batch, groups, on);
}

hipError_t find_kernels() {
  const hipError_t code = find(reinterpret_cast<const void*>(&copy_inline_batch));
  return code != hipSuccess ? code : find(reinterpret_cast<const void*>(&copy_staged_batch));
}

}  // namespace cairn::kernels
