// Which record a key should have: its home, which the key's hash names. Whoever expects a record to
// be there looks at its home first and reads one cache line, where the index would have him read a
// bucket and then, by what stands there, the record. Knows no records, only their numbers.
//
// There are more records than can be in use at once, so that most homes are vacant when a store
// comes. One whose key's home is taken goes next door; if that is taken too, it gets a record of
// the strays, the lowest numbers; when none of those is left, somebody else's home. The home keeps
// the number of the last one who came in vain (guest_word): most of those so placed are found by
// it, the others by the index alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cairn/types.hpp>
#include <cstdint>

namespace cairn::detail {

/// Kept at a home: the record that was last taken for a key which found this home taken. A hint:
/// that record may have another key by now, or none. The print, of the key's hash, spares most
/// others a look at it.
struct alignas(std::uint32_t) guest_word {
  std::uint32_t id : 24 = 0;
  std::uint32_t print : 8 = 0;

  static guest_word of(std::uint32_t id, std::uint8_t its_print) noexcept {
    guest_word made;
    made.id = id & max_id;
    made.print = its_print;
    return made;
  }
  [[nodiscard]] std::uint32_t pack() const noexcept { return std::bit_cast<std::uint32_t>(*this); }
  static guest_word unpack(std::uint32_t word) noexcept { return std::bit_cast<guest_word>(word); }

 private:
  static constexpr std::uint32_t max_id = (1U << 24) - 1;
};

class record_homes {
 public:
  /// `live`: how many records can be in use at once.
  explicit record_homes(std::uint32_t live) noexcept {
    if (live <= small) {
      // Such a table lies in the nearest cache anyhow. One home for all: no number is idle, and in
      // tests one record is the home of many keys.
      strays_ = live;
      homes_ = 1;
      next_ = 0;
    } else {
      // Even, so that the homes are pairs.
      strays_ = live / 16 * 2;
      homes_ = std::min(3 * live / 2 * 2, max_index - strays_);
      next_ = 1;
    }
  }
  /// How many records there are: at least `live`, at most max_index.
  [[nodiscard]] std::uint32_t records() const noexcept { return strays_ + homes_; }
  /// The home of the key with this hash.
  [[nodiscard]] std::uint32_t of(std::uint64_t hash) const noexcept {
    return strays_ + static_cast<std::uint32_t>((hash & 0xffff'ffff) * homes_ >> 32);
  }
  /// The home that shares a pair of cache lines with this one; itself where there is but one.
  [[nodiscard]] std::uint32_t next_to(std::uint32_t home) const noexcept { return home ^ next_; }

 private:
  static constexpr std::uint32_t small = 64;
  static_assert(max_index % 2 == 0);

  std::uint32_t strays_;
  std::uint32_t homes_;
  std::uint32_t next_;
};

}  // namespace cairn::detail
