// Events of the host backend: a position on a lane, and the bell to ring when it has passed.
// Knows no streams beyond their index, no threads and no copies.
//
// A recording is (lane, ticket of the record item): it has fired when the lane has finished
// that item. Both numbers live in one word, so record and wait may meet in any order: a wait
// takes the word as it finds it, and a later recording moves the event without moving the
// wait. Waits keep the position, not the event; only record items refer to the event's state.
//
// Life of an event_core: one reference for the event, one per record item that has not run.
// Whoever drops the last deletes it. The bell outlives the event, not the state: closing sets
// a flag in `ringers_` and waits for those who are ringing already, so that the bell is never
// touched once ~event has returned.
//
//   ringers_: 2 per thread inside ring(), plus 1 once closed
#pragma once

#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/sync.hpp"

namespace cairn::detail {

/// Where a recording lies: lane + 1 in the upper 16 bits, ticket below; 0 = never recorded.
class event_position {
 public:
  static constexpr std::uint32_t max_lanes = 1024;

  constexpr event_position() noexcept = default;
  constexpr event_position(std::uint32_t lane, std::uint64_t ticket) noexcept
      : word_((static_cast<std::uint64_t>(lane) + 1) << ticket_bits | ticket) {}
  static constexpr event_position from_word(std::uint64_t word) noexcept {
    event_position p;
    p.word_ = word;
    return p;
  }
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] constexpr bool recorded() const noexcept { return word_ != 0; }
  /// Preconditions: recorded().
  [[nodiscard]] constexpr std::uint32_t lane() const noexcept {
    return static_cast<std::uint32_t>(word_ >> ticket_bits) - 1;
  }
  [[nodiscard]] constexpr std::uint64_t ticket() const noexcept { return word_ & ticket_mask; }

 private:
  static constexpr unsigned ticket_bits = 48;
  static constexpr std::uint64_t ticket_mask = (std::uint64_t{1} << ticket_bits) - 1;
  std::uint64_t word_ = 0;
};

class event_core {
 public:
  /// Starts with one reference.
  explicit event_core(doorbell* bell) noexcept : bell_(bell) {}

  /// Makes `now` the latest recording. Of two recordings on one lane the later ticket stays,
  /// so that calls that overlap never move the event backwards. Lock-free.
  void move_to(event_position now) noexcept;
  /// The latest recording. Wait-free.
  [[nodiscard]] event_position latest() const noexcept;

  void add_reference() noexcept;
  void drop_reference() noexcept;

  /// Rings the bell unless the event is gone.
  void ring() noexcept;
  /// No ring reaches the bell after this. Waits for a ring under way.
  void close() noexcept;

 private:
  ~event_core() = default;

  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t one_ringer = 2;

  doorbell* bell_;
  sync::atomic<std::uint64_t> latest_{0};
  sync::atomic<std::uint32_t> references_{1};
  sync::atomic<std::uint32_t> ringers_{0};
  doorbell quiet_;  ///< rung when the last ringer leaves a closed event
};

/// The event that a caller holds.
class host_event final : public event {
 public:
  /// `owner` is what the backend's streams share; kept alive.
  host_event(std::shared_ptr<const void> owner, doorbell* bell)
      : owner_(std::move(owner)), core_(new event_core(bell)) {}
  ~host_event() override {
    core_->close();
    core_->drop_reference();
  }
  host_event(const host_event&) = delete;
  host_event& operator=(const host_event&) = delete;

  [[nodiscard]] const void* owner() const noexcept { return owner_.get(); }
  [[nodiscard]] event_core& core() const noexcept { return *core_; }

 private:
  std::shared_ptr<const void> owner_;
  event_core* core_;
};

}  // namespace cairn::detail
