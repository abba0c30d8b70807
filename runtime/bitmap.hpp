// A lock-free set of small integers that hands out its lowest member.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class bitmap {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Empty; members are below `capacity`.
  explicit bitmap(std::uint32_t capacity);
  /// Adds `i`, which must not be a member. Publishes the caller's earlier writes to the taker.
  void put(std::uint32_t i) noexcept;
  /// Removes and returns the lowest member; none when a full pass found none.
  std::uint32_t take_lowest() noexcept;
  /// Removes `i`; false when it is not a member.
  bool take(std::uint32_t i) noexcept;
  [[nodiscard]] bool contains(std::uint32_t i) const noexcept;
  [[nodiscard]] std::uint32_t capacity() const noexcept;
  /// Calls f(i) for each member seen in one pass, lowest first.
  template <class F>
  void for_each(F&& f) const;
};

}  // namespace cairn::detail
