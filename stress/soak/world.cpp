// Opening, closing and complaining.
#include "stress/soak/world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cairn::soak {

world::world(const options& o)
    : opts(o),
      devices({.devices = o.ranks, .copy_threads = 1}, o.troubles, o.seed),
      images(o.compute_streams * chains_per_stream * chain_length) {
  for (rank_id r = 0; r < opts.ranks; ++r)
    spaces.push_back(std::make_unique<stress::rank_space>(opts.shape, r));
  devices.set_flipper([this](std::uint32_t rank, unit_id unit, std::uint64_t where) {
    spaces[rank]->flip_unit(unit, where);
  });
  for (rank_id r = 0; r < opts.ranks; ++r)
    for (std::uint32_t c = 0; c < opts.compute_streams; ++c)
      computes_.push_back(std::move(own(r).create_stream(stream_priority::normal)).value());
  open();
}

world::~world() {
  close();
  computes_.clear();
}

void world::open() {
  devices.revive();
  runtime_options with;
  with.shape = opts.shape.shape();
  for (const auto& each : spaces) with.ranks.push_back(each->memory());
  // Room to grow: the pool extends.
  with.units = opts.shape.units - opts.shape.units / 8;
  with.compute_streams = opts.compute_streams;
  with.max_sequences = opts.shape.slots;
  with.max_ops = 256;
  with.max_pins = 64;
  with.max_threads = opts.threads + 4;
  with.store_depth = 24;
  with.restore_depth = 24;
  with.max_batch = 8;
  // Every third runtime settles.
  settled_ = openings_ % 3 == 2;
  // In every other one ops are in a hurry: less than a stream stalls at times.
  op_timeout_ = openings_ % 2 == 1 ? std::chrono::milliseconds(120) : std::chrono::seconds(30);
  ++openings_;
  with.op_timeout = op_timeout_;
  with.trace = this;
  with.completions = settled_ ? completion_mode::settled : completion_mode::immediate;
  auto opened = runtime::open(std::move(with), devices);
  if (!opened) {
    std::printf("runtime::open: %s\n", opened.why().message().c_str());
    std::exit(1);
  }
  runtime_ = std::move(*opened);
  for (rank_id r = 0; r < opts.ranks; ++r)
    for (std::uint32_t c = 0; c < opts.compute_streams; ++c)
      if (auto attached = runtime_->attach(r, c, compute(r, c)); !attached)
        violation("attach: " + attached.why().message());
  free_slots_.clear();
  for (slot_id s = 0; s < opts.shape.slots; ++s) free_slots_.push_back(s);
  slot_states_.assign(opts.shape.slots, slot_state::known);
  broken.store(false);
}

void world::close() {
  if (!runtime_) return;
  count.evictions += runtime_->records().fates().evicted;
  devices.release();
  runtime_.reset();
}

void world::release() {
  devices.release();
  // A stream may stall for a while yet. Slots that are never proven free are found by the audit.
  const deadline until = clock::now() + std::chrono::seconds(20);
  const auto kept = [this] {
    if (runtime_->records().counts().quarantine_units != 0) return true;
    for (rank_id r = 0; r < opts.ranks; ++r)
      for (slot_id s = 0; s < opts.shape.slots; ++s)
        if (runtime_->rank(r).slot_status(s) == status::busy) return true;
    return false;
  };
  while (kept() && !devices.any_lost() && clock::now() < until) {
    if (settled_) (void)runtime_->settle(clock::now() + std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void world::on_batch(const batch_span& span) noexcept {
  bool wrong = false;
  if (!devices.next_batch(span.rank, span.stream, wrong) || wrong == (span.code != status::ok))
    return;
  violation(wrong ? "a batch that went wrong was reported as well done"
                  : std::string("a batch that went well was reported as ") + to_string(span.code));
}

std::optional<slot_id> world::take_slot() {
  const std::lock_guard held(mutex_);
  if (free_slots_.empty()) return std::nullopt;
  const slot_id taken = free_slots_.front();
  free_slots_.erase(free_slots_.begin());
  return taken;
}

void world::give_slot(slot_id slot) {
  const std::lock_guard held(mutex_);
  free_slots_.push_back(slot);
}

void world::violation(const std::string& what) {
  ++count.violations;
  if (printed_.fetch_add(1) < 20) {
    std::printf("VIOLATION: %s\n", what.c_str());
    std::fflush(stdout);
  }
}

void world::mismatch(const std::string& what) {
  ++count.mismatches;
  if (printed_.fetch_add(1) < 20) {
    std::printf("MISMATCH: %s\n", what.c_str());
    std::fflush(stdout);
  }
}

}  // namespace cairn::soak
