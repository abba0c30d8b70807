// The copy of one tile: where its two ends lie, and a body that a group of lanes (a GPU's
// work group; one CPU thread is a group of one) runs together. One source for every platform.
// Knows no streams, batches or threads; reads and writes no byte outside the tile.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/copy_span.hpp"

#if defined(__HIPCC__) || defined(__CUDACC__)
#define CAIRN_KERNEL_FN __host__ __device__ inline
#else
#define CAIRN_KERNEL_FN inline
#endif

namespace cairn::kernels {

/// Piece `id` of a strided array. The plan's checks keep the product within 63 bits.
CAIRN_KERNEL_FN std::byte* piece_at(const strided& array, std::uint32_t id) noexcept {
  return array.base + static_cast<std::int64_t>(id) * array.stride;
}

struct tile_ends {
  std::byte* to;
  const std::byte* from;
};

/// The addresses of one tile for an op that names `slot` and `units`.
CAIRN_KERNEL_FN tile_ends locate(const copy_span& tile, copy_kind kind, const strided* regions,
                                 const strided* segments, slot_id slot,
                                 const unit_id* units) noexcept {
  std::byte* const in_slot = piece_at(segments[tile.segment], slot) + tile.segment_offset;
  std::byte* const in_unit = piece_at(regions[tile.region], units[tile.unit]) + tile.region_offset;
  return kind == copy_kind::store ? tile_ends{in_unit, in_slot} : tile_ends{in_slot, in_unit};
}

/// Lane `lane` of `lanes` copies its share of `count` words of `Width` bytes; both ends are
/// aligned to Width.
template <std::size_t Width>
CAIRN_KERNEL_FN void copy_words(std::byte* to, const std::byte* from, std::uint64_t count,
                                std::uint32_t lane, std::uint32_t lanes) noexcept {
  struct alignas(Width) word {
    std::byte bytes[Width];
  };
  for (std::uint64_t i = lane; i < count; i += lanes) {
    word w;
    std::memcpy(&w, __builtin_assume_aligned(from + i * Width, Width), Width);
    std::memcpy(__builtin_assume_aligned(to + i * Width, Width), &w, Width);
  }
}

/// Head bytes up to an aligned destination, words of Width, tail bytes. The two ends agree
/// modulo Width, so both become aligned together.
template <std::size_t Width>
CAIRN_KERNEL_FN void copy_aligned(std::byte* to, const std::byte* from, std::uint64_t bytes,
                                  std::uint32_t lane, std::uint32_t lanes) noexcept {
  const std::uint64_t misalignment = reinterpret_cast<std::uintptr_t>(to) % Width;
  std::uint64_t head = (Width - misalignment) % Width;
  if (head > bytes) head = bytes;
  const std::uint64_t words = (bytes - head) / Width;
  const std::uint64_t tail = head + words * Width;
  copy_words<1>(to, from, head, lane, lanes);
  copy_words<Width>(to + head, from + head, words, lane, lanes);
  copy_words<1>(to + tail, from + tail, bytes - tail, lane, lanes);
}

/// Copies one tile: 16-byte accesses where the ends agree modulo 16, else the widest on which
/// they do. Every lane of the group calls it with the same first three arguments; together
/// the lanes copy each byte once.
CAIRN_KERNEL_FN void copy_tile(std::byte* to, const std::byte* from, std::uint64_t bytes,
                               std::uint32_t lane, std::uint32_t lanes) noexcept {
  const std::uintptr_t differ =
      reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  if (differ % 16 == 0) {
    copy_aligned<16>(to, from, bytes, lane, lanes);
  } else if (differ % 8 == 0) {
    copy_aligned<8>(to, from, bytes, lane, lanes);
  } else if (differ % 4 == 0) {
    copy_aligned<4>(to, from, bytes, lane, lanes);
  } else if (differ % 2 == 0) {
    copy_aligned<2>(to, from, bytes, lane, lanes);
  } else {
    copy_words<1>(to, from, bytes, lane, lanes);
  }
}

}  // namespace cairn::kernels
