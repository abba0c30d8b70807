// How many units there are: growing, giving up the highest one, counting and inspecting. The
// protocol is explained in unit_pool_state.hpp.
//
// Units 0 .. count - 1 exist. One word holds the count and the stage of a retirement:
//
//   (n, idle) --extend--> (n + k, idle)
//   (n, idle) --begin_retire_top--> (n, moving) --at once, or by finish_retire-->
//   (n, finishing) --> (n - 1, idle)       refused: back to (n, idle)
//
// so only one call at a time touches the top, and extend adds nothing while a move is under way.
// The destination is live from the start and bears the share; `receiving` keeps it live even if
// that share is given back before the move has ended, since the copy still writes it.
#include <algorithm>
#include <cairn/unit_pool.hpp>

#include "runtime/unit_pool_state.hpp"

namespace cairn {

using detail::pool_size;
using detail::size_stage;
using detail::unit_flag;
using detail::unit_phase;

namespace {

constexpr auto receiving_word =
    detail::unit_word{0, 1, unit_phase::live, 0}.with(unit_flag::receiving);
constexpr detail::unit_word absent_word{0, 0, unit_phase::absent, 0};

}  // namespace

void unit_pool::state::set_size(pool_size size) noexcept {
  // The stage excludes all others; an RMW all the same, so that each change acquires the last.
  size_.exchange_acq_rel(size);  // (9)
}

std::uint32_t unit_pool::extend(std::uint32_t count) noexcept {
  state& s = *state_;
  pool_size seen = s.size_.load_acquire();  // (9)
  std::uint32_t added = 0;
  do {
    if (seen.stage != size_stage::idle) return 0;
    added = std::min(count, s.max_units_ - seen.count);
    if (added == 0) return 0;
  } while (!s.size_.cas_acq_rel(seen, {seen.count + added, size_stage::idle}));  // (9)
  for (unit_id id = seen.count; id < seen.count + added; ++id) {
    s.edit(id, [](detail::unit_word w) { return w.to(unit_phase::spare); });
    s.offer_vacant(id);
  }
  s.return_credits(added);
  return added;
}

result<retirement> unit_pool::begin_retire_top() {
  state& s = *state_;
  pool_size size = s.size_.load_acquire();  // (9)
  do {
    if (size.count == 0) return error{status::invalid, "the pool has no unit to retire", 0, 1, 0};
    if (size.stage != size_stage::idle)
      return error{status::busy, "a retirement is under way", size.count - 1, 0, 1};
  } while (!s.size_.cas_acq_rel(size, {size.count, size_stage::moving}));  // (9)

  const unit_id from = size.count - 1;
  const auto refuse = [&](error why) -> result<retirement> {
    s.set_size(size);
    return why;
  };
  // Both ways need a free unit: the top itself, or one to move to.
  if (!s.take_credits(1)) {
    const auto seen = s.look(from);
    if (seen.phase == unit_phase::live && seen.shares == 1)
      return refuse({status::no_room, "no free unit to move the highest one to", from, 1, 0});
    return refuse({status::busy, "the highest unit is held", from, 1, seen.shares});
  }
  for (detail::unit_word seen;;) {
    if (s.take_at(from, seen, absent_word)) {
      // The size changes when the key is gone: a later extend starts clean. An orphan's hook may
      // use the pool, which counts the unit until the hook returns.
      s.set_size({from, size_stage::idle});
      return retirement{from, no_unit};
    }
    if (seen.phase != unit_phase::live || seen.shares != 1 || seen.has(unit_flag::publishing)) {
      s.return_credits(1);
      return refuse({status::busy, "the highest unit is reserved or shared", from, 1, seen.shares});
    }
    if (s.swap(from, seen, seen.to(unit_phase::moving).shared(0))) break;
  }
  unit_id to = no_unit;
  s.collect({&to, 1}, receiving_word);
  for (std::uint32_t i = 0; i < s.streams_; ++i)
    s.merge_fence(to, {i, s.fences_[std::size_t{from} * s.streams_ + i].load_relaxed()});  // (8)
  s.move_to_.store_release(to);                                                            // (12)
  return retirement{from, to};
}

result<void> unit_pool::finish_retire(const retirement& move) {
  state& s = *state_;
  const pool_size size = s.size_.load_acquire();  // (9)
  const unit_id to = s.move_to_.load_acquire();   // (13)
  if (size.stage != size_stage::moving || to == no_unit)
    return error{status::invalid, "no move is under way", move.from, 1, 0};
  if (move.from != size.count - 1 || move.to != to)
    return error{status::invalid, "another move is under way", move.from, size.count - 1, to};
  if (unit_id expected = to; !s.move_to_.cas_acq_rel(expected, no_unit))  // (13)
    return error{status::invalid, "the move is being finished by another call", move.from, 1, 0};
  s.set_size({size.count, size_stage::finishing});

  // The key leaves with `from`, whose node stays as it is until the next publication on it.
  const std::uint64_t named_at = s.units_[move.from].named_at.load_acquire();  // (6)
  const auto left =
      s.edit(move.from, [](detail::unit_word w) { return w.to(unit_phase::absent).keyless(); });
  auto seen = s.look(to);
  while (left.has(unit_flag::keyed)) {
    // A key that `to` was given meanwhile replaces the one that came with the content.
    if (seen.has(unit_flag::keyed) || seen.has(unit_flag::publishing)) break;
    const auto chosen = seen.to(unit_phase::live).with(unit_flag::publishing);
    if (!s.swap(to, seen, chosen)) continue;
    s.bear(to, chosen.generation, s.key_of(move.from), left.has(unit_flag::named), named_at);
    break;
  }
  // `to` is a unit like any other from now on: free at once if its share is gone.
  for (seen = s.look(to);;) {
    const bool unused = seen.shares == 0;
    auto next = unused ? s.freed(to, seen) : seen;
    next = next.without(unit_flag::receiving);
    if (!s.swap(to, seen, next)) continue;
    if (unused) s.offer_freed(to, next);
    break;
  }
  s.set_size({move.from, size_stage::idle});
  return {};
}

pool_counts unit_pool::counts() const noexcept {
  pool_counts n;
  for (unit_id id = 0; id < state_->max_units_; ++id) {
    switch (state_->look(id).phase) {
      case unit_phase::absent:
        continue;
      case unit_phase::spare:
        ++(state_->vacant_.contains(id) ? n.vacant : n.reserved);
        break;
      case unit_phase::cleared:
        ++n.vacant;
        break;
      case unit_phase::cached:
        ++n.cached;
        break;
      case unit_phase::live:
      case unit_phase::moving:
        ++n.live;
        break;
    }
    ++n.total;
  }
  return n;
}

unit_info unit_pool::inspect(unit_id id) const noexcept {
  unit_info info;
  if (id >= state_->max_units_) return info;
  for (auto seen = state_->look(id);;) {
    info.shares = seen.shares;
    info.has_key = seen.has(unit_flag::keyed);
    info.key = info.has_key ? state_->key_of(id) : checkpoint_key{};
    info.owner = 0;
    switch (seen.phase) {
      case unit_phase::absent:
        info.place = unit_place::absent;
        break;
      case unit_phase::spare: {
        const bool vacant = state_->vacant_.contains(id);
        info.place = vacant ? unit_place::vacant : unit_place::reserved;
        if (!vacant) info.owner = state_->holder_of(id).owner;
        break;
      }
      case unit_phase::cleared:
        info.place = unit_place::vacant;
        break;
      case unit_phase::cached:
        info.place = unit_place::cached;
        break;
      case unit_phase::live:
      case unit_phase::moving:
        info.place = unit_place::live;
        break;
    }
    const auto now = state_->look(id);
    if (now.generation == seen.generation) return info;
    seen = now;
  }
}

std::uint32_t unit_pool::indexed() const noexcept {
  std::uint32_t n = 0;
  for (unit_id id = 0; id < state_->max_units_; ++id)
    n += state_->look(id).has(unit_flag::named) ? 1U : 0U;
  return n;
}

}  // namespace cairn
