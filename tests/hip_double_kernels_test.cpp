// The HIP runtime's double: kernels and their launches. Through its entry points alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct add_words {
  const std::uint32_t* from;
  std::uint32_t* to;
  std::uint32_t add;
};

void add_kernel(add_words w) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  w.to[i] = w.from[i] + w.add + 1000 * (gridDim.x - 1);
}
void unknown_kernel(int) {}

[[maybe_unused]] const bool registered = [] {
  register_kernel(&add_kernel, [](int device, const add_words& w) {
    return reachable(device, w.from, 4) && reachable(device, w.to, 4);
  });
  return true;
}();

hipError_t launch(add_words& w, hipStream_t on, dim3 grid = 2, dim3 group = 3) {
  void* arguments[] = {&w};
  return hipLaunchKernel(reinterpret_cast<const void*>(&add_kernel), grid, group, arguments, 0, on);
}

TEST_F(HipDouble, ALaunchCopiesItsArgumentsAndRunsEachLaneOnce) {
  hipStream_t const s = new_stream();
  std::uint32_t* const from = pinned_words(6);
  std::uint32_t* const to = pinned_words(6);
  for (std::uint32_t i = 0; i < 6; ++i) from[i] = i;
  add_words w{from, to, 10};
  hold(s);
  ASSERT_EQ(launch(w, s), hipSuccess);
  w = {nullptr, nullptr, 0};
  from[0] = 100;  // memory is read when it runs
  release(s);
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_THAT(std::vector(to, to + 6), ElementsAre(1110, 1011, 1012, 1013, 1014, 1015));
}

TEST_F(HipDouble, RefusesLaunchesThatCannotBe) {
  hipStream_t const s = new_stream();
  std::uint32_t* const words = pinned_words(6);
  add_words w{words, words, 0};
  int number = 0;
  void* arguments[] = {&number};
  EXPECT_EQ(hipLaunchKernel(reinterpret_cast<const void*>(&unknown_kernel), 1, 1, arguments, 0, s),
            hipErrorInvalidDeviceFunction);
  EXPECT_EQ(launch(w, s, 0), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(w, s, 1, 1025), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(w, s), hipSuccess);
}

TEST_F(HipDouble, SaysWhichKernelsADeviceHas) {
  const auto ask = [](const void* kernel) {
    hipFuncAttributes found{};
    const hipError_t code = hipFuncGetAttributes(&found, kernel);
    EXPECT_EQ(found.maxThreadsPerBlock != 0, code == hipSuccess);
    return code;
  };
  const auto* const known = reinterpret_cast<const void*>(&add_kernel);
  EXPECT_EQ(ask(known), hipSuccess);
  EXPECT_EQ(ask(reinterpret_cast<const void*>(&unknown_kernel)), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(ask(nullptr), hipErrorInvalidDeviceFunction);
  set_no_kernels(1, hipErrorNoBinaryForGpu);
  EXPECT_EQ(ask(known), hipSuccess);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(ask(known), hipErrorNoBinaryForGpu);
  std::uint32_t* const words = pinned_words(6);
  add_words w{words, words, 0};
  EXPECT_EQ(launch(w, new_stream()), hipErrorNoBinaryForGpu);
  set_no_kernels(1, hipSuccess);
  EXPECT_EQ(ask(known), hipSuccess);
  fail_at(call::hipFuncGetAttributes, 1, hipErrorInvalidDeviceFunction);
  EXPECT_EQ(ask(known), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(ask(known), hipSuccess);
}

TEST_F(HipDouble, AKernelThatIsGivenForeignMemoryLosesTheDevice) {
  hipStream_t const s = new_stream();
  std::uint32_t here[6] = {};
  add_words w{here, here, 0};
  ASSERT_EQ(launch(w, s), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("a kernel was given memory")));
}

TEST_F(HipDouble, AKernelsFaultIsReportedLater) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  std::uint32_t* const words = pinned_words(6);
  words[0] = 5;
  add_words w{words, words, 1};
  fault_in_kernel(2, hipErrorLaunchFailure);
  ASSERT_EQ(launch(w, s), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  hold(s);
  ASSERT_EQ(launch(w, s), hipSuccess);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  release(s);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorLaunchFailure);
  EXPECT_EQ(words[0], 1006U);  // ran once
  // Sticky: for every call of this device, and for no other's.
  EXPECT_EQ(hipEventQuery(e), hipErrorLaunchFailure);
  EXPECT_EQ(hipEventRecord(e, s), hipErrorLaunchFailure);
  EXPECT_EQ(launch(w, s), hipErrorLaunchFailure);
  void* memory = nullptr;
  EXPECT_EQ(hipMalloc(&memory, 4), hipErrorLaunchFailure);
  static_cast<void>(hipSetDevice(1));
  EXPECT_EQ(hipMalloc(&memory, 4), hipSuccess);
  EXPECT_EQ(hipFree(memory), hipSuccess);
}

}  // namespace
}  // namespace cairn::tests::hip
