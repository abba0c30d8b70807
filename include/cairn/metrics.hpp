// What happened and how long it took: fates of checkpoints, latencies, a sink for timelines.
#pragma once

#include <array>
#include <atomic>
#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cairn {

/// Why a boundary that a coordinator was given was not kept. (Who stores without one is told by the
/// call that is refused; that is not counted.)
enum class drop_reason : std::uint8_t {
  no_room,     ///< no units, no victim, or a limit of the catalog
  superseded,  ///< the sequence went on to another boundary
  queue_full,
  closed,
  refused,  ///< a lost device, a slot that is out of range, busy or poisoned
  count
};
[[nodiscard]] const char* to_string(drop_reason why) noexcept;

/// The fates of checkpoints since opening.
struct fate_counts {
  std::uint64_t kept = 0;  ///< stores begun; those that failed or were cancelled are among them
  std::array<std::uint64_t, static_cast<std::size_t>(drop_reason::count)> dropped{};
  std::uint64_t evicted = 0;    ///< spent to make room
  std::uint64_t orphaned = 0;   ///< the key's KV was taken for other content
  std::uint64_t failed = 0;     ///< the copy failed on some rank
  std::uint64_t cancelled = 0;  ///< unwound before any rank took it (slot released)
  [[nodiscard]] std::uint64_t dropped_total() const noexcept;
};

/// A histogram of durations in nanoseconds: buckets of 1/16 of a power of two, so a quantile
/// is within 6.25 %. add is wait-free; quantiles are exact while nobody adds.
class latency_histogram {
 public:
  void add(std::int64_t ns) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept;
  /// The upper edge of the bucket that holds quantile q in [0, 1], in nanoseconds; 0 if empty.
  [[nodiscard]] std::int64_t quantile_ns(double q) const noexcept;
  [[nodiscard]] std::int64_t total_ns() const noexcept;

 private:
  static constexpr std::size_t sub_buckets_ = 16;
  static constexpr std::size_t buckets_ = 64 * sub_buckets_;
  // Relaxed: figures.
  std::array<std::atomic<std::uint64_t>, buckets_> counts_{};
  std::atomic<std::int64_t> total_ns_{0};
};

/// One batch of copies as it ran. Times are steady_clock nanoseconds.
struct batch_span {
  rank_id rank = 0;
  std::uint32_t stream = 0;  ///< index among the copier's streams; stores first
  copy_kind kind = copy_kind::store;
  status code = status::ok;
  std::uint32_t images = 0;
  std::uint64_t bytes = 0;  ///< image bytes, counted once
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Receives spans from copy threads, each in its own thread, after the batch has ended and
/// before its ops are reported. Must not block for long: copies wait meanwhile.
class trace_sink {
 public:
  virtual ~trace_sink() = default;
  virtual void on_batch(const batch_span& span) noexcept = 0;
};

}  // namespace cairn
