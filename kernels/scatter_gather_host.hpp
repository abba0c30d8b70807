// Tile copies for CPUs: the variants that this machine can run, and the fence that must follow
// them. Knows bytes only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::kernels {

/// A tile with its addresses: two places that do not overlap, at any alignment and length.
struct placed_tile {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  std::uint64_t image_offset;  ///< of the first byte, in the image
  std::uint64_t* sum;          ///< of its image; read by copy_and_sum alone
};

/// Copies tiles, in any order. What it wrote is visible to other threads only after `settle` in the
/// same thread.
using tiles_copy = void (*)(std::span<const placed_tile> tiles);

struct tiles_copy_variant {
  const char* name;
  tiles_copy copy;
  tiles_copy copy_and_sum;  ///< and adds each tile's share (kernels/checksum.hpp) to its `sum`
};

/// The variants that this CPU can run, the best first; never empty. Under a sanitizer only
/// those whose accesses it can see.
[[nodiscard]] std::span<const tiles_copy_variant> tile_copies() noexcept;

/// Orders the non-temporal stores of this thread before its later stores. A release store does
/// not: each worker calls this before it reports a tile.
void settle() noexcept;

}  // namespace cairn::kernels
