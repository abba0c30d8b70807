// What ran when: spans of copies and of compute, the share of time in which streams overlap, and
// the timeline as Chrome trace events, which Perfetto opens. Knows spans, not what they carried.
#pragma once

#include <cairn/metrics.hpp>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <vector>

namespace cairn::replay {

/// One step of compute as it ran. Times are steady_clock nanoseconds.
struct compute_span {
  rank_id rank = 0;
  std::uint32_t slot = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Collects the batches of all copiers.
class batch_log final : public trace_sink {
 public:
  void on_batch(const batch_span& span) noexcept override;
  /// By time of beginning. Call it when no copy runs.
  [[nodiscard]] std::vector<batch_span> sorted() const;

 private:
  mutable std::mutex mutex_;
  std::vector<batch_span> spans_;
};

struct overlap_figures {
  double busy_seconds = 0.0;          ///< at least one copy stream of a device was busy
  double overlap_seconds = 0.0;       ///< at least two were
  double with_compute_seconds = 0.0;  ///< a copy stream was busy while compute ran

  /// Share of the busy time in which at least two streams overlapped.
  [[nodiscard]] double share() const noexcept {
    return busy_seconds > 0.0 ? overlap_seconds / busy_seconds : 0.0;
  }
  [[nodiscard]] double compute_share() const noexcept {
    return busy_seconds > 0.0 ? with_compute_seconds / busy_seconds : 0.0;
  }
};

/// Device by device, then added up.
overlap_figures measure_overlap(const std::vector<batch_span>& copies,
                                const std::vector<compute_span>& compute);

/// Chrome trace-event JSON: a process per device, a track per stream.
void write_timeline(std::ostream& to, const std::vector<batch_span>& copies,
                    const std::vector<compute_span>& compute, std::uint32_t store_streams);

}  // namespace cairn::replay
