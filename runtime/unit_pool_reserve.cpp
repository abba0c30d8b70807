// Reservations: units held by an owner, in an order, released whole and once. The protocol is
// explained in unit_pool_state.hpp.
//
// A unit of a reservation carries its owner, the reservation's first unit (which names the
// reservation, since a unit is in one at a time) and how many units follow, itself included: so
// order, wholeness and distinctness are one comparison per unit. Release is elected by a CAS of
// the first unit's word, reserved -> closing; the others cannot leave but by that release.
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::unit_phase;

namespace {

constexpr detail::unit_word reserved_word{0, 0, unit_phase::reserved, 0};

std::uint32_t size_of(std::span<const unit_id> ids) noexcept {
  return static_cast<std::uint32_t>(ids.size());
}

result<void> check_request(std::span<const unit_id> out, owner_id owner) {
  if (owner == 0) return error{status::invalid, "the owner of a reservation must not be 0"};
  if (out.empty()) return error{status::invalid, "a reservation needs at least one unit", 0, 1, 0};
  return {};
}

}  // namespace

result<void> unit_pool::reserve(std::span<unit_id> out, owner_id owner) {
  if (auto fit = check_request(out, owner); !fit) return fit;
  if (out.size() > state_->max_units_ || !state_->take_credits(size_of(out)))
    return error{status::no_room, "not enough free units to reserve", 0, out.size(), free_units()};
  state_->collect_for(out, owner);
  return {};
}

result<void> unit_pool::release(std::span<const unit_id> ids, owner_id owner) {
  if (auto closed = state_->close(ids, owner); !closed) return closed;
  state_->vacate(ids);
  state_->return_credits(size_of(ids));
  return {};
}

result<void> unit_pool::replace(std::span<const unit_id> given, owner_id giver,
                                std::span<unit_id> out, owner_id owner) {
  if (auto fit = check_request(out, owner); !fit) return fit;
  if (out.size() > given.size())
    return error{status::invalid, "replace cannot hand out more units than it is given", 0,
                 given.size(), out.size()};
  if (auto closed = state_->close(given, giver); !closed) return closed;
  state_->vacate(given);
  state_->return_credits(size_of(given) - size_of(out));
  state_->collect_for(out, owner);
  return {};
}

void unit_pool::state::collect_for(std::span<unit_id> out, owner_id owner) noexcept {
  // One at a time, vacant first each time: what an orphaned checkpoint gives back in the middle
  // is vacant for the rest.
  for (unit_id& id : out) id = collect(reserved_word);
  std::uint32_t remaining = size_of(out);
  for (unit_id id : out) {
    detail::unit& u = units_[id];
    u.head.store_relaxed(out.front());       // (7)
    u.remaining.store_relaxed(remaining--);  // (7)
    u.owner.store_relaxed(owner);            // (7)
  }
}

result<void> unit_pool::state::close(std::span<const unit_id> ids, owner_id owner) noexcept {
  if (owner == 0) return error{status::invalid, "the owner of a reservation must not be 0"};
  if (ids.empty()) return error{status::invalid, "a reservation holds at least one unit", 0, 1, 0};
  for (unit_id id : ids)
    if (id >= max_units_)
      return error{status::invalid, "unit id is out of range", id, max_units_, id};

  const unit_id head = ids.front();
  unit_word head_word = look(head);
  if (const std::uint32_t size = units_[head].remaining.load_relaxed();  // (7)
      head_word.phase == phase::reserved && units_[head].owner.load_relaxed() == owner &&
      units_[head].head.load_relaxed() == head && size != ids.size())
    return error{status::invalid, "a reservation is released whole: wrong number of units", head,
                 size, ids.size()};

  std::uint32_t remaining = size_of(ids);
  for (unit_id id : ids) {
    const detail::unit& u = units_[id];
    if (look(id).phase != phase::reserved)
      return error{status::invalid, "unit is not reserved", id,
                   static_cast<std::uint64_t>(phase::reserved),
                   static_cast<std::uint64_t>(look(id).phase)};
    if (const owner_id holder = u.owner.load_relaxed(); holder != owner)  // (7)
      return error{status::invalid, "unit is reserved by another owner", id, owner, holder};
    if (u.head.load_relaxed() != head || u.remaining.load_relaxed() != remaining)  // (7)
      return error{status::invalid,
                   "unit is not at this place of the owner's reservation (units from here on)", id,
                   remaining, u.remaining.load_relaxed()};
    --remaining;
  }
  // Still the reservation that was checked: while its head is reserved at this generation, no
  // other unit of it has left.
  if (!swap(head, head_word, head_word.to(phase::closing)))
    return error{status::invalid, "the reservation is being released by another call", head,
                 static_cast<std::uint64_t>(phase::reserved),
                 static_cast<std::uint64_t>(head_word.phase)};
  return {};
}

void unit_pool::state::vacate(std::span<const unit_id> ids) noexcept {
  for (unit_id id : ids) {
    // Before the unit is anybody else's: a second release must not meet the old owner on it.
    units_[id].owner.store_relaxed(0);  // (7)
    edit(id, [](unit_word w) { return w.to(phase::vacant); });
    offer_vacant(id);
  }
}

void unit_pool::collect_fences(std::span<const unit_id> ids, fence_set& set) const noexcept {
  const std::uint32_t streams = state_->streams_;
  for (unit_id id : ids) {
    if (id >= state_->max_units_) continue;
    for (std::uint32_t s = 0; s < streams; ++s)
      set.merge({s, state_->fences_[std::size_t{id} * streams + s].load_relaxed()});  // (8)
  }
}

}  // namespace cairn
