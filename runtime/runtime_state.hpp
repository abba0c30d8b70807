// What the runtime's files share: its parts and the steps that several calls need. Knows every
// part by its public header; no part knows it.
#pragma once

#include <algorithm>
#include <cairn/runtime.hpp>
#include <memory>
#include <vector>

#include "runtime/completion_ring.hpp"
#include "runtime/flight.hpp"
#include "runtime/sync.hpp"

namespace cairn {

struct runtime::state {
  explicit state(const runtime_options& opts);

  // ---- fixed at opening -----------------------------------------------------------
  std::uint32_t slots;
  std::uint32_t compute_streams;
  completion_mode mode;
  bool threaded;

  // ---- what copy threads touch, so it outlives the copiers --------------------------
  /// About the op that has this index now. Relaxed: written before the op is enqueued and read
  /// before it can end; the queue and the catalog's words order both.
  struct op_times {
    sync::atomic<std::uint64_t> begin_stamp;
    sync::atomic<std::int64_t> begin_ns;
  };
  std::unique_ptr<op_times[]> times;
  detail::flight flight;
  detail::completion_ring held;          ///< settled mode: reported, not applied
  sync::atomic<std::uint32_t> applying;  ///< calls of apply_held that are not served yet
  runtime_latencies latencies;

  /// Ranks whose device is gone, and every record with it.
  std::unique_ptr<sync::atomic<bool>[]> lost;

  // ---- order ----------------------------------------------------------------------
  /// The step before this runtime's first, per compute stream.
  std::uint64_t first_steps[max_compute_streams] = {};
  /// The last step drawn per compute stream.
  std::unique_ptr<sync::atomic<std::uint64_t>[]> steps;
  /// The last number drawn per slot. Relaxed: a number, which the op or the reset carries.
  std::unique_ptr<sync::atomic<std::uint64_t>[]> slot_sequences;
  /// slot * compute_streams + stream: steps that the slot's ops must wait for. Relaxed: as the
  /// number of a slot; who hands a slot on orders it for the next one.
  std::unique_ptr<sync::atomic<std::uint64_t>[]> slot_fences;

  // ---- parts, in the order in which they are built ----------------------------------
  std::unique_ptr<unit_pool> own_pool;
  std::unique_ptr<catalog> records;
  std::unique_ptr<coordinator> sequences;
  std::vector<std::unique_ptr<copier>> copiers;

  // ---- submitting (runtime_submit.cpp) ---------------------------------------------
  [[nodiscard]] result<void> check(slot_id slot, std::uint32_t compute) const noexcept;
  result<fence_token> mark(std::uint32_t compute) noexcept;
  /// busy, poisoned or ok: the worst of copier::slot_status of all ranks.
  [[nodiscard]] status slot_status(slot_id slot) const noexcept;
  /// Room for one op on every rank or on none.
  result<void> take_room(copy_kind kind) noexcept;
  void give_room(copy_kind kind) noexcept;
  result<op_id> submit_store(const store_request& what, fence_token token, std::int64_t begin_ns,
                             bool observed);
  /// Numbers an op that has begun and hands it to every rank. Cannot fail.
  void hand_over(copy_op& op, fence_token token, std::int64_t begin_ns) noexcept;
  void raise_slot_fence(slot_id slot, fence_token token) noexcept;
  [[nodiscard]] fence_set fences_of(slot_id slot) const noexcept;
  /// release_slot and finish_slot.
  result<std::uint32_t> hand_on(slot_id slot, std::uint32_t compute, bool cancel_stores) noexcept;
  /// Cancelled ops wait for nothing more.
  void drop_cancelled() noexcept;

  // ---- completions (runtime_settle.cpp) --------------------------------------------
  /// Once it returns no record is READY: none has all its shards any more.
  void lose(rank_id rank) noexcept;
  static bool on_take(void* self, op_id op);
  static bool on_cancelled(void* self, op_id op);
  static void on_completion(void* self, const completion& what);
  void apply(const completion& what, std::int64_t begin_ns) noexcept;
  /// Applies what is held in begin order; false when somebody else is at it, who will then look
  /// once more. Lock-free.
  bool apply_held() noexcept;
  void apply_batch() noexcept;
  bool pump() noexcept;
  /// Waits for done() until `until`; pumps where there are no copy threads.
  template <class Done>
  bool wait_for(Done done, deadline until) noexcept;
  /// order(copier, deadline) -> status on every rank; the first that is not ok.
  template <class Order>
  status each_rank(Order order, deadline until) noexcept;
};

/// Nobody rings for what a pump would find: a pumping waiter looks this often.
inline constexpr std::chrono::microseconds pump_nap{50};

/// steady_clock in nanoseconds.
inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

template <class Done>
bool runtime::state::wait_for(Done done, deadline until) noexcept {
  for (;;) {
    const std::uint32_t seen = flight.bell().seen();
    if (done()) return true;
    const bool pumped = !threaded && pump();
    const deadline now = clock::now();
    if (now >= until) return done();
    if (!pumped) flight.bell().wait(seen, threaded ? until : std::min(until, now + pump_nap));
  }
}

template <class Order>
status runtime::state::each_rank(Order order, deadline until) noexcept {
  status first = status::ok;
  for (auto& c : copiers) {
    status code = order(*c, threaded ? until : clock::now());
    while (!threaded && code == status::timed_out && clock::now() < until) {
      if (!pump()) flight.bell().wait(flight.bell().seen(), clock::now() + pump_nap);
      code = order(*c, clock::now());
    }
    if (code == status::device_lost) lose(static_cast<rank_id>(&c - copiers.data()));
    if (first == status::ok) first = code;
  }
  return first;
}

}  // namespace cairn
