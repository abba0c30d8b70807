// Scenes on sums that threads keep apart.
#include "runtime/spread_sum.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

/// One adds, and only behind that another one, of another part, takes the same away: whoever reads
/// a steady sum finds no less than there was all the time.
struct sum_steady {
  static constexpr std::uint32_t threads = 3;
  detail::spread_sum sum;
  quiet_word<bool> added;

  sum_steady() { sum.add(1); }
  void run(std::uint32_t t) {
    if (t == 0) {
      sum.add(1);
      added.set(true);
    } else if (t == 1) {
      if (added.get()) sum.add(-1);
    } else {
      const std::int32_t read = sum.steady_sum();
      require(read == 1 || read == 2, "a sum that there never was");
    }
  }
  void judge() {
    require(sum.sum() == sum.steady_sum() && sum.sum() >= 1, "the sums differ at rest");
  }
};
const bool sum_steady_added = add_part<sum_steady>("sum-steady");

}  // namespace

}  // namespace cairn::explore
