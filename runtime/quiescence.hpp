// Whether the copy thread may call the device. Knows neither the device nor what is in flight.
//
// Callers ask for quiet and hold it; the copy thread says when it is there. One word:
//
//   holders : 30   calls that asked and have not left: they wait for quiet, or have it
//   quiet : 1      nothing is in flight, and the copy thread calls the device no more
//   over : 1       the copier closes: nobody is quiet any more, for ever
//
//   running    --join, callers-->             asked(1)
//   asked(n)   --join or leave, callers-->    asked(n + 1 or n - 1); running when the last leaves
//   asked(n)   --settle, copy thread-->       quiet(n)
//   quiet(n)   --join or leave, callers-->    quiet(n + 1 or n - 1); running when the last leaves
//   any        --finish, closing thread-->    over: holders still leave, and nothing comes of it
//
// A pass of the copy thread looks once, first (`asked`). If that says no, the pass calls the device
// as it likes, and does not settle, so a caller who asks meanwhile waits for the next pass. If it
// says yes, the pass hands nothing over, and when nothing is in flight any more it settles: the
// last thing that it does. Whatever happened to the word in between (all left, others asked), what
// settle claims is true. The last to leave clears `quiet` in the step that takes him off, so one
// who asks after that waits for the copy thread again.
//
// Orders. Every change is a read-modify-write, so what any of them has released is acquired by all
// who read a later value:
//   * settle releases (2) what the copy thread did with the device, and through it what the copies
//     wrote; a caller who finds `quiet` acquires that (3), also when he came later;
//   * leave releases (4) what its caller did while it was quiet, for instance to memory that a copy
//     will read; a pass that finds nobody there acquires (1) that of all who have left.
// finish releases (5) to (1) and (3), as closing does elsewhere: what the closing thread had done.
#pragma once

#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class quiescence {
 public:
  enum class view : std::uint8_t { running, asked, quiet, over };

  /// The copy thread's, once a pass. True: hand nothing over. Wait-free.
  [[nodiscard]] bool asked() const noexcept {
    const view now = view_of(word_.load_acquire());  // (1) acquire: pairs with (4), (5)
    return now == view::asked || now == view::quiet;
  }
  /// The copy thread's, in a pass that was asked, when nothing is in flight. True when somebody
  /// waits for it. Lock-free.
  bool settle() noexcept {
    std::uint32_t seen = word_.load_relaxed();
    while (view_of(seen) == view::asked)
      if (word_.cas_release(seen, seen | quiet_bit)) return true;  // (2) release: pairs with (3)
    return false;
  }

  /// A caller asks; he leaves in the end, whatever came of it. Relaxed: he looks afterwards.
  void join() noexcept { word_.fetch_add_relaxed(1); }
  [[nodiscard]] view look() const noexcept {
    return view_of(word_.load_acquire());  // (3) acquire: pairs with (2), (5)
  }
  /// Without a join before: nothing happens. Lock-free.
  void leave() noexcept {
    std::uint32_t seen = word_.load_relaxed();
    while ((seen & holder_mask) != 0) {
      const bool last = (seen & holder_mask) == 1;
      const std::uint32_t want = (seen - 1) & (last ? ~quiet_bit : ~std::uint32_t{0});
      if (word_.cas_release(seen, want)) return;  // (4) release: pairs with (1)
    }
  }
  void finish() noexcept { word_.fetch_or_release(over_bit); }  // (5) release: pairs with (1), (3)

 private:
  static constexpr std::uint32_t holder_mask = (std::uint32_t{1} << 30) - 1;
  static constexpr std::uint32_t quiet_bit = std::uint32_t{1} << 30;
  static constexpr std::uint32_t over_bit = std::uint32_t{1} << 31;

  static constexpr view view_of(std::uint32_t word) noexcept {
    if ((word & over_bit) != 0) return view::over;
    if ((word & holder_mask) == 0) return view::running;
    return (word & quiet_bit) != 0 ? view::quiet : view::asked;
  }

  sync::atomic<std::uint32_t> word_{0};
};

}  // namespace cairn::detail
