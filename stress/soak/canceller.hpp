// Who takes back, from outside, what scheduling threads have begun: queued ops of any slot, at any
// moment. A slot that it releases stays its owner's. Knows the world only.
#pragma once

#include <chrono>
#include <thread>

#include "stress/soak/world.hpp"
#include "tests/threads.hpp"

namespace cairn::soak {

class canceller {
 public:
  explicit canceller(world& in) : world_(in), dice_(in.opts.seed * 1000 + 999) {}

  void turn() {
    runtime& rt = world_.rt();
    const slot_id slot = dice_.below(world_.opts.shape.slots);
    const std::uint32_t compute = dice_.below(world_.opts.compute_streams);
    ++world_.count.operations;
    switch (dice_.below(4)) {
      case 0:
        (void)rt.release_slot(slot, compute);
        break;
      case 1:
        (void)rt.finish_slot(slot, compute);
        break;
      case 2:
        (void)rt.records().cancel_stores(slot);
        break;
      default:
        (void)rt.records().cancel_restores(slot);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(2000)));
  }

 private:
  world& world_;
  test::dice dice_;
};

}  // namespace cairn::soak
