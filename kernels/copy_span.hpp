// A run of bytes that a copy moves as one piece: the unit of work of every kernel. Knows no
// addresses.
#pragma once

#include <cstdint>

namespace cairn {

/// Image bytes that are contiguous on both sides. A tile has the same shape: it is a span, or
/// a piece of one.
struct copy_span {
  std::uint64_t image_offset = 0;    ///< of the first byte, in the image
  std::uint64_t segment_offset = 0;  ///< of the first byte, in the segment
  std::uint64_t region_offset = 0;   ///< of the first byte, in the region
  std::uint64_t bytes = 0;           ///< never 0
  std::uint32_t segment = 0;         ///< index into rank_memory::segments
  std::uint32_t region = 0;          ///< index into rank_memory::regions
  std::uint32_t unit = 0;            ///< the op's k-th unit, from 0
  friend bool operator==(const copy_span&, const copy_span&) = default;
};

}  // namespace cairn
