// Which of many entries has the lowest stamp: a lock-free min tree that leaves out ineligible
// entries.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class order {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// All out; entries are below `capacity`.
  explicit order(std::uint32_t capacity);
  /// Draws the next stamp, from 1.
  std::uint64_t next_stamp() noexcept;
  /// Puts entry `i` at `stamp` (drawn by next_stamp), replacing its place.
  void set(std::uint32_t i, std::uint64_t stamp) noexcept;
  /// Takes entry `i` out.
  void clear(std::uint32_t i) noexcept;
  /// The entry with the lowest stamp, or none. Exact while no set or clear is under way.
  std::uint32_t first() noexcept;
  /// The same by looking at every entry: finds one even while the tree lags behind.
  std::uint32_t first_by_scan() const noexcept;
};

}  // namespace cairn::detail
