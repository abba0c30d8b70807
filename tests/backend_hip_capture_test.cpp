// The HIP backend while somebody captures a graph: the capture is not harmed, a capturing stream is
// refused, and a query that is refused means "not yet".
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using hip::call;

bool hip_captures(hipStream_t which) {
  hipStreamCaptureStatus state = hipStreamCaptureStatusNone;
  EXPECT_EQ(hipStreamIsCapturing(which, &state), hipSuccess);
  return state != hipStreamCaptureStatusNone;
}

class HipBackendCapture : public testing::Test {
 protected:
  void SetUp() override {
    rig_ = std::make_unique<hip_rig>();
    ASSERT_EQ(hipStreamCreateWithPriority(&engine_, hipStreamNonBlocking, 0), hipSuccess);
    wrapped_ = rig_->dev().wrap_stream(engine_).value();
  }
  void TearDown() override {
    wrapped_.reset();
    EXPECT_EQ(hipStreamDestroy(engine_), hipSuccess);
  }
  [[nodiscard]] device& dev() const { return rig_->dev(); }
  void begin(hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) {
    ASSERT_EQ(hipStreamBeginCapture(engine_, mode), hipSuccess);
  }
  [[nodiscard]] bool end() { return end_capture(engine_); }

  std::unique_ptr<hip_rig> rig_;
  hipStream_t engine_ = nullptr;
  std::unique_ptr<stream> wrapped_;
};

TEST_F(HipBackendCapture, ACapturingStreamTakesNoPart) {
  const auto e = rig_->new_event();
  const auto own = rig_->new_stream();
  ASSERT_EQ(dev().record(*e, *own), status::ok);
  EXPECT_FALSE(dev().capturing(*wrapped_));
  begin();
  EXPECT_TRUE(dev().capturing(*wrapped_));
  EXPECT_FALSE(dev().capturing(*own));
  EXPECT_EQ(dev().record(*e, *wrapped_), status::busy);
  EXPECT_EQ(dev().wait(*wrapped_, *e), status::busy);
  EXPECT_EQ(hipPeekAtLastError(), hipSuccess);
  EXPECT_TRUE(dev().capturing(*wrapped_));
  EXPECT_TRUE(end());
  EXPECT_FALSE(dev().capturing(*wrapped_));
  EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
}

// A capture that something else has spoilt has not ended.
TEST_F(HipBackendCapture, AnInvalidCaptureIsOneToo) {
  begin();
  void* memory = nullptr;
  EXPECT_EQ(hipMalloc(&memory, 4), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipGetLastError(), hipErrorStreamCaptureUnsupported);
  EXPECT_TRUE(dev().capturing(*wrapped_));
  EXPECT_FALSE(end());
}

// The question itself may be refused because of a capture.
TEST_F(HipBackendCapture, AStreamThatCannotBeAskedIsTakenForACapturingOne) {
  const auto e = rig_->new_event();
  for (int i = 0; i < 2; ++i) {
    hip::fail_at(hip::call::hipStreamIsCapturing, 1, hipErrorStreamCaptureImplicit);
    if (i == 0) {
      EXPECT_TRUE(dev().capturing(*wrapped_));
    } else {
      EXPECT_EQ(dev().record(*e, *wrapped_), status::busy);
    }
  }
  EXPECT_FALSE(dev().capturing(*wrapped_));
}

// ---------------------------------------------------------------------------------------
// A capture that begins between the question and the recording: the graph has the recording then

TEST_F(HipBackendCapture, ARecordingThatACaptureTookLeavesTheEventWhereItWas) {
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  for (const bool recorded_before : {false, true}) {
    if (recorded_before) {
      hip::hold(engine_);
      ASSERT_EQ(dev().record(*e, *wrapped_), status::ok);
    }
    hip::before_next(call::hipEventRecord, [&] { begin(hipStreamCaptureModeRelaxed); });
    EXPECT_EQ(dev().record(*e, *wrapped_), status::busy);
    EXPECT_EQ(dev().wait(*own, *e), status::ok);
    EXPECT_FALSE(hip_captures(native(*own)));
    EXPECT_TRUE(end());
    EXPECT_EQ(dev().query(*e), recorded_before ? event_state::pending : event_state::fired);
  }
  // What waited for it waits for the earlier recording.
  awaited_event after(dev());
  ASSERT_EQ(dev().record(after.get(), *own), status::ok);
  EXPECT_EQ(after.state(), event_state::pending);
  hip::release(engine_);
  EXPECT_TRUE(after.fires());
  hip::drain(engine_);
  EXPECT_EQ(dev().query(*e), event_state::fired);
}

// The answer to the question may say so, too.
TEST_F(HipBackendCapture, ARecordingOfWhichNobodyKnowsWhereItWentDoesNotCount) {
  const auto e = rig_->new_event();
  hip::fail_at(call::hipStreamIsCapturing, 2, hipErrorStreamCaptureImplicit);
  hip::hold(engine_);
  EXPECT_EQ(dev().record(*e, *wrapped_), status::busy);
  EXPECT_EQ(dev().query(*e), event_state::fired);
  EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  hip::release(engine_);
  hip::drain(engine_);
  EXPECT_EQ(dev().query(*e), event_state::fired);
}

// Of two that overlap the later one in the stream counts, whichever ends first.
TEST_F(HipBackendCapture, OfRecordingsThatOverlapTheLatestCounts) {
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  ASSERT_EQ(dev().record(*e, *wrapped_), status::ok);
  hip::drain(engine_);
  hip::before_next(call::hipEventRecord, [&] {
    EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
    hip::drain(engine_);
    const std::uint64_t asked = hip::calls(call::hipEventQuery);
    EXPECT_EQ(dev().query(*e), event_state::pending);  // one is under way
    EXPECT_EQ(dev().wait(*own, *e), status::busy);
    EXPECT_EQ(hip::calls(call::hipEventQuery), asked);
    hip::hold(engine_);
  });
  EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
  EXPECT_EQ(dev().wait(*own, *e), status::ok);
  const std::uint64_t asked = hip::calls(call::hipEventQuery);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  EXPECT_EQ(hip::calls(call::hipEventQuery), asked + 1);
  hip::release(engine_);
  hip::drain(engine_);
  EXPECT_EQ(dev().query(*e), event_state::fired);
  // And one that comes alone after them moves it.
  hip::hold(engine_);
  EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  hip::release(engine_);
  hip::drain(engine_);
  EXPECT_EQ(dev().query(*e), event_state::fired);
}

// The one that was shown may be the one that the capture took: nobody can tell until the next.
TEST_F(HipBackendCapture, OfRecordingsThatOverlapACaptureMayTakeThePosition) {
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  hip::before_next(call::hipEventRecord, [&] {
    EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
    begin(hipStreamCaptureModeRelaxed);
  });
  EXPECT_EQ(dev().record(*e, *wrapped_), status::busy);
  const std::uint64_t asked = hip::calls(call::hipEventQuery);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  EXPECT_EQ(dev().wait(*own, *e), status::busy);
  EXPECT_EQ(hip::calls(call::hipEventQuery), asked);
  EXPECT_FALSE(hip_captures(native(*own)));
  EXPECT_TRUE(end());
  // A refused one does not change that.
  hip::fail_at(call::hipEventRecord, 1, hipErrorInvalidValue);
  EXPECT_EQ(dev().record(*e, *wrapped_), status::failed);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
  EXPECT_EQ(dev().wait(*own, *e), status::ok);
  hip::drain(engine_);
  EXPECT_EQ(dev().query(*e), event_state::fired);
}

TEST_F(HipBackendCapture, APositionOfWhichNobodyCanTellFailsWithItsDevice) {
  const auto e = rig_->new_event();
  const auto other = rig_->new_event();
  hip::before_next(call::hipEventRecord, [&] {
    EXPECT_EQ(dev().record(*e, *wrapped_), status::ok);
    hip::fail_at(call::hipStreamIsCapturing, 1, hipErrorStreamCaptureImplicit);
  });
  ASSERT_EQ(dev().record(*e, *wrapped_), status::busy);
  EXPECT_EQ(dev().query(*e), event_state::pending);
  hip::fail_at(call::hipEventRecord, 1, hipErrorUnknown);
  ASSERT_EQ(dev().record(*other, *wrapped_), status::device_lost);
  EXPECT_EQ(dev().query(*e), event_state::failed);
  EXPECT_EQ(dev().wait(*wrapped_, *e), status::device_lost);
  hip::drain(engine_);
  wrapped_.reset();
  rig_.reset();
  EXPECT_EQ(hipStreamDestroy(engine_), hipSuccess);
  hip::reset();  // the lost device keeps what it was given
  SetUp();
}

// Nobody can make them capture.
TEST_F(HipBackendCapture, StreamsOfItsOwnAreNotAsked) {
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  EXPECT_EQ(dev().record(*e, *own), status::ok);
  EXPECT_EQ(dev().wait(*own, *e), status::ok);
  EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.some(1)), status::ok);
  EXPECT_FALSE(dev().capturing(*own));
  EXPECT_EQ(hip::calls(hip::call::hipStreamIsCapturing), 0U);
  rig_->finish(*own);
}

// Every call of the library, in the capturing thread and in another.
TEST_F(HipBackendCapture, NoCallHarmsACaptureElsewhere) {
  auto own = rig_->new_stream();
  auto e = rig_->new_event();
  auto doomed_event = rig_->new_event();
  auto doomed_block = dev().allocate(4).value();
  auto doomed_pinned = dev().allocate_pinned(4).value();
  auto doomed_stream = rig_->new_stream();
  ASSERT_EQ(dev().record(*e, *own), status::ok);
  const auto all = [&] {
    EXPECT_NE(dev().query(*e), event_state::failed);
    EXPECT_EQ(dev().record(*e, *own), status::ok);
    EXPECT_EQ(dev().wait(*own, *e), status::ok);
    EXPECT_NE(dev().query(*e), event_state::failed);
    EXPECT_TRUE(dev().capturing(*wrapped_));
    EXPECT_TRUE(dev().create_event(nullptr).ok());
    EXPECT_TRUE(dev().create_stream(stream_priority::high).ok());
    EXPECT_TRUE(dev().allocate(4).ok());
    EXPECT_TRUE(dev().allocate_pinned(4).ok());
    EXPECT_TRUE(dev().load(*rig_->cut, rig_->images.memory.memory).ok());
    EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.some(2)), status::ok);
    EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.tasks), status::ok);
    EXPECT_TRUE(make_hip_backend().ok());
  };
  for (const auto mode : {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal}) {
    begin(mode);
    all();
    std::jthread(all).join();
    EXPECT_TRUE(end());
  }
  begin();
  doomed_event.reset();
  doomed_block.reset();
  doomed_pinned.reset();
  doomed_stream.reset();
  EXPECT_TRUE(end());
  rig_->finish(*own);
}

TEST_F(HipBackendCapture, TheRingsQueriesDoNotHarmIt) {
  const auto s = rig_->new_stream();
  rig_->images.write_slots(staged_images, 1);
  for (std::uint32_t i = 0; i < store_places; ++i)
    ASSERT_EQ(rig_->launch(*s, copy_kind::store, rig_->images.tasks), status::ok);
  hip::drain(native(*s));
  begin();
  EXPECT_EQ(rig_->launch(*s, copy_kind::store, rig_->images.tasks), status::ok);
  EXPECT_TRUE(end());
}

// An older runtime refuses queries during any capture: neither fired nor failed.
TEST_F(HipBackendCapture, ARefusedQueryMeansNotYet) {
  hip::set_older_runtime(true);
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  ASSERT_EQ(dev().record(*e, *own), status::ok);
  hip::drain(native(*own));
  EXPECT_EQ(dev().query(*e), event_state::fired);
  begin();
  EXPECT_EQ(dev().query(*e), event_state::pending);
  std::jthread([&] { EXPECT_EQ(dev().query(*e), event_state::pending); }).join();
  EXPECT_EQ(hipPeekAtLastError(), hipSuccess);
  // Nor is a place of the ring given up: it is in use, for all one knows.
  rig_->images.write_slots(staged_images, 1);
  std::uint32_t accepted = 0;
  while (rig_->launch(*own, copy_kind::store, rig_->images.tasks) == status::ok) ++accepted;
  EXPECT_EQ(accepted, store_places);
  hip::drain(native(*own));
  EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.tasks), status::queue_full);
  EXPECT_TRUE(end());
  EXPECT_EQ(dev().query(*e), event_state::fired);
  EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.tasks), status::ok);
  rig_->finish(*own);
}

// ---------------------------------------------------------------------------------------
// Calls that a capture forbids

constexpr hipError_t forbidden = hipErrorStreamCaptureUnsupported;

// Nothing copies, and the same call is good later.
TEST_F(HipBackendCapture, WhatIsForbiddenForNowMayComeAgain) {
  const auto own = rig_->new_stream();
  const auto e = rig_->new_event();
  ASSERT_EQ(dev().record(*e, *own), status::ok);
  rig_->images.write_slots(staged_images, 1);
  const auto inline_batch = rig_->images.some(1);
  const auto expect_busy = [&](call which, const auto& made) {
    hip::fail_at(which, 1, forbidden);
    EXPECT_EQ(made(), status::busy) << hip::name_of(which);
    EXPECT_EQ(made(), status::ok) << hip::name_of(which);
  };
  const auto launch = [&](auto tasks) {
    return [this, &own, tasks] { return rig_->launch(*own, copy_kind::store, tasks); };
  };
  expect_busy(call::hipLaunchKernel, launch(inline_batch));
  expect_busy(call::hipLaunchKernel, launch(std::span<const copy_task>(rig_->images.tasks)));
  expect_busy(call::hipMemcpyAsync, launch(std::span<const copy_task>(rig_->images.tasks)));
  expect_busy(call::hipStreamWaitEvent, [&] { return dev().wait(*own, *e); });
  expect_busy(call::hipEventRecord, [&] { return dev().record(*e, *own); });
  EXPECT_EQ(dev().why_lost(), "");
  rig_->finish(*own);
}

// "Later" would say that nothing copies now.
TEST_F(HipBackendCapture, ABatchThatIsForbiddenInItsMiddleFails) {
  hip_rig rig(2500);
  const auto own = rig.new_stream();
  rig.images.write_slots(2500, 1);
  for (const call which : {call::hipLaunchKernel, call::hipMemcpyAsync}) {
    hip::fail_at(which, 2, forbidden);
    EXPECT_EQ(rig.launch(*own, copy_kind::store, rig.images.tasks), status::failed);
  }
  // Nor is it too large.
  hip::fail_at(call::hipLaunchKernel, 2, hipErrorOutOfMemory);
  EXPECT_EQ(rig.launch(*own, copy_kind::store, rig.images.tasks), status::failed);
  EXPECT_EQ(rig.launch(*own, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*own);
}

// No event is needed behind a place whose copy was forbidden: nothing reads it.
TEST_F(HipBackendCapture, APlaceWhoseCopyIsForbiddenIsGivenBack) {
  const auto own = rig_->new_stream();
  const auto other = rig_->new_stream();
  rig_->images.write_slots(staged_images, 1);
  hip::fail_always(call::hipMemcpyAsync, forbidden);
  hip::fail_always(call::hipEventRecord, forbidden);
  for (std::uint32_t i = 0; i < 2 * store_places; ++i)
    EXPECT_EQ(rig_->launch(*own, copy_kind::store, rig_->images.tasks), status::busy);
  hip::fail_always(call::hipMemcpyAsync, hipSuccess);
  hip::fail_always(call::hipEventRecord, hipSuccess);
  EXPECT_EQ(rig_->launch(*other, copy_kind::store, rig_->images.tasks), status::ok);
  rig_->finish(*other);
}

// Ends that cannot be refused: they wait until nobody captures any more, and lose nothing.
TEST_F(HipBackendCapture, WhatEndsWaitsUntilNobodyCaptures) {
  struct {
    call which;
    std::function<void()> ends;
  } const each[] = {
      {call::hipStreamSynchronize, [&] { static_cast<void>(rig_->new_stream()); }},
      {call::hipStreamDestroy, [&] { static_cast<void>(rig_->new_stream()); }},
      {call::hipEventDestroy, [&] { static_cast<void>(rig_->new_event()); }},
      {call::hipFree, [&] { EXPECT_TRUE(dev().allocate(4).ok()); }},
      {call::hipHostFree, [&] { EXPECT_TRUE(dev().allocate_pinned(4).ok()); }},
      {call::hipStreamSynchronize,
       [&] { EXPECT_TRUE(dev().load(*rig_->cut, rig_->images.memory.memory).ok()); }},
      {call::hipStreamDestroy,
       [&] { EXPECT_TRUE(dev().load(*rig_->cut, rig_->images.memory.memory).ok()); }},
      {call::hipEventDestroy, [&] { EXPECT_TRUE(make_hip_backend({.devices = {0}}).ok()); }},
      {call::hipFree, [&] { EXPECT_TRUE(make_hip_backend({.devices = {0}}).ok()); }},
      {call::hipHostFree, [&] { EXPECT_TRUE(make_hip_backend({.devices = {0}}).ok()); }},
  };
  for (const auto& one : each) {
    SCOPED_TRACE(hip::name_of(one.which));
    const hip::live_objects before = hip::live();
    const std::uint64_t so_far = hip::calls(one.which);
    hip::fail_always(one.which, forbidden);
    std::atomic<bool> ended{false};
    std::jthread ending([&] {
      one.ends();
      ended = true;
    });
    while (hip::calls(one.which) < so_far + 3 && !ended) std::this_thread::yield();
    EXPECT_FALSE(ended);
    hip::fail_always(one.which, hipSuccess);
    ending.join();
    EXPECT_EQ(hip::live(), before);
    EXPECT_EQ(dev().why_lost(), "");
  }
}

}  // namespace
}  // namespace cairn::tests
