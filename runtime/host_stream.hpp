// Streams of the host backend and the table of their lanes. A stream owns a lane for a while and
// the thread that runs it. Knows no device.
#pragma once

#include <array>
#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <thread>

#include "runtime/host_event.hpp"
#include "runtime/host_lane.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class host_stream;

/// What the devices of one host backend share. Streams and events keep it alive.
class host_shared {
 public:
  explicit host_shared(const host_options& opts);
  ~host_shared();
  host_shared(const host_shared&) = delete;
  host_shared& operator=(const host_shared&) = delete;

  [[nodiscard]] bool manual() const noexcept { return manual_; }
  /// How many threads may copy at one time for one batch: its stream's, and helpers.
  [[nodiscard]] std::uint32_t copy_threads() const noexcept { return copy_threads_; }
  /// Precondition: `index` comes from an event_position.
  [[nodiscard]] host_lane& lane(std::uint32_t index) const noexcept;

  /// A lane that no stream owns; null when there are event_position::max_lanes. In manual mode
  /// lanes are not used again: their numbers are the order of creation, and what was discarded
  /// stays so. Lock-free apart from the heap.
  [[nodiscard]] host_lane* claim_lane();
  void release_lane(host_lane& lane) noexcept;

  /// Manual mode: one item of the lowest lane that can run.
  bool step() noexcept;

 private:
  struct entry {
    sync::atomic<bool> owned{false};
    sync::atomic<host_lane*> lane{nullptr};
  };

  bool manual_;
  std::uint32_t depth_;
  std::uint32_t copy_threads_;
  helper_budget helpers_;
  bool use_helpers_;
  std::array<entry, event_position::max_lanes> entries_;
};

/// The stream that a caller holds. Destroying it waits for its work; in manual mode what was
/// not run is dropped and its events have failed.
class host_stream final : public stream {
 public:
  /// Starts the thread, unless in manual mode. May throw std::system_error.
  host_stream(std::shared_ptr<host_shared> shared, const void* owner, host_lane& lane);
  ~host_stream() override;
  host_stream(const host_stream&) = delete;
  host_stream& operator=(const host_stream&) = delete;

  /// Which device made it; compared, never followed.
  [[nodiscard]] const void* owner() const noexcept { return owner_; }
  [[nodiscard]] const host_shared* shared() const noexcept { return shared_.get(); }
  [[nodiscard]] host_lane& lane() const noexcept { return lane_; }

 private:
  std::shared_ptr<host_shared> shared_;
  const void* owner_;
  host_lane& lane_;
  std::thread thread_;
};

/// For tests of code that must refuse a capturing stream. Precondition: a host stream.
void set_capturing(stream& which, bool on) noexcept;

}  // namespace cairn::detail
