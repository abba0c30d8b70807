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

struct owed_word {
  std::uint32_t generation = 0;  // 31 bits
  bool closed = false;           // the op has ended
  std::uint32_t mask = 0;

  static constexpr std::uint32_t generation_mask = ~std::uint32_t{0} >> 1;
  static constexpr owed_word of(std::uint64_t bits) noexcept {
    return {static_cast<std::uint32_t>(bits >> 33), ((bits >> 32) & 1) != 0,
            static_cast<std::uint32_t>(bits)};
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return (std::uint64_t{generation} << 33) | (std::uint64_t{closed ? 1U : 0U} << 32) | mask;
  }
  [[nodiscard]] constexpr bool of_tenant(std::uint32_t whole) const noexcept {
    return generation == (whole & generation_mask);
  }
};

constexpr std::uint64_t pack(std::uint32_t high, std::uint32_t low) noexcept {
  return (std::uint64_t{high} << 32) | low;
}

}  // namespace

op_id op_table::begin(std::uint32_t index, const op_facts& facts) noexcept {
  entry& e = entries_[index];
  const op_word claimed = op_word::of(e.state.load_relaxed());  // ours alone
  const op_id op{index, claimed.generation};
  e.record.store_relaxed(pack(facts.record.index, facts.record.generation));
  e.slot_epoch.store_relaxed(pack(facts.slot, facts.epoch));
  e.kind.store_relaxed(static_cast<std::uint8_t>(facts.kind));
  e.ranks.store_relaxed(rank_word{op.generation, 0}.bits());
  e.owed.store_relaxed(owed_word{op.generation & owed_word::generation_mask, false, 0}.bits());
  // (8) release: whoever finds this generation in `state` sees the facts and the empty masks.
  op_word fresh;
  fresh.generation = op.generation;
  fresh.phase = first_;
  e.state.store_release(fresh.bits());
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
    // (10): the submitter's reads of the op's units come before any cancel.
    if (e.state.cas_acq_rel(bits, w.bits())) return;
  }
}

bool op_table::take(op_id op) noexcept {
  if (op.index >= capacity_) return false;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || !w.open()) return false;
    if (w.phase == op_phase::taken) return true;
    w.phase = op_phase::taken;
    if (e.state.cas_acq_rel(bits, w.bits())) return true;  // (10)
  }
}

bool op_table::start_cancel(op_id op, op_facts& facts) noexcept {
  if (op.index >= capacity_) return false;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || w.phase != op_phase::queued)
      if (!(sync::mutated("cancel of a taken op") && w.phase == op_phase::taken)) return false;
    w.phase = op_phase::finishing;
    w.code = status::cancelled;
    if (e.state.cas_acq_rel(bits, w.bits())) break;  // (10)
  }
  facts = facts_of(e);
  return true;
}

op_table::counted op_table::count(const completion& what, op_facts& facts, verdict& over) noexcept {
  if (what.op.index >= capacity_ || what.rank >= ranks_) return counted::no;
  const std::uint32_t bit = 1U << what.rank;
  entry& e = entries_[what.op.index];

  std::uint64_t bits = e.state.load_acquire();  // (9)
  if (op_word::of(bits).generation != what.op.generation || !op_word::of(bits).open())
    return counted::no;
  facts = facts_of(e);
  if (facts.epoch != what.epoch) return counted::no;

  // (1) relaxed: once for each rank, no more. The generation is in the word, so a CAS that wins is
  // this tenant's. Of one rank the first to come to (3) ends the op, and the others find it so; but
  // what must be announced at (2) is announced by one.
  if (ranks_ > 1 || what.unproven) {
    std::uint64_t mask_bits = e.ranks.load_relaxed();
    for (;;) {
      rank_word r = rank_word::of(mask_bits);
      if (r.generation != what.op.generation) return counted::no;
      if ((r.mask & bit) != 0 && !sync::mutated("a rank counts twice")) return counted::no;
      r.mask |= bit;
      if (e.ranks.cas_relaxed(mask_bits, r.bits())) break;  // (1)
    }
  }
  // (2) release: pairs with (5). Before (3), so that who counts the last rank finds it.
  if (what.unproven && !sync::mutated("unproven forgotten")) {
    std::uint64_t owed_bits = e.owed.load_relaxed();
    for (;;) {
      owed_word o = owed_word::of(owed_bits);
      if (!o.of_tenant(what.op.generation)) return counted::no;
      o.mask |= bit;
      if (e.owed.cas_release(owed_bits, o.bits())) break;  // (2)
    }
  }
  // What most ops come to, in fewer steps: one rank, which has not reported yet, and a success.
  if (ranks_ == 1 && what.code == status::ok && !what.unproven) {
    op_word w;
    do {
      w = op_word::of(bits);
      if (w.generation != what.op.generation || !w.open()) return counted::no;
      w.code = status::ok;
      w.reported = 1;
      w.phase = op_phase::finishing;
    } while (!e.state.cas_acq_rel(bits, w.bits()));  // (3)
    over = {status::ok, false, false};
    return counted::last;
  }
  // (3) acq_rel: pairs with itself, (8), (9) and (10). The last rank acquires all that the others
  // did before they were counted. Only a cancel can have come before it. The first failure stays; a
  // timeout outranks the others.
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != what.op.generation || !w.open()) return counted::no;
    const bool bad =
        (what.code != status::ok || what.unproven) && !sync::mutated("failure as success");
    if (bad && (w.code == status::pending || what.code == status::timed_out))
      w.code = what.code == status::ok ? status::timed_out : what.code;
    w.unproven = w.unproven || what.unproven;
    w.corrupt = w.corrupt || what.code == status::corrupt;
    const bool last = ++w.reported == ranks_ || sync::mutated("first rank ends the op");
    // Who reports has had the op, whether `take` was called or not: it can be cancelled no more,
    // for its units or its pin may be what a copy that was given up still touches.
    w.phase = last ? op_phase::finishing : op_phase::taken;
    if (last && w.code == status::pending) w.code = status::ok;
    if (!e.state.cas_acq_rel(bits, w.bits())) continue;  // (3)
    if (!last) return counted::yes;
    const owed_word owed = owed_word::of(e.owed.load_acquire());  // (11) acquire: pairs with (4)
    over = {w.code, w.unproven && owed.mask != 0, w.corrupt};
    return counted::last;
  }
}

op_table::counted op_table::prove(op_id op, rank_id rank, std::uint32_t epoch,
                                  op_facts& facts) noexcept {
  if (op.index >= capacity_ || rank >= ranks_) return counted::no;
  const std::uint32_t bit = 1U << rank;
  entry& e = entries_[op.index];
  const op_word w = op_word::of(e.state.load_acquire());  // (9)
  if (w.generation != op.generation || w.vacant()) return counted::no;
  facts = facts_of(e);
  if (facts.epoch != epoch) return counted::no;
  std::uint64_t bits = e.owed.load_relaxed();
  for (;;) {
    owed_word o = owed_word::of(bits);
    if (!o.of_tenant(op.generation) || (o.mask & bit) == 0) return counted::no;
    o.mask &= ~bit;
    // (4) acq_rel: pairs with itself, (5), (11). What this rank's copy did comes before the release
    // of what was kept; acquires the other ranks' proofs, and from (5) how the op ended.
    if (!e.owed.cas_acq_rel(bits, o.bits())) continue;
    return o.closed && o.mask == 0 ? counted::last : counted::yes;
  }
}

void op_table::finish_phase(op_id op, status code, bool keep) noexcept {
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  bool stays = false;
  bool awaited = false;
  for (;;) {
    op_word w = op_word::of(bits);
    assert(w.generation == op.generation && w.phase == op_phase::finishing);
    stays = w.observed || keep;
    awaited = w.awaited;
    w.awaited = false;
    w.phase = stays ? op_phase::ended : op_phase::free;
    w.code = code;
    w.kept = keep;
    // (10): the record's new state happens before `ended` is seen.
    if (e.state.cas_acq_rel(bits, w.bits())) break;
  }
  if (awaited) {
    e.bell.fetch_add_release(1);  // (6) release: pairs with (7); that the op has ended
    sync::wake_all(e.bell.raw());
  }
  if (!stays) choice_.put(op.index);
}

void op_table::end(op_id op, status code) noexcept {
  finish_phase(op, code, false);
}

bool op_table::end_kept(op_id op, status code) noexcept {
  finish_phase(op, code, true);
  sync::atomic<std::uint64_t>& owed = entries_[op.index].owed;
  std::uint64_t bits = owed.load_relaxed();
  for (;;) {
    owed_word o = owed_word::of(bits);
    o.closed = true;
    // (5) acq_rel: pairs with (2), (4). The last proof acquires that the op has ended and what is
    // kept; or this acquires the proofs. Acquires what was announced at (2).
    if (owed.cas_acq_rel(bits, o.bits())) return o.mask == 0;
  }
}

void op_table::unkeep(op_id op) noexcept {
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  for (;;) {
    op_word w = op_word::of(bits);
    assert(w.generation == op.generation && w.phase == op_phase::ended && w.kept);
    w.kept = false;
    if (!w.observed) w.phase = op_phase::free;
    if (!e.state.cas_acq_rel(bits, w.bits())) continue;  // (10)
    if (!w.observed) choice_.put(op.index);
    return;
  }
}

void op_table::observe(op_id op) noexcept {
  if (op.index >= capacity_) return;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || w.vacant()) return;
    w.observed = true;
    if (e.state.cas_acq_rel(bits, w.bits())) return;  // (10)
  }
}

void op_table::unobserve(op_id op) noexcept {
  if (op.index >= capacity_) return;
  entry& e = entries_[op.index];
  std::uint64_t bits = e.state.load_acquire();  // (9)
  for (;;) {
    op_word w = op_word::of(bits);
    if (w.generation != op.generation || !w.observed) return;
    const bool last = w.phase == op_phase::ended && !w.kept;
    w.observed = false;
    if (last) w.phase = op_phase::free;
    if (e.state.cas_acq_rel(bits, w.bits())) {  // (10)
      if (last) choice_.put(op.index);
      return;
    }
  }
}

// How the op stands that an entry's state tells of.
status op_table::judge(op_id op, op_word w) noexcept {
  if (w.generation != op.generation || w.vacant()) return status::stale;
  if (w.phase != op_phase::ended) return status::pending;
  return w.observed ? w.code : status::stale;
}

status op_table::code(op_id op) const noexcept {
  if (op.index >= capacity_) return status::stale;
  return judge(op, op_word::of(entries_[op.index].state.load_acquire()));  // (9)
}

status op_table::wait(op_id op, deadline until) const noexcept {
  if (op.index >= capacity_) return status::stale;
  const entry& e = entries_[op.index];
  for (;;) {
    // (7) acquire: pairs with (6). Before the look below: a ring after it ends the sleep.
    const std::uint32_t seen = e.bell.load_acquire();
    std::uint64_t bits = e.state.load_acquire();  // (9)
    op_word w = op_word::of(bits);
    const status now = judge(op, w);
    if (now != status::pending || clock::now() >= until) return now;
    w.awaited = !sync::mutated("waiter for an end unannounced");
    // (10): the bell was read before; who finds the mark rings after that.
    if (!e.state.cas_acq_rel(bits, w.bits())) continue;
    sync::sleep_until(e.bell.raw(), seen, until);
  }
}

bool op_table::look(std::uint32_t index, op_id& op, op_facts& facts,
                    op_phase& phase) const noexcept {
  const entry& e = entries_[index];
  const op_word w = op_word::of(e.state.load_acquire());  // (9)
  if (!w.open() && !w.kept) return false;
  op = {index, w.generation};
  phase = w.phase;
  facts = facts_of(e);
  return true;
}

std::uint32_t op_table::in_use() const noexcept {
  std::uint32_t used = 0;
  const std::uint32_t high = high_water();
  for (std::uint32_t i = 0; i < high; ++i)
    if (op_word::of(entries_[i].state.load_acquire()).phase != op_phase::free) ++used;  // (9)
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

}  // namespace cairn::detail
