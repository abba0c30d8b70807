// Memory that can be put back: while a scene is built and runs, operator new takes from one block,
// and a schedule begins by copying the block's contents back to what they were when the scene had
// been built. So a schedule costs no construction, and what a schedule leaves behind does not
// matter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::explore {

class arena {
 public:
  static constexpr std::size_t capacity = std::size_t{8} << 20;

  /// Empty; allocations come from here from now on.
  static void open() noexcept;
  /// Remembers the contents.
  static void keep();
  /// Back to what was kept.
  static void rewind() noexcept;
  /// Allocations go to the heap again.
  static void leave() noexcept;
  /// And to the arena again, behind what was taken.
  static void enter() noexcept;

  [[nodiscard]] static bool holds(const void* at) noexcept;
  [[nodiscard]] static std::size_t used() noexcept;
  /// A hash of the contents: pointers, which are the same in each schedule, included.
  [[nodiscard]] static std::uint64_t digest() noexcept;
};

}  // namespace cairn::explore
