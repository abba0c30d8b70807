// One device under measurement: streams, the clock, and the time that work takes on a stream.
//
// A time is taken between two events of the runtime on the stream itself. In front of the first one
// stands a kernel that holds the stream until the host has enqueued all that is measured, so that
// the time is the device's and the host's pace does not show; a sample during which the hold ran
// out is taken again with a longer one. What an engine would see, host included, is measured by
// the wall clock around a synchronisation instead, where that is the question.
#pragma once

#include <cairn/backend.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/device/kernels.hpp"
#include "bench/device/median.hpp"

namespace cairn::bench {

/// A call failed or bytes were wrong: the case is over, the next one may work.
class broken_case : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void check(hipError_t code, const char* call);
void check(status code, const char* call);
template <class T>
T check(result<T> got, const char* call) {
  if (!got) throw broken_case(std::string(call) + ": " + got.why().message());
  if constexpr (!std::is_void_v<T>) return std::move(got).value();
}

/// An event of the runtime, with timing.
class timed_event {
 public:
  timed_event();
  ~timed_event();
  timed_event(const timed_event&) = delete;
  timed_event& operator=(const timed_event&) = delete;
  void record(hipStream_t on);
  /// What is enqueued on `on` from here on waits for the latest recording.
  void make_wait(hipStream_t on) const;
  [[nodiscard]] bool fired() const;
  /// Precondition: both have fired.
  [[nodiscard]] double us_since(const timed_event& earlier) const;

 private:
  hipEvent_t handle_ = nullptr;
};

struct rig_options {
  int device = 0;
  std::uint32_t rounds = 7;       ///< samples per figure, the contenders taking turns
  bool small = false;             ///< sizes for a test, whose figures mean nothing
  double seconds = 150.0;         ///< no case begins later than this
  std::uint32_t copy_groups = 0;  ///< of the backend that is measured
};

/// Enqueues repetition `index` of what is measured.
using repetition = std::function<void(std::uint32_t index)>;

class rig {
 public:
  /// Throws broken_case, with "no HIP device: ..." where there is none.
  explicit rig(const rig_options& opts);
  ~rig();

  [[nodiscard]] const rig_options& options() const noexcept { return opts_; }
  [[nodiscard]] device& dev() noexcept { return devices_->at(0); }
  /// 0 and 1: two streams of the backend, like a copier's stores and restores. 2: a neighbour's.
  [[nodiscard]] stream& on(std::uint32_t index) noexcept { return *streams_[index]; }
  [[nodiscard]] hipStream_t native(std::uint32_t index) const noexcept {
    return static_cast<hipStream_t>(streams_[index]->native());
  }
  [[nodiscard]] std::uint32_t compute_units() const noexcept { return compute_units_; }
  /// Work groups of a launch in small to large steps, each a multiple of a quarter of the units.
  [[nodiscard]] std::vector<std::uint32_t> group_limits() const;
  [[nodiscard]] bool out_of_time() const;

  /// Microseconds on stream 0 per repetition.
  double on_stream(std::uint32_t repetitions, const repetition& enqueue);
  /// The same for work that spans streams 0 and 1: both begin together, and the later end counts.
  double on_streams(std::uint32_t repetitions, const repetition& enqueue);
  /// Microseconds of wall clock per repetition, to the end of the work.
  double on_wall(std::uint32_t repetitions, const repetition& enqueue);
  /// Enqueues a hold of about `us` on stream `index`.
  void hold(std::uint32_t index, double us);
  void synchronise();

  /// Turns of burn_work that take about a microsecond on one compute unit.
  [[nodiscard]] double turns_per_us() const noexcept { return turns_per_us_; }
  [[nodiscard]] float* sink() const noexcept;

 private:
  double between(std::uint32_t repetitions, const repetition& enqueue, bool both);
  void calibrate();

  rig_options opts_;
  std::unique_ptr<backend> devices_;
  std::unique_ptr<memory_block> sink_;
  std::vector<std::unique_ptr<stream>> streams_;
  std::uint32_t compute_units_ = 1;
  double turns_per_us_ = 100.0;
  double hold_us_ = 100.0;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
};

/// A contender's time in microseconds per repetition.
using contender = std::function<double()>;
/// Lets all take turns, `rounds` times, and returns each one's median.
std::vector<double> take_turns(std::uint32_t rounds, const std::vector<contender>& contenders);

}  // namespace cairn::bench
