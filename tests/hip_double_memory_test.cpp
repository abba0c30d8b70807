// The HIP runtime's double: memory, copies, and what a thread's calls make of a device. Through its
// entry points alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <semaphore>
#include <thread>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto limit = std::chrono::seconds(20);

TEST_F(HipDouble, ACopyReadsItsSourceWhenTheStreamComesToIt) {
  hipStream_t const s = new_stream();
  std::uint32_t* const from = pinned_words(1);
  std::uint32_t* const to = device_words(1);
  *from = 1;
  hold(s);
  ASSERT_EQ(copy(to, from, hipMemcpyHostToDevice, s), hipSuccess);
  *from = 2;
  release(s);
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_EQ(*to, 2U);
}

TEST_F(HipDouble, CopiesAreOfTheRightKindAndOfItsMemory) {
  hipStream_t const s = new_stream();
  std::uint32_t* const pinned = pinned_words(1);
  std::uint32_t* const device = device_words(1);
  std::uint32_t pageable = 0;
  EXPECT_EQ(copy(pinned, device, hipMemcpyHostToDevice, s), hipErrorInvalidValue);
  EXPECT_EQ(copy(device, pinned, hipMemcpyDeviceToHost, s), hipErrorInvalidValue);
  EXPECT_EQ(copy(device, &pageable, hipMemcpyHostToDevice, s), hipErrorInvalidValue);
  EXPECT_EQ(copy(nullptr, pinned, hipMemcpyHostToDevice, s), hipErrorInvalidValue);
  EXPECT_EQ(copy(pinned, device, hipMemcpyDeviceToHost, s), hipSuccess);
  EXPECT_EQ(hipMemcpyAsync(device, pinned, 0, hipMemcpyHostToDevice, s), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipSuccess);
  // Past the end of a block.
  EXPECT_EQ(hipMemcpyAsync(device, pinned, 8, hipMemcpyHostToDevice, s), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("hipMemcpyAsync touches")));
}

TEST_F(HipDouble, ACopyThatOutlivesItsMemoryIsNoticed) {
  hipStream_t const s = new_stream();
  std::uint32_t* const from = pinned_words(1);
  std::uint32_t* const to = device_words(1);
  hold(s);
  ASSERT_EQ(copy(to, from, hipMemcpyHostToDevice, s), hipSuccess);
  ASSERT_EQ(hipHostFree(from), hipSuccess);
  release(s);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("hipHostFree waits for ever"),
                                        HasSubstr("hipMemcpyAsync touches")));
}

TEST_F(HipDouble, ToFreeMemoryWaitsForAllThatTheDeviceHasUnderWay) {
  hipStream_t const s = new_stream(), gone = new_stream();
  for (const bool pinned : {false, true}) {
    std::uint32_t* const memory = pinned ? pinned_words(1) : device_words(1);
    std::binary_semaphore go{0};
    int ran = 0;  // ordered by the call alone
    std::function<void()> wait = [&] {
      EXPECT_TRUE(go.try_acquire_for(limit));
      ++ran;
    };
    hipStream_t const on = pinned ? gone : s;
    enqueue(on, wait);
    if (pinned) {
      ASSERT_EQ(hipStreamDestroy(gone), hipSuccess);
    }
    std::jthread freeing([&] {
      EXPECT_EQ(pinned ? hipHostFree(memory) : hipFree(memory), hipSuccess);
      EXPECT_EQ(ran, 1);
    });
    while (calls(pinned ? call::hipHostFree : call::hipFree) == 0) std::this_thread::yield();
    go.release();
  }
  // Another device's streams are not waited for.
  std::uint32_t* const here = device_words(1);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hipStream_t const other = new_stream();
  hold(other);
  ASSERT_EQ(hipEventRecord(new_event(), other), hipSuccess);
  EXPECT_EQ(hipFree(here), hipSuccess);
  EXPECT_THAT(complaints(), testing::IsEmpty());
}

TEST_F(HipDouble, KnowsOnWhichDevicesAThreadHasDoneSomething) {
  int count = 0;
  ASSERT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_FALSE(context_made(0));
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_FALSE(context_made(1));
  new_event();
  EXPECT_TRUE(context_made(1));
  EXPECT_FALSE(context_made(0));
}

TEST_F(HipDouble, MemoryIsGivenBackOnceAndWhereItCameFrom) {
  std::uint32_t* const pinned = pinned_words(1);
  std::uint32_t* const device = device_words(1);
  EXPECT_EQ(hipFree(pinned), hipErrorInvalidValue);
  EXPECT_EQ(hipHostFree(device), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(device), hipSuccess);
  EXPECT_EQ(hipFree(device), hipErrorInvalidValue);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(complaints().size(), 3U);
  void* none = &none;
  EXPECT_EQ(hipMalloc(&none, 0), hipSuccess);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(live(), live_objects{});
}

TEST_F(HipDouble, MemoryBelongsToADevice) {
  std::uint32_t* const pinned = pinned_words(1);
  std::uint32_t* const first = device_words(1);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hipStream_t const s = new_stream();
  EXPECT_TRUE(reachable(0, first, 4));
  EXPECT_FALSE(reachable(1, first, 4));
  EXPECT_TRUE(reachable(1, pinned, 4));
  EXPECT_FALSE(reachable(1, pinned, 8));
  ASSERT_EQ(copy(first, pinned, hipMemcpyHostToDevice, s), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
}

// Under a sanitizer the write itself is a report, so there it is not made.
TEST_F(HipDouble, AWriteToFreedMemoryIsNoticed) {
  std::uint32_t* const device = device_words(4);
  ASSERT_EQ(hipFree(device), hipSuccess);
  check_freed_blocks();
  EXPECT_TRUE(complaints().empty());
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
  if (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer)) return;
#endif
  EXPECT_EQ(device[0], 0xDDDDDDDDU);
  *static_cast<volatile std::uint32_t*>(device) = 1;
  check_freed_blocks();
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("written after")));
#endif
}

}  // namespace
}  // namespace cairn::tests::hip
