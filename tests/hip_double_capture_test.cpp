// The HIP runtime's double: which calls a capture forbids to whom, and what they do to it.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

class HipDoubleCapture : public HipDouble {
 protected:
  void begin(hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) {
    engine_ = new_stream();
    event_ = new_event();
    ASSERT_EQ(hipStreamBeginCapture(engine_, mode), hipSuccess);
  }
  hipStreamCaptureStatus status() {
    auto found = hipStreamCaptureStatusNone;
    EXPECT_EQ(hipStreamIsCapturing(engine_, &found), hipSuccess);
    return found;
  }
  hipError_t end() {
    hipGraph_t graph = nullptr;
    const hipError_t code = hipStreamEndCapture(engine_, &graph);
    EXPECT_EQ(graph != nullptr, code == hipSuccess);
    if (graph != nullptr) {
      EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    }
    return code;
  }
  /// In a thread of its own, in this capture mode.
  template <class F>
  static void elsewhere(hipStreamCaptureMode mode, F&& f) {
    std::jthread([&] {
      ASSERT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
      EXPECT_EQ(mode, hipStreamCaptureModeGlobal);
      f();
    }).join();
  }

  hipStream_t engine_ = nullptr;
  hipEvent_t event_ = nullptr;  ///< never recorded
};

TEST_F(HipDoubleCapture, WorkIsNotRun) {
  begin();
  std::atomic<bool> ran{false};
  std::function<void()> set = [&] { ran = true; };
  enqueue(engine_, set);
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  EXPECT_EQ(end(), hipSuccess);
  EXPECT_EQ(status(), hipStreamCaptureStatusNone);
  ASSERT_EQ(hipStreamSynchronize(engine_), hipSuccess);
  EXPECT_FALSE(ran);
  EXPECT_EQ(live().graphs, 0);
}

TEST_F(HipDoubleCapture, AnUnsafeCallOfAnyThreadSpoilsIt) {
  std::uint32_t* const device = device_words(1);
  std::uint32_t* const pinned = pinned_words(1);
  hipStream_t const other = new_stream();
  const std::function<hipError_t()> unsafe[] = {[&] { return hipEventQuery(event_); },
                                                [&] { return hipStreamSynchronize(other); },
                                                [&] { return hipFree(device); },
                                                [&] { return hipHostFree(pinned); },
                                                [&] {
                                                  void* memory = nullptr;
                                                  return hipMalloc(&memory, 4);
                                                },
                                                [&] {
                                                  void* memory = nullptr;
                                                  return hipHostMalloc(&memory, 4, 0);
                                                }};
  for (const auto& each : unsafe) {
    begin();
    elsewhere(hipStreamCaptureModeRelaxed, [&] {
      if (&each != &unsafe[2] && &each != &unsafe[3]) {
        EXPECT_EQ(each(), hipSuccess);
      }
    });
    EXPECT_EQ(status(), hipStreamCaptureStatusActive);
    elsewhere(hipStreamCaptureModeThreadLocal, [&] {
      if (&each != &unsafe[2] && &each != &unsafe[3]) {
        EXPECT_EQ(each(), hipSuccess);
      }
    });
    EXPECT_EQ(status(), hipStreamCaptureStatusActive);
    elsewhere(hipStreamCaptureModeGlobal,
              [&] { EXPECT_EQ(each(), hipErrorStreamCaptureUnsupported); });
    EXPECT_EQ(status(), hipStreamCaptureStatusInvalidated);
    EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(live().device_blocks, 3);  // the frees were refused
}

TEST_F(HipDoubleCapture, ItsOwnModeSaysWhomItMinds) {
  begin(hipStreamCaptureModeThreadLocal);
  elsewhere(hipStreamCaptureModeGlobal, [&] { EXPECT_EQ(hipEventQuery(event_), hipSuccess); });
  EXPECT_EQ(hipEventQuery(event_), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
  begin(hipStreamCaptureModeRelaxed);
  EXPECT_EQ(hipEventQuery(event_), hipSuccess);
  EXPECT_EQ(end(), hipSuccess);
}

TEST_F(HipDoubleCapture, AnOlderRuntimeRefusesQueriesInEveryMode) {
  set_older_runtime(true);
  begin();
  elsewhere(hipStreamCaptureModeRelaxed,
            [&] { EXPECT_EQ(hipEventQuery(event_), hipErrorStreamCaptureUnsupported); });
  EXPECT_EQ(end(), hipSuccess);  // and does not spoil it
  EXPECT_EQ(hipEventQuery(event_), hipSuccess);
}

TEST_F(HipDoubleCapture, AnEventRecordedInItCannotBeAsked) {
  begin();
  ASSERT_EQ(hipEventRecord(event_, engine_), hipSuccess);
  elsewhere(hipStreamCaptureModeRelaxed,
            [&] { EXPECT_EQ(hipEventQuery(event_), hipErrorCapturedEvent); });
  EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
}

// As on AMD: whenever the recording was made, and whatever the mode.
TEST_F(HipDoubleCapture, AQueryOfAnEventOfItsStreamSpoilsIt) {
  begin();
  ASSERT_EQ(end(), hipSuccess);
  ASSERT_EQ(hipEventRecord(event_, engine_), hipSuccess);
  ASSERT_EQ(hipStreamBeginCapture(engine_, hipStreamCaptureModeRelaxed), hipSuccess);
  elsewhere(hipStreamCaptureModeRelaxed,
            [&] { EXPECT_EQ(hipEventQuery(event_), hipErrorCapturedEvent); });
  EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
}

TEST_F(HipDoubleCapture, AWaitForItsEventDrawsAStreamIn) {
  hipStream_t const other = new_stream();
  begin();
  ASSERT_EQ(hipEventRecord(event_, engine_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(other, event_, 0), hipSuccess);
  auto drawn = hipStreamCaptureStatusNone;
  ASSERT_EQ(hipStreamIsCapturing(other, &drawn), hipSuccess);
  EXPECT_EQ(drawn, hipStreamCaptureStatusActive);
  EXPECT_EQ(end(), hipErrorStreamCaptureUnjoined);

  begin();
  hipEvent_t const back = new_event();
  ASSERT_EQ(hipEventRecord(event_, engine_), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(other, event_, 0), hipSuccess);
  ASSERT_EQ(hipEventRecord(back, other), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(engine_, back, 0), hipSuccess);
  EXPECT_EQ(end(), hipSuccess);
}

TEST_F(HipDoubleCapture, AWaitForAnEventFromOutsideSpoilsIt) {
  begin();
  hipStream_t const other = new_stream();
  ASSERT_EQ(hipEventRecord(event_, other), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(engine_, event_, 0), hipErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
}

TEST_F(HipDoubleCapture, TheNullStreamSpoilsCapturesOfBlockingStreams) {
  engine_ = new_stream(hipStreamDefault);
  event_ = new_event();
  ASSERT_EQ(hipStreamBeginCapture(engine_, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(hipEventRecord(event_, nullptr), hipErrorStreamCaptureImplicit);
  EXPECT_EQ(end(), hipErrorStreamCaptureInvalidated);
}

TEST_F(HipDoubleCapture, EndsInItsOwnThreadAndOnItsOwnStream) {
  begin();
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(new_stream(), &graph), hipErrorIllegalState);
  std::jthread([&] {
    EXPECT_EQ(hipStreamEndCapture(engine_, &graph), hipErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(end(), hipSuccess);
}

}  // namespace
}  // namespace cairn::tests::hip
