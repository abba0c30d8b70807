// The data plane of one device: a bounded queue, a copy thread and its streams. It knows ops,
// not keys: what an op means is the catalog's business.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/metrics.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <span>

namespace cairn {

struct copier_options {
  layout shape;
  rank_memory memory;  ///< this rank's units and slots
  rank_id rank = 0;
  std::uint32_t max_ops = 4096;        ///< op_id::index is below this (the catalog's max_ops)
  std::uint32_t store_depth = 1024;    ///< stores accepted and not ended
  std::uint32_t restore_depth = 1024;  ///< restores accepted and not ended
  std::uint32_t store_streams = 2;
  std::uint32_t restore_streams = 1;  ///< high priority
  std::uint32_t max_batch = 64;       ///< images in one launch
  std::uint32_t compute_streams = 1;  ///< the engine's own, attached before use
  bool threaded = true;               ///< false: the caller runs `pump` instead
  trace_sink* trace = nullptr;        ///< not owned

  /// Called in the copy thread when a rank is about to hand an op to the device; false: the
  /// op was cancelled and is dropped without a completion. Null: the submitter must have called
  /// catalog::take before sending the op, else a cancel could give its units away under the copy.
  bool (*on_take)(void* context, op_id op) = nullptr;
  /// Called in the copy thread after `drop_cancelled`, for ops that wait: true when on_take
  /// would refuse the op. Decides nothing itself. Null: never.
  bool (*on_cancelled)(void* context, op_id op) = nullptr;
  /// Called in the copy thread once for each accepted op that was not dropped by on_take.
  void (*on_completion)(void* context, const completion& what) = nullptr;
  void* context = nullptr;
};

/// What a stream has carried since opening.
struct stream_stats {
  rank_id rank = 0;
  std::uint32_t stream = 0;
  copy_kind kind = copy_kind::store;
  std::uint64_t batches = 0;
  std::uint64_t images = 0;
  std::uint64_t bytes = 0;   ///< image bytes, counted once
  std::int64_t busy_ns = 0;  ///< time in which a batch ran
};

/// Thread-safety: any function by any thread, except where stated. With threaded == false, one
/// thread at a time for all functions that make passes: order_after*, drain, close and pump.
/// Progress: try_room, give_room, enqueue, submit, skip, drop_cancelled, mark are lock-free;
/// order_after* and drain block until their deadline at the latest, close a little longer (see
/// there). No allocation once a thread has made its first submit.
///
/// Order. Ops with a slot_sequence run per slot in the order of these numbers, whatever the
/// order of arrival; every number from 1 on must come, as an op or through `skip`. An op runs
/// after the fences in its header and after earlier ops on its slot. Restores go before
/// stores otherwise. Nothing else is promised; but a batch waits for the fences of all its ops, and
/// a stream runs one batch after another: an op behind a busy compute stream may hold up others.
class copier {
 public:
  /// Refuses an invalid layout, memory whose regions or segments do not add up to it, null
  /// bases, limits of 0, a null on_completion. The device must outlive the copier.
  static result<std::unique_ptr<copier>> open(const copier_options& opts, device& on);
  /// Closes with a deadline of now. Then blocks, without a limit, until the copies that the device
  /// runs have ended: destroying a stream waits for what was enqueued on it.
  ~copier();
  copier(const copier&) = delete;
  copier& operator=(const copier&) = delete;

  // ---- compute streams ------------------------------------------------------------
  /// Names the engine's stream `index` on this rank; it must outlive the copier. Before use.
  result<void> attach(std::uint32_t index, stream& compute);
  /// Everything enqueued so far on compute stream `token.stream` belongs to steps up to
  /// `token.step`. Steps grow; one stream's marks may overlap. Errors: invalid, busy when the
  /// stream is capturing, queue_full when the stream holds all it can (the position is not named;
  /// mark again when it has run some), device_lost.
  status mark(fence_token token) noexcept;

  // ---- submitting -----------------------------------------------------------------
  /// Takes room for `count` ops of one kind, all or nothing.
  [[nodiscard]] bool try_room(copy_kind kind, std::uint32_t count) noexcept;
  void give_room(copy_kind kind, std::uint32_t count) noexcept;
  /// Checks an op as submit does, without accepting it.
  [[nodiscard]] result<void> check(const copy_op& op) const;
  /// Accepts an op for which room was taken: never fails; the op is reported exactly once, also
  /// when the copier is closing or its device is lost. The op's index, kind and slot must be in
  /// range; units and fences that `check` would have refused are found by the copy thread, and the
  /// op alone is reported as `invalid`.
  void enqueue(const copy_op& op) noexcept;
  /// check, room and enqueue for all of `ops`, or for none. Errors: invalid (fingerprint,
  /// bytes, number of units, a unit or slot out of range, a fence that was never marked),
  /// queue_full, closed, device_lost. Unit ids that are not distinct are found by the copy
  /// thread and reported as `invalid`.
  result<void> submit(std::span<const copy_op> ops);
  /// Passes a slot's sequence number that no op will bring. A number that never comes, in either
  /// way, keeps all later ops of its slot waiting, and nothing reports it: a gap shows only as a
  /// drain or order_after* that times out.
  void skip(slot_id slot, std::uint64_t slot_sequence) noexcept;
  /// Ops were cancelled that may be waiting here: the copy thread's next pass drops those for which
  /// on_cancelled is true, as when on_take refuses them, without waiting for a stream to be free.
  void drop_cancelled() noexcept;

  // ---- ordering compute after copies ----------------------------------------------
  /// Work enqueued on compute stream `index` after this call runs after these ops. Returns
  /// once each op has been launched and its event recorded, or has ended. Order, not
  /// success: look at the op's status before trusting its bytes. While the compute stream
  /// holds all it can, waits for it to run some. Errors: timed_out (rely on no order), busy when
  /// the stream is capturing, invalid, device_lost.
  status order_after(std::uint32_t index, std::span<const op_id> ops, deadline until) noexcept;
  /// The same for every op submitted so far that touches `slot`.
  status order_after_slot(std::uint32_t index, slot_id slot, deadline until) noexcept;

  // ---- life -----------------------------------------------------------------------
  /// Waits until every accepted op has ended; timed_out otherwise.
  status drain(deadline until) noexcept;
  /// Stops admissions, lets accepted ops finish until `until`, then reports the rest:
  /// cancelled when never handed to the device, else timed_out and unproven. Returns timed_out when
  /// a copy may still touch memory, also one of a lost device. A copy thread that is inside a call
  /// of the device's cannot report: close waits for it up to two seconds beyond the deadline, then
  /// returns timed_out and leaves the rest to be reported later. Idempotent; a later call answers
  /// ok when what was unproven has ended meanwhile.
  status close(deadline until) noexcept;
  /// One pass of the copy thread's loop in the calling thread; true when it did anything.
  /// Only with threaded == false; one thread at a time. There, order_after*, drain and close
  /// make passes while they wait.
  bool pump() noexcept;

  [[nodiscard]] bool lost() const noexcept;
  /// Ops accepted and not ended.
  [[nodiscard]] std::uint32_t outstanding() const noexcept;
  /// One entry per stream, stores first. Exact while idle.
  [[nodiscard]] std::vector<stream_stats> stats() const;

 private:
  struct state;
  explicit copier(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace cairn
