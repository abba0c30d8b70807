// Calls into cairn, and what its answers mean for a run.
#include "bench/replay/cairn_engine.hpp"

#include <algorithm>
#include <string>

#include "bench/replay/bad_input.hpp"

namespace cairn::replay {
namespace {

constexpr auto patience = std::chrono::seconds(60);
// Virtual time in which a copy has ended for sure.
constexpr std::int64_t copy_us_max = 100'000;
constexpr auto short_patience = std::chrono::milliseconds(20);

deadline soon() {
  return clock::now() + patience;
}

/// Refusals that an engine lives with: it waits, or goes without.
bool is_shortage(status code) {
  return code == status::no_room || code == status::passed_over || code == status::queue_full ||
         code == status::limit;
}

[[noreturn]] void give_up(const char* call, const error& why) {
  throw broken_run(std::string(call) + ": " + why.message());
}

void expect(status code, const char* call) {
  if (code != status::ok) throw broken_run(std::string(call) + ": " + to_string(code));
}

void expect(const result<void>& answer, const char* call) {
  if (!answer) give_up(call, answer.why());
}

std::unique_ptr<unit_pool> open_pool(std::uint32_t units) {
  unit_pool::options opts;
  opts.units = units;
  auto opened = unit_pool::open(opts);
  if (!opened) give_up("unit_pool::open", opened.why());
  return std::move(opened).value();
}

/// The separate pool's link: KV that goes takes its checkpoint with it.
void orphan(void* context, const checkpoint_key& key) {
  static_cast<coordinator*>(context)->unindex(key);
}

}  // namespace

cairn_engine::cairn_engine(const cairn_engine_options& opts, const geometry& of, backend& devices,
                           const std::vector<device_memory>& memory)
    : opts_(opts), restores_(opts.slots) {
  runtime_options wanted;
  wanted.shape = of.shape();
  for (const device_memory& each : memory) wanted.ranks.push_back(each.addresses);
  wanted.units = separate() ? opts.checkpoint_units : opts.units;
  wanted.max_sequences = opts.slots;
  // A slot has a restore and a few stores in flight at most.
  wanted.max_ops = std::max<std::uint32_t>(4096, 4 * opts.slots);
  wanted.store_depth = std::max<std::uint32_t>(1024, opts.slots);
  wanted.restore_depth = wanted.store_depth;
  wanted.max_threads = opts.threads + 1;
  wanted.completions = opts.settled ? completion_mode::settled : completion_mode::immediate;
  wanted.trace = opts.trace;
  if (separate() || !opts.link) live_pool_ = open_pool(opts.units);
  if (!separate() && !opts.link) {
    unlinked_ = std::make_unique<unlinked_pool>(*live_pool_);
    wanted.pool = unlinked_.get();
  }
  auto opened = runtime::open(std::move(wanted), devices);
  if (!opened) give_up("runtime::open", opened.why());
  runtime_ = std::move(opened).value();
  live_ = live_pool_ ? live_pool_.get() : runtime_->own_pool();
  if (separate() && opts.link) live_pool_->set_orphan_hook(&orphan, &runtime_->sequences());
}

void cairn_engine::settle(std::int64_t now_us) {
  if (opts_.settled)
    apply_completions();
  else
    catch_up(now_us);
}

void cairn_engine::apply_completions() {
  if (opts_.settled) expect(runtime_->settle(soon()), "settle");
}

/// Virtual time passes hundreds of times faster than real time, and copies do not: a store that
/// began long ago in virtual time has ended before anybody looks for its checkpoint.
void cairn_engine::catch_up(std::int64_t now_us) {
  const std::lock_guard alone(draining_);
  while (!begun_.empty() && begun_.front().at_us + copy_us_max <= now_us) {
    if (begun_.front().store.wait(soon()) == status::pending) throw broken_run("a store is stuck");
    begun_.pop_front();
  }
}

void cairn_engine::quiet(bool alone) {
  if (opts_.settled) return apply_completions();
  const status code = runtime_->drain(alone ? soon() : clock::now() + short_patience);
  if (alone) expect(code, "drain");
}

std::optional<admitted> cairn_engine::admit(run_id, slot_id slot,
                                            std::span<const checkpoint_key> keys,
                                            std::uint32_t fresh, std::span<unit_id> units) {
  expect(runtime_->sequences().set_slot(slot, slot), "set_slot");
  if (separate()) return admit_separately(slot, keys, units);
  auto holds = runtime_->admit(keys, fresh, slot, units, 0, restores_[slot]);
  if (holds) return admitted{holds->resumed, holds->kv_hit};
  if (!is_shortage(holds.code())) give_up("admit", holds.why());
  return std::nullopt;
}

/// What admit does in one step, by hand: live KV has a pool of its own.
std::optional<admitted> cairn_engine::admit_separately(slot_id slot,
                                                       std::span<const checkpoint_key> keys,
                                                       std::span<unit_id> units) {
  admitted holds;
  while (holds.kv_hit < keys.size()) {
    const unit_id claimed = live_->claim(keys[holds.kv_hit]);
    if (claimed == no_unit) break;
    units[holds.kv_hit++] = in_memory(claimed);
  }
  // The pin keeps the checkpoint while the room for the rest is looked for.
  auto held = runtime_->records().pin_longest(keys, holds.kv_hit, soon());
  holds.resumed = held ? held->length : 0;
  give_back(units.subspan(holds.resumed, holds.kv_hit - holds.resumed));
  const std::span<unit_id> rest = units.subspan(holds.resumed);
  bool all = live_->allocate(rest).ok();
  if (all) {
    for (unit_id& each : rest) each = in_memory(each);
    if (holds.resumed > 0) {
      auto begun = runtime_->restore(keys[holds.resumed - 1], slot, 0);
      if (begun) {
        restores_[slot] = std::move(begun).value();
      } else {
        if (begun.code() != status::not_found && !is_shortage(begun.code()))
          give_up("restore", begun.why());
        give_back(rest);
        all = false;
      }
    }
  }
  if (held) runtime_->records().release_pin(*held);
  if (all) return holds;
  give_back(units.first(holds.resumed));
  return std::nullopt;
}

void cairn_engine::give_back(std::span<unit_id> units) {
  for (auto each = units.rbegin(); each != units.rend(); ++each)
    expect(live_->free(in_pool(*each)), "free");
}

bool cairn_engine::has_available_units(std::uint32_t count, const checkpoint_key* protect) {
  return runtime_->records().has_available_units(count, protect);
}

bool cairn_engine::has_kv(const checkpoint_key& key) {
  return live_->lookup(key) != no_unit;
}

bool cairn_engine::restored(run_id, slot_id slot) {
  // Order is not success: the step may be computed only when the image is there.
  apply_completions();
  const status code = restores_[slot].wait(soon());
  restores_[slot] = ticket();
  return code == status::ok;
}

unit_id cairn_engine::grow(run_id) {
  unit_id grown = no_unit;
  const std::span<unit_id> out(&grown, 1);
  auto answer = separate() ? live_->allocate(out) : runtime_->records().allocate(out);
  if (answer) return separate() ? in_memory(grown) : grown;
  if (!is_shortage(answer.code())) give_up("allocate", answer.why());
  return no_unit;
}

void cairn_engine::publish(run_id, std::uint32_t, unit_id unit, const checkpoint_key& key) {
  expect(live_->publish(in_pool(unit), key), "publish");
}

void cairn_engine::reach(run_id, slot_id slot, const checkpoint_key& key, placement_hint hint,
                         std::int64_t now_us) {
  expect(runtime_->sequences().file(slot, key, hint), "file");
  // One drain at a time: a boundary that another thread's drain has taken must be submitted
  // before this thread goes on to overwrite the slot.
  const std::lock_guard alone(draining_);
  if (opts_.settled)
    runtime_->drain_boundaries(0);
  else
    drain_with_tickets(now_us);
}

/// What drain_boundaries does, keeping the tickets. Precondition: draining_ is held.
void cairn_engine::drain_with_tickets(std::int64_t now_us) {
  while (!begun_.empty() && begun_.front().store.code() != status::pending) begun_.pop_front();
  struct context {
    cairn_engine* self;
    std::int64_t now_us;
  } with{this, now_us};
  runtime_->sequences().drain(
      [](void* opaque, const boundary& what) {
        auto& [self, at_us] = *static_cast<context*>(opaque);
        auto begun = self->runtime_->store(what.key, what.slot, 0, what.hint);
        if (!begun) return begun.code();
        self->begun_.push_back({at_us, std::move(begun).value()});
        return status::ok;
      },
      &with);
}

void cairn_engine::release(run_id, slot_id slot, std::span<const unit_id> units, bool preempted) {
  if (preempted) {
    // What is cancelled would depend on real time; one thread's figures must not.
    apply_completions();
  } else {
    // Nothing of a run that ends well is cancelled: its stores are all with the device by then.
    expect(runtime_->order_after_slot(0, slot, soon()), "order_after_slot");
  }
  expect(runtime_->sequences().forget(slot), "forget");
  expect(runtime_->sequences().set_slot(slot, no_slot), "set_slot");
  if (auto released = runtime_->release_slot(slot, 0); !released)
    give_up("release_slot", released.why());
  restores_[slot] = ticket();
  auto fence = runtime_->mark(0);
  if (!fence) give_up("mark", fence.why());
  for (unit_id each : units) expect(live_->free(in_pool(each), *fence), "free");
}

void cairn_engine::finish() {
  expect(runtime_->drain(soon()), "drain");
  apply_completions();
  begun_.clear();
}

engine_counts cairn_engine::counts() {
  const catalog_counts records = runtime_->records().counts();
  engine_counts found;
  auto add = [&found](const pool_counts& pool) {
    found.total += pool.total;
    found.vacant += pool.vacant;
    found.cached += pool.cached;
    found.live += pool.live;
    found.checkpoint += pool.reserved;
  };
  add(live_->counts());
  if (separate()) add(runtime_->own_pool()->counts());
  found.quarantine = records.quarantine_units;
  found.checkpoint -= std::min(found.checkpoint, found.quarantine);
  found.unfinished_records = records.copying + records.evicting;
  found.records = records.ready + found.unfinished_records;
  found.fates = runtime_->records().fates();
  return found;
}

}  // namespace cairn::replay
