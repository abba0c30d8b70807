// The positions of one compute stream that fences name: step -> event. Knows no ops and no slots.
//
// An engine draws a step when it wants a position named: first it enqueues its work, then it draws
// the step, then it calls mark(step), which records an event. So whatever belongs to step s was
// enqueued before any mark of a step >= s recorded its event, and *any event recorded for a step
// >= s covers s*. Three things follow.
//   * Marks may overlap and end out of order. A thread that has marked 6 makes 6 usable although
//     5 is still being recorded: the event of 6 covers both.
//   * Events are few and used again: step s uses event s % positions. When s + positions has taken
//     it over, it covers s as well, only later in the stream.
//   * Waiting for a later position than asked cannot deadlock: every wait, on whatever stream,
//     refers to a recording made before the wait was enqueued, so waits point backwards in time.
//
//   no stream       --attach, the engine, before its first mark-->            its stream
//   covers(p) = c   --mark(s), any caller, s % positions == p and s > c-->    covers(p) = s
//   marked = m      --mark(s), the same caller afterwards, s > m-->           marked = s
//   behind(o) = b   --who has enqueued a wait for o's step s, s > b-->        behind(o) = s
//
// `covers` of a position is raised only after its event was recorded; a resolver reads it first
// and uses the event second, so that it never waits on an event that is not recorded yet, which
// would order nothing. Between the two the event may be recorded again: later, so it still covers.
//
// A stream that waits for step s of another one once runs behind it for good: `behind` spares the
// later waits.
#pragma once

#include <array>
#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class fence_ring {
 public:
  static constexpr std::uint32_t positions = 256;

  struct position {
    event* what = nullptr;
    std::uint64_t covers = 0;  ///< all steps up to this one, at least
  };

  /// Creates the events. Once, before all others.
  result<void> open(device& on);

  void attach(stream& compute) noexcept {
    for (auto& each : behind_) each.store_relaxed(0);  // (1) publishes it
    compute_.store_release(&compute);                  // (1) release: pairs with (7); the stream
  }
  /// Null before attach.
  [[nodiscard]] stream* compute() const noexcept {
    return compute_.load_acquire();  // (7) acquire: pairs with (1)
  }

  /// Names the stream's position now. Lock-free. Precondition: attached, step > 0.
  status mark(device& on, std::uint64_t step) noexcept;
  /// Steps up to this one can be resolved. Wait-free.
  [[nodiscard]] std::uint64_t marked() const noexcept {
    return marked_.load_acquire();  // (4) acquire: pairs with (3)
  }
  /// The same, also for a caller that learned of a step in a way that orders nothing: a
  /// read-modify-write reads the last value there is. Lock-free.
  [[nodiscard]] std::uint64_t marked_latest() noexcept {
    return marked_.fetch_add_acquire(0);  // (6) acquire: pairs with (3)
  }
  /// What is enqueued on this stream from now on runs behind that step of another one, by a wait
  /// that stands on it already. Wait-free.
  [[nodiscard]] bool is_behind(std::uint32_t other, std::uint64_t step) const noexcept {
    return behind_[other].load_acquire() >= step;  // (8) acquire: pairs with (9)
  }
  /// A wait for that step was enqueued on this stream. Lock-free.
  void put_behind(std::uint32_t other, std::uint64_t step) noexcept {
    raise(behind_[other], step);  // (9) release: pairs with (8); the wait is enqueued
  }
  /// An event that covers `step`. Precondition: 0 < step <= a value that marked() has returned
  /// to this thread, or to one that this thread has synchronised with.
  [[nodiscard]] position resolve(std::uint64_t step) const noexcept;

 private:
  struct entry {
    std::unique_ptr<event> what;
    sync::atomic<std::uint64_t> covers{0};
  };

  static void raise(sync::atomic<std::uint64_t>& word, std::uint64_t step) noexcept;

  std::array<entry, positions> ring_;
  std::array<sync::atomic<std::uint64_t>, max_compute_streams> behind_{};
  sync::atomic<stream*> compute_{nullptr};
  alignas(sync::cache_line) sync::atomic<std::uint64_t> marked_{0};
};

}  // namespace cairn::detail
