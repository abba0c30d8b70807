// Steps as kernels on a stream of the HIP backend. The host writes what a step consists of into
// pinned memory; the stream copies it to the device, verifies, writes, and copies the verdicts
// back. Ends are polled. The stream's own events, with timing, say when it came to the copies in
// front of a step, when it was let go on, and when the step was done:
//
//   arrive            run
//   arrived  [waits]  begun  step and units in, verify, write, verdicts out  ended
//
// Jobs of one stream end in the order in which `run` enqueued them, which the mutex makes that of
// the queue; between an arrival and its step another thread's step may be enqueued.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/compute_hip_kernels.hpp"
#include "bench/replay/compute_lane.hpp"

namespace cairn::replay {
namespace {

void check(hipError_t code, const char* call) {
  if (code == hipSuccess) return;
  throw broken_run(std::string(call) + ": " + hipGetErrorName(code) + ": " +
                   hipGetErrorString(code));
}

template <class T>
T check(result<T> got, const char* call) {
  if (!got) throw broken_run(std::string(call) + ": " + got.why().message());
  return std::move(got).value();
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

/// The rank's device is the thread's current one while this lives.
class current_device {
 public:
  explicit current_device(rank_id rank) {
    check(hipGetDevice(&before_), "hipGetDevice");
    check(hipSetDevice(static_cast<int>(rank)), "hipSetDevice");
  }
  ~current_device() { static_cast<void>(hipSetDevice(before_)); }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int before_ = 0;
};

class timed_event {
 public:
  timed_event() { check(hipEventCreateWithFlags(&handle_, 0), "hipEventCreateWithFlags"); }
  ~timed_event() { static_cast<void>(hipEventDestroy(handle_)); }
  timed_event(const timed_event&) = delete;
  timed_event& operator=(const timed_event&) = delete;

  void record(hipStream_t on) { check(hipEventRecord(handle_, on), "hipEventRecord"); }
  [[nodiscard]] bool fired() const {
    const hipError_t code = hipEventQuery(handle_);
    if (code != hipErrorNotReady) check(code, "hipEventQuery");
    if (code != hipSuccess) static_cast<void>(hipGetLastError());  // some count it as an error
    return code == hipSuccess;
  }
  [[nodiscard]] std::int64_t ns_since(const timed_event& earlier) const {
    float ms = 0.0F;
    check(hipEventElapsedTime(&ms, earlier.handle_, handle_), "hipEventElapsedTime");
    return static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
  }

 private:
  hipEvent_t handle_ = nullptr;
};

/// What one job needs on this device.
struct hip_job {
  std::unique_ptr<timed_event> arrived = std::make_unique<timed_event>();
  std::unique_ptr<timed_event> begun = std::make_unique<timed_event>();
  std::unique_ptr<timed_event> ended = std::make_unique<timed_event>();
  // Claimed units, computed units, verdicts; of the same size. Grown while the job is free.
  std::unique_ptr<memory_block> pinned;
  std::unique_ptr<memory_block> resident;
};

class hip_lane final : public compute_lane {
 public:
  explicit hip_lane(const lane_setup& from);
  ~hip_lane() override = default;

  void arrive(compute_job& job) override;
  void run(compute_job& job) override;
  bool poll() override;
  [[nodiscard]] compute_figures figures() const override { return figures_; }
  [[nodiscard]] std::vector<compute_span> spans() const override { return spans_; }

 private:
  /// Where a job's pieces lie in its memory, in bytes.
  struct places {
    explicit places(const compute_job& job)
        : computed(job.claimed.size() * sizeof(kv_content)),
          verdicts(computed + job.computed.size() * sizeof(kv_content)),
          end(verdicts + (1 + job.claimed.size()) * sizeof(verdict)) {}
    std::size_t computed;
    std::size_t verdicts;
    std::size_t end;
  };

  void load_tables(const lane_setup& from);
  void reserve(hip_job& of, std::size_t bytes);
  void spoil(const forward_step& step);
  void enqueue(const compute_job& job, hip_job& of);
  void finish(compute_job& job);
  void take_times(const compute_job& job, hip_job& of);
  void take_verdicts(const compute_job& job, const hip_job& of);
  [[nodiscard]] std::uint64_t bytes_seen(const std::vector<strided>& pieces, verdict of) const;

  const geometry& shape_;
  const rank_id rank_;
  device& on_;
  const rank_memory& memory_;
  job_pool& pool_;
  const hipStream_t work_;
  std::unique_ptr<memory_block> table_block_;
  step_tables tables_;

  std::mutex mutex_;  // guards all below; held while a step is enqueued
  std::vector<hip_job> jobs_;
  std::deque<compute_job*> running_;  // in the stream's order
  std::unique_ptr<timed_event> last_end_;
  std::int64_t last_end_ns_ = 0;  // steady_clock, by adding up what lies between events
  compute_figures figures_;
  std::vector<compute_span> spans_;
};

hip_lane::hip_lane(const lane_setup& from)
    : shape_(from.shape),
      rank_(from.rank),
      on_(from.on),
      memory_(from.memory.addresses),
      pool_(from.pool),
      work_(static_cast<hipStream_t>(from.work.native())) {
  const current_device current(rank_);
  // Now that the device is current: events belong to one.
  last_end_ = std::make_unique<timed_event>();
  jobs_.resize(from.jobs);
  load_tables(from);
  last_end_->record(work_);
  check(hipStreamSynchronize(work_), "hipStreamSynchronize");
  last_end_ns_ = now_ns();
}

void hip_lane::load_tables(const lane_setup& from) {
  const std::size_t regions = memory_.regions.size() * sizeof(strided);
  const std::size_t segments = memory_.segments.size() * sizeof(strided);
  const std::size_t gaps = shape_.gaps.size() * sizeof(stretch);
  const std::size_t bytes = regions + segments + gaps;
  table_block_ = check(on_.allocate(bytes), "allocate");
  auto pinned = check(on_.allocate_pinned(bytes), "allocate_pinned");
  std::memcpy(pinned->data(), memory_.regions.data(), regions);
  std::memcpy(pinned->data() + regions, memory_.segments.data(), segments);
  if (gaps > 0) std::memcpy(pinned->data() + regions + segments, shape_.gaps.data(), gaps);
  std::byte* const at = table_block_->data();
  check(hipMemcpyAsync(at, pinned->data(), bytes, hipMemcpyHostToDevice, work_), "hipMemcpyAsync");
  check(hipStreamSynchronize(work_), "hipStreamSynchronize");  // before the pinned memory goes
  tables_.regions = reinterpret_cast<const strided*>(at);
  tables_.segments = reinterpret_cast<const strided*>(at + regions);
  tables_.gaps = reinterpret_cast<const stretch*>(at + regions + segments);
  tables_.slots = from.memory.slots->data();
  tables_.slot_bytes = shape_.slot_bytes;
  tables_.region_count = static_cast<std::uint32_t>(memory_.regions.size());
  tables_.segment_count = static_cast<std::uint32_t>(memory_.segments.size());
  tables_.gap_count = static_cast<std::uint32_t>(shape_.gaps.size());
  tables_.rank = rank_;
}

void hip_lane::reserve(hip_job& of, std::size_t bytes) {
  if (of.pinned && of.pinned->size() >= bytes) return;
  constexpr std::size_t least = 8 * 1024;
  const std::size_t wanted = std::max(least, 2 * bytes);
  of.pinned = check(on_.allocate_pinned(wanted), "allocate_pinned");
  of.resident = check(on_.allocate(wanted), "allocate");
}

void hip_lane::arrive(compute_job& job) {
  const current_device current(rank_);
  jobs_[job.index].arrived->record(work_);
}

void hip_lane::run(compute_job& job) {
  const current_device current(rank_);
  const std::lock_guard alone(mutex_);
  hip_job& of = jobs_[job.index];
  of.begun->record(work_);
  enqueue(job, of);
  of.ended->record(work_);
  running_.push_back(&job);
}

void hip_lane::enqueue(const compute_job& job, hip_job& of) {
  const places at(job);
  reserve(of, at.end);
  std::byte* const to = of.pinned->data();
  if (!job.claimed.empty()) std::memcpy(to, job.claimed.data(), at.computed);
  if (!job.computed.empty())
    std::memcpy(to + at.computed, job.computed.data(), at.verdicts - at.computed);
  std::fill_n(reinterpret_cast<verdict*>(to + at.verdicts), 1 + job.claimed.size(), all_right);
  std::byte* const there = of.resident->data();
  check(hipMemcpyAsync(there, to, at.end, hipMemcpyHostToDevice, work_), "hipMemcpyAsync");

  if (job.spoil && rank_ == 0) spoil(job.step);
  verify_work verify;
  verify.tables = tables_;
  verify.from = job.step.from;
  verify.claimed = reinterpret_cast<const kv_content*>(there);
  verify.verdicts = reinterpret_cast<verdict*>(there + at.verdicts);
  verify.slot = job.step.slot;
  verify.claimed_count = static_cast<std::uint32_t>(job.claimed.size());
  verify.continues = job.step.continues ? 1 : 0;
  const bool looks = job.step.continues || !job.claimed.empty();
  if (looks) check(launch(verify, work_), "launch of verify_step");
  write_work write;
  write.tables = tables_;
  write.to = job.step.to;
  write.computed = reinterpret_cast<const kv_content*>(there + at.computed);
  write.slot = job.step.slot;
  write.computed_count = static_cast<std::uint32_t>(job.computed.size());
  check(launch(write, work_), "launch of write_step");
  if (looks)
    check(hipMemcpyAsync(to + at.verdicts, there + at.verdicts, at.end - at.verdicts,
                         hipMemcpyDeviceToHost, work_),
          "hipMemcpyAsync");
}

void hip_lane::spoil(const forward_step& step) {
  const strided& array = step.claimed.empty() ? memory_.segments.back() : memory_.regions.back();
  const std::uint32_t id = step.claimed.empty() ? step.slot : step.claimed.front().unit;
  std::byte* const piece = array.base + array.stride * static_cast<std::int64_t>(id);
  check(launch(spoil_work{piece + array.bytes - 1}, work_), "launch of spoil_byte");
}

bool hip_lane::poll() {
  const current_device current(rank_);
  std::vector<compute_job*> over;
  {
    const std::lock_guard alone(mutex_);
    while (!running_.empty() && jobs_[running_.front()->index].ended->fired()) {
      finish(*running_.front());
      over.push_back(running_.front());
      running_.pop_front();
    }
  }
  for (compute_job* each : over) pool_.ended(*each);
  return true;
}

void hip_lane::finish(compute_job& job) {
  hip_job& of = jobs_[job.index];
  take_verdicts(job, of);
  take_times(job, of);
  std::swap(of.ended, last_end_);
}

void hip_lane::take_times(const compute_job& job, hip_job& of) {
  // Time in which the stream ran another thread's step is not waiting.
  const std::int64_t after_arrival = of.begun->ns_since(*of.arrived);
  const std::int64_t after_last = of.begun->ns_since(*last_end_);
  const std::int64_t waited = std::max<std::int64_t>(0, std::min(after_arrival, after_last));
  const std::int64_t ran = of.ended->ns_since(*of.begun);
  figures_.wait_seconds += static_cast<double>(waited) * 1e-9;
  figures_.busy_seconds += static_cast<double>(ran) * 1e-9;
  const std::int64_t begin_ns = last_end_ns_ + std::max<std::int64_t>(0, after_last);
  last_end_ns_ = begin_ns + ran;
  spans_.push_back({rank_, job.step.slot, begin_ns, last_end_ns_});
}

/// As on the host: up to the first wrong piece.
std::uint64_t hip_lane::bytes_seen(const std::vector<strided>& pieces, verdict of) const {
  const std::size_t last = of == all_right ? pieces.size() : (of >> verdict_byte_bits) + 1;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < last; ++i) bytes += pieces[i].bytes;
  return bytes;
}

void hip_lane::take_verdicts(const compute_job& job, const hip_job& of) {
  const auto* const found =
      reinterpret_cast<const verdict*>(of.pinned->data() + places(job).verdicts);
  const auto wrong = [&](std::string where) {
    ++figures_.mismatches;
    if (figures_.first_mismatch.empty()) figures_.first_mismatch = std::move(where);
  };
  if (job.step.continues) {
    ++figures_.images_verified;
    figures_.bytes_verified += bytes_seen(memory_.segments, found[0]);
    if (found[0] != all_right)
      wrong(wrong_segment(found[0] >> verdict_byte_bits, job.step.slot, rank_));
  }
  for (std::size_t i = 0; i < job.claimed.size(); ++i) {
    const verdict of_unit = found[1 + i];
    ++figures_.units_verified;
    figures_.bytes_verified += bytes_seen(memory_.regions, of_unit);
    if (of_unit != all_right)
      wrong(wrong_region(of_unit >> verdict_byte_bits, job.claimed[i].unit, rank_));
  }
  figures_.bytes_written += bytes_seen(memory_.segments, all_right) +
                            job.computed.size() * bytes_seen(memory_.regions, all_right);
}

}  // namespace

std::unique_ptr<compute_lane> make_hip_lane(const lane_setup& from) {
  return std::make_unique<hip_lane>(from);
}

void clear_on_device(device& on, rank_id rank, std::byte* from, std::uint64_t bytes) {
  const current_device current(rank);
  const auto work = check(on.create_stream(stream_priority::normal), "create_stream");
  const auto native = static_cast<hipStream_t>(work->native());
  check(launch(set_work{from, bytes, 0}, native), "launch of set_bytes");
  check(hipStreamSynchronize(native), "hipStreamSynchronize");
}

}  // namespace cairn::replay
