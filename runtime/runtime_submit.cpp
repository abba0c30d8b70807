// The way of an op from an engine's call to every rank's queue. Once the catalog has begun an op
// nothing on this way can fail: room and order were taken before.
#include "runtime/runtime_state.hpp"

namespace cairn {

result<void> runtime::state::check(slot_id slot, std::uint32_t compute) const noexcept {
  if (slot >= slots)
    return error(status::invalid, "slot is out of range (expected: their number)", slot, slots,
                 slot);
  if (compute >= compute_streams)
    return error(status::invalid, "compute stream is out of range (expected: their number)",
                 compute, compute_streams, compute);
  return {};
}

result<fence_token> runtime::state::mark(std::uint32_t compute) noexcept {
  if (compute >= compute_streams)
    return error(status::invalid, "compute stream is out of range (expected: their number)",
                 compute, compute_streams, compute);
  // (4) acq_rel: pairs with itself; who draws a later step records behind all that earlier drawers
  // had enqueued, so a later step's event covers an earlier one, whichever reaches the copier
  // first.
  const fence_token token{compute, steps[compute].fetch_add_acq_rel(1) + 1};
  for (rank_id r = 0; r < copiers.size(); ++r) {
    const status code = copiers[r]->mark(token);
    if (code == status::device_lost) {
      lose(r);
      return error(code, "a rank's device is lost: " + copiers[r]->why_lost());
    }
    if (code == status::invalid)
      return error(code,
                   "the compute stream is not attached on this rank (runtime::attach), or gone", r,
                   compute, compute);
    if (code != status::ok) return error(code, "a rank could not mark the compute stream");
  }
  return token;
}

namespace {

error slot_busy(slot_id slot) {
  return {status::busy, "a copy that was given up may still touch the slot", slot, 0, 0};
}

}  // namespace

status runtime::state::slot_status(slot_id slot) const noexcept {
  status worst = status::ok;
  for (const auto& c : copiers) {
    const status one = c->slot_status(slot);
    if (one == status::busy) return one;
    if (one == status::poisoned) worst = one;  // of a lost device the calls that follow tell
  }
  return worst;
}

result<void> runtime::state::take_room(copy_kind kind) noexcept {
  for (rank_id r = 0; r < copiers.size(); ++r) {
    if (copiers[r]->try_room(kind, 1)) continue;
    const bool gone = copiers[r]->lost();
    for (rank_id back = 0; back < r; ++back) copiers[back]->give_room(kind, 1);
    if (gone) {
      lose(r);
      return error(status::device_lost, "a rank's device is lost: " + copiers[r]->why_lost());
    }
    return error(status::queue_full, kind == copy_kind::store
                                         ? "a rank's queue is full of stores"
                                         : "a rank's queue is full of restores");
  }
  return {};
}

void runtime::state::give_room(copy_kind kind) noexcept {
  for (auto& c : copiers) c->give_room(kind, 1);
}

void runtime::state::raise_slot_fence(slot_id slot, fence_token token) noexcept {
  auto& step = slot_fences[std::size_t{slot} * compute_streams + token.stream];
  // Relaxed: the number orders nothing by itself; the event behind it does.
  std::uint64_t seen = step.load_relaxed();
  while (seen < token.step && !step.cas_relaxed(seen, token.step)) {
  }
}

fence_set runtime::state::fences_of(slot_id slot) const noexcept {
  fence_set of;
  for (std::uint32_t c = 0; c < compute_streams; ++c)
    of.merge({c, slot_fences[std::size_t{slot} * compute_streams + c].load_relaxed()});
  return of;
}

void runtime::state::hand_over(copy_op& op, fence_token token, std::int64_t begin_ns) noexcept {
  copy_op_header& header = op.header;
  header.fences.merge(token);
  const fence_set earlier = fences_of(header.slot);
  for (std::uint32_t c = 0; c < compute_streams; ++c) header.fences.merge({c, earlier.steps[c]});
  raise_slot_fence(header.slot, token);
  times[header.op.index].begin_stamp.store_relaxed(header.begin_stamp);
  times[header.op.index].begin_ns.store_relaxed(begin_ns);
  flight.accept(static_cast<std::uint32_t>(copiers.size()));
  // Every number that is drawn comes to every rank: from here on nothing fails.
  header.slot_sequence = slot_sequences[header.slot].fetch_add_relaxed(1) + 1;
  if (sync::mutated("ops of a slot unnumbered")) header.slot_sequence = 0;
  const std::int64_t handing = now_ns();
  for (auto& c : copiers) c->enqueue(op);
  records->submitted(header.op);  // staged: nobody could cancel it so far
  const std::int64_t handed = now_ns();
  latencies.wakes.add(handed - handing);
  latencies.submit.add(handed - begin_ns);
}

result<op_id> runtime::state::submit_store(const store_request& what, fence_token token,
                                           std::int64_t begin_ns, bool observed) {
  const status slot = slot_status(what.slot);
  if (slot == status::busy) return slot_busy(what.slot);
  if (slot != status::ok)
    return error(slot, "a restore into the slot has failed, and nothing has made it good since");
  if (auto room = take_room(copy_kind::store); !room) return room.why();
  auto op = records->begin_store(what.key, what.slot, what.hint);
  if (!op) {
    give_room(copy_kind::store);
    return op.why();
  }
  const op_id id = op->header.op;
  if (observed) records->observe(id);
  hand_over(*op, token, begin_ns);
  return id;
}

result<ticket> runtime::store(const checkpoint_key& key, slot_id slot, std::uint32_t compute,
                              placement_hint hint) {
  state& s = *state_;
  const detail::flight_guard guard(s.flight);
  if (!guard.inside()) return error(status::closed, "the runtime is closed");
  if (auto checked = s.check(slot, compute); !checked) return checked.why();
  const std::int64_t begin_ns = now_ns();
  if (s.records->contains_or_copying(key))  // begin_store would say so, after a mark in vain
    return error(status::duplicate, "the key is READY or COPYING");
  const auto token = s.mark(compute);
  if (!token) return token.why();
  auto op = s.submit_store({key, slot, hint}, *token, begin_ns, true);
  if (!op) return op.why();
  return ticket(this, *op);
}

result<ticket> runtime::restore(const checkpoint_key& key, slot_id slot, std::uint32_t compute) {
  state& s = *state_;
  const detail::flight_guard guard(s.flight);
  if (!guard.inside()) return error(status::closed, "the runtime is closed");
  if (auto checked = s.check(slot, compute); !checked) return checked.why();
  const std::int64_t begin_ns = now_ns();
  if (s.slot_status(slot) == status::busy) return slot_busy(slot);
  const auto token = s.mark(compute);
  if (!token) return token.why();
  if (auto room = s.take_room(copy_kind::restore); !room) return room.why();
  auto op = s.records->begin_restore(key, slot);
  if (!op) {
    s.give_room(copy_kind::restore);
    return op.why();
  }
  s.records->observe(op->header.op);
  ticket made(this, op->header.op);
  s.hand_over(*op, *token, begin_ns);
  return made;
}

result<admission> runtime::admit(std::span<const checkpoint_key> keys, std::uint32_t fresh,
                                 slot_id slot, std::span<unit_id> units, std::uint32_t compute,
                                 ticket& restored) {
  state& s = *state_;
  restored = ticket();
  const detail::flight_guard guard(s.flight);
  if (!guard.inside()) return error(status::closed, "the runtime is closed");
  if (auto checked = s.check(slot, compute); !checked) return checked.why();
  const std::int64_t begin_ns = now_ns();
  if (s.slot_status(slot) == status::busy) return slot_busy(slot);
  const auto token = s.mark(compute);
  if (!token) return token.why();
  // Before anything is claimed: a restore that has begun must find its place.
  if (auto room = s.take_room(copy_kind::restore); !room) return room.why();
  auto held = s.records->admit(keys, fresh, slot, units);
  if (!held || !held->restore) {
    s.give_room(copy_kind::restore);
    return held;
  }
  s.records->observe(held->restore->header.op);
  restored = ticket(this, held->restore->header.op);
  s.hand_over(*held->restore, *token, begin_ns);
  return held;
}

std::uint32_t runtime::drain_boundaries(std::uint32_t compute) noexcept {
  state& s = *state_;
  if (s.sequences->pending() == 0) return 0;
  const detail::flight_guard guard(s.flight);
  struct context {
    state& s;
    std::uint32_t compute;
    result<fence_token> token;
    bool taken = false;
  } drained{s, compute,
            guard.inside() ? s.mark(compute) : error(status::closed, "the runtime is closed")};
  // A mistake, or a stream that captures for now: the boundaries stay for the next drain. A
  // closed runtime or a lost device will not come back: they are dropped, and counted.
  if (drained.token.code() == status::invalid || drained.token.code() == status::busy) return 0;
  return s.sequences->drain(
      [](void* opaque, const boundary& what) {
        auto& c = *static_cast<context*>(opaque);
        // Another thread may have filed a boundary after the mark above, and its compute came
        // after it as well: only a position named after all were taken covers every one.
        if (c.token && !c.taken) c.token = c.s.mark(c.compute);
        c.taken = true;
        if (!c.token) return c.token.code();
        return c.s.submit_store({what.key, what.slot, what.hint}, *c.token, now_ns(), false).code();
      },
      &drained);
}

void runtime::state::drop_cancelled() noexcept {
  for (auto& c : copiers) c->drop_cancelled();
}

bool runtime::cancel(op_id op) noexcept {
  if (!state_->records->cancel(op)) return false;
  state_->drop_cancelled();
  return true;
}

result<fence_token> runtime::mark(std::uint32_t compute) noexcept {
  const detail::flight_guard guard(state_->flight);
  if (!guard.inside()) return error(status::closed, "the runtime is closed");
  return state_->mark(compute);
}

result<ticket> runtime::store_boundary(sequence_id sequence, std::uint32_t compute) noexcept {
  state& s = *state_;
  const detail::flight_guard guard(s.flight);
  // The boundary was filed in this thread: this position covers the compute that reached it.
  struct context {
    state& s;
    std::int64_t begin_ns;
    result<fence_token> token;
    result<op_id> op = error(status::not_found, "the sequence has no boundary to store");
  } one{s, now_ns(),
        guard.inside() ? s.mark(compute) : error(status::closed, "the runtime is closed")};
  // Without a position too: the next step overwrites the slot, and a later call would keep what it
  // wrote there under this boundary's key.
  s.sequences->drain_sequence(
      sequence,
      [](void* opaque, const boundary& what) {
        auto& c = *static_cast<context*>(opaque);
        if (c.token)
          c.op = c.s.submit_store({what.key, what.slot, what.hint}, *c.token, c.begin_ns, true);
        else
          c.op = c.token.why();
        return c.op.code();
      },
      &one);
  if (!one.op) return one.op.why();
  return ticket(this, *one.op);
}

result<std::uint32_t> runtime::release_slot(slot_id slot, std::uint32_t compute) noexcept {
  return state_->hand_on(slot, compute, true);
}

result<std::uint32_t> runtime::finish_slot(slot_id slot, std::uint32_t compute) noexcept {
  return state_->hand_on(slot, compute, false);
}

status runtime::reset_slot(slot_id slot) noexcept {
  state& s = *state_;
  const detail::flight_guard guard(s.flight);
  if (!guard.inside()) return status::closed;
  if (slot >= s.slots) return status::invalid;
  if (s.slot_status(slot) == status::busy) return status::busy;
  // Drawn: it comes to every rank, behind what was admitted before.
  const std::uint64_t sequence = s.slot_sequences[slot].fetch_add_relaxed(1) + 1;
  status worst = status::ok;
  for (rank_id r = 0; r < s.copiers.size(); ++r) {
    const status code = s.copiers[r]->reset_slot(slot, sequence);
    if (code == status::device_lost) s.lose(r);
    if (code != status::ok) worst = code;
  }
  return worst;
}

result<std::uint32_t> runtime::state::hand_on(slot_id slot, std::uint32_t compute,
                                              bool cancel_stores) noexcept {
  const detail::flight_guard guard(flight);
  if (!guard.inside()) return error(status::closed, "the runtime is closed");
  if (auto checked = check(slot, compute); !checked) return checked.why();
  // The fence first: a slot that is handed on without it would be overwritten by work of its
  // last tenant. Without a device there is no such work.
  const auto token = mark(compute);
  if (!token && token.code() != status::device_lost) return token.why();
  if (token) raise_slot_fence(slot, *token);
  std::uint32_t cancelled = records->cancel_restores(slot);
  if (cancel_stores) cancelled += records->cancel_stores(slot);
  if (cancelled > 0) drop_cancelled();
  if (!token) return token.why();
  return cancelled;
}

}  // namespace cairn
