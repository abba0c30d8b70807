// The engine interface over cairn itself: what an engine that embeds the library writes. Two pool
// arrangements: one pool shared by live KV and checkpoints, or one for each.
#pragma once

#include <cairn/runtime.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bench/replay/engine.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/replay/unlinked_pool.hpp"

namespace cairn::replay {

struct cairn_engine_options {
  std::uint32_t units = 0;             ///< of the shared pool, or of live KV
  std::uint32_t checkpoint_units = 0;  ///< separate pool for checkpoints; 0: shared
  std::uint32_t slots = 0;
  std::uint32_t threads = 1;
  bool link = true;     ///< false: a checkpoint outlives its KV (for comparison)
  bool settled = true;  ///< completions wait for settle, so that one thread repeats itself
  trace_sink* trace = nullptr;
};

class cairn_engine final : public engine {
 public:
  /// Backend and memory must outlive it. Throws broken_run.
  cairn_engine(const cairn_engine_options& opts, const geometry& of, backend& devices,
               const std::vector<device_memory>& memory);

  [[nodiscard]] runtime& library() noexcept { return *runtime_; }
  /// Units that each device must have: both pools'.
  static std::uint32_t memory_units(const cairn_engine_options& opts) noexcept {
    return opts.units + opts.checkpoint_units;
  }

  void settle(std::int64_t now_us) override;
  void quiet(bool alone) override;
  std::optional<admitted> admit(run_id run, slot_id slot, std::span<const checkpoint_key> keys,
                                std::uint32_t fresh, std::span<unit_id> units) override;
  [[nodiscard]] bool has_available_units(std::uint32_t count,
                                         const checkpoint_key* protect) override;
  [[nodiscard]] bool has_kv(const checkpoint_key& key) override;
  [[nodiscard]] bool restored(run_id run, slot_id slot) override;
  [[nodiscard]] unit_id grow(run_id run) override;
  void publish(run_id run, std::uint32_t block, unit_id unit, const checkpoint_key& key) override;
  void reach(run_id run, slot_id slot, const checkpoint_key& key, placement_hint hint,
             std::int64_t now_us) override;
  void release(run_id run, slot_id slot, std::span<const unit_id> units, bool preempted) override;
  void finish() override;
  [[nodiscard]] engine_counts counts() override;

 private:
  std::optional<admitted> admit_separately(slot_id slot, std::span<const checkpoint_key> keys,
                                           std::span<unit_id> units);
  void give_back(std::span<unit_id> units);
  void apply_completions();
  void drain_with_tickets(std::int64_t now_us);
  void catch_up(std::int64_t now_us);
  [[nodiscard]] bool separate() const noexcept { return opts_.checkpoint_units > 0; }
  /// In separate mode live KV lies behind the checkpoints' units in memory.
  [[nodiscard]] unit_id in_memory(unit_id of_pool) const noexcept {
    return of_pool + opts_.checkpoint_units;
  }
  [[nodiscard]] unit_id in_pool(unit_id of_memory) const noexcept {
    return of_memory - opts_.checkpoint_units;
  }

  const cairn_engine_options opts_;
  std::unique_ptr<unit_pool> live_pool_;  // what live KV comes from, unless the runtime's own
  std::unique_ptr<unlinked_pool> unlinked_;
  std::unique_ptr<runtime> runtime_;
  unit_pool* live_ = nullptr;
  std::vector<ticket> restores_;  // by slot

  /// A store that may be under way, and when it began in virtual time.
  struct begun_store {
    std::int64_t at_us = 0;
    ticket store;
  };
  std::mutex draining_;
  std::deque<begun_store> begun_;  // guarded by draining_; oldest first
};

}  // namespace cairn::replay
