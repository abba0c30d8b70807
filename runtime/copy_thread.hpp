// The copy thread of one copier: the only consumer of its queue and the only user of its copy
// streams. Knows ops, slots, streams and events; not keys, records or other ranks.
//
// A pass:  asked?   whether somebody wants quiet (quiescence)
//          receive  queue -> lanes (order per slot) -> lines of ready ops
//          sweep    when asked to: cancelled ops out of lanes and lines
//          reap     events of batches in flight, in launch order and never before what they ran
//                   behind on a slot -> completions
//          expire   ops whose time is up: those that wait end, those the device has are given up
//          advance  batches described or launched earlier whose event is not recorded yet
//          launch   ready restores, then one batch of ready stores of each sort (below)
//          settle   when asked, and nothing is in flight: quiet from here on
// A pass that was asked launches nothing; it reaps, and it records the events of what was launched.
// Once it is quiet nothing is left to reap or record, and the rest of a pass calls no device.
//
// One batch of stores at a time, so that a restore that comes meanwhile goes before the next.
//
// The order of copies is made of events. An op's lane opens for the next op once its batch's event
// is recorded, and the next op's batch waits on that event unless it runs on the same stream.
//
// A batch waits for the fences of all its ops, and a stream runs one batch after another. So ready
// ops are of two sorts: those that nothing keeps waiting, and those that would wait for compute,
// themselves or behind the last copy on their slot (*late*). No batch is of both sorts; the first
// sort is launched first, and on a stream without late batches if one can take it. Every pass
// launches both sorts; if the first took the last place, the other one has the first turn next
// time, so neither starves the other. No stream is kept free of late batches: where all copies wait
// for compute, which is usual, it would carry nothing.
//
// While it sleeps without a place for one more batch of stores, say, a store that comes does not
// wake it: the event that frees a place does. Nor does an op that stands behind another one on its
// slot: when that one passes, this thread is awake. What wakes it stands in copy_core::hungry, with
// why none that comes meanwhile is missed.
//
// When the device is lost or closing ran out of time the rest is reported at once (`give_up`), and
// an op whose time is up by itself (`expire`). What the device has is reported as unproven; it
// keeps rows, tasks and events until an event proves its batch over, which is reported in its turn.
// A failed event of a lost device proves nothing: such a batch stays as it is until the copier is
// destroyed.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/copy_core.hpp"
#include "runtime/deadline_line.hpp"
#include "runtime/slot_health.hpp"
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
  bool reap_stream(copy_stream& on, bool& held_back) noexcept;
  [[nodiscard]] bool first_on_slots(const copy_batch& batch) noexcept;
  void end_batch(copy_stream& on, copy_batch& batch, bool event_failed) noexcept;
  void count(copy_stream& on, const copy_batch& batch, status code) noexcept;
  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] deadline next_look() const noexcept;
  [[nodiscard]] std::uint32_t wanted() noexcept;
  bool tell_hunger() noexcept;

  // copy_end.cpp: how ops end
  [[nodiscard]] completion about(const copy_op_header& header, status code) const noexcept;
  bool take(std::uint32_t row) noexcept;
  void await_end(std::uint32_t row) noexcept;
  void end_op(std::uint32_t row, status code, bool unproven = false) noexcept;
  void prove(std::uint32_t row) noexcept;
  void refuse(std::uint32_t row, status code) noexcept;
  void release_rows(copy_batch& batch, status code) noexcept;
  status judge(const copy_batch& batch, std::size_t i) noexcept;
  status verify(const copy_batch& batch, std::size_t i) noexcept;
  bool expire() noexcept;
  void expire_handed(const copy_batch& batch, std::int64_t now_ns) noexcept;
  template <class Leaves>
  void end_described(copy_stream& on, status code, Leaves leaves) noexcept;
  void end_described(copy_stream& on, status code) noexcept;
  bool give_up(status never_handed, status handed) noexcept;
  void give_up_handed(const copy_batch& batch, status code) noexcept;

  // copy_launch.cpp: from ready ops to batches in flight
  [[nodiscard]] bool may_push(const copy_stream& on) const noexcept;
  bool advance() noexcept;
  bool launch_ready() noexcept;
  bool launch_sort(copy_kind kind, bool late) noexcept;
  bool sift(copy_kind kind, bool late) noexcept;
  [[nodiscard]] bool is_late(const copy_op_header& header) noexcept;
  [[nodiscard]] bool pending(std::uint32_t compute, std::uint64_t step) noexcept;
  bool describe(copy_stream& on, copy_batch& batch, bool late) noexcept;
  status begin(std::uint32_t row) noexcept;
  bool sound(std::uint32_t row) noexcept;
  bool distinct(const unit_id* ids) noexcept;
  [[nodiscard]] bool marked(const fence_set& fences) noexcept;
  [[nodiscard]] bool marked(std::uint32_t compute, std::uint64_t step) noexcept;
  bool push(copy_stream& on) noexcept;
  bool hand_over(copy_stream& on, copy_batch& batch) noexcept;
  bool record(copy_stream& on, copy_batch& batch) noexcept;
  status put_waits(copy_stream& on, const copy_batch& batch) noexcept;
  [[nodiscard]] bool answers(copy_stream& on, copy_batch& batch) noexcept;

  static constexpr std::uint64_t unknown_sum = 0;
  /// Where no copy has left a checksum: one true sum in 2^64 would be taken for it, and fail.
  static constexpr std::uint64_t no_sum = 0x9d5c3e1a7b24f608;

  /// About the op in a row.
  struct row_note {
    id_run ids = id_run::wrong;
    bool launched = false;  ///< its batch's event is recorded
    bool given_up = false;  ///< reported as unproven
    bool room = false;      ///< given up, and its room is not back yet
  };

  copy_core& core_;
  std::uint32_t hungry_ = every_op;  ///< what core_.hungry holds
  slot_health health_;
  slot_lanes lanes_;
  deadline_line deadlines_;  ///< ops that have not ended
  std::vector<row_note> notes_;
  std::vector<std::uint16_t> stamps_;  ///< per unit: the last op that named it
  std::uint16_t stamp_ = 0;
  std::vector<std::uint64_t> sums_;  ///< per unit: the checksum of the image that begins there
  std::uint64_t passed_[max_compute_streams] = {};  ///< steps known to have passed
  std::uint64_t pending_[max_compute_streams];      ///< the first step found pending in this pass
  std::uint32_t retired_ = 0;                       ///< batches over that somebody still holds
  bool late_first_[2] = {};                         ///< by direction: late ops were passed over
  bool held_ = false;                               ///< this pass was asked for quiet
  bool sweeping_ = false;                           ///< cancelled ops may wait, or come late
  status giving_up_ = status::ok;  ///< what ops that come now end with; ok: they run
};

}  // namespace cairn::detail
