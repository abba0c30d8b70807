// Where threads stop between two turns while somebody looks at the world.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cairn::soak {

class gate {
 public:
  explicit gate(std::uint32_t threads) : threads_(threads) {}

  /// Called by each thread between two turns; `stop_here` makes it wait although nobody asked yet.
  /// False: the end.
  template <class WindUp>
  bool pass(bool stop_here, WindUp&& wind_up) {
    std::unique_lock held(mutex_);
    if (!closed_ && !stop_here) return !over_;
    held.unlock();
    wind_up();
    held.lock();
    ++parked_;
    changed_.notify_all();
    const std::uint64_t round = round_;
    changed_.wait(held, [&] { return round_ != round || over_; });
    return !over_;
  }
  /// Waits until all threads stand here, and calls `meanwhile` now and then.
  template <class Meanwhile>
  void close(Meanwhile&& meanwhile) {
    std::unique_lock held(mutex_);
    closed_ = true;
    while (!changed_.wait_for(held, std::chrono::milliseconds(20),
                              [&] { return parked_ == threads_; })) {
      held.unlock();
      meanwhile();
      held.lock();
    }
  }
  void open() {
    const std::lock_guard held(mutex_);
    closed_ = false;
    parked_ = 0;
    ++round_;
    changed_.notify_all();
  }
  void finish() {
    const std::lock_guard held(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  const std::uint32_t threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool over_ = false;
  std::uint32_t parked_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace cairn::soak
