// The way of a completion from a copy thread to the catalog, and the calls that wait for it.
#include <algorithm>
#include <vector>

#include "runtime/runtime_state.hpp"

namespace cairn {

// Of each accepted op every rank reports exactly once: either it finds the op cancelled when it
// is about to take it, or it delivers a completion.
bool runtime::state::on_take(void* self, op_id op) {
  state& s = *static_cast<state*>(self);
  if (s.records->take(op)) return true;
  s.flight.reported();
  return false;
}

bool runtime::state::on_cancelled(void* self, op_id op) {
  // An op that waits for its device is pending, unless a cancel or a lost rank ended it.
  return static_cast<state*>(self)->records->op_status(op) != status::pending;
}

// Whoever tells an engine of the loss comes through here first, so that no record is READY any more
// when it is told. Several at once may each advance the epoch: who only saw that another has begun
// would tell too early. The rank's copier reports its ops itself, for it alone knows which copies
// may still touch memory.
void runtime::state::lose(rank_id rank) noexcept {
  if (lost[rank].load_acquire()) return;  // (5) acquire: pairs with (6)
  if (sync::mutated("loss told before records go")) lost[rank].store_release(true);
  records->advance_epoch();
  lost[rank].store_release(true);  // (6) release: pairs with (5); every record is gone
}

void runtime::state::on_completion(void* self, const completion& what) {
  state& s = *static_cast<state*>(self);
  // The op has not ended before this rank's completion is applied, and is kept until this rank's
  // proof is, so its index is still its own. (A cancelled op's may not be; then finish counts
  // nothing, and these are not used.)
  const op_times& times = s.times[what.op.index];
  const std::int64_t begin_ns = times.begin_ns.load_relaxed();
  if (what.code == status::device_lost && !sync::mutated("lost device not told")) s.lose(what.rank);
  if (s.mode == completion_mode::settled)
    s.held.put({what, times.begin_stamp.load_relaxed(), begin_ns});
  else
    s.apply(what, begin_ns);
  // Over: close has applied for the last time. (Immediate mode: there is nothing to apply.) A proof
  // was not announced: its op has been reported.
  if (what.proven ? s.flight.noted() : s.flight.reported()) s.apply_held();
}

void runtime::state::apply(const completion& what, std::int64_t begin_ns) noexcept {
  const finish_outcome outcome = records->finish(what);
  if (!outcome.ended || outcome.code != status::ok) return;
  auto& histogram = outcome.kind == copy_kind::store ? latencies.store : latencies.restore;
  histogram.add(now_ns() - begin_ns);
}

// Whoever raises `applying` from zero takes from the ring until he has served every call that
// was made meanwhile; the others need not wait for him.
bool runtime::state::apply_held() noexcept {
  // (1) acq_rel: acquires the ring from the last one who took (2); hands him what this thread
  // put when he is still at it.
  if (applying.fetch_add_acq_rel(1) != 0) return false;
  std::uint32_t served = 1;
  do {
    apply_batch();
    // (2) acq_rel: pairs with (1), (3); fails when a call came, and reads how many.
  } while (!applying.cas_acq_rel(served, 0));
  flight.bell().ring();
  return true;
}

void runtime::state::apply_batch() noexcept {
  thread_local std::vector<detail::completion_ring::item> due;
  if (due.capacity() < held.capacity()) due.reserve(held.capacity());
  due.clear();
  detail::completion_ring::item next;
  while (due.size() < due.capacity() && held.take(next)) due.push_back(next);
  std::sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
    if (a.begin_stamp != b.begin_stamp) return a.begin_stamp < b.begin_stamp;
    if (a.what.rank != b.what.rank) return a.what.rank < b.what.rank;
    return a.what.proven < b.what.proven;
  });
  for (const auto& each : due) apply(each.what, each.begin_ns);
}

bool runtime::state::pump() noexcept {
  bool any = false;
  for (auto& c : copiers) any = c->pump() || any;
  return any;
}

status runtime::drain(deadline until) noexcept {
  state& s = *state_;
  return s.wait_for([&s] { return s.flight.quiet(); }, until) ? status::ok : status::timed_out;
}

status runtime::settle(deadline until) noexcept {
  state& s = *state_;
  if (!s.wait_for([&s] { return s.flight.quiet(); }, until)) return status::timed_out;
  if (s.mode == completion_mode::immediate) return status::ok;
  return s.apply_held() ? status::ok : status::busy;
}

bool runtime::pump() noexcept {
  return state_->pump();
}

status runtime::close(deadline until) noexcept {
  state& s = *state_;
  s.flight.close();
  s.records->close();
  // Submitters are on a short way without waits. Should one be kept from running until the
  // deadline, the room that it holds on each rank keeps the copiers ready for its op.
  s.wait_for([&s] { return s.flight.vacated(); }, until);
  status worst = status::ok;
  for (auto& c : s.copiers)
    if (const status code = c->close(until); code != status::ok) worst = code;
  // In settled mode nobody else may be left to apply what was reported. What is still to be
  // reported (by a submitter that was late) is applied as it comes; somebody inside settle, whose
  // work is bounded, is waited for.
  s.flight.finish();
  for (bool applied = s.apply_held(); !applied;) {
    const std::uint32_t seen = s.flight.bell().seen();
    applied = s.applying.load_acquire() == 0;  // (3) acquire: pairs with (2)
    if (!applied) s.flight.bell().wait(seen, clock::now() + std::chrono::milliseconds(1));
  }
  return worst;
}

}  // namespace cairn
