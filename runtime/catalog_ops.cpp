// Stores, restores, completions and cancels of the catalog. Knows no policy.
#include <cstring>

#include "runtime/catalog_state.hpp"

namespace cairn {

using detail::op_facts;
using detail::op_phase;
using detail::op_table;
using detail::record;
using detail::record_state;
using detail::record_word;

// Written where the caller will find it: a header is two lines, and copying what was just written
// field by field waits until the fields have reached the cache.
result<copy_op> catalog::state::begin(std::uint32_t entry, const op_facts& facts) noexcept {
  result<copy_op> made(std::in_place);
  made->units = units_of(facts.record.index);
  copy_op_header& header = made->header;
  header.layout_fingerprint = fingerprint;
  header.image_bytes = shape.image_bytes;
  header.begin_stamp = begun.fetch_add_relaxed(1) + 1;
  header.slot = facts.slot;
  header.unit_count = per_image;
  header.epoch = facts.epoch;
  header.kind = facts.kind;
  // A store overwrites the units: after whatever compute used them last. A restore only reads
  // what a finished store wrote.
  if (facts.kind == copy_kind::store) pool.collect_fences(made->units, header.fences);
  // Last: from here on the op can be cancelled, and a store's units be another's.
  header.op = ops.begin(entry, facts);
  return made;
}

void catalog::state::mark_used(std::uint32_t id) noexcept {
  const std::uint64_t stamp = uses.fetch_add_relaxed(1) + 1;
  sync::atomic<std::uint64_t>& used = records[id].used;
  // (7) release: pairs with (8) in sync_order. Restores of one record may overlap: the latest
  // stamp stays.
  std::uint64_t seen = used.load_relaxed();
  while (seen < stamp && !used.cas_acq_rel(seen, stamp)) {
  }
  sync_order(id);
}

error catalog::state::refuse_slot(slot_id slot) const noexcept {
  return {status::invalid, "slot is out of range (expected below, got)", slot, slots, slot};
}

result<copy_op> catalog::begin_store(const checkpoint_key& key, slot_id slot, placement_hint hint) {
  state& s = *state_;
  if (s.closed.load_acquire()) return error(status::closed, "the catalog is closed");  // (12)
  if (slot >= s.slots) return s.refuse_slot(slot);
  // Of what has the key for sure. A claimed record may be met here before its store has entered the
  // index, by an edge from an earlier life, and that store may itself be refused.
  const auto taken = [](record_word w) {
    return w.state == record_state::copying || w.state == record_state::ready;
  };
  record_word found;
  if (s.peek_key(key, taken, found) != state::none)
    return error(status::duplicate, "the key is READY or COPYING");
  if (!s.could_have(s.per_image, s.demanded()))
    return error(status::no_room, "not enough units for an image, even by evicting", 0, s.per_image,
                 s.pool.free_units());

  const std::uint32_t entry = s.ops.take_entry(slot);
  if (entry == op_table::none) return error(status::limit, "max_ops operations are in flight");
  const std::uint32_t id = s.claim_record(key, hint);
  if (id == state::none) {
    s.ops.give_entry(entry);
    return error(status::limit, "max_threads stores are beginning at once");
  }
  const auto blocks = [](record_word w) { return w.blocks_store(); };
  // From here on no other store of this key succeeds; the record is invisible otherwise.
  const std::uint32_t blocker = s.by_key.insert_unless(id, key, [&](std::uint32_t other) {
    if (!s.try_pin(other, key, record_word::one_pin, blocks, found)) return false;
    s.unpin(other, record_word::one_pin);
    return true;
  });
  if (blocker != state::none) {
    s.unclaim(id, false);
    s.ops.give_entry(entry);
    return error(status::duplicate, "the key is READY or COPYING");
  }
  const std::uint32_t generation = s.records[id].load().generation;
  if (auto filled = s.fill(id, generation); !filled) {
    s.unclaim(id, true);
    s.ops.give_entry(entry);
    return filled.why();
  }
  // claimed -> copying. Nobody else changes the state of a claimed record; pins may come and go.
  record& r = s.records[id];
  std::uint64_t bits = r.word.load_acquire();  // (1)
  for (;;) {
    record_word w = record_word::of(bits);
    w.state = record_state::copying;
    if (r.word.cas_acq_rel(bits, w.bits())) break;  // (4)
  }
  // (10) after the CAS (4): lose_rank advances the epoch and then does a read-modify-write on every
  // record. Either that comes after the CAS and finds this one copying, or the CAS acquires the new
  // epoch. So no store of an epoch that has passed is ever published.
  const std::uint32_t now = s.epoch.load_acquire();
  s.fates.kept.fetch_add_relaxed(1);
  return s.begin(entry, {{id, generation}, slot, now, copy_kind::store});
}

result<copy_op> catalog::begin_restore(const checkpoint_key& key, slot_id slot) {
  state& s = *state_;
  if (s.closed.load_acquire()) return error(status::closed, "the catalog is closed");  // (12)
  if (slot >= s.slots) return s.refuse_slot(slot);
  record_word found;
  const std::uint32_t id = s.pin_key(
      key, record_word::one_restore, [](record_word w) { return w.state == record_state::ready; },
      found);
  if (id == state::none) return error(status::not_found, "the key is not READY");
  const std::uint32_t entry = s.ops.take_entry(slot);
  if (entry == op_table::none) {
    s.unpin(id, record_word::one_restore);
    return error(status::limit, "max_ops operations are in flight");
  }
  s.mark_used(id);
  const std::uint32_t now = s.epoch.load_acquire();  // (10)
  if (sync::mutated("early unpin")) s.unpin(id, record_word::one_restore);
  return s.begin(entry, {{id, found.generation}, slot, now, copy_kind::restore});
}

void catalog::submitted(op_id op) noexcept {
  state_->ops.submitted(op);
}

bool catalog::take(op_id op) noexcept {
  return state_->ops.take(op);
}

bool catalog::state::cancel(op_id op) noexcept {
  op_facts facts;
  if (!ops.start_cancel(op, facts)) return false;
  settle(facts, {status::cancelled, false, false});
  ops.end(op, status::cancelled);
  return true;
}

bool catalog::cancel(op_id op) noexcept {
  return state_->cancel(op);
}

std::uint32_t catalog::state::cancel_kind(slot_id slot, copy_kind kind) noexcept {
  std::uint32_t cancelled = 0;
  ops.for_slot(slot, [&](std::uint32_t i) {
    op_id op;
    op_facts facts;
    op_phase phase;
    if (!ops.look(i, op, facts, phase)) return;
    if (phase != op_phase::queued || facts.slot != slot || facts.kind != kind) return;
    if (cancel(op)) ++cancelled;
  });
  return cancelled;
}

std::uint32_t catalog::cancel_restores(slot_id slot) noexcept {
  return state_->cancel_kind(slot, copy_kind::restore);
}

std::uint32_t catalog::cancel_stores(slot_id slot) noexcept {
  return state_->cancel_kind(slot, copy_kind::store);
}

void catalog::state::settle(const op_facts& facts, op_table::verdict over) noexcept {
  // What a copy may still touch stays: its units, or the pin on them.
  if (facts.kind == copy_kind::restore) {
    if (over.corrupt) hide(facts.record.index, facts.record.generation);
    if (!over.unproven && !sync::mutated("early unpin"))
      unpin(facts.record.index, record_word::one_restore);
    return;
  }
  if (over.code == status::ok) {
    publish(facts.record.index);
    return;
  }
  if (over.code == status::cancelled)
    fates.cancelled.fetch_add_relaxed(1);
  else
    fates.failed.fetch_add_relaxed(1);
  unwind(facts.record, over.unproven);
}

void catalog::state::release_kept(op_id op, const op_facts& facts) noexcept {
  if (facts.kind == copy_kind::store) {
    quarantined.fetch_sub_relaxed(per_image);
    unpin(facts.record.index, record_word::one_pin);
  } else {
    unpin(facts.record.index, record_word::one_restore);
  }
  ops.unkeep(op);
}

bool catalog::state::prove(op_id op, rank_id rank, std::uint32_t op_epoch) noexcept {
  op_facts facts;
  const op_table::counted counted = ops.prove(op, rank, op_epoch, facts);
  if (counted == op_table::counted::last) release_kept(op, facts);
  return counted != op_table::counted::no;
}

namespace {

/// Of a bool whose byte may be neither true's nor false's.
bool truth_of(const bool& stored) noexcept {
  unsigned char byte = 0;
  std::memcpy(&byte, &stored, 1);
  return byte != 0;
}

}  // namespace

finish_outcome catalog::finish(const completion& reported) noexcept {
  state& s = *state_;
  completion what = reported;
  // It may have crossed a process boundary: bytes may be anything, and what is no way for a copy to
  // end is no success.
  what.unproven = truth_of(reported.unproven);
  what.proven = truth_of(reported.proven);
  if (what.code == status::pending || what.code > status::unsupported) what.code = status::failed;
  finish_outcome outcome;
  if (what.proven) {
    outcome.counted = s.prove(what.op, what.rank, what.epoch);
    return outcome;
  }
  op_facts facts;
  op_table::verdict over;
  const op_table::counted counted = s.ops.count(what, facts, over);
  if (counted == op_table::counted::no) return outcome;
  outcome.counted = true;
  outcome.kind = facts.kind;
  if (counted == op_table::counted::yes) return outcome;
  outcome.ended = true;
  outcome.code = over.code;
  if (!over.unproven && sync::mutated("end before the record")) {
    s.ops.end(what.op, over.code);
    s.settle(facts, over);
    return outcome;
  }
  s.settle(facts, over);
  if (!over.unproven)
    s.ops.end(what.op, over.code);
  else if (s.ops.end_kept(what.op, over.code))
    s.release_kept(what.op, facts);
  return outcome;
}

void catalog::observe(op_id op) noexcept {
  state_->ops.observe(op);
}
void catalog::unobserve(op_id op) noexcept {
  state_->ops.unobserve(op);
}
status catalog::op_status(op_id op) const noexcept {
  return state_->ops.code(op);
}
status catalog::wait(op_id op, deadline until) const noexcept {
  return state_->ops.wait(op, until);
}

void catalog::advance_epoch() noexcept {
  state_->epoch.fetch_add_acq_rel(1);  // (9) before the records are visited: see begin_store
  clear();
}

std::uint32_t catalog::lose_rank(rank_id rank) noexcept {
  state& s = *state_;
  if (rank >= s.ranks) return 0;
  advance_epoch();
  std::uint32_t failed = 0;
  const std::uint32_t high = s.ops.high_water();
  for (std::uint32_t i = 0; i < high; ++i) {
    op_id op;
    op_facts facts;
    op_phase phase;
    // An op that is still being handed over reads its record's units: its copiers report it.
    if (!s.ops.look(i, op, facts, phase) || phase == op_phase::begun) continue;
    if (s.prove(op, rank, facts.epoch)) continue;
    completion lost;
    lost.op = op;
    lost.rank = rank;
    lost.epoch = facts.epoch;
    lost.code = status::device_lost;
    if (finish(lost).counted) ++failed;
  }
  return failed;
}

}  // namespace cairn
