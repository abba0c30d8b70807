// Jobs are shared by all devices and pooled: a job goes back when its last device has run it, and
// a full house makes the enqueuing thread wait, so that virtual time does not run far ahead of
// the copies.
#include "bench/replay/compute.hpp"

#include <thread>

#include "bench/replay/bad_input.hpp"

namespace cairn::replay {
namespace {

// Steps enqueued and not run yet. Enough to keep the streams busy.
constexpr std::size_t jobs_max = 64;
constexpr auto patience = std::chrono::seconds(60);
constexpr auto between_polls = std::chrono::microseconds(20);

void check(status code, const char* what) {
  if (code != status::ok) throw broken_run(std::string(what) + ": " + to_string(code));
}

}  // namespace

void compute_figures::add(const compute_figures& more) {
  mismatches += more.mismatches;
  if (first_mismatch.empty()) first_mismatch = more.first_mismatch;
  images_verified += more.images_verified;
  units_verified += more.units_verified;
  bytes_verified += more.bytes_verified;
  bytes_written += more.bytes_written;
  busy_seconds += more.busy_seconds;
  wait_seconds += more.wait_seconds;
}

std::string wrong_segment(std::size_t segment, slot_id slot, rank_id rank) {
  return "segment " + std::to_string(segment) + " of slot " + std::to_string(slot) +
         " does not hold the state it should on device " + std::to_string(rank);
}

std::string wrong_region(std::size_t region, unit_id unit, rank_id rank) {
  return "region " + std::to_string(region) + " of unit " + std::to_string(unit) +
         " does not hold the KV it should on device " + std::to_string(rank);
}

compute::compute(const geometry& of, backend& devices, std::vector<device_memory>& memory)
    : shape_(of) {
  for (std::size_t i = 0; i < jobs_max; ++i) {
    jobs_.push_back(std::make_unique<compute_job>());
    jobs_.back()->index = i;
    free_jobs_.push_back(jobs_.back().get());
  }
  for (rank_id rank = 0; rank < memory.size(); ++rank) {
    device& on = devices.at(rank);
    auto work = on.create_stream(stream_priority::normal);
    if (!work) throw broken_run("create_stream: " + work.why().message());
    streams_.push_back(std::move(work).value());
    const lane_setup with{shape_, rank, on, memory[rank], jobs_max, *this, *streams_.back()};
    lanes_.push_back(with.work.native() != nullptr ? make_hip_lane(with) : make_host_lane(with));
  }
}

compute::~compute() {
  // Destroying a stream waits for its work, which still uses the lanes and the jobs.
  streams_.clear();
  lanes_.clear();
}

void compute::attach(runtime& to) {
  runtime_ = &to;
  for (rank_id rank = 0; rank < streams_.size(); ++rank)
    if (auto attached = to.attach(rank, 0, *streams_[rank]); !attached)
      throw broken_run("attach: " + attached.why().message());
}

bool compute::poll() {
  bool polled = false;
  for (const auto& each : lanes_) polled = each->poll() || polled;
  return polled;
}

compute_job* compute::take_job() {
  for (;;) {
    const bool polled = poll();
    std::unique_lock held(mutex_);
    if (!polled) freed_.wait(held, [this] { return !free_jobs_.empty(); });
    if (!free_jobs_.empty()) {
      compute_job* taken = free_jobs_.back();
      free_jobs_.pop_back();
      return taken;
    }
    held.unlock();
    std::this_thread::sleep_for(between_polls);
  }
}

void compute::ended(compute_job& on_one_device) {
  if (on_one_device.left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard held(mutex_);
  free_jobs_.push_back(&on_one_device);
  freed_.notify_all();
}

bool compute::is_to_spoil(const forward_step& step) {
  const std::uint64_t number = 1 + steps_.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t from = spoil_from_.load(std::memory_order_relaxed);
  if (from == 0 || number < from || (!step.continues && step.claimed.empty())) return false;
  return spoil_from_.compare_exchange_strong(from, 0, std::memory_order_relaxed);
}

void compute::enqueue(const forward_step& step) {
  compute_job* made = take_job();
  made->claimed.assign(step.claimed.begin(), step.claimed.end());
  made->computed.assign(step.computed.begin(), step.computed.end());
  made->step = step;
  made->step.claimed = made->claimed;
  made->step.computed = made->computed;
  made->spoil = is_to_spoil(step);
  made->left.store(static_cast<std::uint32_t>(lanes_.size()), std::memory_order_relaxed);
  for (const auto& each : lanes_) each->arrive(*made);
  // Order, not success: whether the restore succeeded was asked before.
  check(runtime_->order_after_slot(0, step.slot, clock::now() + patience), "order_after_slot");
  for (const auto& each : lanes_) each->run(*made);
}

void compute::wait_idle() {
  for (;;) {
    const bool polled = poll();
    std::unique_lock held(mutex_);
    if (!polled) freed_.wait(held, [this] { return free_jobs_.size() == jobs_.size(); });
    if (free_jobs_.size() == jobs_.size()) return;
    held.unlock();
    std::this_thread::sleep_for(between_polls);
  }
}

compute_figures compute::figures() const {
  compute_figures all;
  for (const auto& each : lanes_) all.add(each->figures());
  return all;
}

std::vector<compute_span> compute::spans() const {
  std::vector<compute_span> all;
  for (const auto& each : lanes_) {
    const std::vector<compute_span> some = each->spans();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace cairn::replay
