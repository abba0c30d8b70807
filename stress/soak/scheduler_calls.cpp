// What a scheduling thread calls besides its requests.
#include <array>
#include <thread>

#include "stress/soak/scheduler.hpp"

namespace cairn::soak {

/// Live units without a request: an engine's other uses of the pool.
void scheduler::hold_units() {
  if (units_.size() > 4) return release_units();
  const std::uint32_t chain = dice_.below(world_.opts.compute_streams * chains_per_stream);
  std::array<unit_id, 2> got{};
  const std::size_t count = 1 + dice_.below(2);
  called();
  const auto answer = world_.rt().records().allocate({got.data(), count});
  if (!answer) {
    allowed(answer.code(), "allocate");
    return;
  }
  request r;
  r.compute = chain / chains_per_stream;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_free_for(r, got[i])) {
      free_units({got[i]}, r.compute);
      continue;
    }
    const std::uint32_t key = world::key_in(chain, dice_.below(chain_length));
    step& write = new_step();
    write.fresh.push_back({got[i], key});
    write.enqueue(r.compute);
    if (dice_.below(2) == 0) {
      called();
      (void)world_.rt().own_pool()->publish(got[i], key_of(key));
    }
    units_.push_back({got[i], key});
  }
}

void scheduler::release_units() {
  if (units_.empty()) return;
  const kv_unit last = units_.back();
  units_.pop_back();
  const std::uint32_t compute = last.key / chain_length / chains_per_stream;
  step& look = new_step();
  look.claimed.push_back(last);
  look.enqueue(compute);
  free_units({last.unit}, compute);
}

void scheduler::reserve_units() {
  std::array<unit_id, 6> got{};
  const owner_id owner = 1000 + number_;
  const std::size_t count = 1 + dice_.below(6);
  called();
  const auto answer = world_.rt().records().wait_reserve(
      {got.data(), count}, owner, clock::now() + std::chrono::milliseconds(dice_.below(4)));
  if (!answer) {
    if (answer.code() != status::timed_out) allowed(answer.code(), "wait_reserve");
    return;
  }
  called();
  if (auto back = world_.rt().own_pool()->release({got.data(), count}, owner); !back)
    world_.violation("release: " + back.why().message());
}

void scheduler::pin_chain() {
  catalog& records = world_.rt().records();
  if (!pins_.empty() && (pins_.size() > 2 || dice_.below(2) == 0)) {
    called();
    (void)records.release_pin(pins_.back());  // false when its time had passed
    pins_.pop_back();
    return;
  }
  const std::uint32_t chain = dice_.below(world_.opts.compute_streams * chains_per_stream);
  std::array<checkpoint_key, chain_length> keys;
  for (std::uint32_t d = 0; d < chain_length; ++d) keys[d] = key_of(world::key_in(chain, d));
  called();
  const auto got = records.pin_longest(
      keys, chain_length, clock::now() + std::chrono::milliseconds(1 + dice_.below(50)));
  if (got)
    pins_.push_back(*got);
  else
    allowed(got.code(), "pin_longest");
}

void scheduler::forget_key() {
  runtime& rt = world_.rt();
  const std::uint32_t key = dice_.below(world_.keys());
  const std::uint64_t since = world_.images.now();
  called();
  switch (dice_.below(24)) {
    case 0:
      rt.own_pool()->clear_index();
      return;
    case 1:
      (void)rt.own_pool()->extend(1 + dice_.below(2));
      return;
    case 2:
      rt.sequences().reset();
      world_.images.all_forgotten(since);
      return;
    case 3:
      rt.records().advance_epoch();
      world_.images.all_forgotten(since);
      return;
    case 4:
      (void)rt.records().expire(clock::now());
      return;
    case 5:
    case 6:
    case 7:
    case 8:
      (void)rt.sequences().unindex(key_of(key));
      break;
    default:
      (void)rt.records().forget(key_of(key));
  }
  world_.images.forgotten(key, since);
}

void scheduler::ask() {
  runtime& rt = world_.rt();
  const checkpoint_key key = key_of(dice_.below(world_.keys()));
  called();
  (void)rt.records().has_available_units(dice_.below(world_.opts.shape.units), &key);
  (void)rt.records().contains_or_copying(key);
  if (rt.records().evictable() > world_.opts.shape.units)
    world_.violation("more evictable records than there are units");
  (void)rt.records().counts();
  (void)rt.records().ensure_free_units(dice_.below(6));
}

void scheduler::quiet() {
  called();
  const status code = world_.rt().quiesce(clock::now() + std::chrono::milliseconds(20));
  if (code == status::ok) {
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(1000)));
    world_.rt().resume();
    return;
  }
  if (code != status::timed_out) allowed(code, "quiesce");
}

}  // namespace cairn::soak
