// The pass of a copy thread, apart from launching (copy_launch.cpp) and from how ops end
// (copy_end.cpp): what comes in, and which batches are over.
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
// Looks at the bell before sleeping: about a microsecond, less than a wake-up costs. Only behind a
// sleep that was hardly longer: who is woken seldom looks in vain, and often on the processor of
// the thread that has woken him and would go on.
constexpr int idle_looks = 500;
constexpr auto short_sleep = std::chrono::microseconds(5);

std::uint32_t rows_of(const copy_core& core) noexcept {
  return core.opts.store_depth + core.opts.restore_depth;
}

}  // namespace

copy_thread::copy_thread(copy_core& core)
    : core_(core),
      health_(core.opts.memory.slots, rows_of(core), core.slots),
      lanes_(core.opts.memory.slots, rows_of(core), health_, core.slots),
      deadlines_(rows_of(core)),
      notes_(rows_of(core)),
      stamps_(core.opts.memory.units),
      sums_(core.opts.checksums ? core.opts.memory.units : 0, unknown_sum) {}

bool copy_thread::pass() noexcept {
  held_ = core_.hush.asked();
  std::fill_n(pending_, core_.opts.compute_streams, ~std::uint64_t{0});
  // Looked at before receiving, so that the ops that were cancelled come in first.
  if (core_.sweep.exchange_acq_rel(false)) sweeping_ = true;  // (12)
  bool did = receive();
  if (sweeping_) did |= sweep();
  did |= reap();
  if (core_.gate.lost())
    did |= give_up(status::device_lost, status::device_lost);
  else if (core_.abandon.load_acquire())  // (8)
    did |= give_up(status::cancelled, status::timed_out);
  else
    did |= expire();
  did |= advance();
  if (giving_up_ == status::ok && (!held_ || sync::mutated("launch under quiet")))
    did |= launch_ready();
  // Last: no call of the device comes after it. Relaxed: this thread's own count.
  if (held_ && (core_.unproven.load_relaxed() == 0 || sync::mutated("quiet with copies in flight")))
    did |= core_.hush.settle();
  if (did) core_.progress.ring();
  return did;
}

void copy_thread::run() noexcept {
  core_.on.adopt_thread();
  int looks_max = 0;
  for (;;) {
    // Read before looking for work: a ring after this ends the sleep below.
    const std::uint32_t seen = core_.bell.seen();
    const bool did = pass();
    if (core_.stop.load_acquire() || finished()) break;  // (10)
    if (did) continue;
    int looks = 0;
    while (looks < looks_max && core_.bell.seen() == seen) ++looks;
    if (looks < looks_max || tell_hunger()) continue;
    const deadline asleep = clock::now();
    core_.bell.wait(seen, next_look());
    looks_max = clock::now() - asleep < short_sleep ? idle_looks : 0;
  }
  core_.progress.ring();  // the last thing may have been a room given back, which rings nobody
}

// The kinds of ops that could be launched now. Others wait for a batch to end, and its event rings.
// So could only ops whose turn has come: before another one's comes, this thread has something to
// do anyway. With nothing to keep the time of an op that comes, every op must be heard of.
std::uint32_t copy_thread::wanted() noexcept {
  if (giving_up_ != status::ok || sweeping_ || core_.gate.lost() ||
      (core_.opts.op_timeout.count() != 0 && deadlines_.empty()))
    return every_op;
  std::uint32_t kinds = 0;
  for (const copy_kind kind : {copy_kind::store, copy_kind::restore})
    if (core_.streams->pick(kind, true) != nullptr) kinds |= bit_of(kind);
  return kinds;
}

// Before a sleep; true when something was done that had come unheard.
bool copy_thread::tell_hunger() noexcept {
  const std::uint32_t kinds = wanted();
  const bool told = lanes_.told();
  // Neither has changed since the last exchange: what is wanted and in its turn was so, and rang.
  if (kinds == hungry_ && !told) return false;
  hungry_ = kinds;
  (void)core_.hungry.exchange_acq_rel(kinds);  // (14)
  return !core_.queue.empty() && !sync::mutated("no look before the sleep") && pass();
}

bool copy_thread::finished() const noexcept {
  // In this order: once the gate is shut, the other counts only fall.
  return core_.gate.shut() && core_.outstanding() == 0 && core_.unproven.load_relaxed() == 0 &&
         core_.queue.empty();
}

deadline copy_thread::next_look() const noexcept {
  const deadline now = clock::now();
  const deadline latest =
      std::min(now + idle_interval,
               deadlines_.empty() ? deadline::max()
                                  : deadline(std::chrono::nanoseconds(deadlines_.first_ns())));
  bool again = false;
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) again |= may_push(core_.streams->at(s));
  const bool flying = core_.unproven.load_relaxed() != 0;
  if (flying && core_.on.polls() && !core_.gate.lost())
    return std::min(latest, now + poll_interval);
  if (again || (flying && core_.gate.lost())) return std::min(latest, now + retry_interval);
  return latest;
}

bool copy_thread::receive() noexcept {
  std::array<queue_entry, 64> got;
  bool did = false;
  while (const std::size_t n = core_.queue.take(got.data(), got.size())) {
    did = true;
    for (std::size_t i = 0; i < n; ++i) {
      const queue_entry& entry = got[i];
      if (entry.row == op_arena::none) {
        lanes_.skip(entry.slot, entry.sequence, entry.reset);
        continue;
      }
      notes_[entry.row] = {.ids = entry.ids};
      if (giving_up_ != status::ok)
        refuse(entry.row, giving_up_);
      else if (lanes_.arrive(entry, core_.rows->header(entry.row).kind))
        await_end(entry.row);
      else
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
  for (bool again = true; again;) {
    again = false;
    bool held_back = false;
    for (std::uint32_t s = 0; s < core_.streams->size(); ++s)
      again |= reap_stream(core_.streams->at(s), held_back);
    did |= again;
    again = again && held_back;
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

bool copy_thread::reap_stream(copy_stream& on, bool& held_back) noexcept {
  bool did = false;
  while (on.flying_count != 0) {
    copy_batch& oldest = *on.flying[0];
    const event_state state = core_.on.query(*oldest.done);
    if (state == event_state::pending && !sync::mutated("copy over before its event")) break;
    if (!first_on_slots(oldest)) {
      held_back = true;
      break;
    }
    const bool failed = state == event_state::failed;
    // A lost device proves nothing: what it was doing may still be running.
    if (failed && !answers(on, oldest)) break;
    end_batch(on, oldest, failed);
    did = true;
  }
  return did;
}

// What a batch ran behind is judged first: whether a store is good depends on the restore before
// it.
bool copy_thread::first_on_slots(const copy_batch& batch) noexcept {
  return std::none_of(batch.behind.begin(), batch.behind.end(), [&](const batch_ref& each) {
    const copy_batch& before = core_.streams->batch(each.batch);
    return before.stage == batch_stage::flying && before.ref() == each;
  });
}

void copy_thread::end_batch(copy_stream& on, copy_batch& batch, bool event_failed) noexcept {
  // Relaxed: the event that has fired publishes the report.
  const bool failed = event_failed || batch.report.failed.load(std::memory_order_relaxed);
  status code = batch.code == status::ok && failed ? status::failed : batch.code;
  if (sync::mutated("failed copy as success")) code = status::ok;
  on.pop_flying();
  count(on, batch, code);
  release_rows(batch, code);
  core_.unproven.fetch_sub_release(1);  // (5) the copies and their proofs come first
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
  // Relaxed: see end_batch.
  std::int64_t begin_ns = batch.report.begin_ns.load(std::memory_order_relaxed);
  std::int64_t end_ns = batch.report.end_ns.load(std::memory_order_relaxed);
  if (end_ns == 0) {  // the backend cannot tell
    begin_ns = std::max(batch.handed_ns, on.seen_end_ns);
    end_ns = on.seen_end_ns = steady_ns();
  }
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

}  // namespace cairn::detail
