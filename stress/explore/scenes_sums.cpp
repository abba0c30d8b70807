// Scenes on sums that threads keep apart.
#include "runtime/spread_sum.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

/// One adds, only behind that another one, of another part, takes as much away, and only behind
/// that the first adds again: whoever reads the sum finds what there was at some moment.
struct sum_moves {
  static constexpr std::uint32_t threads = 3;
  detail::spread_sum sum;
  quiet_word<std::uint32_t> done;

  sum_moves() { sum.add(1); }
  void run(std::uint32_t t) {
    if (t == 2) {
      const std::int64_t read = sum.sum();
      require(read >= 1, "a sum below what there was all the time");
      require(read <= 2, "a sum above what there ever was");
      return;
    }
    for (std::uint32_t i = t; i < 4; i += 2) {
      if (done.get() != i) static_cast<void>(sum.sum());  // the other's turn may come
      if (done.get() != i) return;
      sum.add(t == 0 ? 1 : -1);
      done.set(i + 1);
    }
  }
  void judge() {
    const std::int64_t odd = done.get() % 2;
    require(sum.sum() == 1 + odd, "the sum is wrong at rest");
  }
};
const bool sum_moves_added = add_part<sum_moves>("sum-moves");

}  // namespace

}  // namespace cairn::explore
