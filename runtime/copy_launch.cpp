// The second half of a copy thread's pass: ready ops become batches, batches go to the device.
#include <algorithm>

#include "runtime/copy_thread.hpp"

namespace cairn::detail {

bool copy_thread::advance() noexcept {
  if (core_.gate.lost()) return false;
  bool did = false;
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    if (each.open != nullptr) did |= push(each);
  }
  return did;
}

bool copy_thread::launch_ready() noexcept {
  bool did = false;
  for (const copy_kind kind : {copy_kind::restore, copy_kind::store}) {
    while (lanes_.any_ready(kind) && !core_.gate.lost()) {
      copy_stream* on = core_.streams->pick(kind);
      if (on == nullptr) break;
      did = true;
      if (describe(*on, *core_.streams->idle(*on))) push(*on);
      if (kind == copy_kind::store) break;
    }
  }
  return did;
}

// Fills an idle batch with ready ops; false when all of them ended here.
bool copy_thread::describe(copy_stream& on, copy_batch& batch) noexcept {
  batch.code = status::ok;
  batch.fences = {};
  batch.behind.clear();
  batch.report.begin_ns.store(0, std::memory_order_relaxed);
  batch.report.end_ns.store(0, std::memory_order_relaxed);
  batch.report.failed.store(false, std::memory_order_relaxed);
  while (batch.rows.size() < core_.opts.max_batch && lanes_.any_ready(batch.kind)) {
    const std::uint32_t row = lanes_.take_ready(batch.kind);
    const copy_op_header& header = core_.rows->header(row);
    const slot_id slot = header.slot;
    if (const bool taken = take(row); !taken || !sound(row)) {
      lanes_.pass(row);
      if (taken) end_op(row, status::invalid);
      core_.slots.pass(slot);
      continue;
    }
    batch.tasks[batch.rows.size()] = {slot, core_.rows->units(row)};
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
  return true;
}

// Ops that came through enqueue may not have been checked, and one must not take its neighbours
// down. Two units of one op that are the same would be written by two tiles at once.
bool copy_thread::sound(std::uint32_t row) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  if (header.unit_count != core_.units_per_op || !marked(header.fences)) return false;
  if (++stamp_ == 0) {
    std::fill(stamps_.begin(), stamps_.end(), 0U);
    stamp_ = 1;
  }
  const unit_id* units = core_.rows->units(row);
  for (std::uint32_t i = 0; i < core_.units_per_op; ++i) {
    if (units[i] >= stamps_.size() || stamps_[units[i]] == stamp_) return false;
    stamps_[units[i]] = stamp_;
  }
  return true;
}

// A fence that cannot be resolved has no event to wait for.
bool copy_thread::marked(const fence_set& fences) noexcept {
  for (std::uint32_t c = 0; c < max_compute_streams; ++c) {
    if (fences.steps[c] == 0) continue;
    if (c >= core_.opts.compute_streams) return false;
    if (fences.steps[c] > core_.fences[c].marked() &&
        fences.steps[c] > core_.fences[c].marked_latest())
      return false;
  }
  return true;
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
  const status waits = put_waits(on, batch);
  status code = waits;
  if (waits == status::ok)
    code = core_.on.launch(*on.handle, *core_.resident, batch.kind,
                           {batch.tasks, batch.rows.size()}, &batch.report);
  if (code == status::queue_full) return false;   // the stream holds all it can: later
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
  core_.unproven.fetch_add_relaxed(1);  // published by `ended`
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
    if (code != status::queue_full) batch.code = status::failed;
    return false;
  }
  batch.word.open();
  batch.stage = batch_stage::flying;
  on.open = nullptr;
  on.push_flying(batch);
  const batch_ref ref = batch.ref();
  for (const std::uint32_t row : batch.rows) {
    const copy_op_header& header = core_.rows->header(row);
    core_.ops.launch(header.op, ref);
    core_.slots.launch(header.slot, ref);
    lanes_.set_last(header.slot, ref);
    lanes_.pass(row);
  }
  return true;
}

status copy_thread::put_waits(copy_stream& on, const copy_batch& batch) noexcept {
  for (std::uint32_t c = 0; c < core_.opts.compute_streams; ++c) {
    const std::uint64_t step = batch.fences.steps[c];
    if (step <= passed_[c]) continue;
    const fence_ring::position at = core_.fences[c].resolve(step);
    if (core_.on.query(*at.what) == event_state::fired) {
      passed_[c] = std::max(passed_[c], at.covers);
      continue;
    }
    const status code = core_.on.wait(*on.handle, *at.what);
    if (code != status::ok) return code;
  }
  for (const batch_ref& each : batch.behind) {
    copy_batch& before = core_.streams->batch(each.batch);
    if (before.stage != batch_stage::flying || before.ref() != each) continue;  // over
    const status code = core_.on.wait(*on.handle, *before.done);
    if (code != status::ok) return code;
  }
  return status::ok;
}

// Ends the ops of a batch of which the device has nothing.
void copy_thread::end_described(copy_stream& on, status code) noexcept {
  copy_batch& batch = *on.open;
  for (const std::uint32_t row : batch.rows) {
    const slot_id slot = core_.rows->header(row).slot;
    lanes_.pass(row);
    end_op(row, code);
    core_.slots.pass(slot);
  }
  batch.rows.clear();
  batch.stage = batch_stage::idle;
  on.open = nullptr;
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
