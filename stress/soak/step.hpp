// A step of compute: on every rank it reads what its slot and units hold, then writes what it
// leaves. It runs on the engine's streams, ordered against copies by what the runtime offers only;
// the thread that enqueued it looks at the result later. Knows bytes, no checkpoints.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "stress/soak/world.hpp"

namespace cairn::soak {

struct kv_unit {
  unit_id unit = no_unit;
  std::uint32_t key = 0;
};

class step {
 public:
  explicit step(world& in) : in_(in) {}
  step(const step&) = delete;
  step& operator=(const step&) = delete;

  slot_id slot = no_slot;
  bool reads = false;       ///< the slot's image, which must be of `key`
  std::uint32_t key = 0;    ///< then
  std::uint64_t since = 0;  ///< the ledger's moment before the restore began
  std::optional<stress::image_name> writes;
  std::vector<kv_unit> claimed;  ///< must hold their keys
  std::vector<kv_unit> fresh;    ///< are written

  /// On every rank's compute stream. Must live until `over`.
  void enqueue(std::uint32_t compute);
  [[nodiscard]] bool over() const noexcept { return left_.load(std::memory_order_acquire) == 0; }
  void wait() const;
  /// Once it is over: tells the world what was wrong.
  void judge();

 private:
  static constexpr std::size_t ranks_most = 4;
  struct part {
    step* of = nullptr;
    rank_id rank = 0;
  };
  void run(rank_id rank);

  world& in_;
  std::array<part, ranks_most> parts_{};
  std::array<stress::image_stream::reading, ranks_most> seen_{};
  std::array<std::vector<kv_unit>, ranks_most> wrong_{};
  std::atomic<std::uint32_t> left_{0};
};

/// What KV of a key looks like.
inline stress::image_name kv_name(std::uint32_t key) noexcept {
  return {key, 1};
}

}  // namespace cairn::soak
