// The HIP backend when a device is lost, and when something merely cannot be waited for: nothing is
// freed that the device may still use, and what is unknown is not taken for done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using hip::call;

class HipBackendLost : public testing::Test {
 protected:
  void TearDown() override { hip::reset(); }  // a lost device keeps what it was given
};

TEST_F(HipBackendLost, IsLostForAllCallsAndIsCalledNoMore) {
  auto rig = std::make_unique<hip_rig>();
  auto s = rig->new_stream();
  auto e = rig->new_event();
  auto never = rig->new_event();
  auto block = rig->dev().allocate(10).value();
  auto pinned = rig->dev().allocate_pinned(10).value();
  device& d = rig->dev();
  ASSERT_EQ(d.record(*e, *s), status::ok);
  hip::lose(0, hipErrorECCNotCorrectable);
  EXPECT_EQ(d.query(*e), event_state::failed);
  EXPECT_EQ(d.record(*e, *s), status::device_lost);
  EXPECT_EQ(d.wait(*s, *e), status::device_lost);
  EXPECT_EQ(rig->launch(*s, copy_kind::store, rig->images.some(1)), status::device_lost);
  EXPECT_EQ(rig->launch(*s, copy_kind::store, rig->images.tasks), status::device_lost);
  EXPECT_EQ(rig->launch(*s, copy_kind::store, {}), status::device_lost);
  EXPECT_EQ(d.create_stream(stream_priority::normal).code(), status::device_lost);
  EXPECT_EQ(d.create_event(nullptr).code(), status::device_lost);
  EXPECT_EQ(d.allocate(10).code(), status::device_lost);
  EXPECT_EQ(d.allocate_pinned(10).code(), status::device_lost);
  EXPECT_EQ(d.load(*rig->cut, rig->images.memory.memory).code(), status::device_lost);
  EXPECT_EQ(hipPeekAtLastError(), hipSuccess);
  // The other device is as before.
  device& other = rig->over->at(1);
  EXPECT_TRUE(other.create_stream(stream_priority::normal).ok());
  const hip::live_objects before = hip::live();
  s.reset();
  e.reset();
  never.reset();
  block.reset();
  pinned.reset();
  rig->plan.reset();
  EXPECT_EQ(hip::live(), before);
  EXPECT_TRUE(hip::complaints().empty());
}

// The calling thread may be on a lost device: that is not this one's business.
TEST_F(HipBackendLost, ADeviceIsNotLostWithTheCallersOwn) {
  const auto over = make_hip_backend().value();
  device& healthy = over->at(1);
  hip::lose(0, hipErrorIllegalAddress);
  EXPECT_TRUE(healthy.create_event(nullptr).ok());
  awaited_event e(healthy);
  const auto s = healthy.create_stream(stream_priority::normal).value();
  EXPECT_EQ(healthy.record(e.get(), *s), status::ok);
  EXPECT_TRUE(e.fires());
  EXPECT_EQ(hipPeekAtLastError(), hipSuccess);
}

TEST_F(HipBackendLost, AKernelsFaultShowsInItsEventAndLosesTheDevice) {
  hip_rig rig;
  const auto s = rig.new_stream();
  const auto e = rig.new_event();
  hip::fault_in_kernel(1, hipErrorIllegalAddress);
  hip::hold(native(*s));
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::ok);
  ASSERT_EQ(rig.dev().record(*e, *s), status::ok);
  EXPECT_EQ(rig.dev().query(*e), event_state::pending);
  hip::release(native(*s));
  EXPECT_FALSE([&] {
    for (const deadline until = soon(); clock::now() < until;) {
      const event_state state = rig.dev().query(*e);
      if (state != event_state::pending) return state == event_state::fired;
    }
    return true;
  }());
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::device_lost);
}

TEST_F(HipBackendLost, AWaitSaysNothingOfTheDeviceOfAnotherOnesEvent) {
  const hip_rig rig(1);
  device& here = rig.dev();
  device& there = rig.over->at(1);
  const auto s = rig.new_stream();
  const auto far_stream = there.create_stream(stream_priority::normal).value();
  const auto far_event = there.create_event(nullptr).value();
  ASSERT_EQ(there.record(*far_event, *far_stream), status::ok);
  // Nobody can tell whose error it is.
  hip::fail_at(call::hipStreamWaitEvent, 1, hipErrorIllegalAddress);
  EXPECT_EQ(here.wait(*s, *far_event), status::failed);
  EXPECT_EQ(here.why_lost(), "");
  EXPECT_EQ(there.why_lost(), "");
  hip::fail_at(call::hipStreamWaitEvent, 1, hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(here.wait(*s, *far_event), status::busy);
  EXPECT_EQ(here.wait(*s, *far_event), status::ok);
  // It will never fire, and the waiting stream's device is well.
  hip::fail_at(call::hipEventQuery, 1, hipErrorIllegalAddress);
  ASSERT_EQ(there.query(*far_event), event_state::failed);
  const std::uint64_t waits = hip::calls(call::hipStreamWaitEvent);
  EXPECT_EQ(here.wait(*s, *far_event), status::failed);
  EXPECT_EQ(hip::calls(call::hipStreamWaitEvent), waits);
  EXPECT_EQ(here.why_lost(), "");
  // Its own event is its own business.
  const auto near_event = rig.new_event();
  ASSERT_EQ(here.record(*near_event, *s), status::ok);
  hip::fail_at(call::hipStreamWaitEvent, 1, hipErrorIllegalAddress);
  EXPECT_EQ(here.wait(*s, *near_event), status::device_lost);
}

// One call has shown it: that is enough, whichever it was.
TEST_F(HipBackendLost, IsNotCalledAfterTheFirstError) {
  const auto recorded = [](device& d, event& e, stream& s) { return d.record(e, s); };
  const auto waited = [](device& d, event& e, stream& s) { return d.wait(s, e); };
  const auto made = [](device& d, event&, stream&) { return d.create_event(nullptr).code(); };
  const auto asked = [](device& d, event& e, stream&) {
    return d.query(e) == event_state::failed ? status::device_lost : status::ok;
  };
  struct finder {
    const char* name;
    status (*find)(device&, event&, stream&);
    call which;
    hipError_t code;
  };
  // A query's error loses the device whatever it is.
  for (const finder& each : {finder{"record", recorded, call::hipEventRecord, hipErrorUnknown},
                             finder{"wait", waited, call::hipStreamWaitEvent, hipErrorUnknown},
                             finder{"create", made, call::hipEventCreateWithFlags, hipErrorUnknown},
                             finder{"query", asked, call::hipEventQuery, hipErrorUnknown},
                             finder{"query", asked, call::hipEventQuery, hipErrorInvalidValue}}) {
    SCOPED_TRACE(std::string(each.name) + ", " + hipGetErrorName(each.code));
    const hip_rig rig;
    device& d = rig.dev();
    auto s = rig.new_stream();
    auto e = rig.new_event();
    const auto never = rig.new_event();
    auto block = d.allocate(10).value();
    ASSERT_EQ(d.record(*e, *s), status::ok);
    hip::fail_at(each.which, 1, each.code);
    EXPECT_EQ(d.why_lost(), "");
    EXPECT_EQ(each.find(d, *e, *s), status::device_lost);
    const std::string why =
        std::string(hip::name_of(each.which)) + " answered " + hipGetErrorName(each.code);
    EXPECT_THAT(d.why_lost(), testing::StartsWith(why));
    EXPECT_THAT(d.allocate(1).why().message(), testing::HasSubstr(why));
    std::uint64_t before = 0, after = 0;
    const call may_not_come[] = {call::hipEventRecord,      call::hipStreamWaitEvent,
                                 call::hipEventQuery,       call::hipEventCreateWithFlags,
                                 call::hipLaunchKernel,     call::hipMemcpyAsync,
                                 call::hipMalloc,           call::hipFree,
                                 call::hipHostMalloc,       call::hipHostFree,
                                 call::hipStreamDestroy,    call::hipEventDestroy,
                                 call::hipStreamSynchronize};
    for (const call c : may_not_come) before += hip::calls(c);
    EXPECT_EQ(d.record(*e, *s), status::device_lost);
    EXPECT_EQ(d.wait(*s, *e), status::device_lost);
    EXPECT_EQ(d.query(*e), event_state::failed);
    EXPECT_EQ(d.query(*never), event_state::fired);
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::device_lost);
    EXPECT_EQ(d.create_event(nullptr).code(), status::device_lost);
    EXPECT_EQ(d.allocate(10).code(), status::device_lost);
    EXPECT_EQ(d.allocate_pinned(10).code(), status::device_lost);
    s.reset();
    e.reset();
    block.reset();
    for (const call c : may_not_come) after += hip::calls(c);
    EXPECT_EQ(after, before);
  }
}

TEST_F(HipBackendLost, ARefusalIsNoLoss) {
  const hip_rig rig(1);
  const auto s = rig.new_stream();
  awaited_event e(rig.dev());
  hip::fail_at(call::hipMalloc, 1, hipErrorOutOfMemory);
  EXPECT_EQ(rig.dev().allocate(10).code(), status::limit);
  hip::fail_at(call::hipHostMalloc, 1, hipErrorOutOfMemory);
  EXPECT_EQ(rig.dev().allocate_pinned(10).code(), status::limit);
  hip::fail_at(call::hipLaunchKernel, 1, hipErrorNotSupported);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::unsupported);
  for (const hipError_t code :
       {hipErrorInvalidValue, hipErrorInvalidConfiguration, hipErrorInvalidDeviceFunction,
        hipErrorInvalidDevice, hipErrorNoBinaryForGpu, hipErrorInvalidHandle,
        hipErrorLaunchOutOfResources, hipErrorOperatingSystem,
        static_cast<hipError_t>(800)}) {  // CUDA's cudaErrorNotPermitted
    hip::fail_at(call::hipLaunchKernel, 1, code);
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::failed);
  }
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::ok);
  EXPECT_EQ(rig.dev().record(e.get(), *s), status::ok);
  EXPECT_TRUE(e.fires());
}

// A thread that cannot learn or change its device or its capture mode makes no call that needs it.
TEST_F(HipBackendLost, WhoCannotEnterCallsNothing) {
  const auto over = make_hip_backend().value();
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hip::fail_at(call::hipGetDevice, 1, hipErrorInvalidValue);
  EXPECT_EQ(over->at(0).create_event(nullptr).code(), status::failed);
  hip::fail_at(call::hipSetDevice, 1, hipErrorInvalidValue);
  EXPECT_EQ(over->at(0).create_event(nullptr).code(), status::failed);
  EXPECT_EQ(hip::current_device(), 1);
  hip::fail_at(call::hipThreadExchangeStreamCaptureMode, 1, hipErrorInvalidValue);
  EXPECT_EQ(over->at(0).allocate(10).code(), status::failed);
  const std::uint64_t sets = hip::calls(call::hipSetDevice);
  EXPECT_TRUE(over->at(1).create_event(nullptr).ok());
  EXPECT_EQ(hip::calls(call::hipSetDevice), sets);  // it is current already
  hip::fail_at(call::hipThreadExchangeStreamCaptureMode, 1, hipErrorInvalidValue);
  const auto e = over->at(1).create_event(nullptr);
  EXPECT_EQ(e.code(), status::failed);
}

// Without an answer nothing is proved: an event that the device has is neither over nor unknown.
TEST_F(HipBackendLost, AnEventThatNeverFiresIsPending) {
  hip_rig rig(1);
  const auto s = rig.new_stream();
  awaited_event e(rig.dev()), after(rig.dev());
  hip::hold_events(1);
  ASSERT_EQ(rig.dev().record(e.get(), *s), status::ok);
  ASSERT_EQ(rig.dev().record(after.get(), *s), status::ok);
  ASSERT_TRUE(after.fires());
  EXPECT_EQ(e.state(), event_state::pending);
  hip::release_events();
  EXPECT_TRUE(e.fires());
}

// Without an event behind it nobody knows when a place may be used again: the stream owes it, and
// its next launch makes good.
TEST_F(HipBackendLost, APlaceWithoutItsEventIsOwedByItsStream) {
  hip_rig rig;
  const auto s = rig.new_stream();
  const auto other = rig.new_stream();
  rig.images.write_slots(staged_images, 1);
  hip::hold(native(*s));
  hip::fail_always(call::hipEventRecord, hipErrorInvalidValue);
  for (std::uint32_t i = 0; i < store_places; ++i)
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::fail_always(call::hipEventRecord, hipSuccess);
  EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::queue_full);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release(native(*s));
  rig.finish(*s);
  for (std::uint32_t i = 0; i < store_places; ++i)
    EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*other);
}

TEST_F(HipBackendLost, APlaceIsFreeWhenTheStreamThatOwesItIsOver) {
  hip_rig rig;
  auto s = rig.new_stream();
  const auto other = rig.new_stream();
  rig.images.write_slots(staged_images, 1);
  hip::fail_always(call::hipEventRecord, hipErrorInvalidValue);
  for (std::uint32_t i = 0; i < store_places; ++i)
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  hip::fail_always(call::hipEventRecord, hipSuccess);
  hip::drain(native(*s));
  EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::queue_full);
  s.reset();
  hip::hold(native(*other));
  for (std::uint32_t i = 0; i < store_places; ++i)
    EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::ok);
  EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release(native(*other));
  rig.finish(*other);
}

// A launch that fails when its words are on their way: the copy still reads the place.
TEST_F(HipBackendLost, APlaceOfAFailedLaunchIsUsedAgainOnlyBehindItsCopy) {
  hip_rig rig;
  const auto s = rig.new_stream();
  hip::hold(native(*s));
  for (std::uint32_t i = 0; i < store_places; ++i) {
    hip::fail_at(call::hipLaunchKernel, 1, hipErrorInvalidConfiguration);
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::failed);
  }
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release(native(*s));
  rig.finish(*s);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
}

// What cannot be waited for may still run: its memory stays.
TEST_F(HipBackendLost, AStreamThatCannotBeWaitedForKeepsItsMemory) {
  hip_rig rig;
  auto s = rig.new_stream();
  hipStream_t const handle = native(*s);
  const auto sums = rig.dev().allocate_pinned(8).value();
  batch_report report;
  report.checksums = reinterpret_cast<std::uint64_t*>(sums->data());
  hip::hold(handle);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1), &report), status::ok);
  hip::fail_at(call::hipStreamSynchronize, 1, hipErrorInvalidValue);
  s.reset();
  hip::release(handle);
  hip::drain(handle);
  EXPECT_TRUE(hip::complaints().empty());
}

// The copies are enqueued, and the recording behind them shows it.
TEST_F(HipBackendLost, ALaunchWhosePlaceHasNoEventBecauseOfALossSaysSo) {
  hip_rig rig;
  const auto s = rig.new_stream();
  hip::fail_at(call::hipEventRecord, 1, hipErrorIllegalAddress);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::device_lost);
  hip::drain(native(*s));
}

// The question about one place shows it: the others are not asked.
TEST_F(HipBackendLost, ALaunchThatFindsNoPlaceBecauseOfALossSaysSo) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  const auto s = rig.new_stream();
  for (std::uint32_t i = 0; i < store_places; ++i)
    ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  const std::uint64_t asked = hip::calls(call::hipEventQuery);
  hip::fail_at(call::hipEventQuery, 1, hipErrorIllegalAddress);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::device_lost);
  EXPECT_EQ(hip::calls(call::hipEventQuery), asked + 1);
  hip::drain(native(*s));
}

TEST_F(HipBackendLost, LoadCallsALostDeviceNoMore) {
  for (const call which : {call::hipMemcpyAsync, call::hipStreamSynchronize}) {
    SCOPED_TRACE(hip::name_of(which));
    hip_rig rig(1);
    const std::uint64_t waits = hip::calls(call::hipStreamSynchronize);
    const std::uint64_t ends = hip::calls(call::hipStreamDestroy);
    hip::fail_at(which, 1, hipErrorIllegalAddress);
    EXPECT_EQ(rig.dev().load(*rig.cut, rig.images.memory.memory).code(), status::device_lost);
    EXPECT_EQ(hip::calls(call::hipStreamSynchronize),
              waits + (which == call::hipStreamSynchronize ? 1 : 0));
    EXPECT_EQ(hip::calls(call::hipStreamDestroy), ends);
  }
}

TEST_F(HipBackendLost, TheRingsEndCallsALostDeviceNoMore) {
  const call ends[] = {call::hipEventDestroy, call::hipFree, call::hipHostFree};
  const auto calls_of_ends = [&] {
    std::uint64_t sum = 0;
    for (const call each : ends) sum += hip::calls(each);
    return sum;
  };
  for (const std::uint64_t made : {std::uint64_t{1}, std::uint64_t{staging_places + 1}}) {
    auto over = make_hip_backend({.devices = {0}}).value();
    const std::uint64_t before = calls_of_ends();
    hip::fail_at(made == 1 ? call::hipEventDestroy : call::hipFree, 1, hipErrorIllegalAddress);
    over.reset();
    EXPECT_EQ(calls_of_ends(), before + made);
  }
}

// What comes after the first error says less: a lost device answers the same to all.
TEST_F(HipBackendLost, TheFirstErrorIsRemembered) {
  hip_rig rig(1);
  auto s = rig.new_stream();
  const auto e = rig.new_event();
  ASSERT_EQ(rig.dev().record(*e, *s), status::ok);
  hip::fail_at(call::hipLaunchKernel, 1, hipErrorIllegalAddress);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::device_lost);
  hip::lose(0, hipErrorLaunchFailure);
  EXPECT_EQ(rig.dev().query(*e), event_state::failed);
  s.reset();
  EXPECT_THAT(rig.dev().why_lost(),
              testing::StartsWith("hipLaunchKernel answered hipErrorIllegalAddress"));
}

// A stream's end is the last chance to wait for what it runs: who cannot must not go on.
TEST_F(HipBackendLost, AStreamThatCannotBeEnteredOrWaitedForSaysWhy) {
  const struct {
    call which;
    const char* says;
  } each[] = {{call::hipSetDevice, "hipSetDevice answered hipErrorInvalidValue"},
              {call::hipGetDevice, "hipGetDevice answered hipErrorInvalidValue"},
              {call::hipStreamSynchronize, "hipStreamSynchronize answered hipErrorInvalidValue"}};
  for (const auto& at : each) {
    hip_rig rig(1, {}, 1);
    auto s = rig.new_stream();
    hip::fail_at(at.which, 1, hipErrorInvalidValue);
    s.reset();
    EXPECT_THAT(rig.dev().why_lost(), testing::StartsWith(at.says));
  }
  // The plan's copy to the device is waited for in the same way.
  hip_rig rig(1);
  hip::fail_at(call::hipStreamSynchronize, 1, hipErrorInvalidValue);
  EXPECT_EQ(rig.dev().load(*rig.cut, rig.images.memory.memory).code(), status::failed);
  EXPECT_THAT(rig.dev().why_lost(),
              testing::StartsWith("hipStreamSynchronize answered hipErrorInvalidValue"));
}

}  // namespace
}  // namespace cairn::tests
