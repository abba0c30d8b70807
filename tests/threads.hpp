// Runs a function on several threads that start together, with yields injected at atomic accesses
// where the build has the hook. Knows nothing of what is being tested.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/sync.hpp"

namespace cairn::test {

/// xorshift64*, for choices that must repeat from a seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint32_t below(std::uint32_t n) noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545f4914f6cdd1dULL) >> 33) % n;
  }

 private:
  std::uint64_t state_;
};

/// While it lives, one atomic access in 32 yields (in builds with the hook).
class yields {
 public:
#if defined(CAIRN_SYNC_HOOK)
  yields() {
    sync::schedule_hook = []() noexcept {
      thread_local dice d(std::hash<std::thread::id>{}(std::this_thread::get_id()));
      if (d.below(32) == 0) std::this_thread::yield();
    };
  }
  ~yields() {
    sync::schedule_hook = nullptr;
  }
#else
  yields() {}
  ~yields() {}
#endif
  yields(const yields&) = delete;
  yields& operator=(const yields&) = delete;
};

/// f(thread number) on `count` threads at once; returns when all have ended.
template <class F>
void together(std::uint32_t count, F&& f) {
  std::atomic<std::uint32_t> waiting{count};
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (std::uint32_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      waiting.fetch_sub(1, std::memory_order_acq_rel);
      while (waiting.load(std::memory_order_acquire) != 0) std::this_thread::yield();
      f(t);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace cairn::test
