// A sum to which many threads add and from which they take all the time, and which few of them
// read. It knows nothing of what is counted.
//
// Each thread adds to a part that lies in a line of its own, so that adding takes no line from
// another thread; the sum is that of all parts. It is exact when no call is under way.
//
// What comes and what goes are counted apart, so that both numbers of a part only grow. A single
// look at each part would not do: who is held up between two of them would count, of a thing that
// comes in one part and goes in another again and again, all that went and nothing that came. So a
// reader looks at all that went, then at all that came. What has gone is thus in the sum with all
// that came before it went (2), and the sum is never less than what was there between the looks.
// Then it looks at what went once more. If that has stayed, nothing went meanwhile, and what came
// did so one after another: so many were there at some moment. Else it begins anew, a few times;
// then the sum may be too high, by what came and went during the last of them.
//
// Orders. Numbers in the code:
//  (1) came and went, fetch_add release: pairs with (2). What came before, by whichever thread.
//  (2) went and came, load acquire: pairs with (1). The looks stay in order.
//
// Progress: wait-free.
#pragma once

#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class spread_sum {
 public:
  /// +1 or -1.
  void add(int one) noexcept {
    part& mine = parts_[sync::thread_part()];
    (one > 0 ? mine.came : mine.went).fetch_add_release(1);  // (1)
  }
  /// At least what was there at some moment of the call; that, unless things went all the time.
  [[nodiscard]] std::int64_t sum() const noexcept {
    constexpr int rounds = 4;
    std::uint64_t went = all(&part::went);
    for (int round = 1;; ++round) {
      const std::uint64_t came = all(&part::came);
      const std::uint64_t before = went;
      if (round < rounds && !sync::mutated("sum: what went looked at once"))
        went = all(&part::went);
      if (went == before) return static_cast<std::int64_t>(came - before);
    }
  }

 private:
  using number = sync::atomic<std::uint64_t>;
  struct alignas(sync::cache_line) part {
    number came;
    number went;
  };
  [[nodiscard]] std::uint64_t all(number part::*of) const noexcept {
    std::uint64_t total = 0;
    for (const part& each : parts_) total += (each.*of).load_acquire();  // (2)
    return total;
  }

  part parts_[sync::thread_parts];
};

}  // namespace cairn::detail
