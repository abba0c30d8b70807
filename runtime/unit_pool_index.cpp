// Which unit the index means by a key: publishing, looking up, dropping all keys. The protocol is
// explained in unit_pool_state.hpp, steps (a) to (g).
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::unit_flag;
using detail::unit_phase;

unit_id unit_pool::state::find(const checkpoint_key& key, unit_word& seen) const noexcept {
  const std::uint32_t id = index_.find(key, [&](std::uint32_t candidate) {
    const unit_word w = look(candidate);
    // The key once more, behind the word: the node may have changed hands since it was met.
    if (!w.answers() || !(key_of(candidate) == key)) return false;
    seen = w;
    return true;
  });
  return id == detail::index<detail::unit_nodes>::none ? no_unit : id;
}

unit_id unit_pool::lookup(const checkpoint_key& key) const noexcept {
  state::unit_word seen;
  return state_->find(key, seen);
}

bool unit_pool::is_cached(unit_id id) const noexcept {
  return id < state_->max_units_ && state_->look(id).phase == unit_phase::cached;
}

result<void> unit_pool::publish(unit_id id, const checkpoint_key& key) {
  if (id >= state_->max_units_)
    return error{status::invalid, "unit id is out of range", id, state_->max_units_, id};
  for (auto seen = state_->look(id);;) {
    if (seen.phase != unit_phase::live || seen.shares == 0)
      return error{status::invalid, "only a live unit can be published", id,
                   static_cast<std::uint64_t>(unit_phase::live),
                   static_cast<std::uint64_t>(seen.phase)};
    if (seen.has(unit_flag::publishing))
      return error{status::busy, "unit is being published by another call", id, 0, 1};
    if (seen.has(unit_flag::named) && state_->key_of(id) == key) {
      const auto now = state_->look(id);
      if (now == seen) return {};
      seen = now;
      continue;
    }
    // (a)
    const auto chosen = seen.to(unit_phase::live).keyless().with(unit_flag::publishing);
    if (!state_->swap(id, seen, chosen)) continue;
    const std::uint64_t named_at = state_->namings_.fetch_add_relaxed(1) + 1;  // (c)
    if (!state_->bear(id, chosen.generation, key, true, named_at))
      return error{status::invalid, "unit was freed while it was being published", id,
                   chosen.generation, state_->look(id).generation};
    return {};
  }
}

bool unit_pool::state::bear(unit_id id, std::uint32_t generation, const checkpoint_key& key,
                            bool named, std::uint64_t named_at) noexcept {
  detail::unit& u = units_[id];
  if (look(id).has(unit_flag::linked)) index_.erase(id);  // (b)
  u.named_at.store_release(named_at);                     // (5) (c)
  u.node.hi.store_release(key.hi);                        // (5)
  u.node.lo.store_release(key.lo);                        // (5)

  // (d)
  const unit_word before = edit(id, [&](unit_word w) {
    if (w.generation != generation)
      return w.without(unit_flag::linked).without(unit_flag::publishing);
    w = w.with(unit_flag::keyed);
    if (!named) return w.without(unit_flag::linked).without(unit_flag::publishing);
    return w.with(unit_flag::named).with(unit_flag::linked);
  });
  if (before.generation != generation) return false;
  if (!named) return true;

  // (e) Others stay named until this one can be found, but for all but one of several, which
  // only crossing publications can leave.
  unit_id older = no_unit;
  bool newer_exists = false;
  index_.insert_unless(id, key, [&](std::uint32_t other) {
    unit_word seen;
    switch (other == id ? standing::unnamed : compare(other, key, named_at, seen)) {
      case standing::unnamed:
        break;
      case standing::newer:
        newer_exists = true;
        break;
      case standing::older:
        if (older != no_unit && older != other) unname_older(older, key, named_at);
        older = other;
        break;
    }
    return false;
  });
  // (f)
  if (older != no_unit) unname_older(older, key, named_at);
  // (g) `publishing` has kept others from naming it anew, so a name that is still there is ours.
  edit(id, [&](unit_word w) {
    w = w.without(unit_flag::publishing);
    return newer_exists ? w.without(unit_flag::named) : w;
  });
  return true;
}

unit_pool::state::standing unit_pool::state::compare(unit_id other, const checkpoint_key& key,
                                                     std::uint64_t named_at,
                                                     unit_word& seen) const noexcept {
  for (seen = look(other);;) {
    if (!seen.has(unit_flag::named) || !(key_of(other) == key)) return standing::unnamed;
    const std::uint64_t stamp = units_[other].named_at.load_acquire();  // (6)
    const unit_word now = look(other);
    if (now.generation == seen.generation && now.has(unit_flag::named))
      return stamp > named_at ? standing::newer : standing::older;
    seen = now;
  }
}

void unit_pool::state::unname_older(unit_id other, const checkpoint_key& key,
                                    std::uint64_t named_at) noexcept {
  unit_word seen;
  while (compare(other, key, named_at, seen) == standing::older)
    if (swap(other, seen, seen.without(unit_flag::named))) return;
}

void unit_pool::clear_index() noexcept {
  bool any = false;
  for (unit_id id = 0; id < state_->max_units_; ++id) {
    auto seen = state_->look(id);
    for (;;) {
      if (seen.phase == unit_phase::cached) {
        if (!state_->swap(id, seen, seen.to(unit_phase::cleared).keyless())) continue;
        state_->sync_leaf(id);
        any = true;
        break;
      }
      if (!seen.has(unit_flag::keyed) || state_->swap(id, seen, seen.keyless())) break;
    }
  }
  // Behind the leaves: who sees it finds the units.
  if (any) state_->credits_.fetch_or_acq_rel(state::cleared_bit);  // (17)
}

}  // namespace cairn
