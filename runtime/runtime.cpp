// Building a runtime out of its parts, and the way to them. The calls that move ops are in
// runtime_submit.cpp and runtime_settle.cpp.
#include <algorithm>

#include "runtime/runtime_state.hpp"

namespace cairn {
namespace {

/// Reports that can wait to be applied: those of every open op, in closing those of ops that had
/// been cancelled while they were queued, and a proof for each.
std::uint64_t most_held(const runtime_options& opts) {
  if (opts.completions == completion_mode::immediate) return 1;
  return 2 * opts.ranks.size() *
         (std::uint64_t{opts.max_ops} + opts.store_depth + opts.restore_depth);
}

result<void> check_options(const runtime_options& opts, backend& devices) {
  if (auto valid = opts.shape.validate(); !valid) return valid.why();
  if (opts.ranks.empty() || opts.ranks.size() > max_ranks)
    return error(status::invalid, "ranks must be 1 to max_ranks", 0, max_ranks, opts.ranks.size());
  if (opts.ranks.size() > devices.device_count())
    return error(status::invalid, "the backend has fewer devices than there are ranks", 0,
                 opts.ranks.size(), devices.device_count());
  if (opts.compute_streams == 0 || opts.compute_streams > max_compute_streams)
    return error(status::invalid, "compute_streams must be 1 to max_compute_streams", 0,
                 max_compute_streams, opts.compute_streams);
  if (opts.max_ops == 0 || opts.max_ops > max_index)
    return error(status::invalid, "max_ops must be 1 to max_index", 0, max_index, opts.max_ops);
  const rank_memory& first = opts.ranks.front();
  for (std::size_t r = 0; r < opts.ranks.size(); ++r) {
    if (opts.ranks[r].units != first.units)
      return error(status::invalid, "every rank must have the same number of units", r, first.units,
                   opts.ranks[r].units);
    if (opts.ranks[r].slots != first.slots)
      return error(status::invalid, "every rank must have the same number of slots", r, first.slots,
                   opts.ranks[r].slots);
  }
  if (first.slots == 0) return error(status::invalid, "ranks must have slots");
  if (opts.pool == nullptr && opts.units > first.units)
    return error(status::invalid, "units exceeds what the ranks have", 0, first.units, opts.units);
  if (opts.pool != nullptr && opts.pool->max_units() > first.units)
    return error(status::invalid, "the pool names units that the ranks do not have", 0, first.units,
                 opts.pool->max_units());
  return {};
}

}  // namespace

runtime::state::state(const runtime_options& opts)
    : slots(opts.ranks.front().slots),
      compute_streams(opts.compute_streams),
      mode(opts.completions),
      threaded(opts.threaded),
      times(std::make_unique<op_times[]>(opts.max_ops)),
      held(most_held(opts)),
      lost(std::make_unique<sync::atomic<bool>[]>(opts.ranks.size())),
      steps(std::make_unique<sync::atomic<std::uint64_t>[]>(opts.compute_streams)),
      slot_sequences(std::make_unique<sync::atomic<std::uint64_t>[]>(slots)),
      slot_fences(std::make_unique<sync::atomic<std::uint64_t>[]>(std::size_t{slots} *
                                                                  opts.compute_streams)) {}

runtime::runtime(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

result<std::unique_ptr<runtime>> runtime::open(runtime_options opts, backend& devices) {
  if (auto checked = check_options(opts, devices); !checked) return checked.why();
  auto made = std::make_unique<state>(opts);

  unit_source* pool = opts.pool;
  if (pool == nullptr) {
    const std::uint32_t most = opts.ranks.front().units;
    auto own = unit_pool::open({.units = opts.units == 0 ? most : opts.units,
                                .max_units = most,
                                .compute_streams = opts.compute_streams});
    if (!own) return own.why();
    made->own_pool = std::move(*own);
    pool = made->own_pool.get();
  } else {
    // Its units may be fenced by steps of an earlier runtime: this one's come after them.
    fence_set seen;
    for (unit_id id = 0; id < pool->max_units(); ++id) pool->collect_fences({&id, 1}, seen);
    for (std::uint32_t c = opts.compute_streams; c < max_compute_streams; ++c)
      if (seen.steps[c] != 0)  // no store could ever take such a unit
        return error(status::invalid,
                     "the pool remembers steps of a compute stream that the runtime does not have",
                     c, opts.compute_streams, c + 1);
    for (std::uint32_t c = 0; c < opts.compute_streams; ++c) {
      made->first_steps[c] = seen.steps[c];
      made->steps[c].store_relaxed(seen.steps[c]);  // before any thread knows it
    }
  }

  catalog_options keys;
  keys.shape = opts.shape;
  keys.ranks = static_cast<std::uint32_t>(opts.ranks.size());
  keys.slots = made->slots;
  keys.max_ops = opts.max_ops;
  keys.max_pins = opts.max_pins;
  keys.max_threads = opts.max_threads;
  keys.staged = true;
  keys.policy = std::move(opts.policy);
  auto records = catalog::open(std::move(keys), *pool);
  if (!records) return records.why();
  made->records = std::move(*records);

  auto sequences = coordinator::open(
      {.max_sequences = opts.max_sequences, .max_threads = opts.max_threads}, *made->records);
  if (!sequences) return sequences.why();
  made->sequences = std::move(*sequences);

  copier_options per_rank;
  per_rank.shape = opts.shape;
  per_rank.max_ops = opts.max_ops;
  per_rank.store_depth = opts.store_depth;
  per_rank.restore_depth = opts.restore_depth;
  per_rank.store_streams = opts.store_streams;
  per_rank.restore_streams = opts.restore_streams;
  per_rank.max_batch = opts.max_batch;
  per_rank.compute_streams = opts.compute_streams;
  per_rank.threaded = opts.threaded;
  per_rank.checksums = opts.checksums;
  per_rank.op_timeout = opts.op_timeout;
  per_rank.trace = opts.trace;
  per_rank.on_take = &state::on_take;
  per_rank.on_cancelled = &state::on_cancelled;
  per_rank.on_completion = &state::on_completion;
  per_rank.context = made.get();
  for (rank_id r = 0; r < opts.ranks.size(); ++r) {
    per_rank.rank = r;
    per_rank.memory = opts.ranks[r];
    auto one = copier::open(per_rank, devices.at(r));
    if (!one) return one.why();
    made->copiers.push_back(std::move(*one));
  }
  return std::unique_ptr<runtime>(new runtime(std::move(made)));
}

runtime::~runtime() {
  (void)close(clock::now());
  // A copier that has gone has waited for its copies: an engine's own pool gets back what they
  // kept. Of a device that is lost nobody knows.
  state& s = *state_;
  for (rank_id r = 0; r < s.copiers.size(); ++r) {
    const bool gone = s.copiers[r]->lost();
    s.copiers[r].reset();
    if (!gone) s.records->lose_rank(r);
  }
}

std::string runtime::why_lost() const {
  std::string all;
  for (const auto& each : state_->copiers) {
    const std::string one = each->why_lost();
    if (!all.empty() && !one.empty()) all += "; ";
    all += one;
  }
  return all;
}

result<void> runtime::attach(rank_id rank, std::uint32_t compute_stream, stream& which) {
  state& s = *state_;
  if (rank >= ranks()) return error(status::invalid, "there is no such rank", rank, ranks(), rank);
  if (auto attached = s.copiers[rank]->attach(compute_stream, which); !attached) return attached;
  const std::uint64_t before = s.first_steps[compute_stream];
  if (before == 0) return {};
  // Covers the steps that an engine's own pool remembers from before this runtime.
  if (const status code = s.copiers[rank]->mark({compute_stream, before}); code != status::ok)
    return error(code, "the compute stream could not be marked");
  return {};
}

// Each rank's own compute stream waits for that rank's copy. A rank that refuses does not keep
// the others from being ordered; the first refusal is the answer.
status runtime::order_after(std::uint32_t compute, const ticket& op, deadline until) noexcept {
  if (!op.valid()) return status::invalid;
  const op_id id = op.op();
  return state_->each_rank(
      [&](copier& c, deadline at) {
        return c.order_after(compute, {&id, 1}, at);
      },
      until);
}

status runtime::order_after_slot(std::uint32_t compute, slot_id slot, deadline until) noexcept {
  state& s = *state_;
  fence_set earlier;
  if (slot < s.slots) earlier = s.fences_of(slot);
  return s.each_rank(
      [&](copier& c, deadline at) {
        const status code = c.order_after_slot(compute, slot, at);
        return code == status::ok ? c.order_after_fences(compute, earlier, at) : code;
      },
      until);
}

status runtime::order_after_fences(std::uint32_t compute, const fence_set& fences,
                                   deadline until) noexcept {
  return state_->each_rank(
      [&](copier& c, deadline at) { return c.order_after_fences(compute, fences, at); }, until);
}

status runtime::quiesce(deadline until) noexcept {
  auto& copiers = state_->copiers;
  for (std::size_t r = 0; r < copiers.size(); ++r) {
    const status code = copiers[r]->quiesce(until);
    if (code == status::ok) continue;
    if (code == status::device_lost) state_->lose(static_cast<rank_id>(r));
    while (r-- > 0) copiers[r]->resume();
    return code;
  }
  return status::ok;
}

void runtime::resume() noexcept {
  for (auto& c : state_->copiers) c->resume();
}

catalog& runtime::records() noexcept {
  return *state_->records;
}
coordinator& runtime::sequences() noexcept {
  return *state_->sequences;
}
unit_source& runtime::pool() noexcept {
  return state_->records->pool();
}
unit_pool* runtime::own_pool() noexcept {
  return state_->own_pool.get();
}
copier& runtime::rank(rank_id which) noexcept {
  return *state_->copiers[which];
}
std::uint32_t runtime::ranks() const noexcept {
  return static_cast<std::uint32_t>(state_->copiers.size());
}
const runtime_latencies& runtime::latencies() const noexcept {
  return state_->latencies;
}

}  // namespace cairn
