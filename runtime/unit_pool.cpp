// Opening the pool, and its free units: credits, bits, the order of cached units, taking the next.
// The protocol is explained in unit_pool_state.hpp.
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::unit_flag;
using detail::unit_phase;

unit_pool::state::state(const options& opts)
    : max_units_(opts.max_units),
      streams_(opts.compute_streams),
      units_(opts.max_units),
      parts_(opts.max_units),
      fences_(std::make_unique<sync::atomic<std::uint64_t>[]>(std::size_t{opts.max_units} *
                                                              opts.compute_streams)),
      vacant_(opts.max_units),
      by_age_(opts.max_units),
      index_(opts.max_units, detail::unit_nodes{units_.get()}) {}

unit_pool::unit_pool(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}
unit_pool::~unit_pool() = default;

result<std::unique_ptr<unit_pool>> unit_pool::open(const options& opts) {
  options settled = opts;
  if (settled.max_units == 0) settled.max_units = settled.units;
  if (settled.max_units == 0)
    return error{status::invalid, "unit_pool: units and max_units are both 0", 0, 1, 0};
  if (settled.max_units > max_index)
    return error{status::invalid, "unit_pool: max_units is above max_index", 0, max_index,
                 settled.max_units};
  if (settled.units > settled.max_units)
    return error{status::invalid, "unit_pool: units is above max_units", 0, settled.max_units,
                 settled.units};
  if (settled.compute_streams == 0 || settled.compute_streams > max_compute_streams)
    return error{status::invalid, "unit_pool: compute_streams is not in 1..max_compute_streams", 0,
                 max_compute_streams, settled.compute_streams};
  std::unique_ptr<unit_pool> pool(new unit_pool(std::make_unique<state>(settled)));
  pool->extend(settled.units);
  return pool;
}

std::uint32_t unit_pool::max_units() const noexcept {
  return state_->max_units_;
}

std::uint32_t unit_pool::free_units() const noexcept {
  return state_->credits_.load_relaxed() & state::credit_mask;
}

void unit_pool::set_orphan_hook(orphan_hook hook, void* context) noexcept {
  // Meant for opening and closing: between two different hooks there must be a moment with none
  // and no call under way, or a call may pair one hook with the other's context.
  state_->hook_context_.store_relaxed(context);
  state_->hook_.store_release(hook);  // (10)
}

void unit_pool::state::orphan(const checkpoint_key& key) const noexcept {
  const orphan_hook hook = hook_.load_acquire();  // (11)
  if (hook != nullptr) hook(hook_context_.load_relaxed(), key);
}

void unit_pool::state::sync_leaf(unit_id id) noexcept {
  for (unit_word seen = look(id);;) {
    if (seen.phase == phase::cached)
      by_age_.set(id, units_[id].cached_at.load_acquire());  // (6)
    else if (seen.phase == phase::cleared)
      by_age_.set(id, 0);  // before all that are cached, lowest id first
    else
      by_age_.clear(id);
    const unit_word now = look(id);
    // Shares and flags do not matter here; generations tell one caching from the next.
    if (now.generation == seen.generation && now.phase == seen.phase) return;
    seen = now;
  }
}

bool unit_pool::state::take_cached(unit_id id, unit_word& seen, unit_word to) noexcept {
  if (!swap(id, seen, seen.taken(to))) return false;
  sync_leaf(id);
  // The node keeps the key until the next publication, which only a holder of the unit makes.
  // Unless another unit has been published under it meanwhile: then the KV is there again.
  if (seen.has(unit_flag::named)) {
    const checkpoint_key key = key_of(id);
    unit_word other;
    if (find(key, other) == no_unit) orphan(key);
  }
  return true;
}

bool unit_pool::state::take_at(unit_id id, unit_word& seen, unit_word to) noexcept {
  for (seen = look(id);;) {
    if (seen.phase == phase::spare) {
      const bool vacant =
          sync::mutated("vacant by a look") ? vacant_.contains(id) : vacant_.take(id);
      if (vacant) become(detail::bit_run::of(id), to);
      return vacant;
    }
    if (!seen.in_order()) return false;
    if (take_cached(id, seen, to)) return true;
  }
}

unit_id unit_pool::state::take_cleared(detail::bit_run& vacant, unit_word to) noexcept {
  const auto first_in_order = [this](unit_word& seen) {
    for (;;) {
      const unit_id id = by_age_.first();
      if (id == detail::order::none) return no_unit;
      seen = look(id);
      if (seen.in_order()) return seen.phase == phase::cleared ? id : no_unit;
      sync_leaf(id);
    }
  };
  unit_word seen;
  for (unit_id id = first_in_order(seen); id != no_unit; id = first_in_order(seen)) {
    if (vacant.bits != 0) {
      if (vacant.first() < id) return no_unit;
      // Before the other is taken: on one credit no call has two in hand, for who holds the next
      // credit must find a unit.
      if (!sync::mutated("two units on one credit")) vacant_.put(std::exchange(vacant, {}));
    }
    if (!take_cached(id, seen, to)) continue;
    if (vacant.bits != 0) vacant_.put(std::exchange(vacant, {}));
    return id;
  }
  credits_.fetch_and_acq_rel(~cleared_bit);  // (17)
  if (!sync::mutated("no second look at cleared units") && first_in_order(seen) != no_unit)
    credits_.fetch_or_acq_rel(cleared_bit);  // (17)
  return no_unit;
}

unit_id unit_pool::state::take_oldest(unit_word to) noexcept {
  if (const unit_id id = by_age_.first(); id != detail::order::none) {
    unit_word seen = look(id);
    if (!seen.in_order())
      sync_leaf(id);
    else if (take_cached(id, seen, to))
      return id;
    return no_unit;
  }
  // Nothing is vacant and the order is empty, while the credit says that a unit is there: somebody
  // is in the middle of an update. The words know.
  for (unit_id id = 0; id < max_units_; ++id) {
    unit_word seen = look(id);
    if (seen.in_order() && take_cached(id, seen, to)) return id;
  }
  return no_unit;
}

void unit_pool::state::collect(std::span<unit_id> out, unit_word to) noexcept {
  while (!out.empty()) {
    const auto most = static_cast<std::uint32_t>(out.size());
    out = out.subspan(detail::list(take_next(most, to), out));
  }
}

}  // namespace cairn
