// A sum to which many threads add all the time, and which few of them read. It knows nothing of
// what is counted.
//
// Each thread adds to a part that lies in a line of its own, so that adding takes no line from
// another thread; the sum is that of all parts. It is exact when no call is under way. While calls
// overlap, each of them is in the sum or not, whatever their order: one that began after another
// had ended may count without it.
//
// Progress: wait-free.
#pragma once

#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class spread_sum {
 public:
  // Relaxed, both: a number on whose strength nothing else is read.
  void add(std::int64_t by) noexcept { parts_[sync::thread_part()].value.fetch_add_relaxed(by); }
  [[nodiscard]] std::int64_t sum() const noexcept {
    std::int64_t all = 0;
    for (const part& each : parts_) all += each.value.load_relaxed();  // as above
    return all;
  }

 private:
  struct alignas(sync::cache_line) part {
    sync::atomic<std::int64_t> value;
  };
  part parts_[sync::thread_parts];
};

}  // namespace cairn::detail
