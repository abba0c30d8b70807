// The life of an episode, and what its engine checks; what it does is in episode_calls.cpp.
#include "stress/faults/episode.hpp"

#include <algorithm>
#include <string>

#include "stress/faults/clock.hpp"

namespace cairn::stress {

namespace {

constexpr std::uint32_t steps_each = 900;

std::uint64_t random_of(std::uint64_t seed) {
  return mixed(seed * 0x2545f4914f6cdd1dULL + 77);
}

}  // namespace

episode::episode(std::uint64_t seed, fault_counts& met, tally& sum)
    : seed_(seed),
      sum_(sum),
      plan_(seed, met),
      ranks_(1 + static_cast<std::uint32_t>(random_of(seed) % 3)),
      devices_(ranks_, plan_) {
  restart_clock();
  shape_.units = 24 + plan_.below(3) * 9;
  shape_.slots = 6;
  plan_.odds = 6 + plan_.below(30);
  keys_.resize(keys);
  versions_.assign(shape_.slots, 0);
  stalled_.assign(ranks_, 0);
  for (rank_id r = 0; r < ranks_; ++r) {
    spaces_.push_back(std::make_unique<rank_space>(shape_, r));
    computes_.push_back(std::move(*devices_.at(r).create_stream(stream_priority::normal)));
    devices_.planned(r).watch();
  }
  for (slot_id slot = 0; slot < shape_.slots; ++slot) {
    const image_name name{plan_.below(keys), ++generations_};
    for (const auto& space : spaces_) space->write_slot(slot, name);
    slots_.push_back(static_cast<int>(contents_.size()));
    contents_.push_back({name, -1, -1});
  }
}

episode::~episode() = default;

void episode::wrong(const std::string& what) {
  if (wrong_.empty())
    wrong_ =
        what + " (seed " + std::to_string(seed_) + ", step " + std::to_string(sum_.steps) + ")";
}

bool episode::lost() const {
  for (rank_id r = 0; r < ranks_; ++r)
    if (runtime_->rank(r).lost()) return true;
  return false;
}

void episode::refuse(status code) {
  ++sum_.refused[static_cast<std::size_t>(code)];
  if (code == status::queue_full) plan_.met(fault::queue_full);
}

bool episode::open() {
  runtime_options opts;
  opts.shape = shape_.shape();
  for (const auto& space : spaces_) opts.ranks.push_back(space->memory());
  opts.threaded = false;
  opts.max_ops = 64;
  opts.store_depth = 8;
  opts.restore_depth = 6;
  opts.max_batch = 1 + plan_.below(6);
  opts.op_timeout = timeout;
  opts.trace = this;
  auto opened = runtime::open(std::move(opts), devices_);
  if (!opened) return false;
  runtime_ = std::move(*opened);
  for (rank_id r = 0; r < ranks_; ++r) (void)runtime_->attach(r, 0, *computes_[r]);
  return true;
}

std::string episode::run() {
  if (plan_.one_in(8)) {
    planned_device& of = devices_.planned(plan_.below(ranks_));
    const std::uint32_t nth = 1 + plan_.below(12);
    of.fail_memory_at = nth;
    if (open() && of.fail_memory_at == 0) wrong("a runtime opened without memory");
    if (!runtime_) return wrong_;
    of.fail_memory_at = 0;
  } else if (!open()) {
    return "a runtime did not open (seed " + std::to_string(seed_) + ")";
  }
  spans_.assign(ranks_, std::vector<std::size_t>(3, 0));
  plan_.armed = true;
  std::uint32_t left = steps_each;
  while (left-- > 0 && wrong_.empty()) {
    step();
    if (lost()) left = std::min(left, 60U);
  }
  finish();
  return wrong_;
}

void episode::step() {
  ++sum_.steps;
  switch (plan_.below(20)) {
    case 0:
    case 1:
    case 2:
      write_slot();
      break;
    case 3:
    case 4:
    case 5:
    case 6:
      store();
      break;
    case 7:
    case 8:
    case 9:
    case 10:
      restore();
      break;
    case 11:
      cancel();
      break;
    case 12:
      forget();
      break;
    case 13:
      flip();
      break;
    case 14:
      again();
      break;
    case 15:
      pass_time();
      break;
    default:
      break;
  }
  turn();
}

/// What a turn of the engine's loop brings: time, copy threads, devices.
void episode::turn() {
  advance_clock(std::chrono::microseconds(plan_.below(40)));
  if (plan_.one_in(80)) {
    std::uint32_t& misses = stalled_[plan_.below(ranks_)];
    if (misses == 0 && plan_.armed) {
      misses = 1 + plan_.below(30);
      plan_.met(fault::stalled);
    }
  }
  if (plan_.one_in(60))
    for (rank_id r = 0; r < ranks_; ++r) devices_.planned(r).release();
  pump();
  run_devices(plan_.below(8));
  if (plan_.one_in(2)) pump();
  look();
  if (plan_.one_in(8)) ledger();
}

void episode::pump() {
  for (rank_id r = 0; r < ranks_; ++r) {
    if (stalled_[r] != 0)
      --stalled_[r];
    else
      (void)runtime_->rank(r).pump();
  }
}

void episode::run_devices(std::uint32_t steps) {
  while (steps-- > 0 && devices_.step()) {
  }
}

/// Ops that have ended since, and those that should have.
void episode::look() {
  const bool all_ran = std::all_of(stalled_.begin(), stalled_.end(), [](auto n) { return n == 0; });
  // What the devices have done since the last pass may not be seen yet; times have been looked at.
  const std::int64_t passed_ns = now_ns();
  if (all_ran) pump();
  for (std::size_t i = 0; i < open_.size();) {
    const std::size_t which = open_[i];
    const status code = ops_[which].handle.code();
    if (code == status::pending) {
      if (all_ran &&
          ops_[which].accepted_ns + std::chrono::nanoseconds(timeout).count() <= passed_ns)
        wrong("an op has not ended in time");
      ++i;
      continue;
    }
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    end(which, code);
  }
  if (lost())
    for (auto& each : keys_) each.reset();
  const std::uint64_t kept_now = runtime_->records().counts().quarantine_units;
  sum_.given_up_units = std::max(sum_.given_up_units, kept_now);
}

void episode::end(std::size_t which, status code) {
  op& its = ops_[which];
  its.over = true;
  its.code = code;
  its.handle = ticket();
  ++sum_.ended[static_cast<std::size_t>(code)];
  if (its.kind == copy_kind::restore) {
    if (code == status::ok) verify(its);
    if (code == status::corrupt && keys_[its.key] && keys_[its.key]->record == its.record)
      keys_[its.key].reset();
    return;
  }
  if (code != status::ok) return;
  image_name name;
  switch (resolve(its.source, name)) {
    case known::no:
      return wrong("a store of a slot that a failed restore had left ended well");
    case known::not_yet:
      return wrong("a store ended well before the restore it ran behind");
    case known::yes:
      break;
  }
  if (!its.forgotten) keys_[its.key] = kept{name, which};
}

/// The slot is as the restore left it, unless somebody has been there since.
void episode::verify(const op& restored) {
  if (versions_[restored.slot] != restored.version) return;
  for (rank_id r = 0; r < ranks_; ++r) {
    const image_stream::reading seen = spaces_[r]->read_slot(restored.slot);
    const verdict found = judge(seen, restored.expected.key);
    if (found != verdict::right)
      return wrong(std::string("a restore ended well and its slot is ") + to_string(found));
    if (seen.first != restored.expected)
      return wrong(std::string("a restore ended well and its slot is ") +
                   to_string(verdict::stale));
  }
  ++sum_.verified;
}

episode::known episode::resolve(int what, image_name& name) const {
  for (;;) {
    const content& its = contents_[static_cast<std::size_t>(what)];
    if (its.restore < 0) {
      name = its.name;
      return known::yes;
    }
    const op& from = ops_[static_cast<std::size_t>(its.restore)];
    if (!from.over) return known::not_yet;
    if (from.code == status::ok) {
      name = from.expected;
      return known::yes;
    }
    if (from.code != status::cancelled) return known::no;
    what = its.before;
  }
}

void episode::ledger() {
  const pool_counts pool = runtime_->own_pool()->counts();
  const catalog_counts records = runtime_->records().counts();
  if (pool.vacant + pool.cached + pool.live + pool.reserved != pool.total)
    wrong("a unit is nowhere, or twice");
  if (pool.reserved != records.checkpoint_units + records.quarantine_units)
    wrong("units are held by nobody");
  if (pool.live != 0) wrong("a unit is live that nobody took");
}

// The faults are over: everything ends, comes back, and can be read.
void episode::finish() {
  plan_.armed = false;
  const bool gone = lost();
  if (gone) ++sum_.losses;
  std::fill(stalled_.begin(), stalled_.end(), 0U);
  const auto settle = [&] {
    for (bool any = true; any && wrong_.empty();) {
      for (rank_id r = 0; r < ranks_; ++r) devices_.planned(r).release();
      any = runtime_->pump();
      while (devices_.step()) any = true;
    }
    look();
  };
  settle();
  if (!wrong_.empty()) return;
  if (!open_.empty()) return wrong("an op never ended");
  if (runtime_->drain(clock::now()) != status::ok)
    wrong("not every rank has reported every op once");
  ledger();
  if (!gone) {
    if (runtime_->records().counts().quarantine_units != 0) wrong("units did not come back");
    for (std::uint32_t key = 0; key < keys && wrong_.empty(); ++key) {
      if (!runtime_->records().contains(key_of(key))) continue;
      if (!keys_[key]) return wrong("a key is READY that nobody stored");
      op its;
      auto made = runtime_->restore(key_of(key), key % shape_.slots, 0);
      if (!made) return wrong("a READY key cannot be restored: " + made.why().message());
      its.id = made->op();
      its.handle = std::move(*made);
      its.kind = copy_kind::restore;
      its.key = key;
      its.slot = key % shape_.slots;
      its.accepted_ns = now_ns();
      its.expected = keys_[key]->name;
      its.record = keys_[key]->record;
      its.version = ++versions_[its.slot];
      open_.push_back(ops_.size());
      ops_.push_back(std::move(its));
      settle();
      const status code = ops_.back().code;
      if (code != status::ok && code != status::corrupt && code != status::failed)
        wrong(std::string("a restore without faults ended as ") + to_string(code));
    }
  }
  const status closed = runtime_->close(clock::now());
  if (closed != status::ok && !gone) wrong("a runtime with nothing in flight did not close");
  ops_.clear();
  const std::uint32_t left = runtime_->records().counts().ops;
  if (left != 0 && !gone) wrong("an op's entry did not come back");
  for (const auto& space : spaces_)
    if (space->broken_guards() != 0) wrong("bytes beside an image were written");
  runtime_.reset();
}

// Batches of a stream end in the order of their launches.
void episode::on_batch(const batch_span& span) noexcept {
  const std::size_t nth = spans_[span.rank][span.stream]++;
  const planned_device& device = devices_.planned(span.rank);
  if (device.gone) return;
  const bool should_fail = device.went_wrong(span.stream, nth);
  if (should_fail && span.code == status::ok)
    wrong("a batch that went wrong is reported as well done");
  if (!should_fail && span.code != status::ok)
    wrong("a batch that went well is reported as failed");
}

}  // namespace cairn::stress
