// The conformance suites on the HIP backend of this build, on whatever devices there are: a program
// for machines with a GPU (scripts/device), and for the double in a dry run. Not registered as a
// test: most machines have no device.
#include <memory>

#include "kernels/hip_names.hpp"
#include "tests/backend_conformance.hpp"
#include "tests/copy_conformance.hpp"

namespace cairn::tests {
namespace {

#if defined(HIP_VERSION_MAJOR) && HIP_VERSION_MAJOR <= 5
// Some of these releases declare hipLaunchHostFunc and have no such function in their library.
struct host_call {
  void (*function)(void* context);
  void* context;
};

hipError_t launch_host_function(hipStream_t on, void (*function)(void* context), void* context) {
  const auto run = [](hipStream_t, hipError_t, void* made) {
    const std::unique_ptr<host_call> call(static_cast<host_call*>(made));
    call->function(call->context);
  };
  auto call = std::make_unique<host_call>(host_call{function, context});
  const hipError_t code = hipStreamAddCallback(on, run, call.get(), 0);
  if (code == hipSuccess) static_cast<void>(call.release());
  return code;
}
#else
hipError_t launch_host_function(hipStream_t on, void (*function)(void* context), void* context) {
  return hipLaunchHostFunc(on, function, context);
}
#endif

/// The backend puts no host functions in streams; tests may.
status call_in_stream(device&, stream& in, void (*function)(void* context), void* context) {
  const hipError_t code =
      launch_host_function(static_cast<hipStream_t>(in.native()), function, context);
  return code == hipSuccess ? status::ok : status::failed;
}

void copy_across(std::byte* to, const std::byte* from, std::size_t bytes, bool to_device) {
  hipStream_t on = nullptr;
  ASSERT_EQ(hipStreamCreateWithPriority(&on, hipStreamNonBlocking, 0), hipSuccess);
  EXPECT_EQ(hipMemcpyAsync(to, from, bytes,
                           to_device ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost, on),
            hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(on), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(on), hipSuccess);
}

constexpr backend_factory hip_on_device{"hip", [] { return make_hip_backend(); }, &call_in_stream};
constexpr backend_factory in_device_memory{
    "hip", [] { return make_hip_backend(); }, &call_in_stream, {&copy_across}};

INSTANTIATE_TEST_SUITE_P(Hip, BackendConformance, testing::Values(hip_on_device));
INSTANTIATE_TEST_SUITE_P(Hip, CopyConformance,
                         testing::Combine(testing::Values(hip_on_device),
                                          testing::ValuesIn(geometries()), testing::Bool()),
                         copy_case_name);

INSTANTIATE_TEST_SUITE_P(HipMemory, CopyConformance,
                         testing::Combine(testing::Values(in_device_memory),
                                          testing::ValuesIn(geometries()), testing::Bool()),
                         copy_case_name);

}  // namespace
}  // namespace cairn::tests
