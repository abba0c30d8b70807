// A copier's streams and the batches of each. Knows no queue, no slots and no compute streams.
//
// Each stream has a fixed number of batches, so that the next one is described and launched while
// earlier ones run. At most one of them per stream is open (described or launched, its event not
// recorded); those in flight are kept in launch order, which is the order in which they end.
#pragma once

#include <array>
#include <cairn/backend.hpp>
#include <cairn/copier.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/copy_batch.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// `handle` and the counters are for everybody, the rest is the copy thread's.
struct copy_stream {
  static constexpr std::uint32_t batches_each = 4;

  std::unique_ptr<stream> handle;
  std::uint32_t index = 0;
  copy_kind kind = copy_kind::store;
  copy_batch* open = nullptr;
  std::array<copy_batch*, batches_each> flying{};  ///< launch order
  std::uint32_t flying_count = 0;
  std::int64_t seen_end_ns = 0;  ///< when the last batch that has no times of its own was seen over

  // Relaxed: figures.
  sync::atomic<std::uint64_t> batches{0};
  sync::atomic<std::uint64_t> images{0};
  sync::atomic<std::uint64_t> bytes{0};
  sync::atomic<std::int64_t> busy_ns{0};

  /// Something on it waits for compute, as far as was known when it was described.
  [[nodiscard]] bool stalled() const noexcept {
    bool any = open != nullptr && open->late;
    for (std::uint32_t i = 0; i < flying_count; ++i) any |= flying[i]->late;
    return any;
  }
  void push_flying(copy_batch& batch) noexcept { flying[flying_count++] = &batch; }
  void pop_flying() noexcept {
    for (std::uint32_t i = 1; i < flying_count; ++i) flying[i - 1] = flying[i];
    --flying_count;
  }
};

class copy_streams {
 public:
  static constexpr std::uint32_t max_streams = batch_ref::max_batches / copy_stream::batches_each;

  /// Events ring `bell`. Precondition: the options' numbers have been checked.
  static result<std::unique_ptr<copy_streams>> open(const copier_options& opts, device& on,
                                                    doorbell& bell);

  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }
  [[nodiscard]] copy_stream& at(std::uint32_t index) noexcept { return streams_[index]; }
  [[nodiscard]] const copy_stream& at(std::uint32_t index) const noexcept {
    return streams_[index];
  }
  /// Any thread, for its word and its event.
  [[nodiscard]] copy_batch& batch(std::uint32_t index) noexcept { return batches_[index]; }
  [[nodiscard]] copy_stream& stream_of(const copy_batch& batch) noexcept {
    return streams_[batch.index / copy_stream::batches_each];
  }

  /// The copy thread's: the stream of this direction with the least in flight that can take a batch
  /// now, in turn among equals; null when there is none. A batch that is not late goes behind late
  /// ones only when it must.
  copy_stream* pick(copy_kind kind, bool late) noexcept;
  /// The copy thread's: a batch was opened on it.
  void picked(const copy_stream& which) noexcept {
    turn_[static_cast<unsigned>(which.kind)] = which.index;
  }
  /// The copy thread's: an idle batch of the stream, or null.
  copy_batch* idle(const copy_stream& of) noexcept;

 private:
  copy_streams() = default;

  // Destroyed from the bottom up: streams first, which wait for what was enqueued and still
  // reads tasks and events and writes sums.
  std::unique_ptr<memory_block> tasks_;
  std::unique_ptr<memory_block> sums_;
  std::unique_ptr<copy_batch[]> batches_;
  std::unique_ptr<copy_stream[]> streams_;
  std::uint32_t count_ = 0;
  std::uint32_t turn_[2] = {};
};

}  // namespace cairn::detail
