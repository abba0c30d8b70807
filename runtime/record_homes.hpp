// Which record a key should have: its home, which the key's hash names. Whoever expects a record to
// be there looks at its home first and reads one cache line, where the index would have him read a
// bucket and then, by what stands there, the record. Knows no records, only their numbers.
//
// There are more records than can be in use at once, so that most homes are vacant when a store
// comes. One whose key's home is taken gets a record of the strays, the lowest numbers; when none
// of those is left, somebody else's home. A key so placed is found by the index alone.
#pragma once

#include <algorithm>
#include <cairn/types.hpp>
#include <cstdint>

namespace cairn::detail {

class record_homes {
 public:
  /// `live`: how many records can be in use at once.
  explicit record_homes(std::uint32_t live) noexcept {
    if (live <= small) {
      // Such a table lies in the nearest cache anyhow. One home for all: no number is idle, and in
      // tests one record is the home of many keys.
      strays_ = live;
      homes_ = 1;
    } else {
      strays_ = live / 8;
      homes_ = std::min(2 * live, max_index - strays_);
    }
  }
  /// How many records there are: at least `live`, at most max_index.
  [[nodiscard]] std::uint32_t records() const noexcept { return strays_ + homes_; }
  /// The home of the key with this hash.
  [[nodiscard]] std::uint32_t of(std::uint64_t hash) const noexcept {
    return strays_ + static_cast<std::uint32_t>((hash & 0xffff'ffff) * homes_ >> 32);
  }

 private:
  static constexpr std::uint32_t small = 64;

  std::uint32_t strays_;
  std::uint32_t homes_;
};

}  // namespace cairn::detail
