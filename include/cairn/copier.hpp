// The data plane of one device: a bounded queue, a copy thread and its streams. It knows ops,
// not keys: what an op means is the catalog's business.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/metrics.hpp>
#include <cairn/types.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cairn {

struct copier_options {
  layout shape;
  rank_memory memory;  ///< this rank's units and slots
  rank_id rank = 0;
  std::uint32_t max_ops = 4096;      ///< op_id::index is below this (the catalog's max_ops)
  std::uint32_t store_depth = 1024;  ///< stores accepted and not ended
  std::uint32_t restore_depth = 1024;
  std::uint32_t store_streams = 2;
  std::uint32_t restore_streams = 1;  ///< high priority
  std::uint32_t max_batch = 64;       ///< images in one launch, and no more than the device takes
  std::uint32_t compute_streams = 1;  ///< the engine's own, attached before use
  bool threaded = true;               ///< false: the caller runs `pump` instead
  /// A store keeps its image's checksum, by the first unit; a restore of these units verifies it
  /// and ends as `corrupt` when it differs. Images that were not stored here are not verified.
  bool checksums = true;
  /// An op that has not ended this long after it was accepted ends as timed_out (0: never):
  /// unproven when the device has it, and then it keeps its room and slot until proven over; else
  /// it never runs. On time also while the copier is quiet, but not while a call of the device's
  /// hangs. Must exceed the longest compute that an op waits for; after half a minute nobody wants
  /// the copy.
  std::chrono::nanoseconds op_timeout = std::chrono::seconds(30);
  trace_sink* trace = nullptr;  ///< not owned

  // Called in the copy thread:
  /// An op is about to be handed to the device; false: it was cancelled, and is dropped without a
  /// completion. Null: the submitter must have called catalog::take before sending the op, else a
  /// cancel could give its units away under the copy.
  bool (*on_take)(void* context, op_id op) = nullptr;
  /// After `drop_cancelled`, for ops that wait: true when on_take would refuse the op. Decides
  /// nothing itself. Null: never.
  bool (*on_cancelled)(void* context, op_id op) = nullptr;
  /// Once for each accepted op that was not dropped by on_take; and a second time, as proven, for
  /// each that was unproven, when its copy is over.
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
/// thread at a time for pump and for all that take a deadline, which make passes while they wait.
/// Progress: functions with a deadline block until then at the latest, close a little longer; the
/// others, open, attach and stats aside, are lock-free. No allocation once a thread has submitted.
///
/// Order. Ops with a slot_sequence run per slot in the order of these numbers, whatever the
/// order of arrival; every number from 1 on must come, as an op or through `skip`. An op runs
/// after the fences in its header and after earlier ops on its slot. Restores go before
/// stores otherwise, and ops whose fences have passed before those that wait. Nothing else is
/// promised; but a stream runs one batch after another: an op behind a busy compute stream may hold
/// up later ones.
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
  /// way, keeps all later ops of its slot waiting: a gap shows only as a drain or order_after* that
  /// times out.
  void skip(slot_id slot, std::uint64_t slot_sequence) noexcept;
  /// What the slot takes, as far as is known. busy: a copy that was given up may still touch it;
  /// until proven over, ops on it are refused, and end as busy when they waited. poisoned: a
  /// restore into it failed (not: was cancelled); stores behind it end as poisoned until a restore
  /// succeeds or the slot is reset. Else ok, invalid or device_lost.
  [[nodiscard]] status slot_status(slot_id slot) const noexcept;
  /// The engine has written the slot's state anew, behind what was copied into it: later stores are
  /// good. Has its turn among the slot's ops. Errors: invalid, busy, device_lost (the number is
  /// skipped).
  status reset_slot(slot_id slot, std::uint64_t slot_sequence = 0) noexcept;
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
  /// Work enqueued on compute stream `index` after this call runs after these positions of the
  /// other compute streams; its own needs nothing. Waits only while the stream holds all it can.
  /// Errors: as order_after, and invalid when a step was never marked.
  status order_after_fences(std::uint32_t index, const fence_set& fences, deadline until) noexcept;

  // ---- life -----------------------------------------------------------------------
  /// For captures, weight reloads, sleep: hands nothing over any more and lets what the device has
  /// end. After `ok` nothing of it runs, and the copy thread (pump) makes no call of the device
  /// until `resume`; copies after that see what was done before. Ops are accepted meanwhile, within
  /// their rooms, and wait; they can be cancelled. mark and order_after* still call the device, in
  /// their caller's thread; order_after* of an op that waits, and drain, time out. Several may hold
  /// the copier quiet: it goes on when the last has resumed. close ends the quiet, for its ops must
  /// end. Errors, with nothing changed: timed_out, closed, device_lost.
  status quiesce(deadline until) noexcept;
  /// Ends one quiesce that returned ok.
  void resume() noexcept;
  /// Waits until every accepted op has ended; timed_out otherwise.
  status drain(deadline until) noexcept;
  /// Stops admissions, lets accepted ops finish until `until`, then reports the rest:
  /// cancelled when never handed to the device, else timed_out and unproven. Returns timed_out when
  /// a copy may still touch memory, also one of a lost device. A copy thread that is inside a call
  /// of the device's cannot report: close waits for it up to two seconds beyond the deadline, then
  /// returns timed_out and leaves the rest to be reported later. Idempotent; a later call answers
  /// ok when what was unproven has ended meanwhile.
  status close(deadline until) noexcept;
  /// threaded == false: one pass of the copy thread's loop; true when it did anything.
  bool pump() noexcept;

  [[nodiscard]] bool lost() const noexcept;
  /// Which device, and what showed that it is lost, in words; empty while it is not.
  [[nodiscard]] std::string why_lost() const;
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
