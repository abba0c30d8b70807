// What callers wait for: compute behind copies, quiet, and the end of everything.
#include <algorithm>
#include <cairn/copier.hpp>
#include <optional>

#include "runtime/copier_state.hpp"

namespace cairn {

namespace {

using detail::batch_ref;
using detail::copy_core;
using detail::op_board;

// How long close waits, after its deadline, for the copy thread to report the rest. Reporting
// takes no time; only a call of the device's that does not return holds it up.
constexpr auto report_grace = std::chrono::seconds(2);

/// The compute stream, or why nothing can be ordered on it.
status ordered_stream(copy_core& core, std::uint32_t index, stream*& compute) noexcept {
  if (index >= core.opts.compute_streams) return status::invalid;
  compute = core.fences[index].compute();
  if (compute == nullptr) return status::invalid;
  if (core.gate.lost()) return status::device_lost;
  if (core.on.capturing(*compute)) return status::busy;
  return status::ok;
}

/// How often a compute stream that holds all it can is asked again.
constexpr auto full_interval = std::chrono::milliseconds(1);

/// Work enqueued on `compute` from now on waits for the batch, unless it is over.
status wait_for(copy_core& core, stream& compute, batch_ref which) noexcept {
  detail::copy_batch& batch = core.streams->batch(which.batch);
  if (!batch.word.hold(which.turn)) return status::ok;
  const status code = core.on.wait(compute, *batch.done);
  if (batch.word.drop()) core.bell.ring();
  if (code == status::device_lost) core.lose();
  return code;
}

/// `once` again and again while the compute stream holds all it can. Nobody rings when the engine's
/// stream has run something, so the naps are short.
template <class Once, class State>
status while_full(Once once, State& with, deadline until) noexcept {
  for (;;) {
    const status code = once();
    if (code != status::queue_full) return code;
    const deadline now = clock::now();
    if (now >= until) return status::timed_out;
    (void)with.await([] { return false; }, std::min(until, now + full_interval));
  }
}

}  // namespace

status copier::order_after(std::uint32_t index, std::span<const op_id> ops,
                           deadline until) noexcept {
  copy_core& core = state_->core;
  stream* compute = nullptr;
  if (const status code = ordered_stream(core, index, compute); code != status::ok) return code;
  for (const op_id& op : ops)
    if (op.index >= core.opts.max_ops) return status::invalid;

  // First wait for all, then order: a call that times out orders nothing.
  std::size_t first = 0;
  const bool launched = state_->await(
      [&] {
        for (; first < ops.size(); ++first) {
          const op_board::stage at = core.ops.look(ops[first]).at;
          if (at != op_board::stage::launched && at != op_board::stage::ended) break;
        }
        return first == ops.size() || core.gate.lost();
      },
      until);
  if (core.gate.lost()) return status::device_lost;
  if (!launched) return status::timed_out;

  std::optional<batch_ref> before;
  for (const op_id& op : ops) {
    const op_board::view now = core.ops.look(op);
    if (now.at != op_board::stage::launched || before == now.batch) continue;
    const status code =
        while_full([&] { return wait_for(core, *compute, now.batch); }, *state_, until);
    if (code != status::ok) return code;
    before = now.batch;
  }
  return status::ok;
}

status copier::order_after_slot(std::uint32_t index, slot_id slot, deadline until) noexcept {
  copy_core& core = state_->core;
  stream* compute = nullptr;
  if (const status code = ordered_stream(core, index, compute); code != status::ok) return code;
  if (slot >= core.opts.memory.slots) return status::invalid;

  const bool passed =
      state_->await([&] { return core.slots.passed(slot) || core.gate.lost(); }, until);
  if (core.gate.lost()) return status::device_lost;
  if (!passed) return status::timed_out;
  const std::optional<batch_ref> last = core.slots.last(slot);
  if (!last) return status::ok;
  return while_full([&] { return wait_for(core, *compute, *last); }, *state_, until);
}

status copier::order_after_fences(std::uint32_t index, const fence_set& fences,
                                  deadline until) noexcept {
  copy_core& core = state_->core;
  stream* compute = nullptr;
  if (const status code = ordered_stream(core, index, compute); code != status::ok) return code;
  detail::fence_ring& own = core.fences[index];
  for (std::uint32_t c = 0; c < max_compute_streams; ++c) {
    const std::uint64_t step = fences.steps[c];
    if (c == index || step == 0) continue;
    if (c >= core.opts.compute_streams) return status::invalid;
    if (own.is_behind(c, step) || sync::mutated("last tenant not waited for")) continue;
    if (step > core.fences[c].marked_latest()) return status::invalid;
    const detail::fence_ring::position at = core.fences[c].resolve(step);
    const status code =
        while_full([&] { return core.on.wait(*compute, *at.what); }, *state_, until);
    if (code == status::device_lost) core.lose();
    if (code != status::ok) return code;
    own.put_behind(c, at.covers);
  }
  return status::ok;
}

status copier::quiesce(deadline until) noexcept {
  using view = detail::quiescence::view;
  copy_core& core = state_->core;
  if (core.gate.lost()) return status::device_lost;
  core.hush.join();
  core.bell.ring();
  // Without a copy thread, so that a deadline of now finds quiet what is.
  if (!core.opts.threaded) (void)state_->loop.pass();
  view now = view::asked;
  (void)state_->await(
      [&] {
        now = core.hush.look();
        return now != view::asked || core.gate.lost();
      },
      until);
  if (now == view::quiet && !core.gate.lost()) return status::ok;
  resume();
  if (now == view::over) return status::closed;
  return core.gate.lost() ? status::device_lost : status::timed_out;
}

void copier::resume() noexcept {
  state_->core.hush.leave();
  state_->core.bell.ring();
}

status copier::drain(deadline until) noexcept {
  const copy_core& core = state_->core;
  return state_->await([&] { return core.outstanding() == 0; }, until) ? status::ok
                                                                       : status::timed_out;
}

status copier::close(deadline until) noexcept {
  copy_core& core = state_->core;
  core.gate.close();
  core.hush.finish();
  core.bell.ring();
  // What a lost device was doing may never be proven over: no use in waiting for that.
  const auto over = [&] {
    return core.gate.shut() && core.outstanding() == 0 &&
           (core.unproven.load_acquire() == 0 || core.gate.lost());  // (6)
  };
  if (state_->await(over, until))
    return core.unproven.load_acquire() == 0 ? status::ok : status::timed_out;  // (6)

  core.abandon.store_release(true);  // (7)
  core.bell.ring();
  (void)state_->await([&] { return core.outstanding() == 0; }, clock::now() + report_grace);
  const bool proven = core.outstanding() == 0 && core.unproven.load_acquire() == 0;  // (6)
  return proven ? status::ok : status::timed_out;
}

}  // namespace cairn
