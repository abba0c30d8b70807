// What the simulation asks of the thing it drives: cairn, or in tests a sequential model of it.
// The calls follow the life of a run, one tenancy of a slot by a request. Knows no virtual time.
#pragma once

#include <array>
#include <cairn/metrics.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::replay {

/// One tenancy of a slot by a request; a request that is preempted runs again under a new id.
using run_id = std::uint64_t;

/// What an admission holds: the first `resumed` units are claimed, the rest are fresh.
struct admitted {
  std::uint32_t resumed = 0;
  std::uint32_t kv_hit = 0;
};

/// Units by place and records by state, at a quiescent point.
struct engine_counts {
  std::uint32_t total = 0;
  std::uint32_t vacant = 0;
  std::uint32_t cached = 0;
  std::uint32_t live = 0;
  std::uint32_t checkpoint = 0;
  std::uint32_t quarantine = 0;
  std::uint32_t records = 0;
  std::uint32_t unfinished_records = 0;  ///< copying or evicting
  fate_counts fates{};
};

/// Functions may be called by several threads, for one run by one thread at a time. A refusal
/// is an answer; anything that must not happen is thrown as broken_run.
class engine {
 public:
  virtual ~engine() = default;

  /// Before a decision at virtual time `now_us`: brings what copies have done up to that time.
  virtual void settle(std::int64_t now_us) = 0;
  /// Room is short: waits until all copies have ended. With other threads at work there may be no
  /// such moment: then, unless the caller is `alone`, only for a little while.
  virtual void quiet(bool alone) = 0;

  /// Fills `units` with what keys.size() + fresh blocks need, or holds nothing.
  virtual std::optional<admitted> admit(run_id run, slot_id slot,
                                        std::span<const checkpoint_key> keys, std::uint32_t fresh,
                                        std::span<unit_id> units) = 0;
  [[nodiscard]] virtual bool has_available_units(std::uint32_t count,
                                                 const checkpoint_key* protect) = 0;
  /// Is the KV of this block there? Nothing is claimed.
  [[nodiscard]] virtual bool has_kv(const checkpoint_key& key) = 0;
  /// Waits for the restore that admit began; true when the slot holds its image.
  [[nodiscard]] virtual bool restored(run_id run, slot_id slot) = 0;
  /// One more unit of KV, or no_unit.
  [[nodiscard]] virtual unit_id grow(run_id run) = 0;
  /// Block `block` of the run is computed and lies in `unit`.
  virtual void publish(run_id run, std::uint32_t block, unit_id unit,
                       const checkpoint_key& key) = 0;
  /// The run has reached a boundary at which a checkpoint is wanted: filed and drained.
  virtual void reach(run_id run, slot_id slot, const checkpoint_key& key, placement_hint hint,
                     std::int64_t now_us) = 0;
  /// The run is over (or preempted): `units` are freed in their order, the slot changes hands.
  virtual void release(run_id run, slot_id slot, std::span<const unit_id> units,
                       bool preempted) = 0;

  /// After the last run: every copy has ended and is applied.
  virtual void finish() = 0;
  [[nodiscard]] virtual engine_counts counts() = 0;
};

/// A unit of KV and what it holds.
struct kv_content {
  unit_id unit = no_unit;
  checkpoint_key key;
};

/// The forward pass of one chunk, as far as memory sees it.
struct forward_step {
  slot_id slot = no_slot;
  bool continues = false;  ///< the slot holds `from`; else its content is not looked at
  checkpoint_key from{};   ///< the state from which the chunk continues
  checkpoint_key to{};     ///< the state that it leaves
  std::span<const kv_content> claimed{};   ///< to be verified
  std::span<const kv_content> computed{};  ///< to be written
};

/// Compute on every device. Called by the threads of the simulation.
class forward {
 public:
  virtual ~forward() = default;
  /// Enqueues the step behind all copies on its slot and everything enqueued before.
  virtual void enqueue(const forward_step& step) = 0;
};

}  // namespace cairn::replay
