// What the suites ask of a pool: take so many units, give them back, again and again. Knows no
// particular pool.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/contest.hpp"
#include "bench/peers/unit_pools.hpp"

namespace cairn::bench {

/// Each thread is an owner of its own.
template <class Pool>
contender pool_turns(const char* name, std::shared_ptr<Pool> on, std::uint32_t units) {
  return {name, [on = std::move(on), units](std::uint32_t thread, std::uint64_t ops) {
            std::vector<unit_id> held(units);
            const owner_id owner = thread + 1;
            for (std::uint64_t i = 0; i < ops; ++i) {
              // The queue may answer that it has none while another thread moves units in it.
              while (!on->reserve(thread, held, owner)) std::this_thread::yield();
              if (!on->release(thread, held, owner)) std::abort();
            }
          }};
}

}  // namespace cairn::bench
