// The world of a soak: devices that misbehave, memory whose bytes say whose they are, a runtime
// that is closed and opened again, and what all threads count. Knows cairn by its public headers.
#pragma once

#include <array>
#include <atomic>
#include <cairn/runtime.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stress/world/image_ledger.hpp"
#include "stress/world/rank_space.hpp"
#include "stress/world/unruly_device.hpp"

namespace cairn::soak {

/// Mistakes on purpose that the soak must notice: an engine's, but what they break is what a faulty
/// cairn would break.
enum class lie : std::uint8_t {
  none,
  unordered,        ///< compute overwrites a slot that a copy may still read
  wrong_key,        ///< an image is stored under a neighbour's key
  trusted_failure,  ///< a restore that failed is taken for good
  leaked_unit,      ///< a unit is never given back
  doubted_slot,     ///< a known slot is taken for one that a failed restore left
  hoarded_memory,   ///< what an op needed is kept
  count
};
inline const char* to_string(lie which) noexcept {
  constexpr const char* names[] = {
      "none",        "unordered",    "wrong_key",     "trusted_failure",
      "leaked_unit", "doubted_slot", "hoarded_memory"};
  return names[static_cast<std::size_t>(which)];
}

struct options {
  lie told = lie::none;
  std::uint32_t ranks = 2;
  std::uint32_t threads = 8;
  std::uint32_t compute_streams = 2;
  std::uint64_t seed = 1;
  stress::space_shape shape;
  stress::trouble_plan troubles;
};

struct figures {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> verified{0};                ///< images and units that were looked at
  std::atomic<std::uint64_t> mismatches{0};              ///< wrong bytes
  std::atomic<std::uint64_t> violations{0};              ///< anything else that must not be
  std::array<std::atomic<std::uint64_t>, 32> refused{};  ///< calls, by status
  std::atomic<std::uint64_t> failures{0};                ///< ops that ended badly
  std::atomic<std::uint64_t> stores{0};
  std::atomic<std::uint64_t> restores{0};
  std::atomic<std::uint64_t> resets{0};       ///< of the runtime
  std::atomic<std::uint64_t> slot_resets{0};  ///< of slots
  std::atomic<std::uint64_t> poisoned{0};     ///< calls and stores that a poisoned slot refused
  std::atomic<std::uint64_t> timed_out{0};    ///< ops that were given up, or never ran
  std::atomic<std::int64_t> late_ms_max{0};   ///< an op's report after its time, at most
  std::atomic<std::uint64_t> evictions{0};    ///< of runtimes that are gone
  std::atomic<std::uint64_t> units_lost{0};
};

/// What the engine knows of a slot's state; the slot's owner's alone.
enum class slot_state : std::uint8_t {
  unsure,   ///< a restore into it was dropped, or a reset came to nothing
  known,    ///< restored, or reset
  unknown,  ///< a restore into it failed, and nobody has reset it since
};

/// Keys: chains of boundaries, each on one compute stream.
inline constexpr std::uint32_t chain_length = 4;
inline constexpr std::uint32_t chains_per_stream = 5;

inline checkpoint_key key_of(std::uint32_t n) noexcept {
  return {stress::mixed(n + 1), stress::mixed(n + 0x10001)};
}

class world final : private trace_sink {
 public:
  explicit world(const options& opts);
  ~world();

  /// Opens a runtime over the same memory.
  void open();
  /// Destroys the runtime. No ticket may be left.
  void close();

  [[nodiscard]] runtime& rt() noexcept { return *runtime_; }
  [[nodiscard]] bool settled() const noexcept { return settled_; }
  /// How long an op may take.
  [[nodiscard]] std::chrono::milliseconds op_timeout() const noexcept { return op_timeout_; }
  /// Whether ops may time out although nothing is wrong.
  [[nodiscard]] bool hurries() const noexcept { return op_timeout_ < std::chrono::seconds(1); }
  /// Troubles are over: everything that was held back comes, and what was given up is proven over.
  void release();
  [[nodiscard]] stream& compute(rank_id rank, std::uint32_t index) noexcept {
    return *computes_[rank * opts.compute_streams + index];
  }
  /// What the engine's own work goes to: a device without troubles.
  [[nodiscard]] device& own(rank_id rank) { return devices.real(rank); }

  /// Whether to make this mistake now: once in a while.
  bool lies(lie which) noexcept {
    return opts.told == which && asked_.fetch_add(1, std::memory_order_relaxed) % 8 == 7;
  }

  std::optional<slot_id> take_slot();
  void give_slot(slot_id slot);
  /// Of a slot that was taken.
  slot_state& state_of(slot_id slot) noexcept { return slot_states_[slot]; }

  /// Something is wrong: counted, and the first few are printed.
  void violation(const std::string& what);
  void mismatch(const std::string& what);

  [[nodiscard]] std::uint32_t keys() const noexcept {
    return opts.compute_streams * chains_per_stream * chain_length;
  }
  [[nodiscard]] static std::uint32_t key_in(std::uint32_t chain, std::uint32_t depth) noexcept {
    return chain * chain_length + depth;
  }

  const options opts;
  std::vector<std::unique_ptr<stress::rank_space>> spaces;
  stress::unruly_backend devices;
  stress::image_ledger images;
  figures count;
  std::atomic<bool> broken{false};  ///< a device is lost, or the runtime is closing

 private:
  /// No batch that went wrong may be reported as well done, and no other as failed.
  void on_batch(const batch_span& span) noexcept override;

  std::vector<std::unique_ptr<stream>> computes_;
  std::unique_ptr<runtime> runtime_;
  bool settled_ = false;
  std::chrono::milliseconds op_timeout_{0};
  std::uint64_t openings_ = 0;
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<int> printed_{0};
  std::mutex mutex_;
  std::vector<slot_id> free_slots_;
  std::vector<slot_state> slot_states_;
};

}  // namespace cairn::soak
