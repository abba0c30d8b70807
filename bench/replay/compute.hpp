// Compute on real memory: each step verifies what it finds, in the slot and in claimed units, and
// writes what it leaves. It runs on a stream of the backend per device and is ordered against
// copies only by what the runtime offers. Steps are pooled and ordered here, and run by lanes.
#pragma once

#include <atomic>
#include <cairn/runtime.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bench/replay/compute_lane.hpp"
#include "bench/replay/engine.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/replay/timeline.hpp"

namespace cairn::replay {

class compute final : public forward, private job_pool {
 public:
  /// Creates a stream per device. Devices and memory must outlive this object, and it must
  /// outlive the runtime; the destructor waits for what was enqueued.
  compute(const geometry& of, backend& devices, std::vector<device_memory>& memory);
  ~compute() override;

  /// Makes the streams compute stream 0 of `to`. Before the first step.
  void attach(runtime& to);
  /// Makes one byte wrong on device 0 before the first step from number `step` on (from 1) that
  /// looks at anything: a run that does not find it is worth nothing. Before the first step.
  void plant_wrong_byte(std::uint64_t step) { spoil_from_ = step; }
  /// False after a run in which no step came that could be spoiled.
  [[nodiscard]] bool planted() const { return spoil_from_ == 0; }
  void enqueue(const forward_step& step) override;

  /// Waits until every step has run. The figures are exact then.
  void wait_idle();
  [[nodiscard]] compute_figures figures() const;
  [[nodiscard]] std::vector<compute_span> spans() const;

 private:
  compute_job* take_job();
  void ended(compute_job& on_one_device) override;
  bool poll();
  bool is_to_spoil(const forward_step& step);

  const geometry shape_;
  runtime* runtime_ = nullptr;
  std::atomic<std::uint64_t> spoil_from_{0};  // 0: nothing more to spoil
  std::atomic<std::uint64_t> steps_{0};

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<compute_job>> jobs_;
  std::vector<compute_job*> free_jobs_;

  // By rank. Lanes go first, then the streams that they run on.
  std::vector<std::unique_ptr<stream>> streams_;
  std::vector<std::unique_ptr<compute_lane>> lanes_;
};

}  // namespace cairn::replay
