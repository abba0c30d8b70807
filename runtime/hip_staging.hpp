// Staging of batches whose words do not fit in a kernel's arguments: a ring of places, each a piece
// of pinned memory, a piece of device memory of the same size, and an event. Knows words and
// streams, not what the words mean.
//
// A place is written by a launching thread, read by the stream's copy to the device, and the
// device's piece by the kernel behind it; the place's event is recorded behind both. It is used
// again only when that event has fired. Launches may come from several threads, so a place has a
// word, which holds its state and how often it has flown:
//
//   free       --take, a launching thread (1)-->  taken
//   flying(n)  --take, once the event has fired (1)-->  taken(n)
//   taken(n)   --fly, the same thread, its event recorded (2)-->  flying(n + 1)
//   taken(n)   --give, the same thread, nothing enqueued (2)-->  free(n)
//   taken(n)   --fly, its event refused (3)-->  owed by the stream: taken, and nobody's
//   owed       --settle, who launches there next (4)-->  taken, then as above: an event that is
//                                                        recorded later proves the same and more
//   owed       --forgive, the stream is over (4)-->  free(n)
//   flying(n)  --forgive, the stream is over (2)-->  free(n): a query of the event would look at
//                                                    a stream that is gone
//
// (1) is an acquire and (2) a release: who takes a place finds its event recorded, and writes it
// after the last user did. The count is there because the event is queried before the word is
// changed: in between, another thread may take the place and fly it again, and the event that was
// seen to fire is an old one. (3) releases and (4) acquires what the holder of an owed place knows.
#pragma once

#include <array>
#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/scatter_gather_hip.hpp"
#include "runtime/hip_call.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// Places that work of one stream uses and that have no event behind it yet: a bit for each.
class hip_debts {
 public:
  void add(std::uint32_t place) noexcept {
    owed_.fetch_or_release(std::uint32_t{1} << place);  // (3) release: pairs with (4)
  }
  /// They are the caller's now.
  [[nodiscard]] std::uint32_t take() noexcept {
    return owed_.exchange_acq_rel(0);  // (4) acquire: pairs with (3)
  }

 private:
  sync::atomic<std::uint32_t> owed_{0};
};

class hip_staging {
 public:
  static constexpr std::uint32_t places = 16;
  static constexpr std::uint32_t place_words = 16 * 1024;
  /// What one batch should use at most. All of a batch's places are claimed at once, so one that
  /// needed the whole ring would wait until no other batch is in flight.
  static constexpr std::uint32_t places_of_batch = places / 4;
  /// What batches of one kind may use together. Stores may wait for compute, and hold their places
  /// meanwhile; the last places, enough for a batch, are for restores alone, which somebody awaits.
  [[nodiscard]] static std::uint32_t places_for(copy_kind kind) noexcept {
    return kind == copy_kind::restore ? places : places - places_of_batch;
  }

  /// The device is current and outlives the ring.
  static result<std::unique_ptr<hip_staging>> open(hip_health& health);
  /// The device is current, and nothing uses the ring any more. Frees nothing of a lost device.
  ~hip_staging();
  hip_staging(const hip_staging&) = delete;
  hip_staging& operator=(const hip_staging&) = delete;

  /// Takes `count` places, or none: queue_full when they are in use. Lock-free. Precondition: count
  /// is at most places_for(kind).
  status claim(copy_kind kind, std::uint32_t count,
               std::array<std::uint32_t, places>& taken) noexcept;

  /// The holder's, before it enqueues the copy.
  [[nodiscard]] std::uint32_t* words(std::uint32_t place) const noexcept {
    return pinned_ + std::size_t{place} * place_words;
  }
  /// Enqueues the copy of the first `count` words to the device.
  status send(std::uint32_t place, std::size_t count, hipStream_t on) noexcept;
  [[nodiscard]] const std::uint32_t* resident(std::uint32_t place) const noexcept {
    return device_ + std::size_t{place} * place_words;
  }
  /// Behind all that reads the place. When the event is refused the stream owes it.
  void fly(std::uint32_t place, hipStream_t on, hip_debts& debts) noexcept;
  /// Records what the stream owes, as far as the runtime lets it.
  void settle(hip_debts& debts, hipStream_t on) noexcept;
  /// Nothing that was enqueued on the stream runs any more, and no launch there goes on.
  void forgive(hip_debts& debts, hipStream_t on) noexcept;
  /// The device cannot be entered any more: it keeps what the ring has there.
  void abandon() noexcept { abandoned_ = true; }

  /// Nothing was enqueued that reads the place.
  void give(std::uint32_t place) noexcept;

  /// Pinned zeros, never written: what a stream's board of checksums begins with.
  [[nodiscard]] const void* zeros() const noexcept {
    return pinned_ + std::size_t{places} * place_words;
  }

 private:
  // States in the low bits; one flight is counted above them.
  static constexpr std::uint32_t free_place = 0;
  static constexpr std::uint32_t taken_place = 1;
  static constexpr std::uint32_t flying_place = 2;
  static constexpr std::uint32_t state_mask = 3;
  static constexpr std::uint32_t one_flight = 4;

  explicit hip_staging(hip_health& health) noexcept : health_(health) {}
  bool take(std::uint32_t place) noexcept;

  hip_health& health_;
  bool abandoned_ = false;
  std::uint32_t* pinned_ = nullptr;
  std::uint32_t* device_ = nullptr;
  std::array<hipEvent_t, places> events_{};
  std::array<sync::atomic<std::uint32_t>, places> words_{};
  std::array<sync::atomic<hipStream_t>, places> users_{};  // of the latest flight
  // Where stores and restores look first: hints.
  std::array<sync::atomic<std::uint32_t>, 2> next_{};
};

}  // namespace cairn::detail
