// The HIP runtime's double: devices, threads, handles, and faults as planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---------------------------------------------------------------------------------------
// Devices, threads, handles

TEST_F(HipDouble, ACallNeedsItsDeviceToBeCurrent) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  std::uint32_t* const words = pinned_words(6);
  std::uint32_t* const device = device_words(1);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hipStream_t const other = new_stream();
  hipEvent_t const others = new_event();
  EXPECT_EQ(hipLaunchKernel(nullptr, 1, 1, nullptr, 0, s), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventRecord(e, s), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventRecord(e, other), hipErrorInvalidHandle);  // an event of another device
  EXPECT_EQ(hipStreamWaitEvent(s, others, 0), hipErrorInvalidHandle);
  EXPECT_EQ(copy(device, words, hipMemcpyHostToDevice, s), hipErrorInvalidHandle);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  // Waiting for another device's event, asking and destroying do not.
  EXPECT_EQ(hipStreamWaitEvent(s, others, 0), hipSuccess);
  EXPECT_EQ(hipEventQuery(others), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(other), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(other), hipSuccess);
  EXPECT_EQ(hipEventDestroy(others), hipSuccess);
}

TEST_F(HipDouble, DeviceAndLastErrorAreTheThreadsOwn) {
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(hipSetDevice(2), hipErrorInvalidDevice);
  std::jthread([] {
    int device = -1;
    EXPECT_EQ(hipGetDevice(&device), hipSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(hipGetLastError(), hipSuccess);
  }).join();
  EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  int device = -1;
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 1);
}

TEST_F(HipDouble, NotReadyIsALastErrorToo) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  hold(s);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  EXPECT_EQ(hipGetLastError(), hipErrorNotReady);
}

TEST_F(HipDouble, WithoutDevicesNothingWorks) {
  set_device_count(0);
  int count = 7;
  EXPECT_EQ(hipGetDeviceCount(&count), hipErrorNoDevice);
  EXPECT_EQ(count, 0);
  hipStream_t made = nullptr;
  EXPECT_EQ(hipStreamCreateWithPriority(&made, hipStreamNonBlocking, 0), hipErrorNoDevice);
  EXPECT_STREQ(hipGetErrorName(hipErrorNoDevice), "hipErrorNoDevice");
  set_device_count(-1);
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(hipStreamCreateWithPriority(&made, hipStreamNonBlocking, 0), hipErrorNoDevice);
  set_device_count(3);
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 3);
  int units = 0;
  EXPECT_EQ(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 2), hipSuccess);
  EXPECT_GT(units, 0);
  EXPECT_EQ(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 3),
            hipErrorInvalidDevice);
}

TEST_F(HipDouble, ALostDeviceIsSelectedAsPlanned) {
  lose(1, hipErrorIllegalAddress);
  const auto current = [] {
    int device = -1;
    EXPECT_EQ(hipGetDevice(&device), hipSuccess);
    return device;
  };
  set_lost_selection(lost_selection::refuses);
  EXPECT_EQ(hipSetDevice(1), hipErrorIllegalAddress);
  EXPECT_EQ(current(), 0);
  set_lost_selection(lost_selection::answers);
  EXPECT_EQ(hipSetDevice(1), hipErrorIllegalAddress);
  EXPECT_EQ(current(), 1);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  set_lost_selection(lost_selection::selects);
  EXPECT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(current(), 1);
}

TEST_F(HipDouble, StaleAndNullHandlesAreRecognised) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  ASSERT_EQ(hipStreamDestroy(s), hipSuccess);
  ASSERT_EQ(hipEventDestroy(e), hipSuccess);
  EXPECT_EQ(live(), live_objects{});
  EXPECT_EQ(hipStreamDestroy(s), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventDestroy(e), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventQuery(e), hipErrorInvalidHandle);
  EXPECT_EQ(complaints().size(), 4U);
  EXPECT_EQ(hipStreamDestroy(nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventDestroy(nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventQuery(nullptr), hipErrorInvalidHandle);
}

TEST_F(HipDouble, CountsWhatLives) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  std::uint32_t* const device = device_words(1);
  std::uint32_t* const pinned = pinned_words(1);
  EXPECT_EQ(live(), (live_objects{1, 1, 1, 1, 0}));
  EXPECT_EQ(timed_events(), 0);
  new_event(hipEventDefault);
  EXPECT_EQ(timed_events(), 1);
  const auto held = blocks();
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].device, 0);
  EXPECT_EQ(held[1].device, -1);
  EXPECT_EQ(held[1].flags, hipHostMallocPortable);
  lose(0, hipErrorLaunchFailure);  // what goes on a lost device is gone all the same
  EXPECT_EQ(hipStreamDestroy(s), hipErrorLaunchFailure);
  EXPECT_EQ(hipEventDestroy(e), hipErrorLaunchFailure);
  EXPECT_EQ(hipFree(device), hipErrorLaunchFailure);
  EXPECT_EQ(hipHostFree(pinned), hipErrorLaunchFailure);
  EXPECT_EQ(live(), (live_objects{0, 1, 0, 0, 0}));
}

TEST_F(HipDouble, AHostFunctionMayNotCall) {
  hipStream_t const s = new_stream();
  std::function<void()> call = [] {
    int device = 0;
    static_cast<void>(hipGetDevice(&device));
  };
  enqueue(s, call);
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("host function")));
}

// ---------------------------------------------------------------------------------------
// Planned faults

TEST_F(HipDouble, TheNthCallFails) {
  fail_at(call::hipEventCreateWithFlags, 2, hipErrorOutOfMemory);
  hipEvent_t e = nullptr;
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipSuccess);
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipErrorOutOfMemory);
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipSuccess);
  EXPECT_EQ(live().events, 2);
  EXPECT_EQ(calls(call::hipEventCreateWithFlags), 3U);
  fail_always(call::hipEventCreateWithFlags, hipErrorUnknown);
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipErrorUnknown);
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipErrorUnknown);
  fail_always(call::hipEventCreateWithFlags, hipSuccess);
  EXPECT_EQ(hipEventCreateWithFlags(&e, 0), hipSuccess);
}

TEST_F(HipDouble, ATestMayDoSomethingInACallBeforeItsWork) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  int done = 0;
  before_next(call::hipEventRecord, [&] {
    EXPECT_EQ(hipEventRecord(e, s), hipSuccess);  // the inner one does not do it again
    EXPECT_EQ(++done, 1);
    hold(s);
  });
  EXPECT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  release(s);
  EXPECT_TRUE(fires(e));
}

TEST_F(HipDouble, KnowsWhichThreadsCalled) {
  hipEvent_t const e = new_event();
  EXPECT_TRUE(callers(call::hipEventQuery).empty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hipEventQuery(e), hipSuccess);
  EXPECT_THAT(callers(call::hipEventQuery), ElementsAre(std::this_thread::get_id()));
  std::thread::id other;
  std::jthread([&] {
    other = std::this_thread::get_id();
    EXPECT_EQ(hipEventQuery(e), hipSuccess);
  }).join();
  EXPECT_THAT(callers(call::hipEventQuery), ElementsAre(std::this_thread::get_id(), other));
  EXPECT_THAT(callers(call::hipEventCreateWithFlags), ElementsAre(std::this_thread::get_id()));
  reset();
  EXPECT_TRUE(callers(call::hipEventQuery).empty());
}

TEST_F(HipDouble, AFailingCallMayHaveDoneItsWork) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  hold(s);
  fail_at(call::hipEventRecord, 1, hipErrorInvalidValue);
  EXPECT_EQ(hipEventRecord(e, s), hipErrorInvalidValue);
  EXPECT_EQ(hipEventQuery(e), hipSuccess);
  fail_at(call::hipEventRecord, 1, hipErrorInvalidValue, true);
  EXPECT_EQ(hipEventRecord(e, s), hipErrorInvalidValue);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
}

TEST_F(HipDouble, ACallMayLoseTheDevice) {
  hipEvent_t const e = new_event();
  lose_at(call::hipEventQuery, 2, hipErrorECCNotCorrectable);
  EXPECT_EQ(hipEventQuery(e), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipErrorECCNotCorrectable);
  EXPECT_EQ(hipEventDestroy(e), hipErrorECCNotCorrectable);
}

TEST_F(HipDouble, ALostDeviceRunsNothingAndHoldsNobodyUp) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  std::atomic<bool> ran{false};
  std::function<void()> set = [&] { ran = true; };
  hold(s);
  enqueue(s, set);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hipStream_t const other = new_stream();
  ASSERT_EQ(hipStreamWaitEvent(other, e, 0), hipSuccess);
  lose(0, hipErrorIllegalAddress);
  EXPECT_EQ(hipStreamSynchronize(other), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
  EXPECT_FALSE(ran);
}

TEST_F(HipDouble, ARandomPlanRepeatsFromItsSeed) {
  const auto answers = [](std::uint64_t seed) {
    reset();
    plan({.seed = seed, .which = {call::hipEventQuery}, .fail_one_in = 3});
    hipEvent_t const e = new_event();
    std::string seen;
    for (int i = 0; i < 100; ++i) seen += hipEventQuery(e) == hipSuccess ? '.' : 'x';
    return seen;
  };
  const std::string first = answers(1);
  EXPECT_THAT(first, HasSubstr("x"));
  EXPECT_THAT(first, HasSubstr("."));
  EXPECT_EQ(answers(1), first);
  EXPECT_NE(answers(2), first);
}

}  // namespace
}  // namespace cairn::tests::hip
