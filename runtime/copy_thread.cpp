// The pass of a copy thread, apart from launching (copy_launch.cpp): what comes in and what ends.
#include "runtime/copy_thread.hpp"

#include <algorithm>
#include <array>

namespace cairn::detail {

namespace {

// While work is in flight on a device whose events ring no bell.
constexpr auto poll_interval = std::chrono::microseconds(20);
// When a call must be repeated that the device refused for now.
constexpr auto retry_interval = std::chrono::milliseconds(1);
// Nothing in sight: whoever brings something rings.
constexpr auto idle_interval = std::chrono::hours(1);
// Looks at the bell before sleeping: about a microsecond, less than a wake-up costs.
constexpr int idle_looks = 500;

}  // namespace

copy_thread::copy_thread(copy_core& core)
    : core_(core),
      lanes_(core.opts.memory.slots, core.opts.store_depth + core.opts.restore_depth),
      stamps_(core.opts.memory.units) {}

bool copy_thread::pass() noexcept {
  // Looked at before receiving, so that the ops that were cancelled come in first.
  if (core_.sweep.exchange_acq_rel(false)) sweeping_ = true;
  bool did = receive();
  if (sweeping_) did |= sweep();
  did |= reap();
  if (core_.gate.lost())
    did |= give_up(status::device_lost, status::device_lost);
  else if (core_.abandon.load_acquire())
    did |= give_up(status::cancelled, status::timed_out);
  did |= advance();
  if (giving_up_ == status::ok) did |= launch_ready();
  if (did) core_.progress.ring();
  return did;
}

void copy_thread::run() noexcept {
  for (;;) {
    // Read before looking for work: a ring after this ends the sleep below.
    const std::uint32_t seen = core_.bell.seen();
    const bool did = pass();
    if (core_.stop.load_acquire() || finished()) break;
    if (did) continue;
    int looks = 0;
    while (looks < idle_looks && core_.bell.seen() == seen) ++looks;
    if (looks == idle_looks) core_.bell.wait(seen, next_look());
  }
  core_.progress.ring();  // the last thing may have been a room given back, which rings nobody
}

bool copy_thread::finished() const noexcept {
  // In this order: once the gate is shut, the other counts only fall.
  return core_.gate.shut() && core_.outstanding() == 0 && core_.unproven.load_relaxed() == 0 &&
         core_.queue.empty();
}

deadline copy_thread::next_look() const noexcept {
  const deadline now = clock::now();
  bool again = false;
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s)
    again |= core_.streams->at(s).open != nullptr;
  const bool flying = core_.unproven.load_relaxed() != 0;
  if (flying && core_.on.polls()) return now + poll_interval;
  if (again || (flying && core_.gate.lost())) return now + retry_interval;
  return now + idle_interval;
}

bool copy_thread::receive() noexcept {
  std::array<queue_entry, 64> got;
  bool did = false;
  while (const std::size_t n = core_.queue.take(got.data(), got.size())) {
    did = true;
    for (std::size_t i = 0; i < n; ++i) {
      const queue_entry& entry = got[i];
      if (entry.row == op_arena::none)
        lanes_.skip(entry.slot, entry.sequence);
      else if (giving_up_ != status::ok)
        refuse(entry.row, giving_up_);
      else if (!lanes_.arrive(entry, core_.rows->header(entry.row).kind))
        refuse(entry.row, status::invalid);
    }
  }
  return did;
}

// Drops cancelled ops that wait. What the queue has not given out yet comes with a ring of the
// bell, so the sweep stays due until the queue is known to be empty.
bool copy_thread::sweep() noexcept {
  bool did = false;
  lanes_.drop(
      [&](std::uint32_t row) {
        return core_.opts.on_cancelled(core_.opts.context, core_.rows->header(row).op);
      },
      [&](std::uint32_t row) {
        refuse(row, status::cancelled);
        did = true;
      });
  sweeping_ = !core_.queue.empty();
  return did;
}

bool copy_thread::reap() noexcept {
  bool did = false;
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    while (each.flying_count != 0) {
      copy_batch& oldest = *each.flying[0];
      const event_state state = core_.on.query(*oldest.done);
      if (state == event_state::pending) break;
      const bool failed = state == event_state::failed;
      // A lost device proves nothing: what it was doing may still be running.
      if (failed && !answers(each, oldest)) break;
      end_batch(each, oldest, failed);
      did = true;
    }
  }
  if (retired_ == 0) return did;
  for (std::uint32_t b = 0; b < core_.streams->size() * copy_stream::batches_each; ++b) {
    copy_batch& each = core_.streams->batch(b);
    if (each.stage != batch_stage::retired || !each.word.unheld()) continue;
    each.word.recycle();
    each.stage = batch_stage::idle;
    --retired_;
    did = true;
  }
  return did;
}

void copy_thread::end_batch(copy_stream& on, copy_batch& batch, bool event_failed) noexcept {
  const bool failed = event_failed || batch.report.failed.load(std::memory_order_relaxed);
  const status code = batch.code == status::ok && failed ? status::failed : batch.code;
  on.pop_flying();
  core_.unproven.fetch_sub_release(1);  // pairs with close: the copies come first
  count(on, batch, code);
  release_rows(batch, code);
  if (batch.word.retire()) {
    batch.word.recycle();
    batch.stage = batch_stage::idle;
  } else {
    batch.stage = batch_stage::retired;
    ++retired_;
  }
}

void copy_thread::count(copy_stream& on, const copy_batch& batch, status code) noexcept {
  const std::uint64_t images = batch.rows.size();
  const std::uint64_t bytes = images * core_.opts.shape.image_bytes;
  const std::int64_t begin_ns = batch.report.begin_ns.load(std::memory_order_relaxed);
  const std::int64_t end_ns = batch.report.end_ns.load(std::memory_order_relaxed);
  on.batches.fetch_add_relaxed(1);
  on.busy_ns.fetch_add_relaxed(std::max<std::int64_t>(0, end_ns - begin_ns));
  if (code == status::ok) {
    on.images.fetch_add_relaxed(images);
    on.bytes.fetch_add_relaxed(bytes);
  }
  if (core_.opts.trace == nullptr) return;
  core_.opts.trace->on_batch({core_.opts.rank, on.index, batch.kind, code,
                              static_cast<std::uint32_t>(images), bytes, begin_ns, end_ns});
}

// The copies of the batch are over: its rows may be written again.
void copy_thread::release_rows(copy_batch& batch, status code) noexcept {
  for (const std::uint32_t row : batch.rows) {
    if (!batch.reported) {
      end_op(row, code);
      continue;
    }
    core_.ops.end(core_.rows->header(row).op);
    core_.rows->put(row);
  }
  batch.rows.clear();
  batch.reported = false;
}

// False: the op was cancelled and is gone without a completion. Asked once per op.
bool copy_thread::take(std::uint32_t row) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  if (core_.opts.on_take == nullptr || core_.opts.on_take(core_.opts.context, header.op))
    return true;
  const copy_kind kind = header.kind;
  core_.ops.end(header.op);
  core_.rows->put(row);
  core_.gate.give(kind, 1);
  core_.ended.fetch_add_release(1);
  return false;
}

// Reports a taken op. `unproven`: a copy may still run. Then its row stays, which the copy reads,
// and order_after must still find the batch. The room comes back first, so that who sees the
// completion finds it free.
void copy_thread::end_op(std::uint32_t row, status code, bool unproven) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  completion what;
  what.op = header.op;
  what.rank = core_.opts.rank;
  what.epoch = header.epoch;
  what.code = code;
  what.unproven = unproven;
  const copy_kind kind = header.kind;
  if (!unproven) {
    core_.ops.end(what.op);
    core_.rows->put(row);
  }
  core_.gate.give(kind, 1);
  core_.opts.on_completion(core_.opts.context, what);
  core_.ended.fetch_add_release(1);  // after the callback: none is running when all have ended
}

// Ends an op that is in no batch, was not taken and has left its lane.
void copy_thread::refuse(std::uint32_t row, status code) noexcept {
  const slot_id slot = core_.rows->header(row).slot;
  if (take(row)) end_op(row, code);
  core_.slots.pass(slot);
}

bool copy_thread::give_up(status never_handed, status handed) noexcept {
  if (giving_up_ != status::ok) return false;
  giving_up_ = never_handed;
  lanes_.take_all([&](std::uint32_t row) { refuse(row, never_handed); });
  const auto report = [&](copy_batch& batch) {
    for (const std::uint32_t row : batch.rows) end_op(row, handed, true);
    batch.reported = true;
  };
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    if (each.open != nullptr && each.open->stage == batch_stage::described)
      end_described(each, never_handed);
    else if (each.open != nullptr)
      report(*each.open);
    for (std::uint32_t i = 0; i < each.flying_count; ++i) report(*each.flying[i]);
  }
  return true;
}

}  // namespace cairn::detail
