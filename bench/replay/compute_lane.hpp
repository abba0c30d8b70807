// One device's share of the compute: what is enqueued on its stream for a step, and what came of
// it. The backends differ here: functions on the host's streams, kernels on HIP's. Knows no other
// device and nothing of who makes the steps.
#pragma once

#include <atomic>
#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/replay/engine.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/replay/timeline.hpp"

namespace cairn::replay {

struct compute_figures {
  std::uint64_t mismatches = 0;  ///< images and units, one each, whatever the number of bytes
  std::string first_mismatch;    ///< what, where; empty when there was none
  std::uint64_t images_verified = 0;
  std::uint64_t units_verified = 0;
  std::uint64_t bytes_verified = 0;
  std::uint64_t bytes_written = 0;
  double busy_seconds = 0.0;  ///< all devices
  double wait_seconds = 0.0;  ///< a stream stood still until cairn's copies let it go on

  void add(const compute_figures& more);
};

/// A step under way: shared by all devices, used again when the last one has run it.
struct compute_job {
  std::size_t index = 0;  ///< among all jobs, for what a lane keeps by job
  forward_step step;      ///< its spans point into the vectors below
  std::vector<kv_content> claimed;
  std::vector<kv_content> computed;
  bool spoil = false;                  ///< one byte is to be wrong before the step looks
  std::atomic<std::uint32_t> left{0};  ///< devices that have not run it
};

/// Told by every lane that it has run a job. Any thread.
class job_pool {
 public:
  virtual void ended(compute_job& on_one_device) = 0;

 protected:
  ~job_pool() = default;
};

class compute_lane {
 public:
  /// Waits for what was enqueued.
  virtual ~compute_lane() = default;
  /// Enqueues a note of when the stream comes to the copies that the job waits for.
  virtual void arrive(compute_job& job) = 0;
  /// Enqueues the step itself. Calls for one job come from one thread, different jobs may overlap.
  virtual void run(compute_job& job) = 0;
  /// Where ends are not told but polled: looks for them, and reports them to the pool. True if the
  /// lane must be polled.
  virtual bool poll() { return false; }
  /// When the stream is idle and the last end reported.
  [[nodiscard]] virtual compute_figures figures() const = 0;
  [[nodiscard]] virtual std::vector<compute_span> spans() const = 0;
};

/// What a lane is made of. All of it outlives the lane, but for the stream: who ends a lane ends
/// the stream first, which waits for its work.
struct lane_setup {
  const geometry& shape;
  rank_id rank = 0;  ///< on HIP the device's ordinal, too
  device& on;
  const device_memory& memory;
  std::size_t jobs = 0;
  job_pool& pool;
  stream& work;
};

std::unique_ptr<compute_lane> make_host_lane(const lane_setup& from);
/// For a stream with a native handle. Throws broken_run in a build without HIP.
std::unique_ptr<compute_lane> make_hip_lane(const lane_setup& from);

/// Sets memory of a HIP device to zero, by a kernel: the host cannot reach it. Throws broken_run.
void clear_on_device(device& on, rank_id rank, std::byte* from, std::uint64_t bytes);

/// What a lane says about a piece that is not as it should be.
std::string wrong_segment(std::size_t segment, slot_id slot, rank_id rank);
std::string wrong_region(std::size_t region, unit_id unit, rank_id rank);

}  // namespace cairn::replay
