// Streams, events and the clock of one device.
#include "bench/device/rig.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::bench {

void check(hipError_t code, const char* call) {
  if (code == hipSuccess) return;
  throw broken_case(std::string(call) + ": " + hipGetErrorName(code) + ": " +
                    hipGetErrorString(code));
}

void check(status code, const char* call) {
  if (code != status::ok) throw broken_case(std::string(call) + ": " + to_string(code));
}

timed_event::timed_event() {
  check(hipEventCreateWithFlags(&handle_, 0), "hipEventCreateWithFlags");
}
timed_event::~timed_event() {
  static_cast<void>(hipEventDestroy(handle_));
}
void timed_event::record(hipStream_t on) {
  check(hipEventRecord(handle_, on), "hipEventRecord");
}
void timed_event::make_wait(hipStream_t on) const {
  check(hipStreamWaitEvent(on, handle_, 0), "hipStreamWaitEvent");
}
bool timed_event::fired() const {
  const hipError_t code = hipEventQuery(handle_);
  if (code == hipErrorNotReady) {
    static_cast<void>(hipGetLastError());  // some runtimes count it as an error
    return false;
  }
  check(code, "hipEventQuery");
  return true;
}
double timed_event::us_since(const timed_event& earlier) const {
  float ms = 0.0F;
  check(hipEventElapsedTime(&ms, earlier.handle_, handle_), "hipEventElapsedTime");
  return static_cast<double>(ms) * 1e3;
}

rig::rig(const rig_options& opts) : opts_(opts) {
  hip_options wanted;
  wanted.devices = {opts.device};
  wanted.copy_groups = opts.copy_groups;
  auto opened = make_hip_backend(wanted);
  if (!opened) throw broken_case(opened.why().message());
  devices_ = std::move(opened).value();
  // The backend leaves the caller's current device alone; this program's is the measured one.
  check(hipSetDevice(opts.device), "hipSetDevice");
  int units = 0;
  check(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, opts.device),
        "hipDeviceGetAttribute");
  compute_units_ = static_cast<std::uint32_t>(std::max(units, 1));
  for (const stream_priority each :
       {stream_priority::normal, stream_priority::high, stream_priority::normal})
    streams_.push_back(check(dev().create_stream(each), "create_stream"));
  sink_ = check(dev().allocate(sizeof(float)), "allocate");
  calibrate();
}

rig::~rig() = default;

float* rig::sink() const noexcept {
  return reinterpret_cast<float*>(sink_->data());
}

std::vector<std::uint32_t> rig::group_limits() const {
  std::vector<std::uint32_t> limits;
  for (const std::uint32_t quarters : {1U, 2U, 4U, 8U, 16U, 32U, 64U})
    limits.push_back(std::max(1U, quarters * compute_units_ / 4));
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  return limits;
}

bool rig::out_of_time() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count() >
         opts_.seconds;
}

/// Lengthens a burn until the clock's grain no longer matters.
void rig::calibrate() {
  timed_event begin;
  timed_event end;
  const double wanted_us = opts_.small ? 20.0 : 2000.0;
  for (std::uint64_t turns = 1000; turns < (std::uint64_t{1} << 34); turns *= 4) {
    begin.record(native(0));
    check(launch(burn_work{turns, std::numeric_limits<float>::quiet_NaN(), sink()}, 1, native(0)),
          "launch");
    end.record(native(0));
    check(hipStreamSynchronize(native(0)), "hipStreamSynchronize");
    const double us = end.us_since(begin);
    if (us < wanted_us) continue;
    turns_per_us_ = static_cast<double>(turns) / us;
    return;
  }
}

void rig::hold(std::uint32_t index, double us) {
  const auto turns = static_cast<std::uint64_t>(std::max(1.0, us * turns_per_us_));
  check(launch(burn_work{turns, std::numeric_limits<float>::quiet_NaN(), sink()}, 1, native(index)),
        "launch");
}

void rig::synchronise() {
  for (std::uint32_t i = 0; i < streams_.size(); ++i)
    check(hipStreamSynchronize(native(i)), "hipStreamSynchronize");
}

double rig::between(std::uint32_t repetitions, const repetition& enqueue, bool both) {
  constexpr double hold_us_max = 100'000.0;
  timed_event begin;
  timed_event joined;
  timed_event end;
  for (;;) {
    hold(0, hold_us_);
    begin.record(native(0));
    if (both) begin.make_wait(native(1));
    for (std::uint32_t i = 0; i < repetitions; ++i) enqueue(i);
    if (both) {
      joined.record(native(1));
      joined.make_wait(native(0));
    }
    end.record(native(0));
    const bool late = begin.fired();
    synchronise();
    if (!late || opts_.small || hold_us_ >= hold_us_max) return end.us_since(begin) / repetitions;
    hold_us_ = std::min(2.0 * hold_us_, hold_us_max);
  }
}

double rig::on_stream(std::uint32_t repetitions, const repetition& enqueue) {
  return between(repetitions, enqueue, false);
}

double rig::on_streams(std::uint32_t repetitions, const repetition& enqueue) {
  return between(repetitions, enqueue, true);
}

double rig::on_wall(std::uint32_t repetitions, const repetition& enqueue) {
  synchronise();
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < repetitions; ++i) enqueue(i);
  synchronise();
  const auto took = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration<double, std::micro>(took).count() / repetitions;
}

std::vector<double> take_turns(std::uint32_t rounds, const std::vector<contender>& contenders) {
  for (const contender& each : contenders) each();  // warm
  std::vector<std::vector<double>> samples(contenders.size());
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) samples[i].push_back(contenders[i]());
  std::vector<double> medians;
  medians.reserve(samples.size());
  for (std::vector<double>& each : samples) medians.push_back(median(std::move(each)));
  return medians;
}

}  // namespace cairn::bench
