// The words of the index: an edge (which node comes next, in which of its lives), the head of a
// bucket, the link of a node; and the hash that chooses bucket and print. No atomics here.
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cstdint>

#include "runtime/bit_fields.hpp"

namespace cairn::detail {

/// Both halves count: either may be a small sequential number, and nobody chooses keys to collide.
inline std::uint64_t hash_of(const checkpoint_key& key) noexcept {
  // The halves joined by a product, then the two halves of a longer product laid over each other:
  // keys are hashes themselves, or small numbers in tests. Few instructions, for a search that is
  // begun early waits for memory beside the one before it. (The fold is that of wyhash, Wang Yi
  // 2019; the multipliers are SplitMix64's, Steele, Lea, Flood 2014.)
  __extension__ using product = unsigned __int128;
  const std::uint64_t joined = key.hi * 0xbf58476d1ce4e5b9ULL + key.lo;
  const product folded = static_cast<product>(joined) * 0x94d049bb133111ebULL;
  return static_cast<std::uint64_t>(folded) ^ static_cast<std::uint64_t>(folded >> 64);
}

/// Eight bits of the hash that the bucket does not use.
inline std::uint8_t print_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint8_t>(hash >> 56);
}

/// Names the next node of a chain: 48 bits, the low ones of a head and of a link alike. Bit-fields:
/// what is compared stays in the register that the word was read into.
struct alignas(std::uint64_t) edge {
  static constexpr std::uint32_t no_id = (1U << 24) - 1;
  static constexpr std::uint16_t life_mask = (1U << 15) - 1;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;

  std::uint32_t id : 24 = no_id;  ///< no_id: the chain ends
  std::uint8_t print : 8 = 0;     ///< of that node's key
  std::uint16_t life : 15 = 0;    ///< how often that node had been inserted, this time included
  bool last : 1 = true;         ///< that node had no successor from the beginning; or there is none
  std::uint16_t rest : 16 = 0;  ///< 0

  /// To a node that begins its life number `lives`.
  static edge to(std::uint32_t node, std::uint8_t its_print, std::uint16_t lives,
                 bool is_last) noexcept {
    edge made;
    made.id = node & no_id;
    made.print = its_print;
    made.life = lives & life_mask;
    made.last = is_last;
    return made;
  }
  [[nodiscard]] bool ends() const noexcept { return id == no_id; }
  /// The node has a key with another print, or there is none. Without a branch between: whether a
  /// bucket is empty or holds another key is a toss of a coin, that it is one of the two is not.
  [[nodiscard]] bool differs(std::uint8_t its_print) const noexcept {
    return ((print ^ its_print) | ((id + 1) & ~no_id)) != 0;
  }
  [[nodiscard]] std::uint64_t pack() const noexcept { return std::bit_cast<std::uint64_t>(*this); }
  static edge unpack(std::uint64_t word) noexcept { return std::bit_cast<edge>(word & mask); }
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
  /// Of a link as it stands in the node: the node is in the life that `to` means, and not erased.
  static bool lives(std::uint64_t word, const edge& to) noexcept { return word >> 48 == to.life; }
  static link_word unpack(std::uint64_t word) noexcept {
    return {edge::unpack(word), static_cast<std::uint16_t>(word >> 48 & edge::life_mask),
            (word & erased_bit) != 0};
  }
};

}  // namespace cairn::detail
