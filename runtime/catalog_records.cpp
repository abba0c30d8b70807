// The transitions of records: see record.hpp for who may make which, and why. Knows no ops.
#include <cassert>

#include "runtime/catalog_state.hpp"

namespace cairn {

using detail::record;
using detail::record_state;
using detail::record_word;

namespace {

/// Applies change(word) -> bool until its CAS wins; false as soon as change refuses.
template <class Change>
bool transition(record& r, record_word& before, record_word& after, Change&& change) noexcept {
  std::uint64_t bits = r.word.load_acquire();  // (1)
  for (;;) {
    before = record_word::of(bits);
    after = before;
    if (!change(after)) return false;
    if (r.word.cas_acq_rel(bits, after.bits())) return true;  // (4)
  }
}

}  // namespace

void catalog::state::sync_order(std::uint32_t id) noexcept {
  // Several threads may be here for one record, each having changed its word or its stamp. The
  // policy's own place for the record is one word that place and drop exchange, so these calls
  // are ordered, and the last one looks at the record after it: it sees what all others changed.
  record& r = records[id];
  record_word now = r.load();
  std::uint64_t stamp = r.used.load_acquire();  // (8) acquire: pairs with (7); `born` too
  for (;;) {
    if (now.in_order()) {
      use_info use;
      use.stamp = stamp;
      use.born = r.born.load_relaxed();  // ordered behind (8)
      use.key = r.key();
      use.hint = static_cast<placement_hint>(r.hint.load_relaxed());
      policy->place(id, use);
    } else {
      policy->drop(id);
    }
    const record_word then = r.load();
    const std::uint64_t stamp_then = r.used.load_acquire();  // (8)
    if (then.in_order() == now.in_order() && (!then.in_order() || stamp_then == stamp)) return;
    now = then;
    stamp = stamp_then;
  }
}

void catalog::state::undo_pin(std::uint32_t id, std::uint64_t one) noexcept {
  if (sync::mutated("wrong pin undone by a store")) {
    // Relaxed: a fault, never in this build.
    sync::atomic<std::uint64_t>& word = records[id].word;
    word.store_relaxed(word.load_relaxed() - one);
    return;
  }
  unpin(id, one);
}

void catalog::state::last_unpinned(std::uint32_t id, record_word after) noexcept {
  record& r = records[id];
  // The record may be another's by now. Both CASes name the whole word, generation included, so
  // that they act on this tenancy or not at all; when they fail, whoever changed the word stands
  // here later.
  std::uint64_t expected = after.bits();
  if (after.state == record_state::evicting) {
    record_word next = after;
    next.state = record_state::reclaiming;
    if (r.word.cas_acq_rel(expected, next.bits())) reclaim(id, true);  // (4)
  } else if (after.state == record_state::ready && after.parked) {
    record_word next = after;
    next.parked = false;
    if (r.word.cas_acq_rel(expected, next.bits())) {  // (4)
      sync_order(id);  // first: what is not counted as held can be found
      moved(after, next);
    }
  }
}

bool catalog::state::hide(std::uint32_t id, std::uint32_t generation) noexcept {
  record_word before;
  record_word after;
  const bool won = transition(records[id], before, after, [&](record_word& w) {
    if (w.generation != generation) return false;
    if (w.state != record_state::copying && w.state != record_state::ready) return false;
    w.state = record_state::evicting;
    w.parked = false;
    return true;
  });
  if (!won) return false;
  moved(before, after);
  sync_order(id);
  by_key.erase(id);
  return true;
}

bool catalog::state::remove(const checkpoint_key& key) noexcept {
  record_word found;
  const std::uint32_t id = pin_key(
      key, record_word::one_pin,
      [](record_word w) {
        return w.state == record_state::copying || w.state == record_state::ready;
      },
      found);
  if (id == none) return false;
  const bool won = hide(id, found.generation);
  unpin(id, record_word::one_pin);
  return won;
}

void catalog::state::reclaim(std::uint32_t id, bool release_units) noexcept {
  record& r = records[id];
  if (release_units) {
    const auto released = pool.release(units_of(id), owner_of(id, r.load().generation));
    assert(released.ok());
    (void)released;
  }
  record_word before;
  record_word after;
  transition(r, before, after, [](record_word& w) {
    w.state = record_state::vacant;
    return true;
  });
  free_records.put(id);
  waiting.ring();
}

std::uint32_t catalog::state::take_vacant(const checkpoint_key& key) noexcept {
  const std::uint64_t hash = detail::hash_of(key);
  const std::uint32_t home = homes.of(hash);
  const auto take = [&](std::uint32_t id) {
    return free_records.contains(id) && free_records.take(id);
  };
  if (take(home)) return home;
  const std::uint32_t id =
      take(homes.next_to(home)) ? homes.next_to(home) : free_records.take_lowest();
  if (id != none) {
    const auto guest = detail::guest_word::of(id, detail::print_of(hash));
    records[home].guest.store_relaxed(guest.pack());  // relaxed: whoever follows it pins and looks
  }
  return id;
}

std::uint32_t catalog::state::claim_record(const checkpoint_key& key,
                                           placement_hint hint) noexcept {
  const std::uint32_t id = take_vacant(key);
  if (id == none) return none;
  record& r = records[id];
  // (3) release: pairs with (2). The key comes before the state, so that no reader pairs the
  // new state with the old key.
  r.node.hi.store_release(key.hi);
  r.node.lo.store_release(key.lo);
  r.hint.store_relaxed(static_cast<std::uint8_t>(hint));
  record_word before;
  record_word after;
  transition(r, before, after, [](record_word& w) {
    w.state = record_state::claimed;
    w.generation = (w.generation + 1) & record_word::generation_mask;
    w.parked = false;
    ++w.pins;
    return true;
  });
  return id;
}

void catalog::state::unclaim(std::uint32_t id, bool indexed) noexcept {
  if (indexed) by_key.erase(id);
  record_word before;
  record_word after;
  transition(records[id], before, after, [](record_word& w) {
    w.state = record_state::vacant;
    --w.pins;
    return true;
  });
  free_records.put(id);
}

void catalog::state::publish(std::uint32_t id) noexcept {
  record& r = records[id];
  const std::uint64_t stamp = uses.fetch_add_relaxed(1) + 1;
  r.born.store_relaxed(stamp);
  r.used.store_release(stamp);  // (7) release: pairs with (8); with `born` before it
  record_word before;
  record_word after;
  const bool won = transition(r, before, after, [](record_word& w) {
    if (w.state != record_state::copying) return false;
    w.state = record_state::ready;
    return true;
  });
  if (won) {
    sync_order(id);  // first: what is counted can be found
    moved(before, after);
  }
  // Not won: forgotten during the copy.
  unpin(id, record_word::one_pin);
}

void catalog::state::unwind(record_handle which, bool keep) noexcept {
  hide(which.index, which.generation);
  if (keep)
    quarantined.fetch_add_relaxed(per_image);
  else
    unpin(which.index, record_word::one_pin);
}

std::uint32_t catalog::state::take_victim() noexcept {
  // Each round either ends, or takes one record out of the order, or follows a change by
  // another thread. The bound is for a policy that keeps naming what was dropped.
  for (std::uint64_t round = 0; round < 4ULL * record_count + 64; ++round) {
    std::uint32_t id = policy->next();
    if (id >= record_count && evictable.sum() > held.load_relaxed()) id = policy->search();
    if (id >= record_count) return none;
    record& r = records[id];
    std::uint64_t bits = r.word.load_acquire();  // (1)
    const record_word before = record_word::of(bits);
    record_word after = before;
    if (before.evictable()) {
      after.state = record_state::reclaiming;
      after.parked = false;
      if (!r.word.cas_acq_rel(bits, after.bits())) continue;  // (4)
      moved(before, after);
      sync_order(id);
      by_key.erase(id);
      fates.evicted.fetch_add_relaxed(1);
      return id;
    }
    if (before.state == record_state::ready && !before.parked) {
      (void)park(id, bits);
      continue;
    }
    sync_order(id);  // the policy lags behind the word: help
  }
  return none;
}

bool catalog::state::park(std::uint32_t id, std::uint64_t bits) noexcept {
  const record_word before = record_word::of(bits);
  record_word after = before;
  after.parked = true;
  if (!records[id].word.cas_acq_rel(bits, after.bits())) return false;  // (4)
  moved(before, after);
  sync_order(id);
  return true;
}

void catalog::state::park_pinned() noexcept {
  pins.for_each_new([&](record_handle which) {
    for (;;) {
      const std::uint64_t bits = records[which.index].word.load_acquire();  // (1)
      const record_word w = record_word::of(bits);
      if (w.generation != which.generation || w.state != record_state::ready) return;
      if (w.parked || w.pins == 0 || park(which.index, bits)) return;
    }
  });
}

bool catalog::state::evict_one() noexcept {
  const std::uint32_t id = take_victim();
  if (id == none) return false;
  reclaim(id, true);
  return true;
}

}  // namespace cairn
