// The benchmark's own kernels. No lane depends on another. Compiled by the platform's device
// compiler, and as plain C++ for the test double of the runtime.
#include "bench/device/kernels.hpp"

#include "bench/replay/atomic_word.hpp"
#include "bench/replay/pattern.hpp"

namespace cairn::bench {
namespace {

template <class Work>
hipError_t launch_any(void (*kernel)(Work), const Work& work, std::uint32_t groups,
                      hipStream_t on) {
  void* arguments[] = {const_cast<Work*>(&work)};  // read, and copied by the launch
  return hipLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(groups), dim3(group_threads),
                         arguments, 0, on);
}

}  // namespace

__global__ void fill_memory(fill_work work) {
  const std::uint64_t lanes = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t words = (work.bytes + 7) / 8;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += lanes)
    replay::write_pattern_word(work.to, work.bytes, work.seed, i);
}

__global__ void compare_ends(compare_work work) {
  const std::uint64_t total = std::uint64_t{work.images} * work.tables.tiles_per_image;
  unsigned long long differing = 0;
  for (std::uint64_t i = blockIdx.x; i < total; i += gridDim.x) {
    const std::uint64_t image = i / work.tables.tiles_per_image;
    const copy_span span = work.tables.tiles[i % work.tables.tiles_per_image];
    const std::uint32_t* const named =
        work.words + image * words_per_image(work.tables.units_per_image);
    const tile_ends ends = locate(span, copy_kind::store, work.tables.regions, work.tables.segments,
                                  named[0] & ~store_bit, named + 1);
    for (std::uint64_t at = threadIdx.x; at < span.bytes; at += blockDim.x)
      if (ends.to[at] != ends.from[at]) ++differing;
  }
  if (differing != 0) replay::add_to(work.differing, differing);
}

__global__ void burn_cycles(burn_work work) {
  // Four chains that do not wait for each other keep the arithmetic units busy.
  float a = static_cast<float>(threadIdx.x);
  float b = a + 1.0F;
  float c = a + 2.0F;
  float d = a + 3.0F;
  for (std::uint64_t i = 0; i < work.turns; ++i) {
    a = a * 0.9999F + 0.5F;
    b = b * 0.9998F + 0.5F;
    c = c * 0.9997F + 0.5F;
    d = d * 0.9996F + 0.5F;
  }
  if (a + b + c + d == work.never) *work.sink = a;
}

__global__ void stream_memory(stream_work work) {
  const std::uint64_t lanes = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint32_t pass = 0; pass < work.passes; ++pass)
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < work.count;
         i += lanes)
      work.to[i] = work.a[i] + work.b[i];
}

hipError_t launch(const fill_work& work, std::uint32_t groups, hipStream_t on) {
  return launch_any(&fill_memory, work, groups, on);
}
hipError_t launch(const compare_work& work, std::uint32_t groups, hipStream_t on) {
  return launch_any(&compare_ends, work, groups, on);
}
hipError_t launch(const burn_work& work, std::uint32_t groups, hipStream_t on) {
  return launch_any(&burn_cycles, work, groups, on);
}
hipError_t launch(const stream_work& work, std::uint32_t groups, hipStream_t on) {
  return launch_any(&stream_memory, work, groups, on);
}

}  // namespace cairn::bench
