// The copy thread of one copier: the only consumer of its queue and the only user of its copy
// streams. Knows ops, slots, streams and events; not keys, records or other ranks.
//
// A pass:  receive  queue -> lanes (order per slot) -> lines of ready ops
//          sweep    when asked to: cancelled ops out of lanes and lines
//          reap     events of batches in flight, in launch order -> completions
//          advance  batches described or launched earlier whose event is not recorded yet
//          launch   ready restores, then one batch of ready stores
// One batch of stores at a time, so that a restore that comes meanwhile goes before the next.
//
// The order of copies is made of events. An op's lane opens for the next op once its batch's event
// is recorded, and the next op's batch waits on that event unless it runs on the same stream.
//
// When the device is lost or closing ran out of time the rest is reported at once (`give_up`).
// Batches that the device has are reported as unproven; they keep their rows, tasks and events
// until an event proves them over. An event of a lost device proves nothing: such a batch stays as
// it is until the copier is destroyed.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

#include "runtime/copy_core.hpp"
#include "runtime/slot_lanes.hpp"

namespace cairn::detail {

class copy_thread {
 public:
  explicit copy_thread(copy_core& core);

  /// One pass; true when anything was done.
  bool pass() noexcept;
  /// Passes until the copier is shut and nothing is left, or until it is told to stop.
  void run() noexcept;

 private:
  // copy_thread.cpp: the pass, from the queue to completions
  bool receive() noexcept;
  bool sweep() noexcept;
  bool reap() noexcept;
  void end_batch(copy_stream& on, copy_batch& batch, bool event_failed) noexcept;
  void count(copy_stream& on, const copy_batch& batch, status code) noexcept;
  void release_rows(copy_batch& batch, status code) noexcept;
  bool take(std::uint32_t row) noexcept;
  void end_op(std::uint32_t row, status code, bool unproven = false) noexcept;
  void refuse(std::uint32_t row, status code) noexcept;
  void end_described(copy_stream& on, status code) noexcept;
  bool give_up(status never_handed, status handed) noexcept;
  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] deadline next_look() const noexcept;

  // copy_launch.cpp: from ready ops to batches in flight
  bool advance() noexcept;
  bool launch_ready() noexcept;
  bool describe(copy_stream& on, copy_batch& batch) noexcept;
  bool sound(std::uint32_t row) noexcept;
  [[nodiscard]] bool marked(const fence_set& fences) noexcept;
  bool push(copy_stream& on) noexcept;
  bool hand_over(copy_stream& on, copy_batch& batch) noexcept;
  bool record(copy_stream& on, copy_batch& batch) noexcept;
  status put_waits(copy_stream& on, const copy_batch& batch) noexcept;
  [[nodiscard]] bool answers(copy_stream& on, copy_batch& batch) noexcept;

  copy_core& core_;
  slot_lanes lanes_;
  std::vector<std::uint32_t> stamps_;  ///< per unit: the last op that named it
  std::uint32_t stamp_ = 0;
  std::uint64_t passed_[max_compute_streams] = {};  ///< steps known to have passed
  std::uint32_t retired_ = 0;                       ///< batches over that somebody still holds
  bool sweeping_ = false;                           ///< cancelled ops may wait, or come late
  status giving_up_ = status::ok;  ///< what ops that come now end with; ok: they run
};

}  // namespace cairn::detail
