// Barriers around each task.
#include "bench/harness/team.hpp"

#include <ctime>

namespace cairn::bench {
namespace {

std::int64_t read(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::int64_t thread_cpu_ns() {
  return read(CLOCK_THREAD_CPUTIME_ID);
}
std::int64_t elapsed_ns() {
  return read(CLOCK_MONOTONIC);
}

team::team(std::uint32_t threads)
    : threads_(threads), start_(std::ptrdiff_t{threads} + 1), end_(std::ptrdiff_t{threads} + 1) {
  if (threads_ == 1) return;
  for (std::uint32_t i = 0; i < threads_; ++i)
    members_.emplace_back([this, i] {
      for (;;) {
        start_.arrive_and_wait();
        if (what_ == nullptr) return;
        (*what_)(i);
        end_.arrive_and_wait();
      }
    });
}

team::~team() {
  if (members_.empty()) return;
  what_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& each : members_) each.join();
}

double team::run_ns(const task& what) {
  if (threads_ == 1) {
    const std::int64_t begin = thread_cpu_ns();
    what(0);
    return static_cast<double>(thread_cpu_ns() - begin);
  }
  what_ = &what;
  const std::int64_t begin = elapsed_ns();
  start_.arrive_and_wait();
  end_.arrive_and_wait();
  return static_cast<double>(elapsed_ns() - begin);
}

}  // namespace cairn::bench
