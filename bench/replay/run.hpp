// One run: a request in a slot, from its admission to its end or preemption. What it computes in
// each step follows from the request alone; when, and by whose hand, is the simulation's business.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/replay/engine.hpp"
#include "bench/replay/keys.hpp"
#include "bench/replay/placement.hpp"
#include "bench/replay/trace.hpp"

namespace cairn::replay {

struct run {
  // Set by the admission.
  run_id id = 0;
  std::size_t index = 0;  // of the request
  const request* of = nullptr;
  slot_id slot = no_slot;
  std::vector<unit_id> units;
  std::uint32_t resumed = 0;  // blocks
  std::vector<placement> wanted;

  // Where it stands.
  std::uint64_t context = 0;   // tokens whose state the slot holds
  std::uint64_t step_end = 0;  // where the step that is under way ends
  bool begun = false;          // a step has ended
  std::int64_t prompt_end_us = 0;

  // Guarded by the simulation's mutex.
  bool active = false;
  bool in_hand = false;          // a thread is working on it
  std::uint64_t generation = 0;  // events of earlier tenancies are stale

  [[nodiscard]] bool in_prompt() const noexcept { return context < of->input_tokens; }
  [[nodiscard]] std::uint64_t target() const noexcept {
    return std::uint64_t{of->input_tokens} + of->output_tokens;
  }
  [[nodiscard]] std::uint64_t capacity() const noexcept {
    return std::uint64_t{block_tokens} * units.size();
  }

  [[nodiscard]] checkpoint_key block_key(std::uint32_t block) const noexcept {
    return block < of->keys.size() ? of->keys[block] : key_of(key_domain::private_kv, id, block);
  }
  /// The state after `tokens`: of a boundary that others may resume from, or a private one.
  [[nodiscard]] checkpoint_key state_key(std::uint64_t tokens) const noexcept {
    const std::uint64_t blocks = tokens / block_tokens;
    if (tokens % block_tokens == 0 && blocks > 0 && blocks <= of->keys.size())
      return of->keys[blocks - 1];
    return key_of(key_domain::state, id, tokens);
  }

  /// The placement at which the context stands now, or null.
  [[nodiscard]] const placement* reached() const noexcept {
    for (const placement& each : wanted)
      if (std::uint64_t{each.blocks} * block_tokens == context) return &each;
    return nullptr;
  }
  /// Sets step_end for a chunk of the prompt; true when a placement made it shorter.
  bool cut_chunk(std::uint32_t chunk_tokens) noexcept {
    step_end = std::min<std::uint64_t>(context + chunk_tokens, of->input_tokens);
    for (const placement& each : wanted) {
      const std::uint64_t boundary = std::uint64_t{each.blocks} * block_tokens;
      if (boundary <= context || boundary >= step_end) continue;
      step_end = boundary;
      return true;
    }
    return false;
  }

  /// What the step that ends at step_end claims and computes.
  void describe_step(std::vector<kv_content>& claimed, std::vector<kv_content>& computed) const {
    claimed.clear();
    computed.clear();
    if (!begun)
      for (std::uint32_t block = 0; block < resumed; ++block)
        claimed.push_back({units[block], of->keys[block]});
    const auto last = static_cast<std::uint32_t>((step_end - 1) / block_tokens);
    for (auto block = static_cast<std::uint32_t>(context / block_tokens); block <= last; ++block)
      computed.push_back({units[block], block_key(block)});
  }
};

}  // namespace cairn::replay
