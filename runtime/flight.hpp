// How many threads are submitting to a runtime and how many reports are still to come, and
// whether anybody may enter. Knows nothing of what is submitted.
//
// One word holds everything, so that "open" and "entered" cannot come apart:
//
//   reports : 40     accepted ops times ranks, less what has been reported
//   submitters : 20  threads between enter and leave
//   closed : 1       no more entries, for ever
//   over : 1         nobody will come to look at reports any more
//
// A submitter enters by adding itself and looks at the word that it changed: if `closed` was
// set before, it leaves again and has done nothing. A closing thread sets the bit by a
// read-modify-write: every submitter either entered before, and is counted until it has handed
// its op to all ranks, or sees the bit. So when the count has fallen to zero after the bit was
// set, nobody is between "accepted" and "enqueued", and nobody will be.
//
// `over` ends a different race. A report is put somewhere and then counted here; the closing thread
// sets `over` and then looks for reports for the last time. Both change this word: either the
// closing thread's change is later, and it acquires what was put, or the report's is later, and
// the reporter learns that it has to see to its report itself.
//
//   from -> to                     who                      by
//   submitters + 1                 a submitter              enter (4); by leave if it was closed
//   submitters - 1                 the same, handed over    leave (1)
//   reports + ranks                a submitter inside       accept
//   reports - 1                    a rank's copy thread     reported (2)
//   open -> closed                 who closes, any thread   close (5)
//   closed -> over                 the same                 finish (5)
//
// Orders: every change is a read-modify-write. (1) leaving and (2) reporting release, (3)
// waiting acquires: who sees the counts at zero sees all that was done before. Reports of an op
// are announced before its first enqueue, so the count cannot run below zero.
#pragma once

#include <cairn/backend.hpp>
#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class flight {
 public:
  /// False when closed: the caller is not inside. Wait-free.
  [[nodiscard]] bool enter() noexcept {
    // (4) acquire: pairs with (5); who is refused comes after the call of close.
    const std::uint64_t before = word_.fetch_add_acquire(one_submitter);
    if ((before & closed_bit) == 0) return true;
    leave();
    return false;
  }
  void leave() noexcept {
    const std::uint64_t after =
        word_.fetch_sub_acq_rel(one_submitter) - one_submitter;  // (1) acq_rel: pairs with (3), (5)
    if ((after & closed_bit) != 0 && submitters_of(after) == 0) bell_.ring();
  }
  /// Announces `reports` to come. Only inside. Relaxed: the queue hands the op on.
  void accept(std::uint32_t reports) noexcept { word_.fetch_add_relaxed(reports); }
  /// One has come. True when it is over: the caller sees to what it has put.
  bool reported() noexcept {
    const std::uint64_t after = word_.fetch_sub_acq_rel(1) - 1;  // (2) acq_rel: pairs with (3), (5)
    if (reports_of(after) == 0) bell_.ring();
    return (after & over_bit) != 0;
  }
  /// Something was put that is no report. True when it is over, as for reported.
  [[nodiscard]] bool noted() noexcept {
    return (word_.fetch_add_acq_rel(0) & over_bit) != 0;  // (2)
  }
  // (5) acq_rel: pairs with (1), (2), (4). Acquires what was put before a report that is counted.
  void close() noexcept { word_.fetch_or_acq_rel(closed_bit); }
  void finish() noexcept { word_.fetch_or_acq_rel(over_bit); }

  // (3) acquire: pairs with (1) and (2)
  [[nodiscard]] bool quiet() const noexcept { return reports_of(word_.load_acquire()) == 0; }
  [[nodiscard]] bool vacated() const noexcept { return submitters_of(word_.load_acquire()) == 0; }

  /// Rung when `quiet` may have become true, or `vacated` after close.
  [[nodiscard]] doorbell& bell() noexcept { return bell_; }

 private:
  static constexpr std::uint64_t one_submitter = std::uint64_t{1} << 40;
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 60;
  static constexpr std::uint64_t over_bit = std::uint64_t{1} << 61;
  static constexpr std::uint64_t reports_of(std::uint64_t w) noexcept {
    return w & (one_submitter - 1);
  }
  static constexpr std::uint64_t submitters_of(std::uint64_t w) noexcept {
    return (w & (closed_bit - 1)) / one_submitter;
  }

  alignas(sync::cache_line) sync::atomic<std::uint64_t> word_{0};
  doorbell bell_;
};

/// Inside for the length of a scope.
class flight_guard {
 public:
  explicit flight_guard(flight& in) noexcept : flight_(in), inside_(in.enter()) {}
  ~flight_guard() {
    if (inside_) flight_.leave();
  }
  flight_guard(const flight_guard&) = delete;
  flight_guard& operator=(const flight_guard&) = delete;
  [[nodiscard]] bool inside() const noexcept { return inside_; }

 private:
  flight& flight_;
  bool inside_;
};

}  // namespace cairn::detail
