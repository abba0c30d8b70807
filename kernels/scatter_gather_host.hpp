// Tile copies for CPUs: the variants that this machine can run, and the fence that must follow
// them. Knows bytes only.
#pragma once

#include <cstddef>
#include <span>

namespace cairn::kernels {

/// Copies `bytes` from one place to another that does not overlap it, at any alignment and
/// length. What it wrote is visible to other threads only after `settle` in the same thread.
using tile_copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

struct tile_copy_variant {
  const char* name;
  tile_copy copy;
};

/// The variants that this CPU can run, the best first; never empty. Under a sanitizer only
/// those whose accesses it can see.
[[nodiscard]] std::span<const tile_copy_variant> tile_copies() noexcept;

/// Orders the non-temporal stores of this thread before its later stores. A release store does
/// not: each worker calls this before it reports a tile.
void settle() noexcept;

}  // namespace cairn::kernels
