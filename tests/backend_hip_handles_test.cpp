// The HIP backend over the double: handles that are not what they look like, priorities, and the
// copy thread's device.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

// 1 is the legacy default stream, 2 the calling thread's own default stream.
TEST(HipBackendHandles, DefaultStreamsAreNotWrapped) {
  const hip_rig rig;
  for (const std::uintptr_t handle : {0U, 1U, 2U})
    EXPECT_EQ(rig.dev().wrap_stream(reinterpret_cast<void*>(handle)).code(), status::invalid)
        << handle;
}

// Where priorities lie on both sides of the engine's own, stores do not go below it.
TEST(HipBackendHandles, NormalStreamsHaveTheEnginesPriority) {
  hip::set_priority_range(1, -1);
  {
    const hip_rig rig;
    const auto normal = rig.new_stream();
    const auto high = std::move(rig.dev().create_stream(stream_priority::high)).value();
    const auto made = hip::streams();
    ASSERT_GE(made.size(), 2U);
    EXPECT_EQ(made[made.size() - 2].priority, 0);
    EXPECT_EQ(made[made.size() - 1].priority, -1);
  }
  hip::reset();
}

TEST(HipBackendHandles, AnAdoptedThreadKeepsTheDevice) {
  const auto devices = std::move(make_hip_backend({.devices = {1}})).value();
  std::thread copies([&] {
    devices->at(0).adopt_thread();
    int current = -1;
    EXPECT_EQ(hipGetDevice(&current), hipSuccess);
    EXPECT_EQ(current, 1);
    EXPECT_TRUE(devices->at(0).create_event(nullptr).ok());
    EXPECT_EQ(hipGetDevice(&current), hipSuccess);
    EXPECT_EQ(current, 1);
  });
  copies.join();
}

// What it is refused shows in its next call, and not to whoever asks the runtime for an error.
TEST(HipBackendHandles, AThreadThatCannotBeAdoptedHasNoError) {
  const hip_rig rig(1, {}, 1);
  std::thread copies([&] {
    hip::fail_at(hip::call::hipSetDevice, 1, hipErrorInvalidValue);
    rig.dev().adopt_thread();
    EXPECT_EQ(hipPeekAtLastError(), hipSuccess);
    EXPECT_EQ(hip::current_device(), 0);
    EXPECT_TRUE(rig.dev().create_event(nullptr).ok());
  });
  copies.join();
}

// It naps for 20 us while copies run; by default a nap may end 50 us late.
TEST(HipBackendHandles, AnAdoptedThreadsNapsAreExact) {
  const hip_rig rig(1);
  const int engines = prctl(PR_GET_TIMERSLACK);
  int adopted = 0;
  std::thread copies([&] {
    rig.dev().adopt_thread();
    adopted = prctl(PR_GET_TIMERSLACK);
  });
  copies.join();
  EXPECT_GT(adopted, 0);
  EXPECT_LE(adopted, 1000);
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), engines);
}

// Whatever the runtime calls a stream that is none any more: the caller's mistake.
TEST(HipBackendHandles, AnEnginesStreamThatIsGoneIsNoLossOfTheDevice) {
  hip_rig rig(1);
  const auto own = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(own->native()).value();
  const auto e = rig.new_event();
  ASSERT_EQ(rig.dev().record(*e, *own), status::ok);
  for (const hipError_t code : {hipErrorContextIsDestroyed, hipErrorInvalidHandle}) {
    const auto next = [&](hip::call which) { hip::fail_at(which, 1, code); };
    next(hip::call::hipStreamIsCapturing);
    EXPECT_EQ(rig.dev().record(*e, *wrapped), status::invalid);
    next(hip::call::hipStreamIsCapturing);
    EXPECT_FALSE(rig.dev().capturing(*wrapped));
    next(hip::call::hipEventRecord);
    EXPECT_EQ(rig.dev().record(*e, *wrapped), status::invalid);
    next(hip::call::hipStreamWaitEvent);
    EXPECT_EQ(rig.dev().wait(*wrapped, *e), status::invalid);
    EXPECT_EQ(rig.dev().why_lost(), "");
  }
  EXPECT_EQ(rig.launch(*own, copy_kind::store, rig.images.some(1)), status::ok);
  rig.finish(*own);
  // Of a stream that nobody but the device can have ended, it is one.
  hip::fail_at(hip::call::hipStreamWaitEvent, 1, hipErrorContextIsDestroyed);
  EXPECT_EQ(rig.dev().wait(*own, *e), status::device_lost);
  rig.plan.reset();
  rig.over.reset();
  hip::reset();
}

// ---------------------------------------------------------------------------------------
// Recordings of one event that overlap

// Nobody captures them: whoever waits or asks meanwhile is answered.
TEST(HipBackendHandles, RecordingsOnStreamsOfItsOwnMayOverlap) {
  const hip_rig rig(1);
  const auto s = rig.new_stream();
  const auto other = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(other->native()).value();
  const auto e = rig.new_event();
  for (int i = 0; i < 2; ++i) {
    hip::before_next(hip::call::hipEventRecord, [&] {
      EXPECT_EQ(rig.dev().record(*e, *s), status::ok);
      hip::drain(native(*s));
      EXPECT_EQ(rig.dev().query(*e), event_state::fired);
      EXPECT_EQ(rig.dev().wait(*other, *e), status::ok);
      hip::hold(native(*s));
    });
    EXPECT_EQ(rig.dev().record(*e, *s), status::ok);
    const std::uint64_t asked = hip::calls(hip::call::hipEventQuery);
    EXPECT_EQ(rig.dev().query(*e), event_state::pending);
    EXPECT_EQ(hip::calls(hip::call::hipEventQuery), asked + 1);
    hip::release(native(*s));
    hip::drain(native(*s));
    EXPECT_EQ(rig.dev().query(*e), event_state::fired);
    // One of the engine's alone changes nothing for those that come after it.
    EXPECT_EQ(rig.dev().record(*e, *wrapped), status::ok);
  }
  hip::drain(native(*other));
}

// Whichever of them came first.
TEST(HipBackendHandles, ARecordingThatACaptureMayTakeMakesOthersBesideItDoubtful) {
  const hip_rig rig(1);
  const auto own = rig.new_stream();
  const auto engine = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(engine->native()).value();
  const auto e = rig.new_event();
  for (const bool engine_first : {true, false}) {
    stream& outer = engine_first ? *wrapped : *own;
    stream& inner = engine_first ? *own : *wrapped;
    hip::before_next(hip::call::hipEventRecord, [&] {
      EXPECT_EQ(rig.dev().record(*e, inner), status::ok);
      hip::drain(native(inner));
      EXPECT_EQ(rig.dev().query(*e), event_state::pending);
      EXPECT_EQ(rig.dev().wait(*own, *e), status::busy);
    });
    EXPECT_EQ(rig.dev().record(*e, outer), status::ok);
    hip::drain(native(outer));
    EXPECT_EQ(rig.dev().query(*e), event_state::fired);
  }
}

// ---------------------------------------------------------------------------------------
// The calling thread's last error

// The engine looks for it when it likes, and it is the runtime's only place for one.
TEST(HipBackendHandles, AnErrorThatIsPendingStaysPending) {
  hip_rig rig;
  const auto s = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(s->native()).value();
  EXPECT_EQ(hipSetDevice(99), hipErrorInvalidDevice);
  const auto use = [&] {
    const auto e = rig.new_event();
    EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
    EXPECT_EQ(rig.dev().record(*e, *wrapped), status::ok);
    EXPECT_EQ(rig.dev().wait(*s, *e), status::ok);
    EXPECT_FALSE(rig.dev().capturing(*wrapped));
    hip::drain(native(*s));
    EXPECT_EQ(rig.dev().query(*e), event_state::fired);
    EXPECT_TRUE(rig.dev().allocate(10).ok());
    EXPECT_TRUE(make_hip_backend().ok());
    rig.dev().adopt_thread();
  };
  use();
  EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidDevice);
  // A call of cairn's that fails takes its place; that there was an error is not forgotten.
  const auto e = rig.new_event();
  hip::hold(native(*s));
  ASSERT_EQ(rig.dev().record(*e, *s), status::ok);
  EXPECT_EQ(rig.dev().query(*e), event_state::pending);
  hip::release(native(*s));
  EXPECT_NE(hipGetLastError(), hipSuccess);
  use();
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

// ---------------------------------------------------------------------------------------
// The calling thread's device

// A thread begins with device 0, and a call there makes the process a context on that device:
// memory that the engine does not expect to be taken.
TEST(HipBackendHandles, NothingIsCalledWithAnotherDeviceCurrent) {
  {
    const auto over = std::move(make_hip_backend({.devices = {1}})).value();
    device& d = over->at(0);
    tiny_images images(staged_images);
    const copy_plan cut = make_copy_plan(runtime_rig::shape(), images.memory.memory).value();
    const auto plan = d.load(cut, images.memory.memory).value();
    const auto s = d.create_stream(stream_priority::normal).value();
    const auto wrapped = d.wrap_stream(s->native()).value();
    awaited_event e(d);
    const auto pinned = d.allocate_pinned(staged_images * 8).value();
    const auto block = d.allocate(8).value();
    batch_report report;
    report.checksums = reinterpret_cast<std::uint64_t*>(pinned->data());
    EXPECT_EQ(d.launch(*s, *plan, copy_kind::store, images.tasks, &report), status::ok);
    EXPECT_EQ(d.launch(*s, *plan, copy_kind::store, images.some(1), nullptr), status::ok);
    EXPECT_EQ(d.record(e.get(), *wrapped), status::ok);
    EXPECT_EQ(d.wait(*wrapped, e.get()), status::ok);
    EXPECT_FALSE(d.capturing(*wrapped));
    EXPECT_TRUE(e.fires());
  }
  for (std::uint32_t c = 0; c < hip::call_count; ++c) {
    const auto which = static_cast<hip::call>(c);
    if (which == hip::call::hipGetDevice || which == hip::call::hipSetDevice ||
        which == hip::call::hipGetLastError || which == hip::call::hipPeekAtLastError ||
        which == hip::call::hipGetDeviceCount)
      continue;
    EXPECT_EQ(hip::calls_with_current(0, which), 0U) << hip::name_of(which);
  }
  EXPECT_GT(hip::calls_with_current(1, hip::call::hipLaunchKernel), 0U);
}

TEST(HipBackendHandles, NothingIsCalledOnADeviceThatCannotBeEntered) {
  hip_rig rig(1, {}, 1);  // and the thread is on device 0
  const auto s = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(s->native()).value();
  const auto e = rig.new_event();
  ASSERT_EQ(rig.dev().record(*e, *s), status::ok);
  const auto made = [&] {
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < hip::call_count; ++c)
      sum += hip::calls(static_cast<hip::call>(c));
    for (const hip::call each : {hip::call::hipGetDevice, hip::call::hipSetDevice,
                                 hip::call::hipGetLastError, hip::call::hipPeekAtLastError})
      sum -= hip::calls(each);
    return sum;
  };
  const std::pair<const char*, std::function<status()>> each[] = {
      {"create_stream", [&] { return rig.dev().create_stream(stream_priority::normal).code(); }},
      {"create_event", [&] { return rig.dev().create_event(nullptr).code(); }},
      {"allocate", [&] { return rig.dev().allocate(8).code(); }},
      {"allocate_pinned", [&] { return rig.dev().allocate_pinned(8).code(); }},
      {"record", [&] { return rig.dev().record(*e, *s); }},
      {"wait", [&] { return rig.dev().wait(*s, *e); }},
      {"launch", [&] { return rig.launch(*s, copy_kind::store, rig.images.some(1)); }},
      {"capturing", [&] { return rig.dev().capturing(*wrapped) ? status::busy : status::failed; }},
      {"query",
       [&] { return rig.dev().query(*e) == event_state::pending ? status::failed : status::ok; }},
  };
  for (const auto& [name, call] : each) {
    const std::uint64_t before = made();
    hip::fail_at(hip::call::hipSetDevice, 1, hipErrorInvalidValue);
    EXPECT_EQ(call(), status::failed) << name;
    EXPECT_EQ(made(), before) << name;
  }
}

// Not in the context of the thread's own device: the staging stays where it is.
TEST(HipBackendHandles, ADeviceThatCannotBeEnteredAtTheEndKeepsItsStaging) {
  auto over = std::move(make_hip_backend({.devices = {1}})).value();
  const hip::live_objects before = hip::live();
  hip::fail_at(hip::call::hipSetDevice, 1, hipErrorInvalidValue);
  over.reset();
  EXPECT_EQ(hip::live(), before);
  EXPECT_EQ(hip::calls(hip::call::hipEventDestroy), 0U);
  hip::reset();
}

TEST(HipBackendHandles, AnEventWhoseDeviceCannotBeEnteredIsKept) {
  {
    const auto over = std::move(make_hip_backend({.devices = {1}})).value();
    auto e = std::move(over->at(0).create_event(nullptr)).value();
    const hip::live_objects before = hip::live();
    hip::fail_at(hip::call::hipSetDevice, 1, hipErrorInvalidValue);
    e.reset();
    EXPECT_EQ(hip::live(), before);
    EXPECT_EQ(hip::calls(hip::call::hipEventDestroy), 0U);
  }
  hip::reset();
}

// ---------------------------------------------------------------------------------------
// Opening and loading when something is refused

TEST(HipBackendHandles, StagingThatIsNotWholeIsNotOpened) {
  for (const hip::call which :
       {hip::call::hipHostMalloc, hip::call::hipMalloc, hip::call::hipEventCreateWithFlags}) {
    hip::fail_at(which, 1, hipErrorOutOfMemory);
    EXPECT_EQ(make_hip_backend({.devices = {0}}).code(), status::limit) << hip::name_of(which);
  }
}

TEST(HipBackendHandles, ADeviceThatDoesNotTellWhatItIsIsNotOpened) {
  for (const hip::call which :
       {hip::call::hipDeviceGetAttribute, hip::call::hipDeviceGetStreamPriorityRange}) {
    hip::fail_at(which, 1, hipErrorInvalidValue);
    EXPECT_EQ(make_hip_backend({.devices = {0}}).code(), status::failed) << hip::name_of(which);
  }
}

// And not what a later call makes of it.
TEST(HipBackendHandles, ARefusalIsAnsweredAsItCame) {
  const hip_rig rig(1);
  hip::fail_at(hip::call::hipMalloc, 1, hipErrorOutOfMemory);
  EXPECT_EQ(rig.dev().create_stream(stream_priority::normal).code(), status::limit);
  // No stream at all names the legacy default stream.
  hip::fail_at(hip::call::hipStreamCreateWithPriority, 1, hipErrorOutOfMemory);
  EXPECT_EQ(rig.dev().create_stream(stream_priority::normal).code(), status::limit);
  hip::fail_at(hip::call::hipHostGetDevicePointer, 1, hipErrorInvalidValue);
  EXPECT_EQ(rig.dev().allocate_pinned(8).code(), status::failed);
}

// Not on the legacy default stream either, which a handle of null would name.
TEST(HipBackendHandles, APlanIsNotLoadedWithoutAStreamOfItsOwn) {
  const hip_rig rig(1);
  hip::fail_at(hip::call::hipStreamCreateWithPriority, 1, hipErrorOutOfMemory);
  EXPECT_EQ(rig.dev().load(*rig.cut, rig.images.memory.memory).code(), status::limit);
}

TEST(HipBackendHandles, AnswersToNoLegacyStreamWhenLoadingAPlan) {
  const hip_rig rig(1);
  // Held up where it waits for its copy.
  const std::uint64_t so_far = hip::calls(hip::call::hipStreamSynchronize);
  hip::fail_always(hip::call::hipStreamSynchronize, hipErrorStreamCaptureUnsupported);
  std::jthread loading(
      [&] { EXPECT_TRUE(rig.dev().load(*rig.cut, rig.images.memory.memory).ok()); });
  while (hip::calls(hip::call::hipStreamSynchronize) == so_far) std::this_thread::yield();
  ASSERT_FALSE(hip::streams().empty());
  EXPECT_EQ(hip::streams().back().flags, hipStreamNonBlocking);
  hip::fail_always(hip::call::hipStreamSynchronize, hipSuccess);
}

}  // namespace
}  // namespace cairn::tests
