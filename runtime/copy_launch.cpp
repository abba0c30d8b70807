// The second half of a copy thread's pass: ready ops become batches, batches go to the device.
#include <algorithm>

#include "runtime/copy_thread.hpp"

namespace cairn::detail {

// Who is asked for quiet goes on with what the device has already: its event must be recorded.
bool copy_thread::may_push(const copy_stream& on) const noexcept {
  return on.open != nullptr && (!held_ || on.open->stage == batch_stage::launched);
}

bool copy_thread::advance() noexcept {
  if (core_.gate.lost()) return false;
  bool did = false;
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    if (may_push(each)) did |= push(each);
  }
  return did;
}

bool copy_thread::launch_ready() noexcept {
  bool did = false;
  for (const copy_kind kind : {copy_kind::restore, copy_kind::store}) {
    bool& late_first = late_first_[static_cast<unsigned>(kind)];
    const bool first = late_first;
    const bool one = launch_sort(kind, first);
    const bool other = launch_sort(kind, !first);
    did |= one || other;
    if (one && !other && core_.streams->pick(kind, true) == nullptr)
      late_first = !first;
    else if (one || other)
      late_first = false;
  }
  return did;
}

bool copy_thread::launch_sort(copy_kind kind, bool late) noexcept {
  bool did = false;
  while (lanes_.any_ready(kind) && !core_.gate.lost()) {
    copy_stream* on = core_.streams->pick(kind, late);
    if (on == nullptr || !sift(kind, late)) break;
    did = true;
    if (describe(*on, *core_.streams->idle(*on), late)) push(*on);
    if (kind == copy_kind::store) break;
  }
  lanes_.take_back(kind);
  return did;
}

// Sets ready ops aside until the first one is of this sort; false when there is none.
bool copy_thread::sift(copy_kind kind, bool late) noexcept {
  while (lanes_.any_ready(kind)) {
    if (is_late(core_.rows->header(lanes_.first_ready(kind))) == late) return true;
    lanes_.set_aside(kind);
  }
  return false;
}

// Whether a copy handed over now would wait for compute.
bool copy_thread::is_late(const copy_op_header& header) noexcept {
  if (const auto last = lanes_.last(header.slot)) {
    const copy_batch& before = core_.streams->batch(last->batch);
    if (before.late && before.stage == batch_stage::flying && before.ref() == *last) return true;
  }
  for (std::uint32_t c = 0; c < core_.opts.compute_streams; ++c)
    if (pending(c, header.fences.steps[c])) return true;
  return false;
}

// Asks the device at most once a pass for a step and those behind it. A step that nobody marked is
// found by `sound`. While its compute stream captures, a step has not passed for all one knows: a
// runtime may look at the stream to answer for the event, and spoil the capture.
bool copy_thread::pending(std::uint32_t compute, std::uint64_t step) noexcept {
  if (step <= passed_[compute]) return false;
  if (step >= pending_[compute]) return true;
  if (!marked(compute, step)) return false;
  const fence_ring& ring = core_.fences[compute];
  const stream* const on = ring.compute();  // there, since the step is marked
  const fence_ring::position at = ring.resolve(step);
  if ((on != nullptr && core_.on.capturing(*on)) ||
      core_.on.query(*at.what) != event_state::fired) {
    pending_[compute] = step;
    return true;
  }
  passed_[compute] = std::max(passed_[compute], at.covers);
  return false;
}

// Fills an idle batch with ready ops of one sort; false when all of them ended here.
bool copy_thread::describe(copy_stream& on, copy_batch& batch, bool late) noexcept {
  batch.code = status::ok;
  batch.late = late || on.stalled();
  batch.fences = {};
  batch.behind_all = false;
  batch.behind.clear();
  // Relaxed: the launch hands the report to the device.
  batch.report.begin_ns.store(0, std::memory_order_relaxed);
  batch.report.end_ns.store(0, std::memory_order_relaxed);
  batch.report.failed.store(false, std::memory_order_relaxed);
  while (batch.rows.size() < core_.batch_max && sift(batch.kind, late)) {
    const std::uint32_t row = lanes_.take_ready(batch.kind);
    const copy_op_header& header = core_.rows->header(row);
    const slot_id slot = header.slot;
    if (const status refused = begin(row); refused != status::ok) {
      lanes_.pass(row);
      core_.slots.pass(slot);
      continue;
    }
    batch.tasks[batch.rows.size()] = {slot, core_.rows->units(row)};
    batch.sums[batch.rows.size()] = no_sum;
    batch.rows.push_back(row);
    for (std::uint32_t c = 0; c < core_.opts.compute_streams; ++c)
      batch.fences.merge({c, header.fences.steps[c]});
    // Behind the last copy on the slot; on one stream that is so already.
    const auto last = lanes_.last(slot);
    if (!last || &core_.streams->stream_of(core_.streams->batch(last->batch)) == &on) continue;
    if (std::find(batch.behind.begin(), batch.behind.end(), *last) == batch.behind.end())
      batch.behind.push_back(*last);
  }
  if (batch.rows.empty()) return false;
  batch.stage = batch_stage::described;
  on.open = &batch;
  core_.streams->picked(on);
  return true;
}

// Takes an op whose turn has come; not ok: it has ended.
status copy_thread::begin(std::uint32_t row) noexcept {
  const slot_id slot = core_.rows->header(row).slot;
  if (!take(row)) return status::cancelled;
  status code = status::ok;
  if (health_.kept(slot))
    code = status::busy;
  else if (!sound(row))
    code = status::invalid;
  if (code != status::ok) end_op(row, code);
  return code;
}

// Ops that came through enqueue may not have been checked, and one must not take its neighbours
// down. Two units of one op that are the same would be written by two tiles at once.
bool copy_thread::sound(std::uint32_t row) noexcept {
  const id_run ids = notes_[row].ids;
  if (ids == id_run::wrong || !marked(core_.rows->header(row).fences)) return false;
  return ids == id_run::rising || distinct(core_.rows->units(row));
}

// Whether the ids of one op, which are all in range, differ from each other: each leaves a stamp at
// its unit. Four at a time, for most of what this takes is a loop's own instructions, and stamps
// are small, for what else it takes is memory.
bool copy_thread::distinct(const unit_id* ids) noexcept {
  if (++stamp_ == 0) {
    std::fill(stamps_.begin(), stamps_.end(), std::uint16_t{0});
    stamp_ = 1;
  }
  std::uint16_t* const at = stamps_.data();
  const std::uint16_t stamp = stamp_;
  const auto first = [&](unit_id id) {
    const bool is = at[id] != stamp;
    at[id] = stamp;
    return is;
  };
  const unit_id* const end = ids + core_.units_per_op;
  for (; end - ids >= 4; ids += 4)
    if (!first(ids[0]) || !first(ids[1]) || !first(ids[2]) || !first(ids[3])) return false;
  for (; ids != end; ++ids)
    if (!first(*ids)) return false;
  return true;
}

// A fence that cannot be resolved has no event to wait for.
bool copy_thread::marked(const fence_set& fences) noexcept {
  std::uint32_t c = 0;
  for (; c < core_.opts.compute_streams; ++c)
    if (fences.steps[c] != 0 && !marked(c, fences.steps[c])) return false;
  std::uint64_t beyond = 0;
  for (; c < max_compute_streams; ++c) beyond |= fences.steps[c];
  return beyond == 0;
}

bool copy_thread::marked(std::uint32_t compute, std::uint64_t step) noexcept {
  fence_ring& ring = core_.fences[compute];
  return step <= ring.marked() || step <= ring.marked_latest();
}

// Takes the stream's open batch as far as the device lets it; false when it did not move.
bool copy_thread::push(copy_stream& on) noexcept {
  copy_batch& batch = *on.open;
  bool moved = false;
  if (batch.stage == batch_stage::described) moved = hand_over(on, batch);
  if (batch.stage == batch_stage::launched) moved |= record(on, batch);
  return moved;
}

bool copy_thread::hand_over(copy_stream& on, copy_batch& batch) noexcept {
  // Once: a launch that is refused for now comes again, and waits would pile up on the stream.
  const status waits = batch.behind_all ? status::ok : put_waits(on, batch);
  batch.behind_all = waits == status::ok;
  status code = waits;
  if (waits == status::ok) {
    batch.handed_ns = steady_ns();
    code = core_.on.launch(*on.handle, *core_.resident, batch.kind,
                           {batch.tasks, batch.rows.size()}, &batch.report);
  }
  // The stream holds all it can, or somebody captures: later.
  if (code == status::queue_full || code == status::busy) return false;
  if (code == status::device_lost) core_.lose();  // the next pass gives it up
  if (waits == status::device_lost) return true;
  if (waits != status::ok) {
    end_described(on, status::failed);  // nothing that reads the staging was enqueued
    return true;
  }
  // After a launch that failed, a part of it may run: over only when a later event says so, on a
  // lost device never.
  if (code != status::ok)
    batch.code = code == status::device_lost ? status::device_lost : status::failed;
  batch.stage = batch_stage::launched;
  core_.unproven.fetch_add_relaxed(1);  // published by (3)
  return true;
}

bool copy_thread::record(copy_stream& on, copy_batch& batch) noexcept {
  const status code = core_.on.record(*batch.done, *on.handle);
  if (code == status::device_lost) {
    core_.lose();
    return true;
  }
  if (code != status::ok) {
    // Without an event nothing says when the copies are over, so their ops cannot end: again,
    // in the next pass. Whatever comes of it, the batch did not run as it should.
    if (code != status::queue_full && code != status::busy) batch.code = status::failed;
    return false;
  }
  if (!sync::mutated("batch never opened")) batch.word.open();
  batch.stage = batch_stage::flying;
  on.open = nullptr;
  on.push_flying(batch);
  const batch_ref ref = batch.ref();
  for (const std::uint32_t row : batch.rows) {
    const copy_op_header& header = core_.rows->header(row);
    core_.ops.launch(header.op, ref);
    core_.slots.launch(header.slot, ref);
    lanes_.set_last(header.slot, ref);
    health_.launched(row, header.slot);
    notes_[row].launched = true;
    lanes_.pass(row);
  }
  return true;
}

status copy_thread::put_waits(copy_stream& on, const copy_batch& batch) noexcept {
  for (std::uint32_t c = 0; c < core_.opts.compute_streams; ++c) {
    const std::uint64_t step = batch.fences.steps[c];
    if (!pending(c, step) || sync::mutated("compute not waited for")) continue;
    const status code = core_.on.wait(*on.handle, *core_.fences[c].resolve(step).what);
    if (code != status::ok) return code;
  }
  for (const batch_ref& each : batch.behind) {
    copy_batch& before = core_.streams->batch(each.batch);
    if (before.stage != batch_stage::flying || before.ref() != each) continue;  // over
    if (sync::mutated("last copy not waited for")) continue;
    const status code = core_.on.wait(*on.handle, *before.done);
    if (code != status::ok) return code;
  }
  return status::ok;
}

// An event failed: is it the copy, or the device? Only a call can tell. Loses the device when that
// is it.
bool copy_thread::answers(copy_stream& on, copy_batch& batch) noexcept {
  if (core_.gate.lost()) return false;
  if (core_.on.record(*batch.done, *on.handle) != status::device_lost) return true;
  core_.lose();
  return false;
}

}  // namespace cairn::detail
