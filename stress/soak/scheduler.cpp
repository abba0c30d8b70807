// Requests.
#include "stress/soak/scheduler.hpp"

#include <string>
#include <thread>

namespace cairn::soak {

using stress::image_name;

scheduler::scheduler(world& in, std::uint32_t number)
    : world_(in), dice_(in.opts.seed * 1000 + number), number_(number) {}

void scheduler::turn() {
  switch (dice_.below(16)) {
    case 0:
      hold_units();
      break;
    case 1:
      release_units();
      break;
    case 2:
      reserve_units();
      break;
    case 3:
    case 4:
      pin_chain();
      break;
    case 5:
      forget_key();
      break;
    case 6:
      ask();
      break;
    case 7:
      if (dice_.below(8) == 0) quiet();
      break;
    default:
      run_request();
  }
  reap();
}

// ---- statuses -------------------------------------------------------------------------

/// Whether an answer is one that this call may give. Refusals are an engine's daily bread.
bool scheduler::allowed(status code, const char* call) {
  if (code == status::ok) return true;
  ++world_.count.refused[static_cast<std::size_t>(code)];
  switch (code) {
    case status::not_found:
    case status::duplicate:
    case status::no_room:
    case status::passed_over:
    case status::queue_full:
    case status::limit:
    case status::failed:  // a planned trouble met this very call
    case status::busy:
    case status::cancelled:
      return true;
    case status::poisoned:
      ++world_.count.poisoned;
      return true;
    case status::device_lost:
    case status::closed:
      world_.broken.store(true);
      return true;
    default:
      if (world_.broken.load()) return true;
      world_.violation(std::string(call) + " answered " + to_string(code));
      return false;
  }
}

void scheduler::settle_once() {
  if (world_.settled()) (void)world_.rt().settle(clock::now() + std::chrono::milliseconds(1));
}

/// How the op has ended; waits for it. It was accepted before the call, so its time is up soon.
status scheduler::ended(const ticket& op) {
  const deadline due = clock::now() + world_.op_timeout();
  const deadline until = due + std::chrono::seconds(30);
  for (;;) {
    const status code =
        op.wait(world_.settled() ? clock::now() + std::chrono::microseconds(200) : until);
    if (code != status::pending) {
      const auto late = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - due);
      std::int64_t most = world_.count.late_ms_max.load();
      while (late.count() > most &&
             !world_.count.late_ms_max.compare_exchange_weak(most, late.count())) {
      }
      return code;
    }
    settle_once();
    if (clock::now() >= until) {
      world_.violation("an accepted op has not ended half a minute after its time");
      return status::pending;
    }
  }
}

void scheduler::note_end(status how) {
  if (how == status::ok) return;
  ++world_.count.failures;
  if (how == status::timed_out) ++world_.count.timed_out;
  if (how == status::poisoned) ++world_.count.poisoned;
}

// ---- a request ------------------------------------------------------------------------

void scheduler::run_request() {
  request r;
  r.chain = dice_.below(world_.opts.compute_streams * chains_per_stream);
  r.compute = r.chain / chains_per_stream;
  r.length = 1 + dice_.below(chain_length);
  const auto slot = world_.take_slot();
  if (!slot) return;
  r.slot = *slot;
  runtime& rt = world_.rt();
  called();
  (void)rt.sequences().set_slot(r.slot, r.slot);

  std::vector<checkpoint_key> keys;
  for (std::uint32_t d = 0; d < r.length; ++d) keys.push_back(key_of(world::key_in(r.chain, d)));
  r.units.resize(r.length + 1);
  ticket restored;
  const std::uint64_t since = world_.images.now();
  called();
  const auto held = rt.admit(keys, 1, r.slot, r.units, r.compute, restored);
  if (!held) {
    allowed(held.code(), "admit");
    r.units.clear();
    return end(r, false);
  }
  r.at = held->resumed;
  bool well = resume(r, std::move(restored), since);
  while (well && r.at < r.length) well = advance(r) && dice_.below(12) != 0;
  end(r, well);
}

/// The restored image, if any, and the claimed units are looked at by compute.
bool scheduler::resume(request& r, ticket restored, std::uint64_t since) {
  runtime& rt = world_.rt();
  if (restored.valid()) {
    ++world_.count.restores;
    world_.state_of(r.slot) = slot_state::unsure;
    if (dice_.below(24) == 0) {
      called();
      (void)restored.cancel();
    }
    called();
    if (dice_.below(2) == 0) {  // order first, then look how it went; or the other way round
      if (!allowed(rt.order_after(r.compute, restored, soon()), "order_after")) return false;
    }
    const status how = ended(restored);
    if (how == status::ok)
      world_.state_of(r.slot) = slot_state::known;
    else if (how != status::cancelled && how != status::pending)
      world_.state_of(r.slot) = slot_state::unknown;
    if (how != status::ok && world_.opts.told != lie::trusted_failure) {
      note_end(how);
      allowed(how == status::corrupt || how == status::timed_out ? status::failed : how,
              "a restore");
      return false;
    }
  }
  called();
  const status ordered = rt.order_after_slot(r.compute, r.slot, soon());
  if (ordered != status::ok) {
    allowed(ordered, "order_after_slot");
    return false;
  }
  step& look = new_step();
  look.slot = r.slot;
  look.reads = restored.valid();
  look.since = since;
  if (r.at > 0) look.key = world::key_in(r.chain, r.at - 1);
  for (std::uint32_t d = 0; d < r.at; ++d)
    look.claimed.push_back({r.units[d], world::key_in(r.chain, d)});
  look.enqueue(r.compute);
  return true;
}

/// One boundary further: compute writes the slot and the unit, the boundary is stored.
bool scheduler::advance(request& r) {
  runtime& rt = world_.rt();
  const std::uint32_t key = world::key_in(r.chain, r.at);
  // Copies that still read the slot, of this request or of the one before.
  called();
  const status ordered =
      world_.lies(lie::unordered) ? status::ok : rt.order_after_slot(r.compute, r.slot, soon());
  if (ordered != status::ok) {
    allowed(ordered, "order_after_slot");
    return false;
  }
  if (!is_free_for(r, r.units[r.at])) return false;
  const image_name name = world_.images.offer(key);
  step& forward = new_step();
  forward.slot = r.slot;
  forward.writes = name;
  forward.fresh.push_back({r.units[r.at], key});
  forward.enqueue(r.compute);
  anew(r);
  called();
  if (auto published = rt.own_pool()->publish(r.units[r.at], key_of(key)); !published)
    allowed(published.code(), "publish");
  ++r.at;
  return keep(r, name);
}

/// Compute has written the slot's whole state: whatever a failed restore had left is gone. An
/// engine that does not say so gets no store from the slot.
void scheduler::anew(const request& r) {
  slot_state& its = world_.state_of(r.slot);
  if (its == slot_state::known || dice_.below(4) == 0) return;
  called();
  const status code = world_.rt().reset_slot(r.slot);
  its = code == status::ok ? slot_state::known : slot_state::unsure;
  if (allowed(code, "reset_slot") && code == status::ok) ++world_.count.slot_resets;
}

/// Stores the boundary just reached.
bool scheduler::keep(request& r, image_name name) {
  runtime& rt = world_.rt();
  called();
  const auto hint = static_cast<placement_hint>(dice_.below(4));
  auto stored = [&]() -> result<ticket> {
    const std::uint32_t key = world_.lies(lie::wrong_key) ? name.key ^ 1 : name.key;
    if (dice_.below(3) != 0) return rt.store(key_of(key), r.slot, r.compute, hint);
    (void)rt.sequences().file(r.slot, key_of(name.key), hint);
    return rt.store_boundary(r.slot, r.compute);
  }();
  if (!stored) {
    world_.images.refused(name);
    allowed(stored.code(), "store");
    return !world_.broken.load();
  }
  world_.images.accepted(name);
  ++world_.count.stores;
  if (world_.lies(lie::hoarded_memory)) hoard_.emplace_back(std::size_t{32} << 10);
  if (dice_.below(32) == 0) {
    called();
    (void)stored->cancel();
  }
  const bool doubtful =
      world_.state_of(r.slot) == slot_state::unknown || world_.lies(lie::doubted_slot);
  stores_.push_back({std::move(*stored), name, doubtful});
  return true;
}

/// Compute of other streams that used the unit comes before what this stream writes there.
bool scheduler::is_free_for(request& r, unit_id unit) {
  runtime& rt = world_.rt();
  fence_set earlier;
  rt.pool().collect_fences({&unit, 1}, earlier);
  called();
  const status ordered = rt.order_after_fences(r.compute, earlier, soon());
  if (ordered == status::ok) return true;
  allowed(ordered, "order_after_fences");
  return false;
}

void scheduler::end(request& r, bool well) {
  runtime& rt = world_.rt();
  called();
  (void)rt.sequences().forget(r.slot);
  (void)rt.sequences().set_slot(r.slot, no_slot);
  // A slot whose last use is in no fence must not be handed on.
  for (int tries = 0;; ++tries) {
    called();
    const auto over = well ? rt.finish_slot(r.slot, r.compute) : rt.release_slot(r.slot, r.compute);
    if (over) {
      world_.give_slot(r.slot);
      break;
    }
    allowed(over.code(), "release_slot");
    if (world_.broken.load() || tries == 100) break;  // kept until the next opening
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  free_units(r.units, r.compute);
}

void scheduler::free_units(const std::vector<unit_id>& units, std::uint32_t compute) {
  if (units.empty()) return;
  called();
  const auto fence = world_.rt().mark(compute);
  if (!fence) {  // no name for this moment: wait until it has passed
    allowed(fence.code(), "mark");
    for (auto& each : steps_) each->wait();
  }
  for (auto u = units.rbegin(); u != units.rend(); ++u) {
    if (world_.lies(lie::leaked_unit)) continue;
    called();
    const auto freed = world_.rt().own_pool()->free(*u, fence ? *fence : fence_token{});
    if (!freed) world_.violation("free: " + freed.why().message());
  }
}

// ---- what is under way ------------------------------------------------------------------

step& scheduler::new_step() {
  steps_.push_back(std::make_unique<step>(world_));
  return *steps_.back();
}

void scheduler::reap() {
  while (!steps_.empty() && steps_.front()->over()) {
    steps_.front()->judge();
    steps_.pop_front();
  }
  while (steps_.size() > 16) {
    steps_.front()->wait();
    steps_.front()->judge();
    steps_.pop_front();
  }
  if (stores_.size() > 12) settle_once();
  std::erase_if(stores_, [this](begun_store& s) {
    const status how = s.op.code();
    if (how == status::pending) return false;
    note_end(how);
    if (s.doubtful && how == status::ok)
      world_.violation("a store ended well from a slot that a failed restore had left");
    if (!world_.images.ended(s.name, how == status::ok))
      world_.mismatch("key " + std::to_string(s.name.key) + " generation " +
                      std::to_string(s.name.generation) + " was restored, but its store ended " +
                      to_string(how));
    return true;
  });
}

void scheduler::wind_up() {
  for (auto& each : steps_) each->wait();
  for (begun_store& s : stores_)
    if (ended(s.op) == status::pending) break;
  reap();
}

void scheduler::drop_all() {
  stores_.clear();
  units_.clear();
  pins_.clear();
}

}  // namespace cairn::soak
