// Boundaries of sequences -> stores and restores. An engine files the boundary that a forward
// has just reached; the next drain turns it into a store. Knows sequences, not devices.
#pragma once

#include <cairn/catalog.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <span>

namespace cairn {

/// Chosen by the engine: the place of a running request, below `max_sequences`.
using sequence_id = std::uint32_t;

/// A pending boundary as the drain sees it.
struct boundary {
  sequence_id sequence = 0;
  checkpoint_key key;
  slot_id slot = no_slot;  ///< the sequence's slot now
  placement_hint hint = placement_hint::none;
};

struct coordinator_options {
  std::uint32_t max_sequences = 1024;
  std::uint32_t max_threads = 64;  ///< threads inside file at once
};

/// At most one pending boundary per sequence: a slot holds one state.
///
/// The state that a boundary names is in the slot only until the sequence's next step overwrites
/// it. So its store must have been submitted before that step is enqueued. With one draining
/// thread: between filing and the step a drain has begun and ended. With several scheduling
/// threads: each calls drain_sequence for its own sequences, and nobody calls drain; for a drain
/// that is under way elsewhere may hold a boundary and not have submitted its store yet, and
/// one's own drain then finds nothing.
///
/// Thread-safety: any function by any thread. Progress: lock-free. No allocation once
/// a thread has made its first drain.
class coordinator {
 public:
  static result<std::unique_ptr<coordinator>> open(const coordinator_options& opts, catalog& over);
  ~coordinator();
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  /// The slot that the sequence runs in; no_slot takes it away.
  result<void> set_slot(sequence_id sequence, slot_id slot) noexcept;
  [[nodiscard]] slot_id slot_of(sequence_id sequence) const noexcept;

  /// Files the boundary that the sequence has reached. Replaces a pending one, the same key
  /// included, which counts as dropped (superseded). Ignored for a sequence without a slot. Errors:
  /// invalid; limit when more threads file at once than max_threads, and the older boundary is
  /// dropped all the same, for its state is about to be overwritten.
  result<void> file(sequence_id sequence, const checkpoint_key& key,
                    placement_hint hint = placement_hint::none) noexcept;
  /// Drops the pending boundary, counts nothing, and cancels the queued restores into the
  /// sequence's slot. The slot stays set. A boundary that a drain elsewhere has taken already is
  /// not dropped: wait for that drain before the slot changes hands.
  result<void> forget(sequence_id sequence) noexcept;

  /// Starts a store for a boundary. Returns ok, or why not (no_room, queue_full, closed ...).
  using store_function = status (*)(void* context, const boundary& what);
  /// Takes every pending boundary, oldest first. One without a slot, or whose key is READY or
  /// COPYING by then, is skipped and not counted; the others go to `store`; one that is
  /// refused counts as dropped, by reason (`duplicate` is not counted). Returns how many
  /// stores began.
  std::uint32_t drain(store_function store, void* context) noexcept;
  /// The same for the pending boundary of one sequence: true when its store began. Called in the
  /// sequence's own thread, and if nobody calls `drain`, no other thread ever holds a boundary of
  /// the sequence: the way for an engine with several scheduling threads.
  bool drain_sequence(sequence_id sequence, store_function store, void* context) noexcept;

  /// The key's KV is gone: drops pendings for it and forgets its checkpoint; counts one orphan
  /// if anything went. Returns whether it did.
  bool unindex(const checkpoint_key& key) noexcept;
  /// Drops all pendings and all checkpoints; moves no counter.
  void reset() noexcept;

  [[nodiscard]] std::uint32_t resumable_hit(std::span<const checkpoint_key> keys, std::uint32_t hit,
                                            bool assume_checkpointed = false) const noexcept;
  [[nodiscard]] std::uint32_t pending() const noexcept;

 private:
  struct state;
  explicit coordinator(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace cairn
