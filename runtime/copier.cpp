// The callers' side of a copier: opening, checking, submitting, life. What callers wait for is in
// copier_order.cpp, what the copy thread does in copy_thread.cpp.
#include <algorithm>
#include <cairn/copier.hpp>
#include <utility>

#include "runtime/copier_state.hpp"

namespace cairn {

namespace {

error bad(const char* what, std::uint64_t subject, std::uint64_t expected, std::uint64_t got) {
  return {status::invalid, what, subject, expected, got};
}

result<void> check_limit(const char* name, std::uint64_t value, std::uint64_t most) {
  if (value != 0 && value <= most) return {};
  return error(status::invalid, std::string("copier_options::") + name + ": expected 1.." +
                                    std::to_string(most) + ", got " + std::to_string(value));
}

result<void> check_options(const copier_options& opts) {
  if (auto valid = opts.shape.validate(); !valid) return valid;
  const struct {
    const char* name;
    std::uint64_t value;
    std::uint64_t most;
  } limits[] = {
      {"memory.units", opts.memory.units, max_index},
      {"memory.slots", opts.memory.slots, max_index},
      {"max_ops", opts.max_ops, max_index},
      {"store_depth", opts.store_depth, max_index},
      {"restore_depth", opts.restore_depth, max_index},
      {"store_streams", opts.store_streams, detail::copy_streams::max_streams / 2},
      {"restore_streams", opts.restore_streams, detail::copy_streams::max_streams / 2},
      {"max_batch", opts.max_batch, 4096},
      {"compute_streams", opts.compute_streams, max_compute_streams},
  };
  for (const auto& each : limits)
    if (auto fits = check_limit(each.name, each.value, each.most); !fits) return fits;
  if (opts.rank >= max_ranks)
    return bad("rank is out of range (expected: below)", 0, max_ranks, opts.rank);
  if (opts.op_timeout.count() < 0)
    return error(status::invalid, "copier_options::op_timeout: expected no negative time, got " +
                                      std::to_string(opts.op_timeout.count()) + " ns");
  if (opts.on_completion == nullptr)
    return error(status::invalid, "copier_options::on_completion: expected a function, got null");
  return {};
}

result<void> open_parts(detail::copy_core& core) {
  auto plan = make_copy_plan(core.opts.shape, core.opts.memory);
  if (!plan) return plan.why();
  core.plan = std::move(plan.value());
  if (auto fits = check_plan_memory(core.plan, core.opts.memory); !fits) return fits;
  if (auto apart = check_apart(core.opts.memory); !apart) return apart;
  auto resident = core.on.load(core.plan, core.opts.memory);
  if (!resident) return resident.why();
  core.resident = std::move(resident.value());
  core.batch_max = std::min(core.opts.max_batch, core.resident->images_max());
  auto rows = detail::op_arena::open(core.on, core.opts.store_depth + core.opts.restore_depth,
                                     core.units_per_op);
  if (!rows) return rows.why();
  core.rows = std::move(rows.value());
  auto streams = detail::copy_streams::open(core.opts, core.on, core.bell);
  if (!streams) return streams.why();
  core.streams = std::move(streams.value());
  for (std::uint32_t c = 0; c < core.opts.compute_streams; ++c)
    if (auto ring = core.fences[c].open(core.on); !ring) return ring;
  return {};
}

}  // namespace

copier::copier(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

result<std::unique_ptr<copier>> copier::open(const copier_options& opts, device& on) {
  if (auto valid = check_options(opts); !valid) return valid.why();
  auto made = std::make_unique<state>(opts, on);
  if (auto parts = open_parts(made->core); !parts) return parts.why();
  if (opts.threaded) made->thread = std::thread([s = made.get()] { s->loop.run(); });
  return std::unique_ptr<copier>(new copier(std::move(made)));
}

copier::~copier() {
  (void)close(clock::now());
  state_->core.stop.store_release(true);  // (9)
  state_->core.bell.ring();
  if (state_->thread.joinable()) state_->thread.join();
}

result<void> copier::attach(std::uint32_t index, stream& compute) {
  if (index >= state_->core.opts.compute_streams)
    return bad("compute stream is out of range (expected: below)", index,
               state_->core.opts.compute_streams, index);
  state_->core.fences[index].attach(compute);
  return {};
}

status copier::mark(fence_token token) noexcept {
  detail::copy_core& core = state_->core;
  if (token.stream >= core.opts.compute_streams || token.step == 0) return status::invalid;
  detail::fence_ring& ring = core.fences[token.stream];
  stream* compute = ring.compute();
  if (compute == nullptr) return status::invalid;
  if (core.gate.lost()) return status::device_lost;
  if (core.on.capturing(*compute)) return status::busy;
  const status code = ring.mark(core.on, token.step);
  if (code == status::device_lost) core.lose();
  return code;
}

bool copier::try_room(copy_kind kind, std::uint32_t count) noexcept {
  const bool stores = kind == copy_kind::store;
  return state_->core.gate.take(stores ? count : 0, stores ? 0 : count) == status::ok;
}

void copier::give_room(copy_kind kind, std::uint32_t count) noexcept {
  state_->core.gate.give(kind, count);
  state_->core.bell.ring();  // the copy thread may be waiting for the last room to end
}

result<void> copier::check(const copy_op& op) const {
  const detail::copy_core& core = state_->core;
  const copy_op_header& h = op.header;
  const std::uint64_t id = h.op.index;
  if (h.op.index >= core.opts.max_ops)
    return bad("op index is out of range (expected: below)", id, core.opts.max_ops, h.op.index);
  if (h.kind != copy_kind::store && h.kind != copy_kind::restore)
    return bad("op is neither a store nor a restore (expected: up to)", id, 1,
               static_cast<std::uint64_t>(h.kind));
  if (h.layout_fingerprint != core.fingerprint)
    return bad("op was made for another layout (fingerprints)", id, core.fingerprint,
               h.layout_fingerprint);
  if (h.image_bytes != core.opts.shape.image_bytes)
    return bad("op has another image size (bytes)", id, core.opts.shape.image_bytes, h.image_bytes);
  if (h.unit_count != core.units_per_op)
    return bad("op has a wrong number of units", id, core.units_per_op, h.unit_count);
  if (op.units.size() != h.unit_count)
    return bad("op's header and list disagree on the number of units", id, h.unit_count,
               op.units.size());
  if (h.slot >= core.opts.memory.slots)
    return bad("slot is out of range (expected: below)", id, core.opts.memory.slots, h.slot);
  if (slot_status(h.slot) == status::busy)
    return error(status::busy, "a copy that was given up may still touch the slot", id, 0, h.slot);
  if (!detail::in_range(op.units, core.opts.memory.units))
    for (const unit_id unit : op.units)
      if (unit >= core.opts.memory.units)
        return bad("unit is out of range (expected: below)", id, core.opts.memory.units, unit);
  for (std::uint32_t c = 0; c < max_compute_streams; ++c) {
    const std::uint64_t marked = c < core.opts.compute_streams ? core.fences[c].marked() : 0;
    if (h.fences.steps[c] > marked)
      return bad(
          "fence names a step of this compute stream that was never marked (expected: up to)", c,
          marked, h.fences.steps[c]);
  }
  return {};
}

void copier::enqueue(const copy_op& op) noexcept {
  state_->put(op, state_->core.stamp_ns());
  state_->core.came({&op, 1});
}

result<void> copier::submit(std::span<const copy_op> ops) {
  std::uint32_t stores = 0;
  std::uint32_t restores = 0;
  for (const copy_op& op : ops) {
    if (auto valid = check(op); !valid) return valid;
    ++(op.header.kind == copy_kind::store ? stores : restores);
  }
  switch (const status room = state_->core.gate.take(stores, restores)) {
    case status::ok:
      break;
    case status::queue_full:
      return error(room, "no room in the submission queue");
    case status::closed:
      return error(room, "the copier has been closed");
    default:
      return error(room, "the device is lost: " + why_lost());
  }
  const std::int64_t now_ns = state_->core.stamp_ns();
  for (const copy_op& op : ops) state_->put(op, now_ns);
  state_->core.came(ops);
  return {};
}

void copier::skip(slot_id slot, std::uint64_t slot_sequence) noexcept {
  if (slot >= state_->core.opts.memory.slots || slot_sequence == 0) return;
  state_->core.queue.put({.slot = slot, .sequence = slot_sequence});
  state_->core.bell.ring();
}

status copier::slot_status(slot_id slot) const noexcept {
  const detail::copy_core& core = state_->core;
  if (core.gate.lost()) return status::device_lost;
  return slot < core.opts.memory.slots ? core.slots.look(slot) : status::invalid;
}

status copier::reset_slot(slot_id slot, std::uint64_t slot_sequence) noexcept {
  const status now = slot_status(slot);
  if (now != status::ok && now != status::poisoned) {
    skip(slot, slot_sequence);
    return now;
  }
  state_->core.slots.admit_reset(slot);
  state_->core.queue.put({.slot = slot, .reset = true, .sequence = slot_sequence});
  state_->core.bell.ring();
  return status::ok;
}

void copier::drop_cancelled() noexcept {
  detail::copy_core& core = state_->core;
  if (core.opts.on_cancelled == nullptr) return;
  core.sweep.store_release(true);  // (11)
  core.bell.ring();
}

bool copier::pump() noexcept {
  return !state_->core.opts.threaded && state_->loop.pass();
}

bool copier::lost() const noexcept {
  return state_->core.gate.lost();
}

std::string copier::why_lost() const {
  if (!lost()) return {};
  const std::string why = state_->core.on.why_lost();
  return state_->core.on.name() + ": " + (why.empty() ? "of unknown cause" : why);
}

std::uint32_t copier::outstanding() const noexcept {
  return static_cast<std::uint32_t>(state_->core.outstanding());
}

std::vector<stream_stats> copier::stats() const {
  const detail::copy_core& core = state_->core;
  std::vector<stream_stats> all;
  all.reserve(core.streams->size());
  for (std::uint32_t s = 0; s < core.streams->size(); ++s) {
    const detail::copy_stream& each = core.streams->at(s);
    all.push_back({core.opts.rank, s, each.kind, each.batches.load_relaxed(),
                   each.images.load_relaxed(), each.bytes.load_relaxed(),
                   each.busy_ns.load_relaxed()});
  }
  return all;
}

}  // namespace cairn
