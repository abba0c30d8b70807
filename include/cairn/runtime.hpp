// One catalog, a copier per device, completions fed back: what an engine whose threads share
// a process links in. Wiring only; the meaning is in catalog.hpp and copier.hpp.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/catalog.hpp>
#include <cairn/coordinator.hpp>
#include <cairn/copier.hpp>
#include <cairn/metrics.hpp>
#include <cairn/unit_pool.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cairn {

enum class completion_mode : std::uint8_t {
  immediate,  ///< a record is READY as soon as its last event has fired
  settled,    ///< completions wait until the engine calls settle(); then in begin order
};

struct runtime_options {
  layout shape;
  std::vector<rank_memory> ranks;  ///< one per device; the same numbers of units and slots
  std::uint32_t units = 0;         ///< units at the start (0: all that the ranks have)
  std::uint32_t compute_streams = 1;
  std::uint32_t max_sequences = 1024;
  std::uint32_t max_ops = 4096;
  std::uint32_t max_pins = 1024;
  std::uint32_t max_threads = 64;
  std::uint32_t store_depth = 1024;
  std::uint32_t restore_depth = 1024;
  std::uint32_t store_streams = 2;
  std::uint32_t restore_streams = 1;
  std::uint32_t max_batch = 64;
  completion_mode completions = completion_mode::immediate;
  /// False: there are no copy threads; pump, and any call that waits, runs the copiers, and only
  /// one thread at a time may be in such a call.
  bool threaded = true;
  bool checksums = true;  ///< restores verify what stores wrote; see copier_options
  std::chrono::nanoseconds op_timeout = std::chrono::seconds(30);  ///< see copier_options
  std::unique_ptr<eviction_policy> policy;                         ///< null: least recently used
  trace_sink* trace = nullptr;
  /// The engine's own pool; null: a unit_pool of the runtime's. One that has served another runtime
  /// must name no compute stream that this one does not have.
  unit_source* pool = nullptr;
};

class runtime;

/// An accepted op. Move-only; destroying it does not cancel the op. Must not outlive the
/// runtime.
class ticket {
 public:
  ticket() noexcept = default;
  ticket(ticket&& other) noexcept;
  ticket& operator=(ticket&& other) noexcept;
  ~ticket();

  [[nodiscard]] bool valid() const noexcept { return owner_ != nullptr; }
  [[nodiscard]] op_id op() const noexcept { return op_; }
  /// pending, or how the op ended. `ok`: the image is in its units (READY), or in its slot.
  [[nodiscard]] status code() const noexcept;
  /// Blocks until the op has ended or `until` (then pending). Neither pumps nor settles.
  status wait(deadline until) const noexcept;
  /// Ends an op that no device has taken; false when it is too late.
  bool cancel() noexcept;

 private:
  friend class runtime;
  ticket(runtime* owner, op_id op) noexcept : owner_(owner), op_(op) {}
  runtime* owner_ = nullptr;
  op_id op_;
};

struct store_request {
  checkpoint_key key;
  slot_id slot = no_slot;
  placement_hint hint = placement_hint::none;
};

struct runtime_latencies {
  latency_histogram submit;   ///< a scheduling thread inside store or restore
  latency_histogram store;    ///< begin to published
  latency_histogram restore;  ///< begin to usable
  latency_histogram wakes;    ///< the part of `submit` spent handing over: queues, waking sleepers
};

/// Thread-safety: any function by any thread. Progress: store, restore, admit, mark and
/// release_slot are lock-free; functions with a deadline block until then at the latest.
///
/// Compute streams are named by an index that means the same on every rank; `attach` says
/// which stream it is there. A call that names one captures its position at that moment.
///
/// A rank whose device is lost fails what is outstanding on it and refuses more. Whoever is told
/// finds no record READY: none has all its shards any more (catalog::advance_epoch).
class runtime {
 public:
  /// The backend must have a device per rank and outlive the runtime.
  static result<std::unique_ptr<runtime>> open(runtime_options opts, backend& devices);
  /// Closes with a deadline of now, then waits for the copies that the devices run already: they
  /// wait for compute in their turn. Attached streams must still be there.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Names the engine's stream on this rank; before use. It must outlive the runtime.
  result<void> attach(rank_id rank, std::uint32_t compute_stream, stream& which);

  /// Copies `slot`, as compute stream `compute` leaves it at this point, under `key`. The next
  /// work on the slot must be ordered behind it (order_after*) unless the engine
  /// double-buffers. Errors: as catalog::begin_store, and queue_full, device_lost, and those of
  /// copier::slot_status on any rank: busy, poisoned. A store that was accepted before its slot was
  /// known to be poisoned ends as poisoned.
  result<ticket> store(const checkpoint_key& key, slot_id slot, std::uint32_t compute,
                       placement_hint hint = placement_hint::none);
  /// Copies the checkpoint into `slot`, behind everything on it so far. Errors: as
  /// catalog::begin_restore, and queue_full, device_lost, busy.
  result<ticket> restore(const checkpoint_key& key, slot_id slot, std::uint32_t compute);
  /// catalog::admit, with its restore submitted: `restored` is valid when resumed > 0.
  result<admission> admit(std::span<const checkpoint_key> keys, std::uint32_t fresh, slot_id slot,
                          std::span<unit_id> units, std::uint32_t compute, ticket& restored);
  /// The store of the sequence's pending boundary, at compute stream `compute`'s position now
  /// (coordinator::drain_sequence). Errors: not_found when none is pending, the sequence has no
  /// slot, or the key is READY or COPYING; else as `store`, and the boundary counts as dropped.
  /// Whatever comes of it, none is pending afterwards.
  result<ticket> store_boundary(sequence_id sequence, std::uint32_t compute) noexcept;
  /// coordinator::drain into store; the tickets are dropped. All at the position of one compute
  /// stream, taken after the boundaries were: only for sequences that compute on it, and while no
  /// other thread drains (see coordinator). While that stream captures, stores none and drops none:
  /// drain again before the sequences' next steps run, or their boundaries get other states.
  std::uint32_t drain_boundaries(std::uint32_t compute) noexcept;

  /// The position of compute stream `compute` now, on every rank: what to free units with. Errors:
  /// as copier::mark, and closed.
  result<fence_token> mark(std::uint32_t compute) noexcept;
  /// Work enqueued on the compute stream after this call, on every rank, runs after the op.
  /// Order, not success. Errors: as copier::order_after.
  [[nodiscard]] status order_after(std::uint32_t compute, const ticket& op,
                                   deadline until) noexcept;
  /// The same for all that touches the slot: every op on it so far, and what other compute streams
  /// had enqueued when they stored it, restored it or handed it on.
  [[nodiscard]] status order_after_slot(std::uint32_t compute, slot_id slot,
                                        deadline until) noexcept;
  /// The same for these positions of other compute streams (mark, unit_source::collect_fences).
  /// Errors: as copier::order_after_fences.
  [[nodiscard]] status order_after_fences(std::uint32_t compute, const fence_set& fences,
                                          deadline until) noexcept;
  /// The slot changes hands (abort, preemption): cancels what is queued for it. Its next
  /// tenant's copies run behind what already runs and behind compute stream `compute` as of
  /// now; order the next tenant's compute with order_after_slot. Returns how many were
  /// cancelled. Errors, with nothing changed: invalid; closed; busy (the stream is capturing) and
  /// queue_full (the stream holds all it can), after which the slot must not be handed on.
  /// When the device is lost, cancels and answers device_lost.
  result<std::uint32_t> release_slot(slot_id slot, std::uint32_t compute) noexcept;
  /// The same at a normal end: cancels queued restores, lets queued stores go on. The next tenant's
  /// compute must be ordered behind these by order_after_slot.
  result<std::uint32_t> finish_slot(slot_id slot, std::uint32_t compute) noexcept;

  /// copier::reset_slot on every rank: the engine has written the slot's state anew. Errors:
  /// invalid, closed, busy.
  [[nodiscard]] status reset_slot(slot_id slot) noexcept;

  /// copier::quiesce on every rank, or on none. No thread of the engine should be inside a step:
  /// compute that waits for what a quiet rank keeps back may keep another rank from becoming quiet.
  [[nodiscard]] status quiesce(deadline until) noexcept;
  void resume() noexcept;
  /// completion_mode::settled: waits until every rank has reported every accepted op, then applies
  /// the completions in begin order. timed_out: applies nothing; busy: another thread is at it.
  status settle(deadline until) noexcept;
  /// One pass of every copier (threaded == false); true when anything was done.
  bool pump() noexcept;
  /// Waits until every accepted op has ended (settled mode: has been reported).
  status drain(deadline until) noexcept;
  /// Stops admissions, lets accepted ops finish until `until`, reports the rest and, in settled
  /// mode, applies it. timed_out: a copy may still touch memory. Idempotent.
  status close(deadline until) noexcept;
  /// For logs: the devices that are lost, and what showed it; empty while none is.
  [[nodiscard]] std::string why_lost() const;

  [[nodiscard]] catalog& records() noexcept;
  [[nodiscard]] coordinator& sequences() noexcept;
  [[nodiscard]] unit_source& pool() noexcept;
  /// The runtime's own pool; null when the engine brought one.
  [[nodiscard]] unit_pool* own_pool() noexcept;
  [[nodiscard]] copier& rank(rank_id which) noexcept;
  [[nodiscard]] std::uint32_t ranks() const noexcept;
  [[nodiscard]] const runtime_latencies& latencies() const noexcept;

 private:
  friend class ticket;
  struct state;
  bool cancel(op_id op) noexcept;
  explicit runtime(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace cairn
