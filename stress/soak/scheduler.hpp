// One scheduling thread of the soak: requests that are admitted, restored, computed, stored, ended
// or aborted, and everything else that an engine may call meanwhile. Between two requests it can be
// parked; then others may look at what it holds.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "stress/soak/step.hpp"
#include "tests/threads.hpp"

namespace cairn::soak {

class scheduler {
 public:
  scheduler(world& in, std::uint32_t number);

  /// A request, or a few calls on their own.
  void turn();
  /// Everything that was begun has ended: steps, stores, restores.
  void wind_up();

  // ---- while parked ----
  /// Live units that it holds between requests, with the key whose KV they are.
  std::vector<kv_unit>& units() noexcept { return units_; }
  [[nodiscard]] std::size_t pins() const noexcept { return pins_.size(); }
  /// The runtime is gone, and all that it had given.
  void drop_all();

 private:
  struct begun_store {
    ticket op;
    stress::image_name name;
    bool doubtful = false;  ///< its slot was not known when it was accepted
  };
  /// A request from its admission on.
  struct request {
    std::uint32_t chain = 0;
    std::uint32_t compute = 0;
    std::uint32_t length = 0;
    slot_id slot = no_slot;
    std::vector<unit_id> units;  ///< one per key, then one more
    std::uint32_t at = 0;        ///< keys that are covered
  };

  void run_request();
  bool resume(request& r, ticket restored, std::uint64_t since);
  void anew(const request& r);
  bool advance(request& r);
  bool keep(request& r, stress::image_name name);
  void end(request& r, bool well);
  bool is_free_for(request& r, unit_id unit);
  void free_units(const std::vector<unit_id>& units, std::uint32_t compute);

  void hold_units();
  void release_units();
  void reserve_units();
  void pin_chain();
  void forget_key();
  void ask();
  void quiet();

  step& new_step();
  void reap();
  void settle_once();
  status ended(const ticket& op);
  void note_end(status how);
  bool allowed(status code, const char* call);
  /// Counts a call of the library.
  void called() noexcept { ++world_.count.operations; }
  static deadline soon() { return clock::now() + std::chrono::seconds(60); }

  world& world_;
  test::dice dice_;
  const std::uint32_t number_;
  std::deque<std::unique_ptr<step>> steps_;
  std::vector<begun_store> stores_;
  std::vector<std::vector<std::byte>> hoard_;  ///< a lie's
  std::vector<kv_unit> units_;
  std::vector<pin> pins_;
};

}  // namespace cairn::soak
