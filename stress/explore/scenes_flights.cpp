// Scenes on submitters who are inside, reports that are to come, and who closes.
#include <array>
#include <atomic>

#include "runtime/completion_ring.hpp"
#include "runtime/flight.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

/// Submitters enter, a closer waits until they have left, then looks at what they did.
struct flight_close {
  static constexpr std::uint32_t threads = 3;
  detail::flight in;
  std::array<std::uint64_t, 2> did{};  // plain
  std::array<quiet_word<bool>, 2> inside;

  void run(std::uint32_t t) {
    if (t < 2) {
      const detail::flight_guard guard(in);
      if (!guard.inside()) return;
      inside[t].set(true);
      in.accept(1);
      if (in.reported()) fail("nobody has finished");
      did[t] = 1;
      inside[t].set(false);
      return;
    }
    in.close();
    for (;;) {
      const std::uint32_t seen = in.bell().seen();
      if (in.vacated()) break;
      in.bell().wait(seen, deadline(std::chrono::hours(100)));
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      require(!inside[i].get(), "a submitter is inside after the closer saw none");
      if (volatile std::uint64_t seen = did[i]; seen > 1) fail("impossible");
    }
    require(in.quiet(), "submitters have left and a report is missing");
    require(!in.enter(), "a closed flight lets somebody in");
  }
  void judge() { require(in.vacated() && in.quiet(), "somebody is still inside"); }
};
const bool flight_close_added = add_part<flight_close>("flight-close", true);

/// A report that comes while the closer looks for the last time is seen by one of them.
struct flight_over {
  static constexpr std::uint32_t threads = 3;
  detail::flight in;
  detail::completion_ring ring{2};
  sync::atomic<std::uint32_t> applying{0};
  std::uint32_t applied = 0;  // plain: one applies at a time

  flight_over() { in.accept(2); }
  void apply() {
    if (applying.fetch_add_acq_rel(1) != 0) return;
    std::uint32_t served = 1;
    do {
      detail::completion_ring::item out;
      while (ring.take(out)) ++applied;
    } while (!applying.cas_acq_rel(served, 0));
  }
  void run(std::uint32_t t) {
    if (t < 2) {
      ring.put({});
      if (in.reported()) apply();
      return;
    }
    in.finish();
    apply();
  }
  void judge() { require(applied == 2, "a report was applied by nobody"); }
};
const bool flight_over_added = add_part<flight_over>("flight-over");

}  // namespace

}  // namespace cairn::explore
