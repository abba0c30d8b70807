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
      units_(std::make_unique<detail::unit[]>(opts.max_units)),
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
  return state_->credits_.load_relaxed();
}

void unit_pool::set_orphan_hook(orphan_hook hook, void* context) noexcept {
  // Meant for opening and closing: between two different hooks there must be a moment with none
  // and no call under way, or a call may pair one hook with the other's context.
  state_->hook_context_.store_relaxed(context);
  state_->hook_.store_release(hook);  // pairs with the load in orphan
}

void unit_pool::state::orphan(const checkpoint_key& key) const noexcept {
  const orphan_hook hook = hook_.load_acquire();
  if (hook != nullptr) hook(hook_context_.load_relaxed(), key);
}

bool unit_pool::state::take_credits(std::uint32_t count) noexcept {
  std::uint32_t seen = credits_.load_relaxed();
  while (seen >= count)
    if (credits_.cas_acquire(seen, seen - count)) return true;  // (4)
  return false;
}

void unit_pool::state::return_credits(std::uint32_t count) noexcept {
  if (count != 0) credits_.fetch_add_release(count);  // (3)
}

void unit_pool::state::sync_leaf(unit_id id) noexcept {
  for (unit_word seen = look(id);;) {
    if (seen.phase == phase::cached)
      by_age_.set(id, units_[id].cached_at.load_acquire());  // (6)
    else
      by_age_.clear(id);
    const unit_word now = look(id);
    // Shares and flags do not matter here; generations tell one caching from the next.
    if (now.generation == seen.generation && now.phase == seen.phase) return;
    seen = now;
  }
}

bool unit_pool::state::take(unit_id id, unit_word& seen, unit_word to) noexcept {
  unit_word taken = seen.to(to.phase).keyless().shared(to.shares);
  if (to.has(unit_flag::receiving)) taken = taken.with(unit_flag::receiving);
  if (!swap(id, seen, taken)) return false;
  if (seen.phase == phase::cached) {
    sync_leaf(id);
    // The node keeps the key until the next publication, which only a holder of the unit makes.
    // Unless another unit has been published under it meanwhile: then the KV is there again.
    if (seen.has(unit_flag::named)) {
      const checkpoint_key key = key_of(id);
      unit_word other;
      if (find(key, other) == no_unit) orphan(key);
    }
  }
  return true;
}

unit_id unit_pool::state::collect(unit_word to) noexcept {
  // A call of clear_index that sets its bit again for ever must not keep this one for ever: a bit
  // that is stale for any other reason costs one touch.
  constexpr int touches_max = 8;
  int touches = 0;
  for (;;) {
    if (const unit_id id = vacant_.take_lowest(); id != detail::bitmap::none) {
      unit_word seen = look(id);
      for (;;) {
        if (seen.phase == phase::vacant) {
          if (take(id, seen, to)) return id;
        } else if (seen.phase == phase::cached) {
          // A stale bit, or clear_index is at work: makes it begin anew, with a new bit.
          if (touches >= touches_max) {
            if (take(id, seen, to)) return id;
          } else if (++touches; swap(id, seen, seen.to(phase::cached))) {
            sync_leaf(id);
            break;
          }
        } else {
          break;  // stale
        }
      }
      continue;
    }
    if (const unit_id id = by_age_.first(); id != detail::order::none) {
      unit_word seen = look(id);
      if (seen.phase != phase::cached)
        sync_leaf(id);
      else if (take(id, seen, to))
        return id;
      continue;
    }
    // Both hints are empty while the credit says that a unit is there: somebody is in the middle
    // of an update. The words know.
    for (unit_id id = 0; id < max_units_; ++id) {
      unit_word seen = look(id);
      if (seen.phase == phase::cached && take(id, seen, to)) return id;
    }
  }
}

}  // namespace cairn
