// A sum to which many threads add all the time, and which few of them read. It knows nothing of
// what is counted.
//
// Each thread adds to a part that lies in a line of its own, so that adding takes no line from
// another thread; the sum is that of all parts. A part is one word: how often it has changed above,
// its own sum, modulo 2^32, below. Both change by one addition, which makes the word larger by
// about 2^32 whatever is added, so no two values of a part are alike until it has gone round.
//
//   sum          adds up the parts as it comes by. Exact when no call is under way; else each
//                addition counts or not, whatever their order: one that began after another had
//                ended may count without it.
//   steady_sum   again, until two rounds find the same words: each part stayed as it was from the
//                first look at it to the last, so this was the sum between the rounds.
//
// Orders:
//  (1) part, load acquire: a look comes before all looks of the next round.
//
// Progress: add and sum are wait-free, steady_sum lock-free: it repeats when others have added.
#pragma once

#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class spread_sum {
 public:
  // Relaxed: a number on whose strength nothing else is read.
  void add(std::int32_t by) noexcept {
    parts_[sync::thread_part()].word.fetch_add_relaxed(one_change + static_cast<std::uint64_t>(by));
  }
  /// Precondition, of both: the sum fits 32 bits.
  [[nodiscard]] std::int32_t sum() const noexcept {
    std::uint32_t all = 0;
    for (const part& each : parts_)
      all += static_cast<std::uint32_t>(each.word.load_relaxed());  // as above
    return static_cast<std::int32_t>(all);
  }
  [[nodiscard]] std::int32_t steady_sum() const noexcept {
    std::uint64_t seen[sync::thread_parts] = {};
    for (bool first = true;; first = false) {
      bool same = !first;
      std::uint32_t all = 0;
      for (std::uint32_t i = 0; i < sync::thread_parts; ++i) {
        const std::uint64_t now = parts_[i].word.load_acquire();  // (1)
        same = same && now == seen[i];
        seen[i] = now;
        all += static_cast<std::uint32_t>(now);
      }
      if (same || sync::mutated("sum of one round")) return static_cast<std::int32_t>(all);
    }
  }

 private:
  static constexpr std::uint64_t one_change = std::uint64_t{1} << 32;
  struct alignas(sync::cache_line) part {
    sync::atomic<std::uint64_t> word;
  };
  part parts_[sync::thread_parts];
};

}  // namespace cairn::detail
