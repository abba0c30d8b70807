// The work of one host stream: a ring of items and whoever runs them, one after another. A lane
// outlives its stream, because events name positions on it; the next stream reuses it, and its
// tickets go on counting. Knows no device and no owner.
//
// Who runs the items: the stream's thread (run_until_closed), or in manual mode the caller of
// step. There is one consumer at a time.
//
// An event that is recorded where nothing is left to run has fired, and needs no item: it takes the
// place of the last one, and no stream's thread is woken for it. Not in manual mode, where nothing
// happens but by step.
//
// Sleeping: producers ring `work_` after showing an item; the thread reads work_.seen() before
// it looks at the ring, so a ring in between is not missed. A lane that waits for another sleeps
// on that lane's `fired_`, rung after each record item is over.
#pragma once

#include <cairn/backend.hpp>
#include <cstdint>
#include <variant>

#include "runtime/host_copy.hpp"
#include "runtime/host_event.hpp"
#include "runtime/sync.hpp"
#include "runtime/work_ring.hpp"

namespace cairn::detail {

class host_lane {
 public:
  /// `depth` items at most; `budget` null: batches run in one thread; `stepped`: manual mode.
  host_lane(std::uint32_t index, std::uint32_t depth, helper_budget* budget, bool stepped);
  host_lane(const host_lane&) = delete;
  host_lane& operator=(const host_lane&) = delete;

  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }

  // Any thread; lock-free; false when the lane is full.
  [[nodiscard]] bool record(event_core& what) noexcept;
  [[nodiscard]] bool wait(host_lane& other, std::uint64_t ticket) noexcept;
  [[nodiscard]] bool copy(const host_batch& batch) noexcept;
  [[nodiscard]] bool call(void (*function)(void*), void* context) noexcept;

  /// What has become of a record item of this lane. Wait-free.
  [[nodiscard]] event_state query(std::uint64_t ticket) const noexcept;
  /// Sleeps until the item is over or was discarded.
  void sleep_past(std::uint64_t ticket) noexcept;

  // The consumer.
  /// Runs items until close was called and nothing is left.
  void run_until_closed() noexcept;
  /// Runs the front item if its wait is satisfied; false when there is nothing to run.
  bool step() noexcept;
  /// Drops what was not run: its events have failed, waits for them pass.
  void discard() noexcept;

  /// No more items will come; the thread ends after those that are there.
  void close() noexcept;
  /// Undoes close, for the next stream. Relaxed: no thread runs.
  void reopen() noexcept { closing_.store_relaxed(false); }

  /// For tests: pretend that the stream captures a graph. Relaxed: a wish.
  void set_capturing(bool on) noexcept { capturing_.store_relaxed(on); }
  [[nodiscard]] bool capturing() const noexcept { return capturing_.load_relaxed(); }

 private:
  struct record_work {
    event_core* what;
  };
  struct wait_work {
    host_lane* other;
    std::uint64_t ticket;
  };
  struct call_work {
    void (*function)(void*);
    void* context;
  };
  using work = std::variant<record_work, wait_work, host_batch, call_work>;

  template <class Fill>
  bool push(Fill&& fill) noexcept;
  void run(work& item) noexcept;
  void finish(work& item) noexcept;

  std::uint32_t index_;
  bool stepped_;
  work_ring<work> ring_;
  batch_runner runner_;
  doorbell work_;
  doorbell fired_;
  sync::atomic<bool> closing_{false};
  sync::atomic<bool> discarded_{false};
  sync::atomic<bool> capturing_{false};
};

}  // namespace cairn::detail
