// Threads that start together and are waited for together. Knows nothing of what they do.
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace cairn::bench {

class team {
 public:
  using task = std::function<void(std::uint32_t thread)>;

  explicit team(std::uint32_t threads);
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  /// Runs `what` on every thread. Returns the nanoseconds from the common start to the last end; of
  /// a team of one, those that the thread itself ran (it is the caller's).
  double run_ns(const task& what);

 private:
  std::uint32_t threads_;
  const task* what_ = nullptr;  ///< null: the end
  std::barrier<> start_;
  std::barrier<> end_;
  std::vector<std::thread> members_;
};

/// Nanoseconds that this thread has run.
std::int64_t thread_cpu_ns();
/// Nanoseconds of a clock that never goes back.
std::int64_t elapsed_ns();

}  // namespace cairn::bench
