// The order of calls of a run with many threads: a wrapper writes it down, and the log can be
// replayed on another engine, one call after the other. Units differ from engine to engine, so a
// call names run and block.
#pragma once

#include <mutex>
#include <ostream>
#include <unordered_map>
#include <vector>

#include "bench/replay/engine.hpp"

namespace cairn::replay {

enum class call_kind : std::uint8_t { admit, grow, publish, reach, release, settle };

/// One call that mattered, in the order in which the calls returned. `settle` stands wherever the
/// run waited for copies.
struct logged_call {
  call_kind kind = call_kind::admit;
  run_id run = 0;
  slot_id slot = no_slot;
  std::uint32_t block = 0;    ///< publish
  std::uint32_t fresh = 0;    ///< admit
  std::uint32_t resumed = 0;  ///< admit: blocks, what it answered
  bool preempted = false;     ///< release
  checkpoint_key key{};       ///< publish, reach
  placement_hint hint = placement_hint::none;
  std::vector<checkpoint_key> keys{};  ///< admit
};

/// Passes every call on and remembers it. Refused calls leave no trace.
class call_log final : public engine {
 public:
  explicit call_log(engine& on) : on_(on) {}

  [[nodiscard]] const std::vector<logged_call>& calls() const noexcept { return calls_; }
  void settle(std::int64_t now_us) override;
  void quiet(bool alone) override;
  std::optional<admitted> admit(run_id run, slot_id slot, std::span<const checkpoint_key> keys,
                                std::uint32_t fresh, std::span<unit_id> units) override;
  [[nodiscard]] bool has_available_units(std::uint32_t count,
                                         const checkpoint_key* protect) override {
    return on_.has_available_units(count, protect);
  }
  [[nodiscard]] bool has_kv(const checkpoint_key& key) override { return on_.has_kv(key); }
  [[nodiscard]] bool restored(run_id run, slot_id slot) override;
  [[nodiscard]] unit_id grow(run_id run) override;
  void publish(run_id run, std::uint32_t block, unit_id unit, const checkpoint_key& key) override;
  void reach(run_id run, slot_id slot, const checkpoint_key& key, placement_hint hint,
             std::int64_t now_us) override;
  void release(run_id run, slot_id slot, std::span<const unit_id> units, bool preempted) override;
  void finish() override { on_.finish(); }
  [[nodiscard]] engine_counts counts() override { return on_.counts(); }

 private:
  void add(logged_call made);

  engine& on_;
  std::mutex mutex_;
  std::vector<logged_call> calls_;
};

/// One JSON object per line.
void write_calls(std::ostream& to, const std::vector<logged_call>& calls);

/// What the other engine made of the same calls.
struct log_replay_figures {
  std::uint64_t admitted = 0;
  std::uint64_t refused = 0;  ///< admissions that found no room there
  std::uint64_t kv_hit_blocks = 0;
  std::uint64_t resumed_blocks = 0;
};

/// Settles before each admission too: other threads' stores may have come between.
log_replay_figures replay_calls(const std::vector<logged_call>& calls, engine& on);

}  // namespace cairn::replay
