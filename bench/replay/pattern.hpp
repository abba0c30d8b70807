// The bytes that a key stands for: a function of key, rank, piece and offset, cheap enough to be
// written and verified whole, by the host and by a device's kernels. Knows nothing of where they
// lie.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/replay/keys.hpp"

namespace cairn::replay {

/// Pieces of one content have patterns of their own, so that swapped pieces are noticed.
enum class piece_kind : std::uint64_t { segment = 1, region = 2 };

CAIRN_ON_DEVICE_TOO inline std::uint64_t pattern_seed(const checkpoint_key& key, rank_id rank,
                                                      piece_kind kind, std::size_t piece) noexcept {
  const std::uint64_t where = (static_cast<std::uint64_t>(kind) << 56) | std::uint64_t{rank} << 32 |
                              static_cast<std::uint64_t>(piece);
  return mixed(key.hi ^ mixed(key.lo ^ mixed(where)));
}

CAIRN_ON_DEVICE_TOO inline std::uint64_t pattern_word(std::uint64_t seed,
                                                      std::uint64_t index) noexcept {
  std::uint64_t x = seed + index * 0x9e3779b97f4a7c15;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  return x ^ (x >> 29);
}

// ---- a word at a time, for kernels: each lane has words of its own ----------------------

/// Writes the pattern's word `index` at its place in a piece of `bytes` at any alignment; the last
/// word may be cut short. Precondition: 8 * index < bytes.
CAIRN_ON_DEVICE_TOO inline void write_pattern_word(std::byte* piece, std::uint64_t bytes,
                                                   std::uint64_t seed,
                                                   std::uint64_t index) noexcept {
  const std::uint64_t word = pattern_word(seed, index);
  std::byte* const to = piece + 8 * index;
  if (bytes - 8 * index >= 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    *reinterpret_cast<std::uint64_t*>(to) = word;
    return;
  }
  for (std::uint64_t i = 0; i < 8 && 8 * index + i < bytes; ++i)
    to[i] = static_cast<std::byte>(word >> (8 * i));
}

/// The place in the piece of the first byte of word `index` that is not the pattern's; `bytes` when
/// all are.
CAIRN_ON_DEVICE_TOO inline std::uint64_t check_pattern_word(const std::byte* piece,
                                                            std::uint64_t bytes, std::uint64_t seed,
                                                            std::uint64_t index) noexcept {
  const std::uint64_t word = pattern_word(seed, index);
  const std::byte* const from = piece + 8 * index;
  if (bytes - 8 * index >= 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0 &&
      *reinterpret_cast<const std::uint64_t*>(from) == word)
    return bytes;
  for (std::uint64_t i = 0; i < 8 && 8 * index + i < bytes; ++i)
    if (from[i] != static_cast<std::byte>(word >> (8 * i))) return 8 * index + i;
  return bytes;
}

// ---- a piece at a time, for the host ----------------------------------------------------

inline void write_pattern(std::byte* to, std::size_t bytes, std::uint64_t seed) noexcept {
  const std::size_t words = bytes / 8;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = pattern_word(seed, i);
    std::memcpy(to + 8 * i, &word, 8);
  }
  const std::uint64_t last = pattern_word(seed, words);
  std::memcpy(to + 8 * words, &last, bytes % 8);
}

inline bool has_pattern(const std::byte* from, std::size_t bytes, std::uint64_t seed) noexcept {
  const std::size_t words = bytes / 8;
  std::uint64_t differences = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + 8 * i, 8);
    differences |= word ^ pattern_word(seed, i);
  }
  const std::uint64_t last = pattern_word(seed, words);
  return differences == 0 && std::memcmp(from + 8 * words, &last, bytes % 8) == 0;
}

}  // namespace cairn::replay
