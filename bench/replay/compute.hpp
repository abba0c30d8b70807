// Compute on real memory: each step verifies what it finds, in the slot and in claimed units, and
// writes what it leaves. It runs on a stream of the backend per device and is ordered against
// copies only by what the runtime offers.
#pragma once

#include <cairn/runtime.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/replay/engine.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/replay/timeline.hpp"

namespace cairn::replay {

struct compute_figures {
  std::uint64_t mismatches = 0;
  std::string first_mismatch;  ///< what, where; empty when there was none
  std::uint64_t images_verified = 0;
  std::uint64_t units_verified = 0;
  std::uint64_t bytes_verified = 0;
  std::uint64_t bytes_written = 0;
  double busy_seconds = 0.0;  ///< all devices
  double wait_seconds = 0.0;  ///< a stream stood still until cairn's copies let it go on
};

class compute final : public forward {
 public:
  /// Creates a stream per device. Devices and memory must outlive this object, and it must
  /// outlive the runtime; the destructor waits for what was enqueued.
  compute(const geometry& of, backend& devices, std::vector<device_memory>& memory);
  ~compute() override;

  /// Makes the streams compute stream 0 of `to`. Before the first step.
  void attach(runtime& to);
  void enqueue(const forward_step& step) override;

  /// Waits until every step has run. The figures are exact then.
  void wait_idle();
  [[nodiscard]] compute_figures figures() const;
  [[nodiscard]] std::vector<compute_span> spans() const;

 private:
  struct step_on_rank;
  struct job;
  struct lane;

  job* take_job();
  void give_back(job* done);
  static void arrive(void* context);
  static void execute(void* context);

  const geometry shape_;
  backend& devices_;
  runtime* runtime_ = nullptr;
  std::vector<std::unique_ptr<lane>> lanes_;  // by rank

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<job>> jobs_;
  std::vector<job*> free_jobs_;
};

}  // namespace cairn::replay
