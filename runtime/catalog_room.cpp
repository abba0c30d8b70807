// Room: what could be had, what is evicted for it, who goes first; and admission in one step.
#include <algorithm>

#include "runtime/catalog_state.hpp"

namespace cairn {

using detail::op_table;
using detail::record_state;
using detail::record_word;

bool catalog::state::could_have(std::uint64_t count, std::uint64_t withheld) const noexcept {
  const std::uint64_t wanted = count + withheld;
  // Records before units: an eviction in between is counted on both sides, never on none.
  const std::int64_t records_left = evictable.sum();
  const std::uint64_t free = pool.free_units();
  if (wanted <= free) return true;
  if (records_left <= 0) return false;
  return wanted - free <= static_cast<std::uint64_t>(records_left) * per_image;
}

std::uint64_t catalog::state::demanded() noexcept {
  return waiting.empty() ? 0 : waiting.demand(clock::now());
}

error catalog::state::no_victim() const noexcept {
  // Bare pins hold what is counted but set aside; anything beyond that was the policy's choice.
  if (evictable.sum() > held.load_relaxed())
    return {status::passed_over, "the eviction policy named no victim"};
  return {status::no_room, "every checkpoint that could be evicted is pinned"};
}

result<void> catalog::state::fill(std::uint32_t id, std::uint32_t generation) noexcept {
  const std::span<unit_id> units = units_of(id);
  const owner_id owner = owner_of(id, generation);
  const std::uint64_t withheld = demanded();
  for (;;) {
    if (withheld == 0 || pool.free_units() >= per_image + withheld) {
      auto reserved = pool.reserve(units, owner);
      if (reserved || reserved.code() != status::no_room) return reserved;
    }
    const std::uint32_t victim = take_victim();
    if (victim != none) {
      // One victim suffices: its units are passed on, and nobody comes between.
      const std::uint32_t its_generation = records[victim].load().generation;
      auto replaced =
          pool.replace(units_of(victim), owner_of(victim, its_generation), units, owner);
      reclaim(victim, !replaced.ok());
      return replaced;
    }
    // Bare pins past their deadline stand in the way of nobody.
    if (pins.live() == 0 || expire_pins(clock::now()) == 0) break;
  }
  // Whoever took the last victim may have given its units back by now.
  if (pool.free_units() >= per_image + withheld) {
    auto reserved = pool.reserve(units, owner);
    if (reserved || reserved.code() != status::no_room) return reserved;
  }
  return no_victim();
}

result<std::uint64_t> catalog::state::victims_for(std::uint64_t count,
                                                  std::uint64_t withheld) noexcept {
  const error short_of(status::no_room, "not enough units, even by evicting", 0, count,
                       pool.free_units());
  if (!could_have(count, withheld)) return short_of;
  const std::uint64_t wanted = count + withheld;
  const std::uint64_t free = pool.free_units();
  const std::uint64_t victims = wanted > free ? (wanted - free + per_image - 1) / per_image : 0;
  if (victims > 0 && pins.live() != 0) {
    // Bare pins are not in the count. Whoever needs victims looks at them first, so that a request
    // which they make impossible is refused before anything is evicted.
    expire_pins(clock::now());
    park_pinned();
    const std::int64_t left = evictable.sum() - held.load_relaxed();
    if (left < 0 || static_cast<std::uint64_t>(left) < victims) return short_of;
  }
  return victims;
}

template <class Take>
result<void> catalog::state::acquire(std::uint64_t count, std::uint64_t withheld,
                                     Take&& take) noexcept {
  auto victims = victims_for(count, withheld);
  if (!victims) return victims.why();
  for (std::uint64_t left = *victims;; --left) {
    if (withheld == 0 || pool.free_units() >= count + withheld) {
      result<void> taken = take();
      if (taken || taken.code() != status::no_room) return taken;
    }
    if (left == 0)
      return error(status::no_room, "other callers took the units that were made free", 0, count,
                   pool.free_units());
    if (!evict_one()) return no_victim();
  }
}

bool catalog::has_available_units(std::uint32_t count,
                                  const checkpoint_key* protect) const noexcept {
  const state& s = *state_;
  // Records before units, as in could_have.
  std::int64_t left = s.evictable.sum();
  const std::uint64_t free = s.pool.free_units();
  if (count <= free) return true;
  if (protect != nullptr) {
    record_word found;
    const std::uint32_t id = s.peek_key(
        *protect, [](record_word w) { return w.state == record_state::ready; }, found);
    if (id != state::none && found.counted()) --left;
  }
  if (left <= 0) return false;
  return count - free <= static_cast<std::uint64_t>(left) * s.per_image;
}

std::uint32_t catalog::evictable() const noexcept {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, state_->evictable.sum()));
}

result<void> catalog::ensure_free_units(std::uint32_t count) noexcept {
  state& s = *state_;
  return s.acquire(count, s.demanded(), [&]() -> result<void> {
    if (s.pool.free_units() >= count) return {};
    return error(status::no_room, "too few free units yet");
  });
}

result<void> catalog::allocate(std::span<unit_id> out) noexcept {
  state& s = *state_;
  if (s.closed.load_acquire()) return error(status::closed, "the catalog is closed");  // (12)
  if (out.empty()) return {};
  return s.acquire(out.size(), s.demanded(), [&] { return s.pool.allocate(out); });
}

result<void> catalog::wait_reserve(std::span<unit_id> out, owner_id owner,
                                   deadline until) noexcept {
  state& s = *state_;
  if (out.size() > s.pool.max_units())
    return error(status::no_room, "more units than the pool can ever have", 0, s.pool.max_units(),
                 out.size());
  std::uint64_t ticket = 0;
  if (!s.waiting.join(static_cast<std::uint32_t>(out.size()), until, ticket))
    return error(status::limit, "too many callers wait for units", 0, detail::wait_line::places,
                 detail::wait_line::places);
  // Frees of live KV ring no bell here, so the sleep is short.
  constexpr auto look_again = std::chrono::microseconds(500);
  for (;;) {
    const std::uint32_t seen = s.waiting.seen();
    const deadline now = clock::now();
    if (s.closed.load_acquire()) {  // (12)
      s.waiting.leave(ticket, until);
      return error(status::closed, "the catalog is closed");
    }
    if (s.waiting.first(ticket, now)) {
      auto taken = s.acquire(out.size(), 0, [&] { return s.pool.reserve(out, owner); });
      if (taken || (taken.code() != status::no_room && taken.code() != status::passed_over)) {
        s.waiting.leave(ticket, until);
        s.waiting.ring();
        return taken;
      }
    }
    if (now >= until || s.waiting.passed(ticket)) {
      s.waiting.leave(ticket, until);
      return error(status::timed_out, "units did not come free before the deadline", 0, out.size(),
                   s.pool.free_units());
    }
    s.waiting.sleep(seen, std::min(until, now + look_again));
  }
}

namespace {

/// Claims keys[0, count) into `units`; on a miss gives all back, last first.
bool claim_prefix(unit_source& pool, std::span<const checkpoint_key> keys, std::uint32_t count,
                  std::span<unit_id> units) {
  for (std::uint32_t i = 0; i < count; ++i) {
    units[i] = pool.claim(keys[i]);
    if (units[i] != no_unit) continue;
    while (i > 0) (void)pool.free(units[--i]);
    return false;
  }
  return true;
}

}  // namespace

result<admission> catalog::admit(std::span<const checkpoint_key> keys, std::uint32_t fresh,
                                 slot_id slot, std::span<unit_id> units) noexcept {
  state& s = *state_;
  if (s.closed.load_acquire()) return error(status::closed, "the catalog is closed");  // (12)
  if (slot >= s.slots) return s.refuse_slot(slot);
  if (units.size() != keys.size() + fresh)
    return error(status::invalid, "units must hold one id per key and per fresh unit", 0,
                 keys.size() + fresh, units.size());

  // A prefix that another thread takes apart while it is claimed is looked up again; after a few
  // rounds the request starts from nothing, which is always right.
  constexpr int rounds = 4;
  for (int round = 0;; ++round) {
    admission made;
    std::uint32_t cached = 0;
    while (made.kv_hit < keys.size()) {
      const unit_id held = s.pool.lookup(keys[made.kv_hit]);
      if (held == no_unit) break;
      ++made.kv_hit;
    }
    record_word found;
    std::uint32_t id = state::none;
    std::uint32_t length = round < rounds ? made.kv_hit : 0;
    for (; length > 0; --length) {
      id = s.pin_key(
          keys[length - 1], record_word::one_restore,
          [](record_word w) { return w.state == record_state::ready; }, found);
      if (id != state::none) break;
    }
    made.resumed = length;
    for (std::uint32_t i = 0; i < length; ++i) {
      const unit_id held = s.pool.lookup(keys[i]);
      if (held != no_unit && s.pool.is_cached(held)) ++cached;
    }
    const auto give_up = [&] {
      if (id != state::none) s.unpin(id, record_word::one_restore);
    };
    // The cached units of the prefix are about to be live: they are not room for the rest.
    const std::span<unit_id> rest = units.subspan(length);
    const std::uint64_t withheld = s.demanded();
    if (auto room = s.victims_for(rest.size() + cached, withheld); !room) {
      give_up();
      return room.why();
    }
    const std::uint32_t entry = length > 0 ? s.ops.take_entry(slot) : 0;
    if (entry == op_table::none) {
      give_up();
      return error(status::limit, "max_ops operations are in flight");
    }
    const auto give_entry = [&] {
      if (length > 0) s.ops.give_entry(entry);
    };
    if (!claim_prefix(s.pool, keys, length, units)) {
      give_entry();
      give_up();
      continue;
    }
    if (!rest.empty()) {
      auto taken = s.acquire(rest.size(), withheld, [&] { return s.pool.allocate(rest); });
      if (!taken) {
        for (std::uint32_t i = length; i > 0; --i) (void)s.pool.free(units[i - 1]);
        give_entry();
        give_up();
        return taken.why();
      }
    }
    if (length > 0) {
      s.mark_used(id);
      const std::uint32_t now = s.epoch.load_acquire();  // (10)
      made.restore =
          s.begin(entry, {{id, found.generation}, slot, now, copy_kind::restore}).value();
    }
    return made;
  }
}

}  // namespace cairn
