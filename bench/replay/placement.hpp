// Where a run wants checkpoints: anchor, demand, ladder. Pure arithmetic on blocks.
#pragma once

#include <algorithm>
#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

#include "bench/replay/trace.hpp"

namespace cairn::replay {

struct placement_rules {
  bool anchor = true;   ///< the last boundary that a hit may reach
  bool demand = true;   ///< the end of the KV hit, where the state hit is shorter
  bool ladder = false;  ///< multiples of `interval_tokens`
  std::uint32_t interval_tokens = 8192;
};

/// A boundary at the end of block `blocks - 1`.
struct placement {
  std::uint32_t blocks = 0;
  placement_hint hint = placement_hint::none;
};

/// The boundaries beyond `resumed`, in order. `demanded` is the demanded boundary, or 0.
inline std::vector<placement> placements(const placement_rules& rules, const request& of,
                                         std::uint32_t resumed, std::uint32_t demanded) {
  std::vector<placement> found;
  if (rules.anchor) found.push_back({of.hit_limit(), placement_hint::anchor});
  if (demanded != 0) found.push_back({demanded, placement_hint::demand});
  if (rules.ladder) {
    const std::uint32_t step = rules.interval_tokens / block_tokens;
    for (std::uint32_t rung = step; rung <= of.keys.size(); rung += step)
      found.push_back({rung, placement_hint::rung});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const placement& a, const placement& b) { return a.blocks < b.blocks; });
  auto same = [](const placement& a, const placement& b) { return a.blocks == b.blocks; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  std::erase_if(found, [&](const placement& each) { return each.blocks <= resumed; });
  return found;
}

}  // namespace cairn::replay
