// What tests of the double share: handles made in one line, and a double as new for each test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests::hip {

class HipDouble : public testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }

  static hipStream_t new_stream(unsigned flags = hipStreamNonBlocking, int priority = 0) {
    hipStream_t made = nullptr;
    EXPECT_EQ(hipStreamCreateWithPriority(&made, flags, priority), hipSuccess);
    return made;
  }
  static hipEvent_t new_event(unsigned flags = hipEventDisableTiming) {
    hipEvent_t made = nullptr;
    EXPECT_EQ(hipEventCreateWithFlags(&made, flags), hipSuccess);
    return made;
  }
  static std::uint32_t* device_words(std::size_t count) {
    void* made = nullptr;
    EXPECT_EQ(hipMalloc(&made, count * sizeof(std::uint32_t)), hipSuccess);
    return static_cast<std::uint32_t*>(made);
  }
  static std::uint32_t* pinned_words(std::size_t count) {
    void* made = nullptr;
    EXPECT_EQ(hipHostMalloc(&made, count * sizeof(std::uint32_t), hipHostMallocPortable),
              hipSuccess);
    return static_cast<std::uint32_t*>(made);
  }
  static hipError_t copy(void* to, const void* from, hipMemcpyKind kind, hipStream_t on) {
    return hipMemcpyAsync(to, from, sizeof(std::uint32_t), kind, on);
  }
  /// Enqueues a function; it must live until it has run.
  static void enqueue(hipStream_t on, std::function<void()>& what) {
    ASSERT_EQ(hipLaunchHostFunc(
                  on, [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &what),
              hipSuccess);
  }
  static bool fires(hipEvent_t which) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      const hipError_t code = hipEventQuery(which);
      if (code == hipSuccess) return true;
      if (code != hipErrorNotReady) return false;
      std::this_thread::yield();
    }
    return false;
  }
};

}  // namespace cairn::tests::hip
