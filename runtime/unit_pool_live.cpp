// Shares of live KV: taking units for it, claiming what is there, giving shares back. The
// protocol is explained in unit_pool_state.hpp.
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::unit_flag;
using detail::unit_phase;

namespace {

constexpr detail::unit_word live_word{0, 1, unit_phase::live, 0};

error out_of_range(unit_id id, std::uint32_t max_units) noexcept {
  return {status::invalid, "unit id is out of range", id, max_units, id};
}

error wrong_phase(const char* what, unit_id id, unit_phase expected, unit_phase got) noexcept {
  return {status::invalid, what, id, static_cast<std::uint64_t>(expected),
          static_cast<std::uint64_t>(got)};
}

}  // namespace

result<void> unit_pool::allocate(std::span<unit_id> out) {
  if (out.size() > state_->max_units_ ||
      !state_->take_credits(static_cast<std::uint32_t>(out.size())))
    return error{status::no_room, "not enough free units to allocate", 0, out.size(), free_units()};
  state_->collect(out, live_word);
  return {};
}

result<void> unit_pool::allocate_at(unit_id id) {
  if (id >= state_->max_units_) return out_of_range(id, state_->max_units_);
  const auto refuse = [&](state::unit_word seen) -> result<void> {
    if (seen.phase == unit_phase::absent)
      return wrong_phase("unit is not part of the pool", id, unit_phase::spare, seen.phase);
    return error{status::busy, "unit is held", id, static_cast<std::uint64_t>(unit_phase::spare),
                 static_cast<std::uint64_t>(seen.phase)};
  };
  auto seen = state_->look(id);
  if (!state_->is_free(id, seen)) return refuse(seen);
  if (!state_->take_credits(1))
    return error{status::busy, "every free unit is spoken for", id, 1, 0};
  if (state_->take_at(id, seen, live_word)) return {};
  state_->return_credits(1);
  return refuse(seen);
}

unit_pool::state::sharing unit_pool::state::share(unit_id id, unit_word& seen) noexcept {
  if (seen.phase == phase::live) {
    if (seen.shares == unit_word::shares_max) return sharing::full;
    return swap(id, seen, seen.shared(seen.shares + 1U)) ? sharing::done : sharing::changed;
  }
  // Cached: one free unit less, so the claim must first be sure that nobody is promised it.
  if (!sync::mutated("claim without a credit") && !take_credits(1)) return sharing::no_credit;
  unit_word claimed = seen.shared(1);
  claimed.phase = phase::live;
  if (!swap(id, seen, claimed)) {
    return_credits(1);
    return sharing::changed;
  }
  sync_leaf(id);
  return sharing::done;
}

unit_id unit_pool::claim(const checkpoint_key& key) noexcept {
  for (;;) {
    state::unit_word seen;
    const unit_id id = state_->find(key, seen);
    if (id == no_unit) return no_unit;
    const std::uint32_t generation = seen.generation;
    // While the generation stands, so does the key: other shares need no new search.
    while (seen.generation == generation && seen.answers()) {
      switch (state_->share(id, seen)) {
        case state::sharing::done:
          return id;
        case state::sharing::changed:
          break;
        case state::sharing::no_credit:
        case state::sharing::full:
          return no_unit;
      }
    }
  }
}

result<void> unit_pool::claim_unit(unit_id id) {
  if (id >= state_->max_units_) return out_of_range(id, state_->max_units_);
  auto seen = state_->look(id);
  while (seen.phase == unit_phase::live || seen.phase == unit_phase::cached) {
    switch (state_->share(id, seen)) {
      case state::sharing::done:
        return {};
      case state::sharing::changed:
        break;
      case state::sharing::no_credit:
        return error{status::no_room, "every free unit is spoken for", id, 1, 0};
      case state::sharing::full:
        return error{status::limit, "unit has as many shares as can be counted", id,
                     state::unit_word::shares_max, seen.shares};
    }
  }
  return wrong_phase("only a live or cached unit can be claimed", id, unit_phase::live, seen.phase);
}

void unit_pool::state::merge_fence(unit_id id, fence_token fence) noexcept {
  if (fence.step == 0) return;
  auto& step = fences_[std::size_t{id} * streams_ + fence.stream];
  std::uint64_t seen = step.load_relaxed();
  while (seen < fence.step && !step.cas_relaxed(seen, fence.step)) {  // (8)
  }
}

detail::unit_word unit_pool::state::freed(unit_id id, unit_word seen) noexcept {
  if (!seen.has(unit_flag::keyed)) return seen.to(phase::spare).shared(0);
  // Only the holder of the last share is here; if the CAS to come fails, the next one draws anew.
  units_[id].cached_at.store_release(by_age_.next_stamp());  // (5)
  return seen.to(phase::cached).shared(0);
}

void unit_pool::state::offer_freed(unit_id id, unit_word now) noexcept {
  if (now.phase == phase::cached)
    sync_leaf(id);
  else
    offer_vacant(id);
  return_credits(1);
}

result<void> unit_pool::free(unit_id id, fence_token fence) {
  if (id >= state_->max_units_) return out_of_range(id, state_->max_units_);
  if (fence.step != 0 && fence.stream >= state_->streams_)
    return error{status::invalid, "fence names a compute stream that the pool does not know",
                 fence.stream, state_->streams_, fence.stream};
  auto seen = state_->look(id);
  bool merged = false;
  while (seen.phase == unit_phase::live && seen.shares != 0) {
    // Before the share falls: once it has, the unit may be anybody's.
    if (!merged) state_->merge_fence(id, fence);
    merged = true;
    if (seen.shares > 1 || seen.has(unit_flag::receiving)) {
      if (state_->swap(id, seen, seen.shared(seen.shares - 1U))) return {};
    } else {
      const auto next = state_->freed(id, seen);
      if (state_->swap(id, seen, next)) {
        state_->offer_freed(id, next);
        return {};
      }
    }
  }
  return wrong_phase("only a share of a live unit can be freed", id, unit_phase::live, seen.phase);
}

}  // namespace cairn
