// The checksum of an image: which 64-bit number a copy leaves for the bytes that it moved. Knows no
// tiles, addresses or directions.
//
// An image is taken as 64-bit little-endian words. Words are counted from the start of the tile
// that holds them (tiles follow from the layout alone, so store and restore count alike); a tile's
// last word is filled with zeros. With o the image offset of a word w's first byte,
//
//   x = w ^ (o * key mod 2^64),   sum += low32(x) * high32(x) + x (mod 2^64)
//
// Sums are added in any order, by any number of workers. The product makes the sum depend on where
// a word stands, so that exchanged, repeated and stale pieces are noticed as well as flipped bits.
// A change d within one half of one word is always noticed: it moves the sum by d * (high + 1) or
// by d * (low + 2^32), neither of which is a multiple of 2^64. The multiply-and-add of halves is
// that of NH (Black et al., UMAC, CRYPTO 1999) with the position in place of a random key: it
// guards against faults, not against an adversary.
#pragma once

#include <cstdint>

#if !defined(CAIRN_KERNEL_FN)
#if defined(__HIPCC__) || defined(__CUDACC__)
#define CAIRN_KERNEL_FN __host__ __device__ inline
#else
#define CAIRN_KERNEL_FN inline
#endif
#endif

namespace cairn::kernels {

/// Odd, and without a pattern: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t position_key = 0x9e3779b97f4a7c15;

/// What one word adds to its image's sum.
CAIRN_KERNEL_FN std::uint64_t word_sum(std::uint64_t word, std::uint64_t image_offset) noexcept {
  const std::uint64_t x = word ^ (image_offset * position_key);
  return (x & 0xffffffffU) * (x >> 32) + x;
}

}  // namespace cairn::kernels
