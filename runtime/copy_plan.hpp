// Which bytes of a slot meet which bytes of which unit. The plan follows from sizes alone, is
// cut once per layout and is read in opposite directions by store and restore. Knows no
// addresses, ids, devices or threads.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

#include "kernels/copy_span.hpp"

namespace cairn {

/// Every byte of the image lies in exactly one span and in exactly one tile, in image order.
/// Nothing else is named: the rest of the last unit and of the slot is never touched.
struct copy_plan {
  /// Most bytes of a tile: long enough that addresses cost nothing beside the copy, short
  /// enough that a few images keep many workers busy.
  static constexpr std::uint64_t tile_bytes = 64 * 1024;
  /// A geometry that needs more spans or tiles than this is refused.
  static constexpr std::uint64_t max_pieces = std::uint64_t{1} << 24;

  std::vector<copy_span> spans;
  std::vector<copy_span> tiles;
  std::vector<std::uint64_t> region_bytes;  ///< the sizes from which the plan was cut
  std::vector<std::uint64_t> segment_bytes;
  std::uint64_t image_bytes = 0;
  std::uint32_t units = 0;  ///< units per image; the last may be partly filled
};

/// Cuts the plan. Refuses (`invalid`) an invalid layout, a side without pieces, a piece of no
/// bytes, sums that are not the layout's, pieces of one array that overlap or whose addresses
/// do not fit in 63 bits; (`limit`) more than max_pieces. Bases are not looked at.
result<copy_plan> make_copy_plan(const layout& shape, const rank_memory& memory);

/// The spans in pieces of at most `most` bytes each, in image order.
std::vector<copy_span> cut_tiles(const std::vector<copy_span>& spans, std::uint64_t most);

/// Refuses memory that is not of the sizes from which `plan` was cut, or that has a null
/// base: what must hold before an address is computed from the two.
result<void> check_plan_memory(const copy_plan& plan, const rank_memory& memory);

/// Refuses memory in which a byte belongs to two pieces: of two regions, of two segments (slots
/// that are closer together than a slot is long), or of a unit and a slot. Copies of different
/// units and slots run side by side, and of one image piece by piece. Looks at a pair of arrays in
/// constant time, unless they lie among each other with different strides. Precondition:
/// check_plan_memory.
result<void> check_apart(const rank_memory& memory);

}  // namespace cairn
