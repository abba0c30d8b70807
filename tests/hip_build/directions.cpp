// The copy of a tile in one direction per kernel, so that kernel_code can tell them apart in the
// code. Never run.
#include "kernels/hip_names.hpp"
#include "kernels/scatter_gather.hpp"

namespace cairn::kernels {

__global__ void only_stores(std::byte* unit, const std::byte* slot, std::uint64_t bytes,
                            std::uint64_t* sums) {
  sums[threadIdx.x] = copy_tile<copy_kind::store>(unit, slot, bytes, 0, threadIdx.x, blockDim.x);
}

__global__ void only_restores(std::byte* slot, const std::byte* unit, std::uint64_t bytes,
                              std::uint64_t* sums) {
  sums[threadIdx.x] = copy_tile<copy_kind::restore>(slot, unit, bytes, 0, threadIdx.x, blockDim.x);
}

}  // namespace cairn::kernels
