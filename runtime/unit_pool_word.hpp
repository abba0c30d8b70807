// The 64 bits that say who holds one unit of the pool, as named fields. It knows nothing of
// how units are found: see unit_pool_state.hpp for the transitions.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cairn::detail {

enum class unit_phase : std::uint8_t {
  absent,   ///< not part of the pool now
  spare,    ///< bears nothing: vacant if its bit is set, else reserved or in a call's hand
  cached,   ///< free, bearing a key
  cleared,  ///< free, no key any more: vacant for all others, but kept where it was cached
  live,     ///< held by shares of live KV
  moving,   ///< the source of a move: its share is on the destination already
};

enum class unit_flag : std::uint8_t {
  keyed = 1,       ///< bears the key in its node
  named = 2,       ///< is what the index means by that key; implies keyed
  linked = 4,      ///< its node is in a chain of the index; only the publishing thread changes it
  publishing = 8,  ///< some thread may change key, node and `linked`; at most one at a time
  receiving = 16,  ///< live, the destination of a move; stays live even with no share
};

struct alignas(std::uint64_t) unit_word {
  /// Counts tenancies, and the keys that are given: a word with an old one is never current again.
  /// Shares come and go, and a key may be dropped, under one and the same.
  std::uint32_t generation = 0;
  std::uint16_t shares = 0;
  unit_phase phase = unit_phase::absent;
  std::uint8_t flags = 0;

  static constexpr std::uint16_t shares_max = std::numeric_limits<std::uint16_t>::max();

  [[nodiscard]] constexpr bool has(unit_flag f) const noexcept {
    return (flags & static_cast<std::uint8_t>(f)) != 0;
  }
  [[nodiscard]] constexpr unit_word with(unit_flag f) const noexcept {
    unit_word w = *this;
    w.flags = static_cast<std::uint8_t>(w.flags | static_cast<std::uint8_t>(f));
    return w;
  }
  [[nodiscard]] constexpr unit_word without(unit_flag f) const noexcept {
    unit_word w = *this;
    w.flags = static_cast<std::uint8_t>(w.flags & ~static_cast<std::uint8_t>(f));
    return w;
  }
  [[nodiscard]] constexpr unit_word keyless() const noexcept {
    return without(unit_flag::keyed).without(unit_flag::named);
  }
  [[nodiscard]] constexpr unit_word shared(std::uint32_t by) const noexcept {
    unit_word w = *this;
    w.shares = static_cast<std::uint16_t>(by);
    return w;
  }
  /// Enters another phase; stays in the index's chain, and whoever publishes goes on.
  [[nodiscard]] constexpr unit_word to(unit_phase next) const noexcept {
    unit_word w = *this;
    ++w.generation;
    w.phase = next;
    return w;
  }

  /// For other content: into the phase and shares of `to`, without a key, receiving if `to` is.
  [[nodiscard]] constexpr unit_word taken(const unit_word& to) const noexcept {
    constexpr auto key =
        static_cast<std::uint8_t>(unit_flag::keyed) | static_cast<std::uint8_t>(unit_flag::named);
    constexpr auto receiving = static_cast<std::uint8_t>(unit_flag::receiving);
    unit_word w;
    w.generation = generation + 1;
    w.shares = to.shares;
    w.phase = to.phase;
    w.flags = static_cast<std::uint8_t>((flags & ~key) | (to.flags & receiving));
    return w;
  }

  /// Whether it is free, and so taken by a CAS of the word; vacant units are taken by their bits.
  [[nodiscard]] constexpr bool in_order() const noexcept {
    return phase == unit_phase::cached || phase == unit_phase::cleared;
  }
  /// Whether the index may answer with this unit.
  [[nodiscard]] constexpr bool answers() const noexcept {
    return has(unit_flag::named) && (phase == unit_phase::live || phase == unit_phase::cached);
  }

  friend constexpr bool operator==(const unit_word&, const unit_word&) = default;
};

static_assert(sizeof(unit_word) == 8 && std::is_trivially_copyable_v<unit_word>);
// Compared byte by byte in a CAS; aligned to its size, so that every compiler makes it one access.
static_assert(std::has_unique_object_representations_v<unit_word> &&
              std::atomic<unit_word>::is_always_lock_free);

}  // namespace cairn::detail
