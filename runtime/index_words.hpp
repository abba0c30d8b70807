// The words of the index: an edge (which node comes next, in which of its lives), the head of a
// bucket, the link of a node; and the hash that chooses bucket and print. No atomics here.
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cstdint>

namespace cairn::detail {

/// Both halves count: either may be a small sequential number.
inline std::uint64_t hash_of(const checkpoint_key& key) noexcept {
  // The finaliser of SplitMix64 (Steele, Lea, Flood 2014), once over each half.
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  };
  return mix(key.lo + mix(key.hi + 0x9e3779b97f4a7c15ULL));
}

/// Eight bits of the hash that the bucket does not use.
inline std::uint8_t print_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint8_t>(hash >> 56);
}

/// Names the next node of a chain: 48 bits, the low ones of a head and of a link alike.
struct edge {
  static constexpr std::uint32_t no_id = (1U << 24) - 1;
  static constexpr std::uint16_t life_mask = (1U << 15) - 1;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;

  std::uint32_t id = no_id;  ///< 24 bits; no_id: the chain ends
  std::uint8_t print = 0;    ///< of that node's key
  std::uint16_t life = 0;    ///< 15 bits: how often that node had been inserted, this time included
  bool last = false;         ///< that node had no successor from the beginning

  [[nodiscard]] bool ends() const noexcept { return id == no_id; }
  [[nodiscard]] std::uint64_t pack() const noexcept {
    return std::uint64_t{id} | std::uint64_t{print} << 24 | std::uint64_t{life} << 32 |
           std::uint64_t{last} << 47;
  }
  static edge unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & no_id), static_cast<std::uint8_t>(word >> 24),
            static_cast<std::uint16_t>(word >> 32 & life_mask), (word >> 47 & 1) != 0};
  }
  /// `word`, a head or a link, with another edge.
  static std::uint64_t replace(std::uint64_t word, const edge& by) noexcept {
    return (word & ~mask) | by.pack();
  }
};

/// The head of a bucket.
struct head_word {
  edge first;
  std::uint16_t version = 0;  ///< counts insertions into the bucket

  [[nodiscard]] std::uint16_t next_version() const noexcept {
    // A period of 65,535: with the 32,768 of a node's lives a head comes back after 2^31
    // insertions.
    return static_cast<std::uint16_t>((version + 1U) % 0xffff);
  }
  [[nodiscard]] std::uint64_t pack() const noexcept {
    return first.pack() | std::uint64_t{version} << 48;
  }
  static head_word unpack(std::uint64_t word) noexcept {
    return {edge::unpack(word), static_cast<std::uint16_t>(word >> 48)};
  }
};

/// The link of a node.
struct link_word {
  static constexpr std::uint64_t erased_bit = std::uint64_t{1} << 63;

  edge next;
  std::uint16_t life = 0;  ///< 15 bits: the node's own
  bool erased = false;     ///< nobody changes the link any more

  [[nodiscard]] std::uint16_t next_life() const noexcept {
    return static_cast<std::uint16_t>((life + 1U) & edge::life_mask);
  }
  [[nodiscard]] std::uint64_t pack() const noexcept {
    return next.pack() | std::uint64_t{life} << 48 | (erased ? erased_bit : 0);
  }
  static link_word unpack(std::uint64_t word) noexcept {
    return {edge::unpack(word), static_cast<std::uint16_t>(word >> 48 & edge::life_mask),
            (word & erased_bit) != 0};
  }
};

}  // namespace cairn::detail
