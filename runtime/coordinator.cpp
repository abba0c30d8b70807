// Boundaries of sequences -> stores. Joins the table of pendings with the catalog; the order
// within a slot, devices and units are others' business.
#include <cairn/coordinator.hpp>
#include <vector>

#include "runtime/pending_table.hpp"
#include "runtime/sync.hpp"

namespace cairn {

struct coordinator::state {
  state(const coordinator_options& opts, catalog& over)
      // Collectors and droppers hold an entry too, one each, hence the second max_threads.
      : records(over),
        pending(opts.max_sequences, 2 * opts.max_threads),
        slots(std::make_unique<sync::atomic<slot_id>[]>(opts.max_sequences)) {
    for (std::uint32_t i = 0; i < opts.max_sequences; ++i) slots[i].store_relaxed(no_slot);
  }

  [[nodiscard]] bool known(sequence_id sequence) const noexcept {
    return sequence < pending.sequences();
  }
  [[nodiscard]] error unknown(sequence_id sequence) const noexcept {
    return {status::invalid, "sequence is out of range (expected: their number)", sequence,
            pending.sequences(), sequence};
  }
  /// Drops pendings and checkpoint of `key`; at most one orphan, however much went.
  bool unindex(const checkpoint_key& key) noexcept {
    const bool was_pending = pending.drop(key) != 0;
    const bool was_kept = records.orphan(key);  // counts itself
    if (was_pending && !was_kept) records.count_orphan();
    return was_pending || was_kept;
  }
  void count(status refused) noexcept;
  /// What a drain does with one boundary that it has taken.
  bool start(const detail::pending_table::item& due, store_function store, void* context) noexcept;

  catalog& records;
  detail::pending_table pending;
  /// Relaxed: a slot's number carries no data; the drain wants whatever it is by then.
  std::unique_ptr<sync::atomic<slot_id>[]> slots;
};

void coordinator::state::count(status refused) noexcept {
  switch (refused) {
    case status::ok:
    case status::duplicate:
      return;  // somebody else keeps it: nothing was lost
    case status::closed:
      return records.count_drop(drop_reason::closed);
    case status::queue_full:
      return records.count_drop(drop_reason::queue_full);
    case status::no_room:
    case status::passed_over:
    case status::limit:
      return records.count_drop(drop_reason::no_room);
    default:
      return records.count_drop(drop_reason::refused);
  }
}

bool coordinator::state::start(const detail::pending_table::item& due, store_function store,
                               void* context) noexcept {
  const slot_id slot = slots[due.sequence].load_relaxed();
  if (slot == no_slot || records.contains_or_copying(due.key)) return false;
  const status code = store(context, {due.sequence, due.key, slot, due.hint});
  count(code);
  return code == status::ok;
}

coordinator::coordinator(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

result<std::unique_ptr<coordinator>> coordinator::open(const coordinator_options& opts,
                                                       catalog& over) {
  if (opts.max_sequences == 0 || opts.max_sequences > max_index / 2)
    return error(status::invalid, "max_sequences must be positive and within the largest", 0,
                 max_index / 2, opts.max_sequences);
  if (opts.max_threads == 0 || opts.max_threads > max_index / 8)
    return error(status::invalid, "max_threads must be positive and within the largest", 0,
                 max_index / 8, opts.max_threads);
  auto made = std::make_unique<state>(opts, over);
  over.pool().set_orphan_hook(
      [](void* context, const checkpoint_key& key) { static_cast<state*>(context)->unindex(key); },
      made.get());
  return std::unique_ptr<coordinator>(new coordinator(std::move(made)));
}

coordinator::~coordinator() {
  state_->records.install_orphan_hook();
}

result<void> coordinator::set_slot(sequence_id sequence, slot_id slot) noexcept {
  if (!state_->known(sequence)) return state_->unknown(sequence);
  state_->slots[sequence].store_relaxed(slot);
  return {};
}

slot_id coordinator::slot_of(sequence_id sequence) const noexcept {
  return state_->known(sequence) ? state_->slots[sequence].load_relaxed() : no_slot;
}

result<void> coordinator::file(sequence_id sequence, const checkpoint_key& key,
                               placement_hint hint) noexcept {
  if (!state_->known(sequence)) return state_->unknown(sequence);
  if (slot_of(sequence) == no_slot) return {};
  switch (state_->pending.put(sequence, key, hint)) {
    case detail::pending_table::put_outcome::filed:
      return {};
    case detail::pending_table::put_outcome::replaced:
      state_->records.count_drop(drop_reason::superseded);
      return {};
    case detail::pending_table::put_outcome::no_entry:
      // The older one would be kept with the state that the sequence has by the next drain.
      if (state_->pending.take(sequence)) state_->records.count_drop(drop_reason::superseded);
      break;
  }
  return error(status::limit, "more threads file boundaries than max_threads");
}

result<void> coordinator::forget(sequence_id sequence) noexcept {
  if (!state_->known(sequence)) return state_->unknown(sequence);
  state_->pending.take(sequence);
  if (const slot_id slot = slot_of(sequence); slot != no_slot)
    state_->records.cancel_restores(slot);
  return {};
}

std::uint32_t coordinator::drain(store_function store, void* context) noexcept {
  // One per thread and not per coordinator. Taken out while in use, since `store` may drain another
  // coordinator.
  thread_local std::vector<detail::pending_table::item> kept;
  std::vector<detail::pending_table::item> due = std::move(kept);
  if (due.capacity() < state_->pending.sequences()) due.reserve(state_->pending.sequences());
  state_->pending.collect(due);
  std::uint32_t began = 0;
  for (const auto& item : due)
    if (state_->start(item, store, context)) ++began;
  due.clear();
  kept = std::move(due);
  return began;
}

bool coordinator::drain_sequence(sequence_id sequence, store_function store,
                                 void* context) noexcept {
  detail::pending_table::item due;
  if (!state_->known(sequence) || !state_->pending.take(sequence, &due)) return false;
  return state_->start(due, store, context);
}

bool coordinator::unindex(const checkpoint_key& key) noexcept {
  return state_->unindex(key);
}

void coordinator::reset() noexcept {
  for (sequence_id i = 0; i < state_->pending.sequences(); ++i) state_->pending.take(i);
  state_->records.clear();
}

std::uint32_t coordinator::resumable_hit(std::span<const checkpoint_key> keys, std::uint32_t hit,
                                         bool assume_checkpointed) const noexcept {
  return state_->records.resumable_hit(keys, hit, assume_checkpointed);
}

std::uint32_t coordinator::pending() const noexcept {
  return state_->pending.size();
}

}  // namespace cairn
