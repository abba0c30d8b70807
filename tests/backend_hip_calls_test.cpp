// The HIP backend over the double: what it asks of the runtime, and how it leaves the thread that
// calls it. Errors are in backend_hip_faults_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using testing::HasSubstr;

// ---------------------------------------------------------------------------------------
// Opening

TEST(HipBackend, NoDeviceIsAStatusAndOneLine) {
  const auto expect_none = [](const char* why) {
    const auto made = make_hip_backend();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.code(), status::device_lost);
    EXPECT_THAT(made.why().message(), HasSubstr("no HIP device: "));
    EXPECT_THAT(made.why().message(), HasSubstr(why));
    EXPECT_EQ(made.why().message().find('\n'), std::string::npos);
    EXPECT_EQ(hipGetLastError(), hipSuccess);
  };
  hip::set_device_count(0);
  expect_none("hipErrorNoDevice");
  hip::set_device_count(-1);
  expect_none("none");
  hip::set_device_count(2);
  hip::fail_always(hip::call::hipGetDeviceCount, hipErrorInsufficientDriver);
  expect_none("hipErrorInsufficientDriver");
}

TEST(HipBackend, OpensTheDevicesThatWereAskedFor) {
  hip::set_device_count(3);
  EXPECT_EQ(make_hip_backend().value()->device_count(), 3U);
  const auto two = make_hip_backend({.devices = {2, 0}}).value();
  ASSERT_EQ(two->device_count(), 2U);
  EXPECT_EQ(two->at(0).name(), "hip:2");
  EXPECT_EQ(two->at(1).name(), "hip:0");
  for (const std::vector<int>& bad :
       std::vector<std::vector<int>>{{3}, {-1}, {0, 0}, std::vector<int>(max_ranks + 1, 0)}) {
    const auto made = make_hip_backend({.devices = bad});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.code(), status::invalid);
    EXPECT_THAT(made.why().message(), HasSubstr("hip_options.devices"));
  }
}

TEST(HipBackend, MoreDevicesThanRanksAreTooMany) {
  const auto made = make_hip_backend({.devices = std::vector<int>(max_ranks + 1, 0)});
  EXPECT_THAT(made.why().message(), HasSubstr("hip_options.devices are too many"));
}

// Nobody asked for one more than there are ranks: such a machine serves with the first of them.
TEST(HipBackend, OfMoreDevicesThanRanksTheFirstAreOpened) {
  hip::set_device_count(static_cast<int>(max_ranks) + 1);
  const auto over = make_hip_backend().value();
  ASSERT_EQ(over->device_count(), max_ranks);
  EXPECT_EQ(over->at(max_ranks - 1).name(), "hip:" + std::to_string(max_ranks - 1));
}

// At once, and not at the first launch.
TEST(HipBackend, ADeviceForWhichNoKernelWasCompiledIsRefused) {
  for (const hipError_t code :
       {hipErrorNoBinaryForGpu, hipErrorInvalidDeviceFunction, hipErrorUnknown}) {
    hip::set_no_kernels(1, code);
    const auto made = make_hip_backend();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.code(), status::unsupported);
    EXPECT_THAT(made.why().message(), HasSubstr(std::string("hip:1: no kernel for this device: ") +
                                                hipGetErrorName(code)));
    EXPECT_EQ(hipGetLastError(), hipSuccess);
    EXPECT_TRUE(make_hip_backend({.devices = {0}}).ok());
    EXPECT_EQ(hip::calls(hip::call::hipLaunchKernel), 0U);
  }
  hip::set_no_kernels(1, hipSuccess);
  // There are two kernels, and a device may lack one.
  hip::fail_at(hip::call::hipFuncGetAttributes, 2, hipErrorInvalidDeviceFunction);
  EXPECT_EQ(make_hip_backend().code(), status::unsupported);
  // What says nothing about the kernels.
  for (const auto& [code, got] : {std::pair{hipErrorOutOfMemory, status::limit},
                                  {hipErrorStreamCaptureUnsupported, status::busy}}) {
    hip::fail_at(hip::call::hipFuncGetAttributes, 1, code);
    EXPECT_EQ(make_hip_backend().code(), got);
  }
}

TEST(HipBackend, GroupsBeyondEveryPlatformsGridsAreRefused) {
  constexpr std::uint32_t most = 1U << 20;
  EXPECT_TRUE(make_hip_backend({.devices = {}, .copy_groups = most}).ok());
  const auto made = make_hip_backend({.devices = {}, .copy_groups = most + 1});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.code(), status::invalid);
  EXPECT_THAT(made.why().message(), HasSubstr("hip_options.copy_groups"));
  EXPECT_THAT(made.why().message(), HasSubstr("1048576, got 1048577"));
}

// An image has three tiles here, and the double's devices have three compute units.
TEST(HipBackend, ALaunchHasAtMostAsManyGroupsAsAsked) {
  for (const auto& [asked, images, got] :
       {std::tuple{5U, 200U, 5U}, {5U, 1U, 3U}, {0U, 200U, 12U}}) {
    const hip_rig rig(images, {.devices = {}, .copy_groups = asked});
    const auto s = rig.new_stream();
    ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
    EXPECT_EQ(hip::groups_launched(), got);
  }
}

// A launch of no groups would copy nothing, if the runtime took it.
TEST(HipBackend, ADeviceThatNamesNoComputeUnitsCopiesAllTheSame) {
  hip::set_compute_units(0);
  hip_rig rig(200);
  const auto s = rig.new_stream();
  rig.images.write_slots(200, 1);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  EXPECT_EQ(hip::groups_launched(), 4U);
  rig.finish(*s);
}

// ---------------------------------------------------------------------------------------
// What is asked of the runtime

TEST(HipBackend, StreamsAreNonBlockingAndHaveTheirPriority) {
  hip::set_priority_range(0, -5);
  const auto over = make_hip_backend().value();
  const auto normal = over->at(0).create_stream(stream_priority::normal).value();
  const auto high = over->at(1).create_stream(stream_priority::high).value();
  const auto made = hip::streams();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].handle, native(*normal));
  EXPECT_EQ(made[0].device, 0);
  EXPECT_EQ(made[0].priority, 0);
  EXPECT_EQ(made[1].handle, native(*high));
  EXPECT_EQ(made[1].device, 1);
  EXPECT_EQ(made[1].priority, -5);
  for (const hip::stream_facts& each : made) EXPECT_EQ(each.flags, hipStreamNonBlocking);
}

TEST(HipBackend, EventsTellNoTimes) {
  const hip_rig rig;
  const auto e = rig.new_event();
  EXPECT_GT(hip::live().events, 0);
  EXPECT_EQ(hip::timed_events(), 0);
}

TEST(HipBackend, PinnedMemoryIsMappedAndForAllDevices) {
  const auto over = make_hip_backend().value();
  const auto block = over->at(1).allocate_pinned(100).value();
  const auto own = over->at(1).allocate(100).value();
  int pinned = 0;
  for (const hip::block_facts& each : hip::blocks()) {
    if (each.device != -1) continue;
    ++pinned;
    EXPECT_EQ(each.flags, hipHostMallocPortable | hipHostMallocMapped);
  }
  EXPECT_EQ(pinned, 3);
  EXPECT_TRUE(hip::reachable(0, block->data(), 100));
  EXPECT_TRUE(hip::reachable(1, own->data(), 100));
  EXPECT_FALSE(hip::reachable(0, own->data(), 100));
}

TEST(HipBackend, RefusesPinnedMemoryThatTheDeviceSeesElsewhere) {
  const auto over = make_hip_backend().value();
  hip::set_pinned_elsewhere(true);
  EXPECT_EQ(over->at(0).allocate_pinned(100).code(), status::unsupported);
}

TEST(HipBackend, AnEventWithoutARecordingNeedsNoCall) {
  const hip_rig rig(1);
  const auto s = rig.new_stream();
  const auto e = rig.new_event();
  EXPECT_EQ(rig.dev().query(*e), event_state::fired);
  EXPECT_EQ(rig.dev().wait(*s, *e), status::ok);
  hip::fail_at(hip::call::hipEventRecord, 1, hipErrorInvalidValue);
  EXPECT_EQ(rig.dev().record(*e, *s), status::failed);
  EXPECT_EQ(rig.dev().query(*e), event_state::fired);
  EXPECT_EQ(rig.dev().wait(*s, *e), status::ok);
  EXPECT_EQ(hip::calls(hip::call::hipEventQuery), 0U);
  EXPECT_EQ(hip::calls(hip::call::hipStreamWaitEvent), 0U);
}

TEST(HipBackend, CallsNoHostFunctionsAndHasNone) {
  const hip_rig rig;
  const auto s = rig.new_stream();
  EXPECT_EQ(rig.dev().call(
                *s, [](void*) {}, nullptr),
            status::unsupported);
  EXPECT_EQ(hip::calls(hip::call::hipLaunchHostFunc), 0U);
}

TEST(HipBackend, WhatItHandedOutMayOutliveIt) {
  hip_rig rig;
  const auto s = rig.new_stream();
  const auto e = rig.new_event();
  const auto block = rig.dev().allocate(64).value();
  rig.images.write_slots(staged_images, 1);
  hip::hold(native(*s));
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  rig.over.reset();  // the ring is in use
  hip::release(native(*s));
}

// ---------------------------------------------------------------------------------------
// Several devices, and the calling thread

/// What a thread has of the runtime's own.
struct thread_words {
  int device = -1;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  hipError_t last = hipSuccess;
  friend bool operator==(const thread_words&, const thread_words&) = default;
};
thread_words mine() {
  thread_words found;
  found.last = hipPeekAtLastError();
  EXPECT_EQ(hipGetDevice(&found.device), hipSuccess);
  EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&found.mode), hipSuccess);
  auto relaxed = found.mode;
  EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&relaxed), hipSuccess);
  return found;
}

// Each call on each device, from a thread whose own device is another, in a mode of its own.
TEST(HipBackend, NoCallChangesTheCallingThread) {
  for (const int own : {0, 1}) {
    ASSERT_EQ(hipSetDevice(own), hipSuccess);
    auto mode = hipStreamCaptureModeThreadLocal;
    ASSERT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    const thread_words before = mine();
    EXPECT_EQ(before.mode, hipStreamCaptureModeThreadLocal);
    const auto same = [&](const char* after) { EXPECT_TRUE(mine() == before) << after; };
    {
      auto over = make_hip_backend().value();
      same("make_hip_backend");
      for (std::uint32_t i = 0; i < 2; ++i) {
        device& d = over->at(i);
        tiny_images images(staged_images);
        const copy_plan cut = make_copy_plan(runtime_rig::shape(), images.memory.memory).value();
        auto plan = d.load(cut, images.memory.memory).value();
        same("load");
        auto s = d.create_stream(stream_priority::high).value();
        same("create_stream");
        auto wrapped = d.wrap_stream(s->native()).value();
        same("wrap_stream");
        auto e = d.create_event(nullptr).value();
        same("create_event");
        auto block = d.allocate(10).value();
        same("allocate");
        auto pinned = d.allocate_pinned(10).value();
        same("allocate_pinned");
        hip::hold(native(*s));
        EXPECT_EQ(d.launch(*s, *plan, copy_kind::store, images.tasks, nullptr), status::ok);
        same("launch, staged");
        EXPECT_EQ(d.launch(*s, *plan, copy_kind::restore, images.some(1), nullptr), status::ok);
        same("launch, inline");
        EXPECT_EQ(d.record(*e, *wrapped), status::ok);
        same("record");
        EXPECT_EQ(d.query(*e), event_state::pending);
        same("query, pending");
        EXPECT_EQ(d.wait(*wrapped, *e), status::ok);
        same("wait");
        EXPECT_FALSE(d.capturing(*wrapped));
        same("capturing");
        hip::release(native(*s));
        hip::drain(native(*s));
        EXPECT_EQ(d.query(*e), event_state::fired);
        same("query, fired");
        wrapped.reset();
        s.reset();
        same("the stream's end");
        e.reset();
        same("the event's end");
        block.reset();
        pinned.reset();
        same("the memory's end");
        plan.reset();
        same("the plan's end");
      }
      over.reset();
      same("the backend's end");
    }
    ASSERT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  }
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
}

TEST(HipBackend, ThingsOfTwoDevicesDoNotMix) {
  const hip_rig here(4, {}, 0);
  device& there = here.over->at(1);
  const auto near_stream = here.new_stream();
  const auto near_event = here.new_event();
  const auto far_stream = there.create_stream(stream_priority::normal).value();
  const auto far_event = there.create_event(nullptr).value();
  EXPECT_EQ(here.dev().record(*far_event, *near_stream), status::invalid);
  EXPECT_EQ(here.dev().record(*near_event, *far_stream), status::invalid);
  EXPECT_EQ(here.dev().wait(*far_stream, *near_event), status::invalid);
  EXPECT_EQ(here.launch(*far_stream, copy_kind::store, here.images.some(1)), status::invalid);
  EXPECT_EQ(there.launch(*far_stream, *here.plan, copy_kind::store, here.images.some(1), nullptr),
            status::invalid);
  EXPECT_EQ(there.wrap_stream(nullptr).code(), status::invalid);
}

TEST(HipBackend, ThingsOfAnotherBackendAreRefused) {
  const hip_rig rig(4);
  const auto host = make_host_backend().value();
  const auto foreign_stream = host->at(0).create_stream(stream_priority::normal).value();
  const auto foreign_event = host->at(0).create_event(nullptr).value();
  const auto own = rig.new_stream();
  const auto e = rig.new_event();
  const auto foreign_plan = host->at(0).load(*rig.cut, rig.images.memory.memory).value();
  EXPECT_EQ(rig.dev().record(*foreign_event, *own), status::invalid);
  EXPECT_EQ(rig.dev().record(*e, *foreign_stream), status::invalid);
  EXPECT_EQ(rig.dev().wait(*own, *foreign_event), status::invalid);
  EXPECT_EQ(rig.dev().wait(*foreign_stream, *e), status::invalid);
  EXPECT_EQ(rig.dev().query(*foreign_event), event_state::failed);
  EXPECT_FALSE(rig.dev().capturing(*foreign_stream));
  EXPECT_EQ(rig.dev().launch(*own, *foreign_plan, copy_kind::store, rig.images.some(1), nullptr),
            status::invalid);
  EXPECT_EQ(rig.launch(*foreign_stream, copy_kind::store, rig.images.some(1)), status::invalid);
}

TEST(HipBackend, AStreamWaitsForAnEventOfAnotherDevice) {
  const auto over = make_hip_backend().value();
  device& a = over->at(0);
  device& b = over->at(1);
  const auto near_stream = a.create_stream(stream_priority::normal).value();
  const auto far_stream = b.create_stream(stream_priority::normal).value();
  const auto source = a.create_event(nullptr).value();
  awaited_event after(b);
  hip::hold(native(*near_stream));
  ASSERT_EQ(a.record(*source, *near_stream), status::ok);
  ASSERT_EQ(b.wait(*far_stream, *source), status::ok);
  ASSERT_EQ(b.record(after.get(), *far_stream), status::ok);
  EXPECT_EQ(after.state(), event_state::pending);
  hip::release(native(*near_stream));
  EXPECT_TRUE(after.fires());
}

TEST(HipBackend, TheEnginesStreamIsOrderedAndNotOwned) {
  const hip_rig rig(1);
  hipStream_t engine = nullptr;
  ASSERT_EQ(hipStreamCreateWithPriority(&engine, hipStreamNonBlocking, 0), hipSuccess);
  auto own = rig.new_stream();
  {
    const auto wrapped = rig.dev().wrap_stream(engine).value();
    EXPECT_EQ(wrapped->native(), engine);
    const auto computed = rig.new_event();
    hip::hold(engine);
    ASSERT_EQ(rig.dev().record(*computed, *wrapped), status::ok);
    ASSERT_EQ(rig.dev().wait(*own, *computed), status::ok);
    awaited_event after(rig.dev());
    ASSERT_EQ(rig.dev().record(after.get(), *own), status::ok);
    EXPECT_EQ(after.state(), event_state::pending);
  }  // the wrapper does not wait
  hip::release(engine);
  own.reset();
  hip::drain(engine);
  EXPECT_EQ(hipStreamSynchronize(engine), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(engine), hipSuccess);
}

}  // namespace
}  // namespace cairn::tests
