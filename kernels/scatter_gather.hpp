// The copy of one tile: where its two ends lie, and a body that a group of lanes (a GPU's
// work group; one CPU thread is a group of one) runs together. One source for every platform.
// Knows no streams, batches or threads; reads and writes no byte outside the tile.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/checksum.hpp"
#include "kernels/copy_span.hpp"

namespace cairn::kernels {

/// `Width` bytes that a lane holds between its load and its store.
template <std::size_t Width>
struct word_of;
template <>
struct word_of<1> {
  using type = std::uint8_t;
};
template <>
struct word_of<2> {
  using type = std::uint16_t;
};
template <>
struct word_of<4> {
  using type = std::uint32_t;
};
template <>
struct word_of<8> {
  using type = std::uint64_t;
};
template <>
struct word_of<16> {
#if defined(__HIPCC__)
  using type = std::uint32_t __attribute__((ext_vector_type(4)));
#elif defined(__CUDACC__)
  using type = uint4;
#else
  struct alignas(16) type {
    std::uint64_t halves[2];
  };
#endif
};
template <std::size_t Width>
using word = typename word_of<Width>::type;

/// An access to device memory, aligned to its width. `Kept`: whoever comes next will look for the
/// bytes in the device's cache and should find them there, as on the slot's side. A unit is read
/// again when its bytes have long left the cache, so its side goes around it.
template <bool Kept, std::size_t Width>
CAIRN_KERNEL_FN word<Width> load_word(const std::byte* from) noexcept {
#if defined(__HIP_DEVICE_COMPILE__)
  using global = const __attribute__((address_space(1))) word<Width>;
  if constexpr (Kept) return *(global*)from;
  return __builtin_nontemporal_load((global*)from);
#elif defined(__CUDA_ARCH__)
  if constexpr (Kept) return *reinterpret_cast<const word<Width>*>(from);
  return __ldcs(reinterpret_cast<const word<Width>*>(from));
#else
  word<Width> w;
  std::memcpy(&w, __builtin_assume_aligned(from, Width), Width);
  return w;
#endif
}
template <bool Kept, std::size_t Width>
CAIRN_KERNEL_FN void store_word(std::byte* to, word<Width> w) noexcept {
#if defined(__HIP_DEVICE_COMPILE__)
  using global = __attribute__((address_space(1))) word<Width>;
  if constexpr (Kept) {
    *(global*)to = w;
  } else {
    __builtin_nontemporal_store(w, (global*)to);
  }
#elif defined(__CUDA_ARCH__)
  if constexpr (Kept) {
    *reinterpret_cast<word<Width>*>(to) = w;
  } else {
    __stcs(reinterpret_cast<word<Width>*>(to), w);
  }
#else
  std::memcpy(__builtin_assume_aligned(to, Width), &w, Width);
#endif
}

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

/// Loads that one lane has under way at once: all are issued before the first store waits for one.
inline constexpr std::uint32_t words_in_flight = 4;

/// What a loaded word adds to the image's sum.
CAIRN_KERNEL_FN std::uint64_t sum_of(word<16> w, std::uint64_t image_offset) noexcept {
  std::uint64_t halves[2];
  std::memcpy(halves, &w, sizeof(halves));
  return word_sum(halves[0], image_offset) + word_sum(halves[1], image_offset + 8);
}
CAIRN_KERNEL_FN std::uint64_t sum_of(word<8> w, std::uint64_t image_offset) noexcept {
  return word_sum(w, image_offset);
}

/// Lane `lane` of `lanes` copies its share of `count` words of 8 or 16 bytes; both ends are aligned
/// to Width. Returns what they add to the sum.
template <std::size_t Width, copy_kind Kind>
CAIRN_KERNEL_FN std::uint64_t copy_words(std::byte* to, const std::byte* from, std::uint64_t count,
                                         std::uint64_t image_offset, std::uint32_t lane,
                                         std::uint32_t lanes) noexcept {
  constexpr bool from_slot = Kind == copy_kind::store;
  const std::uint64_t stride = lanes;
  std::uint64_t sum = 0;
  std::uint64_t i = lane;
  for (; i + (words_in_flight - 1) * stride < count; i += words_in_flight * stride) {
    word<Width> w[words_in_flight];
    for (std::uint32_t k = 0; k < words_in_flight; ++k)
      w[k] = load_word<from_slot, Width>(from + (i + k * stride) * Width);
    for (std::uint32_t k = 0; k < words_in_flight; ++k) {
      store_word<!from_slot, Width>(to + (i + k * stride) * Width, w[k]);
      sum += sum_of(w[k], image_offset + (i + k * stride) * Width);
    }
  }
  for (; i < count; i += stride) {
    const word<Width> w = load_word<from_slot, Width>(from + i * Width);
    store_word<!from_slot, Width>(to + i * Width, w);
    sum += sum_of(w, image_offset + i * Width);
  }
  return sum;
}

/// Copies one word of up to 8 bytes in pieces of Width, to which both ends are aligned.
template <std::size_t Width, copy_kind Kind>
CAIRN_KERNEL_FN std::uint64_t copy_pieces(std::byte* to, const std::byte* from, std::uint32_t bytes,
                                          std::uint64_t image_offset) noexcept {
  constexpr bool from_slot = Kind == copy_kind::store;
  constexpr std::uint32_t pieces = 8 / Width;
  word<Width> piece[pieces] = {};
  std::uint64_t whole = 0;
  for (std::uint32_t k = 0; k < pieces; ++k)
    if (k * Width < bytes) piece[k] = load_word<from_slot, Width>(from + k * Width);
  for (std::uint32_t k = 0; k < pieces; ++k) {
    if (k * Width >= bytes) continue;
    store_word<!from_slot, Width>(to + k * Width, piece[k]);
    whole |= static_cast<std::uint64_t>(piece[k]) << (8 * Width * k);
  }
  return word_sum(whole, image_offset);
}

/// The same for a whole tile whose ends agree on no wider access.
template <std::size_t Width, copy_kind Kind>
CAIRN_KERNEL_FN std::uint64_t copy_narrow(std::byte* to, const std::byte* from, std::uint64_t words,
                                          std::uint64_t image_offset, std::uint32_t lane,
                                          std::uint32_t lanes) noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t i = lane; i < words; i += lanes)
    sum += copy_pieces<Width, Kind>(to + i * 8, from + i * 8, 8, image_offset + i * 8);
  return sum;
}

/// Copies one tile: 16-byte accesses where both ends are aligned to 16, else the widest to which
/// they are. Every lane of the group calls it with the same first four arguments; together
/// the lanes copy each byte once, and what they return adds up to the tile's share of the checksum.
template <copy_kind Kind>
CAIRN_KERNEL_FN std::uint64_t copy_tile(std::byte* to, const std::byte* from, std::uint64_t bytes,
                                        std::uint64_t image_offset, std::uint32_t lane,
                                        std::uint32_t lanes) noexcept {
  const std::uintptr_t ends =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const std::uint64_t words = bytes / 8;
  std::uint64_t done = words * 8;
  std::uint64_t sum = 0;
  if (ends % 16 == 0) {
    done = bytes / 16 * 16;
    sum = copy_words<16, Kind>(to, from, bytes / 16, image_offset, lane, lanes);
  } else if (ends % 8 == 0) {
    sum = copy_words<8, Kind>(to, from, words, image_offset, lane, lanes);
  } else if (ends % 4 == 0) {
    sum = copy_narrow<4, Kind>(to, from, words, image_offset, lane, lanes);
  } else if (ends % 2 == 0) {
    sum = copy_narrow<2, Kind>(to, from, words, image_offset, lane, lanes);
  } else {
    sum = copy_narrow<1, Kind>(to, from, words, image_offset, lane, lanes);
  }
  // Up to two words are left, the last one perhaps in part.
  for (std::uint64_t at = done + std::uint64_t{lane} * 8; at < bytes;
       at += std::uint64_t{lanes} * 8)
    sum += copy_pieces<1, Kind>(to + at, from + at,
                                static_cast<std::uint32_t>(bytes - at < 8 ? bytes - at : 8),
                                image_offset + at);
  return sum;
}

}  // namespace cairn::kernels
