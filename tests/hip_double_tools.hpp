// What tests over the HIP runtime's double share: functions in a stream, and a look at the end of
// each test for what was left over or done wrong.
#pragma once

#include <gtest/gtest.h>

#include <cairn/backend.hpp>
#include <string>

#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests {

/// The backend puts no host functions in streams; tests may.
inline status call_in_hip_stream(device&, stream& in, void (*function)(void* context),
                                 void* context) {
  const hipError_t code =
      hipLaunchHostFunc(static_cast<hipStream_t>(in.native()), function, context);
  return code == hipSuccess ? status::ok : status::failed;
}

/// Ends the stream's capture, and throws the graph away; whether the capture has come to one.
[[nodiscard]] inline bool end_capture(hipStream_t on) {
  hipGraph_t graph = nullptr;
  const hipError_t code = hipStreamEndCapture(on, &graph);
  if (graph != nullptr) {
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
  }
  static_cast<void>(hipGetLastError());
  return code == hipSuccess;
}

/// Nothing may be left, and the double may have nothing to complain of. What was lost with a device
/// is not freed: such a test looks for itself, and resets.
inline void expect_clean_double() {
  const hip::live_objects left = hip::live();
  EXPECT_EQ(left.streams, 0);
  EXPECT_EQ(left.events, 0);
  EXPECT_EQ(left.device_blocks, 0);
  EXPECT_EQ(left.pinned_blocks, 0);
  EXPECT_EQ(left.graphs, 0);
  hip::check_freed_blocks();
  for (const std::string& each : hip::complaints()) ADD_FAILURE() << "the double: " << each;
}

/// Looks so after each test of the program, and resets.
class clean_double_after_each : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    expect_clean_double();
    hip::reset();
  }
};
/// For a variable of the program: main is the library's.
inline bool watch_double() {
  testing::UnitTest::GetInstance()->listeners().Append(new clean_double_after_each);
  return true;
}

}  // namespace cairn::tests
