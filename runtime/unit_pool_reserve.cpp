// Reservations: units held by an owner, in an order, released whole and once. The protocol is
// explained in unit_pool_state.hpp.
#include <bit>
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::unit_phase;

namespace {

constexpr detail::unit_word reserved_word{0, 0, unit_phase::spare, 0};

std::uint32_t size_of(std::span<const unit_id> ids) noexcept {
  return static_cast<std::uint32_t>(ids.size());
}

error bad_request(owner_id owner) {
  if (owner == 0) return {status::invalid, "the owner of a reservation must not be 0"};
  return {status::invalid, "a reservation needs at least one unit", 0, 1, 0};
}

}  // namespace

result<void> unit_pool::reserve(std::span<unit_id> out, owner_id owner) {
  if (owner == 0 || out.empty()) return bad_request(owner);
  if (out.size() > state_->max_units_ || !state_->take_credits(size_of(out)))
    return error{status::no_room, "not enough free units to reserve", 0, out.size(), free_units()};
  state_->collect_for(out, owner);
  return {};
}

result<void> unit_pool::release(std::span<const unit_id> ids, owner_id owner) {
  if (!state_->close(ids, owner)) return state_->why_not(ids, owner);
  const bool early = sync::mutated("credits before bits");
  if (early) state_->return_credits(size_of(ids));
  state_->vacate(ids);
  if (!early) state_->return_credits(size_of(ids));
  return {};
}

result<void> unit_pool::replace(std::span<const unit_id> given, owner_id giver,
                                std::span<unit_id> out, owner_id owner) {
  if (owner == 0 || out.empty()) return bad_request(owner);
  if (out.size() > given.size())
    return error{status::invalid, "replace cannot hand out more units than it is given", 0,
                 given.size(), out.size()};
  if (!state_->close(given, giver)) return state_->why_not(given, giver);
  state_->vacate(given);
  state_->return_credits(size_of(given) - size_of(out));
  state_->collect_for(out, owner);
  return {};
}

void unit_pool::state::collect_for(std::span<unit_id> out, owner_id owner) noexcept {
  const std::span<unit_id> all = out;
  while (!out.empty()) {
    const std::uint32_t remaining = size_of(out);
    const detail::bit_run got = take_next(remaining, reserved_word);
    const std::uint32_t count = list(got, out);
    detail::reservation_part& part = parts_[out.front()];
    part.owner.store_relaxed(owner);       // (7)
    part.bits.store_relaxed(got.bits);     // (7)
    part.count.store_relaxed(count);       // (7)
    part.head.store_relaxed(all.front());  // (7)
    // relaxed: only who holds the unit writes here, but for who closes a reservation.
    if (out.data() != all.data())
      part.held.store_release({part.held.load_relaxed().generation, remaining});  // (14)
    out = out.subspan(count);
  }
  // Last: who sees that the reservation begins here sees all of it.
  auto& held = parts_[all.front()].held;
  held.store_release({held.load_relaxed().generation, size_of(all)});  // (14), relaxed as above
}

bool unit_pool::state::lists(std::span<const unit_id> ids, owner_id owner) const noexcept {
  const unit_id head = ids.front();
  while (!ids.empty()) {
    const unit_id id = ids.front();
    if (id >= max_units_) return false;
    const detail::reservation_part& part = parts_[id];
    if (part.held.load_acquire().remaining != ids.size() ||                      // (15)
        part.owner.load_relaxed() != owner || part.head.load_relaxed() != head)  // (7)
      return false;
    const std::uint32_t count = part.count.load_relaxed();  // (7)
    if (count > ids.size()) return false;
    const detail::bit_run took{detail::bit_run::of(id).base, part.bits.load_relaxed()};  // (7)
    if (!equals(took, ids.first(count))) return false;
    ids = ids.subspan(count);
  }
  return true;
}

bool unit_pool::state::close(std::span<const unit_id> ids, owner_id owner) noexcept {
  if (owner == 0 || ids.empty() || ids.front() >= max_units_) return false;
  auto& held = parts_[ids.front()].held;
  detail::tenure seen = held.load_acquire();  // (15)
  if (seen.remaining == 0 || !lists(ids, owner)) return false;
  // Still the reservation that was checked: while it begins here at this generation, none of its
  // units has left.
  return held.cas_acq_rel(seen, {seen.generation + 1, 0});  // (16)
}

void unit_pool::state::vacate(std::span<const unit_id> ids) noexcept {
  const unit_id head = ids.front();
  detail::bit_run given;
  while (!ids.empty()) {
    const unit_id id = ids.front();
    detail::reservation_part& part = parts_[id];
    const detail::bit_run units{detail::bit_run::of(id).base, part.bits.load_relaxed()};  // (7)
    const std::uint32_t count = part.count.load_relaxed();                                // (7)
    if (units.base != given.base && given.bits != 0) {
      vacant_.put(given);
      given = {};
    }
    const bool early = sync::mutated("units before their part");
    if (early) vacant_.put(units);
    // Before its units are anybody else's: that holder may begin a reservation here.
    if (id != head) part.held.store_relaxed({part.held.load_relaxed().generation + 1, 0});  // (7)
    if (!early) given = {units.base, given.bits | units.bits};
    ids = ids.subspan(count);
  }
  vacant_.put(given);
}

unit_pool::state::holding unit_pool::state::holder_of(unit_id id) const noexcept {
  for (unit_id first = id;; --first) {
    const detail::reservation_part& part = parts_[first];
    const std::uint32_t remaining = part.held.load_acquire().remaining;  // (15)
    const std::uint64_t bits = part.bits.load_relaxed();                 // (7)
    const std::uint64_t bit = detail::bit_run::of(id).bits;
    if (remaining != 0 && (bits & bit) != 0)
      return {part.owner.load_relaxed(), part.head.load_relaxed(),  // (7)
              remaining - static_cast<std::uint32_t>(std::popcount(bits & (bit - 1)))};
    if (first % 64 == 0) return {};
  }
}

error unit_pool::state::why_not(std::span<const unit_id> ids, owner_id owner) const noexcept {
  if (owner == 0) return {status::invalid, "the owner of a reservation must not be 0"};
  if (ids.empty()) return {status::invalid, "a reservation holds at least one unit", 0, 1, 0};
  for (unit_id id : ids)
    if (id >= max_units_) return {status::invalid, "unit id is out of range", id, max_units_, id};
  const unit_id head = ids.front();
  if (const holding held = holder_of(head);
      held.owner == owner && held.head == head && held.remaining != ids.size())
    return {status::invalid, "a reservation is released whole: wrong number of units", head,
            held.remaining, ids.size()};
  std::uint32_t remaining = size_of(ids);
  for (unit_id id : ids) {
    const holding held = holder_of(id);
    if (held.remaining == 0) return {status::invalid, "unit is not reserved", id, remaining, 0};
    if (held.owner != owner)
      return {status::invalid, "unit is reserved by another owner", id, owner, held.owner};
    if (held.head != head || held.remaining != remaining)
      return {status::invalid,
              "unit is not at this place of the owner's reservation (units from here on)", id,
              remaining, held.remaining};
    --remaining;
  }
  return {status::invalid, "the reservation is being released by another call", head, 1, 0};
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
