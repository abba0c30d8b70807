// A backend whose devices misbehave by a seeded plan: calls that fail, with or without having done
// their work, streams that are full or stall, events that fire late or are never seen to fire,
// copies that leave something out, a device that is lost, bytes that change after they were copied.
// Passes everything else on. Any thread. Knows nothing of who calls it.
#pragma once

#include <array>
#include <atomic>
#include <cairn/backend.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace cairn::stress {

enum class trouble : std::uint8_t {
  launch_fails,       ///< nothing is enqueued
  launch_fails_late,  ///< the copies run all the same
  launch_full,        ///< the stream holds all it can, for now
  copy_fails,         ///< the device says so when it is over
  copy_short,         ///< some images are left out, and nothing is said
  record_fails,
  record_full,
  wait_fails,
  wait_full,
  event_late,  ///< the stream sleeps before the event
  event_lost,  ///< it fires, and is not seen to have until `release`
  stalled,     ///< the stream sleeps for long, then copies
  bit_flips,   ///< in a unit, after a store has written it
  device_lost,
  count
};

const char* to_string(trouble what) noexcept;

/// Chances, of 2^20 calls that could meet the trouble. All devices of a backend share one.
struct trouble_plan {
  std::array<std::uint32_t, static_cast<std::size_t>(trouble::count)> chance{};
  std::uint32_t late_us_max = 3000;
  std::uint32_t stall_us = 200'000;  ///< half to all of it
  std::uint32_t& of(trouble what) { return chance[static_cast<std::size_t>(what)]; }
};

class unruly_device;

class unruly_backend final : public backend {
 public:
  /// Changes one bit of `unit` on this device; runs on a stream of the backend.
  using flipper = std::function<void(std::uint32_t device, unit_id unit, std::uint64_t where)>;

  unruly_backend(const host_options& opts, const trouble_plan& plan, std::uint64_t seed);
  ~unruly_backend() override;

  [[nodiscard]] std::uint32_t device_count() const noexcept override;
  [[nodiscard]] device& at(std::uint32_t index) override;
  /// The same device without troubles: for an engine's own work.
  [[nodiscard]] device& real(std::uint32_t index) { return real_->at(index); }

  /// While off, no new trouble begins (and a lost device stays lost).
  void arm(bool on) noexcept { armed_.store(on); }
  /// Events that were lost are seen from now on. Whoever sleeps for them must still be there.
  void release();
  /// Brings lost devices back and forgets all events. Nothing of theirs may be in use.
  void revive();
  [[nodiscard]] bool any_lost() const noexcept;
  void set_flipper(flipper f) { flip_ = std::move(f); }

  [[nodiscard]] std::uint64_t met(trouble what) const noexcept {
    return met_[static_cast<std::size_t>(what)].load();
  }
  [[nodiscard]] std::uint64_t met() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& each : met_) sum += each.load();
    return sum;
  }

  /// Whether this call meets the trouble; counts it. Choices repeat by order of calls, not by time.
  bool meets(trouble what) noexcept { return drawn(what) && count(what); }
  std::uint64_t draw() noexcept;
  [[nodiscard]] const trouble_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const flipper& flip() const noexcept { return flip_; }

  // Events that end a copy, by the bell that their sleeper has. Locks only where one is or was
  // lost, so as not to order threads that a tool should find unordered.
  void made(const event* which, doorbell* bell);
  void recorded(const event* which);
  /// How the next batch of a device's stream must be reported, in the order of launches: whether
  /// something went wrong with it. Called for each batch, by the device's copy thread; false when
  /// nobody can say.
  [[nodiscard]] bool next_batch(std::uint32_t device, std::uint32_t stream, bool& wrong);
  [[nodiscard]] bool is_lost(const event* which) noexcept;

 private:
  struct watched {
    doorbell* bell = nullptr;
    bool lost = false;
  };
  bool drawn(trouble what) noexcept;
  bool count(trouble what) noexcept {
    met_[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  const trouble_plan plan_;
  const std::uint64_t seed_;
  std::atomic<bool> armed_{false};
  std::atomic<std::uint64_t> drawn_{0};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(trouble::count)> met_{};
  flipper flip_;
  std::mutex mutex_;
  std::unordered_map<const event*, watched> events_;
  std::atomic<std::uint32_t> lost_events_{0};
  std::unique_ptr<backend> real_;
  std::vector<std::unique_ptr<unruly_device>> devices_;
};

}  // namespace cairn::stress
