#include "runtime/op_table.hpp"

#include <cassert>

namespace cairn::detail {

namespace {

struct rank_word {
  std::uint32_t generation = 0;
  std::uint32_t mask = 0;

  static constexpr rank_word of(std::uint64_t bits) noexcept {
    return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return (std::uint64_t{generation} << 32) | mask;
  }
};

constexpr std::uint64_t pack(std::uint32_t high, std::uint32_t low) noexcept {
  return (std::uint64_t{high} << 32) | low;
}

}  // namespace

op_table::op_table(std::uint32_t capacity, std::uint32_t ranks, bool staged)
    : capacity_(capacity),
      full_mask_(ranks >= 32 ? ~0U : (1U << ranks) - 1),
      first_(staged ? op_phase::begun : op_phase::queued),
      entries_(std::make_unique<entry[]>(capacity)),
      free_(capacity) {
  for (std::uint32_t i = 0; i < capacity; ++i) free_.put(i);
}

std::uint32_t op_table::take_entry() noexcept {
  const std::uint32_t index = free_.take_lowest();
  if (index == bitmap::none) return none;
  // Raised before the entry is begun, so that a walk up to it meets every open op.
  std::uint32_t high = high_water_.load_relaxed();
  while (high <= index && !high_water_.cas_acq_rel(high, index + 1)) {
  }
  return index;
}

void op_table::give_entry(std::uint32_t index) noexcept {
  free_.put(index);
}

op_id op_table::begin(std::uint32_t index, const op_facts& facts) noexcept {
  entry& e = entries_[index];
  const op_word old = op_word::of(e.state.load_relaxed());  // ours alone while free
  const op_id op{index, old.generation + 1};
  e.record.store_relaxed(pack(facts.record.index, facts.record.generation));
  e.slot_epoch.store_relaxed(pack(facts.slot, facts.epoch));
  e.kind.store_relaxed(static_cast<std::uint8_t>(facts.kind));
  e.ranks.store_relaxed(rank_word{op.generation, 0}.bits());
  // Release: whoever finds this generation in `state` sees the facts and the empty mask.
  e.state.store_release(op_word{op.generation, first_, status::pending, false}.bits());
  return op;
}

void op_table::submitted(op_id op) noexcept {
  if (op.index >= capacity_) return;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_relaxed();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || w.phase != op_phase::begun) return;
    w.phase = op_phase::queued;
    // Release: the submitter's reads of the op's units come before any cancel.
    if (e.state.cas_acq_rel(bits, w.bits())) return;
  }
}

bool op_table::take(op_id op) noexcept {
  if (op.index >= capacity_) return false;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || !w.open()) return false;
    if (w.phase == op_phase::taken) return true;
    w.phase = op_phase::taken;
    if (e.state.cas_acq_rel(bits, w.bits())) return true;
  }
}

bool op_table::start_cancel(op_id op, op_facts& facts) noexcept {
  if (op.index >= capacity_) return false;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || w.phase != op_phase::queued) return false;
    w.phase = op_phase::finishing;
    w.code = status::cancelled;
    if (e.state.cas_acq_rel(bits, w.bits())) break;
  }
  facts = facts_of(e);
  return true;
}

op_table::counted op_table::count(const completion& what, op_facts& facts, verdict& over) noexcept {
  if (what.op.index >= capacity_ || what.rank >= max_ranks) return counted::no;
  const std::uint32_t bit = 1U << what.rank;
  if ((bit & full_mask_) == 0) return counted::no;
  entry& e = entries_[what.op.index];

  std::uint64_t bits = e.state.load_acquire();
  if (op_word::of(bits).generation != what.op.generation || !op_word::of(bits).open())
    return counted::no;
  facts = facts_of(e);
  if (facts.epoch != what.epoch) return counted::no;
  std::uint64_t mask_bits = e.ranks.load_acquire();
  if (rank_word::of(mask_bits).generation != what.op.generation ||
      (rank_word::of(mask_bits).mask & bit) != 0)
    return counted::no;

  // (1) The first failure, before this rank's bit. A timeout outranks the others, and `unproven`
  // stays: memory that a copy may still touch must be kept, whatever else went wrong.
  const bool unproven = what.unproven || what.code == status::timed_out;
  while (what.code != status::ok || unproven) {
    op_word w = op_word::of(bits);
    if (w.generation != what.op.generation || !w.open()) return counted::no;
    if (w.code == status::pending || what.code == status::timed_out)
      w.code = what.code == status::ok ? status::timed_out : what.code;
    w.unproven = w.unproven || unproven;
    w.corrupt = w.corrupt || what.code == status::corrupt;
    if (w.bits() == bits || e.state.cas_acq_rel(bits, w.bits())) break;
  }
  // (2) This rank's bit, once. Release: pairs with the acquire of whoever fills the mask.
  for (;;) {
    rank_word r = rank_word::of(mask_bits);
    if (r.generation != what.op.generation || (r.mask & bit) != 0) return counted::no;
    r.mask |= bit;
    if (e.ranks.cas_acq_rel(mask_bits, r.bits())) {
      if (r.mask != full_mask_) return counted::yes;
      break;
    }
  }
  // (3) This completion filled the mask. Only a cancel can have come first.
  bits = e.state.load_acquire();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != what.op.generation || !w.open()) return counted::no;
    w.phase = op_phase::finishing;
    if (w.code == status::pending) w.code = status::ok;
    if (e.state.cas_acq_rel(bits, w.bits())) {
      over = {w.code, w.unproven, w.corrupt};
      return counted::last;
    }
  }
}

void op_table::end(op_id op, status code) noexcept {
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();
  bool observed = false;
  for (;;) {
    op_word w = op_word::of(bits);
    assert(w.generation == op.generation && w.phase == op_phase::finishing);
    observed = w.observed;
    w.phase = observed ? op_phase::ended : op_phase::free;
    w.code = code;
    // Release: the record's new state happens before `ended` is seen.
    if (e.state.cas_acq_rel(bits, w.bits())) break;
  }
  // (4) Pairs with (5): both are read-modify-writes of `bell`, so either the waiter sees the
  // ended state, or this thread sees the waiter.
  e.bell.fetch_add_acq_rel(1);
  if (e.waiters.load_acquire() != 0) sync::wake_all(e.bell.raw());
  if (!observed) release_entry(op.index);
}

void op_table::observe(op_id op) noexcept {
  if (op.index >= capacity_) return;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || w.phase == op_phase::free) return;
    w.observed = true;
    if (e.state.cas_acq_rel(bits, w.bits())) return;
  }
}

void op_table::unobserve(op_id op) noexcept {
  if (op.index >= capacity_) return;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || !w.observed) return;
    const bool last = w.phase == op_phase::ended;
    w.observed = false;
    if (last) w.phase = op_phase::free;
    if (e.state.cas_acq_rel(bits, w.bits())) {
      if (last) release_entry(op.index);
      return;
    }
  }
}

status op_table::code(op_id op) const noexcept {
  if (op.index >= capacity_) return status::stale;
  const op_word w = op_word::of(entries_[op.index].state.load_acquire());
  if (w.generation != op.generation || w.phase == op_phase::free) return status::stale;
  return w.phase == op_phase::ended ? w.code : status::pending;
}

status op_table::wait(op_id op, deadline until) const noexcept {
  if (op.index >= capacity_) return status::stale;
  const entry& e = entries_[op.index];
  status now = code(op);
  if (now != status::pending) return now;
  e.waiters.fetch_add_acq_rel(1);
  for (;;) {
    const std::uint32_t seen = e.bell.fetch_add_acq_rel(0);  // (5) pairs with (4)
    now = code(op);
    if (now != status::pending || clock::now() >= until) break;
    sync::sleep_until(e.bell.raw(), seen, until);
  }
  e.waiters.fetch_sub_acq_rel(1);
  return now;
}

bool op_table::look(std::uint32_t index, op_id& op, op_facts& facts,
                    op_phase& phase) const noexcept {
  const entry& e = entries_[index];
  const op_word w = op_word::of(e.state.load_acquire());
  if (!w.open()) return false;
  op = {index, w.generation};
  phase = w.phase;
  facts = facts_of(e);
  return true;
}

std::uint32_t op_table::in_use() const noexcept {
  std::uint32_t used = 0;
  const std::uint32_t high = high_water();
  for (std::uint32_t i = 0; i < high; ++i)
    if (op_word::of(entries_[i].state.load_acquire()).phase != op_phase::free) ++used;
  return used;
}

op_facts op_table::facts_of(const entry& e) noexcept {
  op_facts facts;
  const std::uint64_t record = e.record.load_relaxed();
  const std::uint64_t slot_epoch = e.slot_epoch.load_relaxed();
  facts.record = {static_cast<std::uint32_t>(record >> 32), static_cast<std::uint32_t>(record)};
  facts.slot = static_cast<slot_id>(slot_epoch >> 32);
  facts.epoch = static_cast<std::uint32_t>(slot_epoch);
  facts.kind = static_cast<copy_kind>(e.kind.load_relaxed());
  return facts;
}

void op_table::release_entry(std::uint32_t index) noexcept {
  free_.put(index);
}

}  // namespace cairn::detail
