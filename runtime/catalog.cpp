// Opening, looking up, forgetting, bare pins and counts of the catalog.
#include <algorithm>
#include <cassert>
#include <string>

#include "runtime/catalog_state.hpp"

namespace cairn {

using detail::record;
using detail::record_state;
using detail::record_word;

namespace {

// No function: a template that takes it would call it through a pointer.
constexpr auto is_ready = [](record_word w) noexcept { return w.state == record_state::ready; };

error refuse_option(const char* name, const std::string& expected, std::uint64_t got) {
  return {status::invalid,
          std::string(name) + ": expected " + expected + ", got " + std::to_string(got)};
}

result<void> check(const catalog_options& opts, const unit_source& pool) {
  if (auto valid = opts.shape.validate(); !valid) return valid.why();
  if (opts.ranks < 1 || opts.ranks > max_ranks)
    return refuse_option("ranks", "1 to " + std::to_string(max_ranks), opts.ranks);
  if (opts.slots < 1 || opts.slots > max_index)
    return refuse_option("slots", "1 to " + std::to_string(max_index), opts.slots);
  const std::string counts = "1 to " + std::to_string(record_word::max_count);
  if (opts.max_ops < 1 || opts.max_ops > record_word::max_count)
    return refuse_option("max_ops", counts, opts.max_ops);
  // Threads add optimistic pins beside the bare ones; the sum must fit the field.
  if (opts.max_pins < 1 || opts.max_pins > record_word::max_count)
    return refuse_option("max_pins", counts, opts.max_pins);
  if (opts.max_threads < 1 || opts.max_threads > 4096)
    return refuse_option("max_threads", "1 to 4096", opts.max_threads);
  const std::uint32_t needed = opts.shape.units_per_checkpoint();
  if (needed > pool.max_units())
    return refuse_option(
        "image_bytes",
        "an image of at most " + std::to_string(pool.max_units()) + " units (the pool's maximum)",
        needed);
  return {};
}

}  // namespace

catalog::state::state(catalog_options opts, unit_source& source, std::uint32_t live)
    : shape(std::move(opts.shape)),
      fingerprint(shape.fingerprint()),
      per_image(shape.units_per_checkpoint()),
      slots(opts.slots),
      ranks(opts.ranks),
      pool(source),
      policy(opts.policy ? std::move(opts.policy) : make_lru_policy()),
      homes(live),
      record_count(homes.records()),
      records(record_count),
      unit_ids(std::make_unique<unit_id[]>(std::size_t{record_count} * per_image)),
      free_records(record_count),
      by_key(2 * live, node_of{records.get()}),  // a miss in forty reads a record
      ops(opts.max_ops, slots, opts.ranks, opts.staged),
      pins(opts.max_pins) {
  for (std::uint32_t i = 0; i < record_count; ++i) free_records.put(i);
  policy->bind(record_count);
}

catalog::catalog(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}

catalog::~catalog() {
  clear();  // an engine's own pool lives on
  state_->pool.set_orphan_hook(nullptr, nullptr);
}

result<std::unique_ptr<catalog>> catalog::open(catalog_options opts, unit_source& pool) {
  if (auto checked = check(opts, pool); !checked) return checked.why();
  // The pool bounds the records; each thread inside begin_store holds one more for a moment.
  const std::uint64_t count =
      std::uint64_t{pool.max_units() / opts.shape.units_per_checkpoint()} + opts.max_threads;
  if (count > max_index) return refuse_option("max_units", "fewer than 2^24 records", count);
  auto s = std::make_unique<state>(std::move(opts), pool, static_cast<std::uint32_t>(count));
  std::unique_ptr<catalog> made(new catalog(std::move(s)));
  made->install_orphan_hook();
  return made;
}

void catalog::install_orphan_hook() noexcept {
  state_->pool.set_orphan_hook(
      [](void* context, const checkpoint_key& key) { static_cast<catalog*>(context)->orphan(key); },
      this);
}

const layout& catalog::shape() const noexcept {
  return state_->shape;
}
std::uint32_t catalog::units_per_checkpoint() const noexcept {
  return state_->per_image;
}
unit_source& catalog::pool() const noexcept {
  return state_->pool;
}

std::optional<record_handle> catalog::lookup(const checkpoint_key& key) const noexcept {
  record_word found;
  const std::uint32_t id = state_->peek_key(key, is_ready, found);
  if (id == state::none) return std::nullopt;
  return record_handle{id, found.generation};
}

bool catalog::contains(const checkpoint_key& key) const noexcept {
  record_word found;
  return state_->peek_key(key, is_ready, found) != state::none;
}

bool catalog::contains_or_copying(const checkpoint_key& key) const noexcept {
  record_word found;
  return state_->peek_key(
             key,
             [](record_word w) {
               return w.state == record_state::ready || w.state == record_state::copying;
             },
             found) != state::none;
}

std::uint32_t catalog::resumable_hit(std::span<const checkpoint_key> keys, std::uint32_t hit,
                                     bool assume_checkpointed) const noexcept {
  assert(hit <= keys.size());
  if (assume_checkpointed) return hit;
  // Most keys of a long prefix have no record, and each looks at a bucket of its own: those ahead
  // are on their way from memory meanwhile.
  constexpr std::uint32_t ahead = 8;
  for (std::uint32_t i = 1; i < std::min(ahead, hit); ++i) state_->foresee(keys[hit - 1 - i]);
  for (std::uint32_t length = hit; length > 0; --length) {
    if (length > ahead) state_->foresee(keys[length - 1 - ahead]);
    if (contains(keys[length - 1])) return length;
  }
  return 0;
}

bool catalog::forget(const checkpoint_key& key) noexcept {
  return state_->remove(key);
}

bool catalog::orphan(const checkpoint_key& key) noexcept {
  const bool removed = state_->remove(key);
  if (removed) count_orphan();
  return removed;
}

void catalog::clear() noexcept {
  state& s = *state_;
  for (std::uint32_t id = 0; id < s.record_count; ++id) {
    // (4) as a pin, even on records that look vacant: lose_rank relies on one read-modify-write
    // of each that releases and acquires.
    const std::uint64_t bits = s.records[id].word.fetch_add_acq_rel(record_word::one_pin);
    const record_word w = record_word::of(bits);
    if (w.state == record_state::copying || w.state == record_state::ready)
      s.hide(id, w.generation);
    s.unpin(id, record_word::one_pin);
  }
}

result<pin> catalog::pin_longest(std::span<const checkpoint_key> keys, std::uint32_t hit,
                                 deadline until) noexcept {
  state& s = *state_;
  if (hit > keys.size())
    return error(status::invalid, "hit is longer than the keys", 0, keys.size(), hit);
  for (std::uint32_t length = hit; length > 0; --length) {
    record_word found;
    const std::uint32_t id = s.pin_key(keys[length - 1], record_word::one_pin, is_ready, found);
    if (id == state::none) continue;
    pin made;
    made.record = {id, found.generation};
    made.length = length;
    if (!s.pins.open(made.record, until, made.index, made.generation)) {
      s.unpin(id, record_word::one_pin);
      return error(status::limit, "max_pins bare pins are held");
    }
    return made;
  }
  return error(status::not_found, "no key of the prefix is READY");
}

bool catalog::release_pin(const pin& which) noexcept {
  record_handle record;
  if (!state_->pins.shut(which.index, which.generation, record)) return false;
  state_->unpin(record.index, record_word::one_pin);
  return true;
}

std::uint32_t catalog::state::expire_pins(deadline now) noexcept {
  return pins.expire(now, [&](record_handle which) { unpin(which.index, record_word::one_pin); });
}

std::uint32_t catalog::expire(deadline now) noexcept {
  return state_->expire_pins(now);
}

std::uint32_t catalog::epoch() const noexcept {
  return state_->epoch.load_acquire();  // (10)
}

void catalog::close() noexcept {
  state_->closed.store_release(true);  // (11) release: pairs with (12)
}

catalog_counts catalog::counts() const noexcept {
  const state& s = *state_;
  catalog_counts counts;
  for (std::uint32_t id = 0; id < s.record_count; ++id) {
    switch (s.records[id].load().state) {
      case record_state::copying:
        ++counts.copying;
        break;
      case record_state::ready:
        ++counts.ready;
        break;
      case record_state::evicting:
        ++counts.evicting;
        break;
      default:
        break;
    }
  }
  counts.quarantine_units = s.quarantined.load_relaxed();
  counts.checkpoint_units =
      (counts.copying + counts.ready + counts.evicting) * s.per_image - counts.quarantine_units;
  counts.ops = s.ops.in_use();
  counts.pins = s.pins.live();
  counts.oldest_pin_ns = s.pins.oldest_ns(clock::now());
  return counts;
}

fate_counts catalog::fates() const noexcept {
  const auto& f = state_->fates;
  fate_counts counts;
  counts.kept = f.kept.load_relaxed();
  for (std::size_t i = 0; i < counts.dropped.size(); ++i)
    counts.dropped[i] = f.dropped[i].load_relaxed();
  counts.evicted = f.evicted.load_relaxed();
  counts.orphaned = f.orphaned.load_relaxed();
  counts.failed = f.failed.load_relaxed();
  counts.cancelled = f.cancelled.load_relaxed();
  return counts;
}

void catalog::count_drop(drop_reason why, std::uint64_t by) noexcept {
  state_->fates.dropped[static_cast<std::size_t>(why)].fetch_add_relaxed(by);
}

void catalog::count_orphan() noexcept {
  state_->fates.orphaned.fetch_add_relaxed(1);
}

}  // namespace cairn
