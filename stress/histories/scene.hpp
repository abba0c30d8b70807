// A scene of a campaign of histories: who calls what how often, over which room. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stress/histories/clock.hpp"
#include "stress/histories/history.hpp"
#include "stress/histories/key_model.hpp"
#include "stress/histories/lies.hpp"

namespace cairn::histories {

struct scene {
  const char* name;
  bool whole_runtime = false;  ///< else the catalog alone
  std::uint32_t keys = 16;
  std::uint32_t images = 16;  ///< that the pool has room for
  std::uint32_t window = 16;  ///< keys that are drawn from at one time; it moves over all of them
  rules with;
  // Chances, of 1024 calls.
  std::uint32_t forget = 0;
  std::uint32_t clear = 0;
  std::uint32_t fail = 0;      ///< of stores
  std::uint32_t allocate = 0;  ///< live units, which evict
};

const std::vector<scene>& scenes();

/// One world and its threads. A stretch ends with no call under way.
class player {
 public:
  virtual ~player() = default;
  /// Each of `threads` makes about `calls` calls on its own and writes them down; what a thread
  /// began it ends. False when something was wrong that needs no checker; `why` tells.
  virtual bool play(std::uint64_t seed, std::uint32_t threads, std::uint64_t calls,
                    std::vector<journal>& logs, std::string& why) = 0;
  /// Between stretches, alone: forgets everything. The checkers start afresh.
  virtual void clear() = 0;
};

std::unique_ptr<player> make_catalog_player(const scene& in, stamps& time, liar& lies);
std::unique_ptr<player> make_runtime_player(const scene& in, stamps& time);

}  // namespace cairn::histories
