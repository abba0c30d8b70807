// The HIP backend over the double: what it frees and when, and on which devices it does anything.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using hip::call;

// The stream's copies may still run and add to its board: nothing of it may go. On a device hipFree
// would wait; here what it would wait for never ends.
TEST(HipBackendMemory, AStreamThatCannotBeWaitedForKeepsWhatItHas) {
  auto rig = std::make_unique<hip_rig>(4);
  const auto sums = rig->dev().allocate_pinned(4 * sizeof(std::uint64_t)).value();
  batch_report report;
  report.checksums = reinterpret_cast<std::uint64_t*>(sums->data());
  auto s = rig->new_stream();
  hipStream_t const handle = native(*s);
  hip::drain(handle);  // the board is clear
  hip::hold(handle);
  ASSERT_EQ(rig->launch(*s, copy_kind::store, rig->images.tasks, &report), status::ok);
  const hip::live_objects before = hip::live();
  const std::uint64_t frees = hip::calls(call::hipFree);
  const std::uint64_t ends = hip::calls(call::hipStreamDestroy);
  hip::fail_at(call::hipStreamSynchronize, 1, hipErrorUnknown);
  s.reset();
  ASSERT_EQ(hip::calls(call::hipFree), frees);
  ASSERT_EQ(hip::calls(call::hipStreamDestroy), ends);
  EXPECT_EQ(hip::live(), before);
  EXPECT_TRUE(hip::complaints().empty());
  EXPECT_EQ(rig->dev().allocate(1).code(), status::device_lost);
  hip::release(handle);
  hip::drain(handle);
  EXPECT_TRUE(hip::complaints().empty());  // what ran touched nothing that was freed
  rig.reset();
  hip::reset();  // a lost device keeps what it was given
}

// The place that the batch was sent through gets no event any more, and is nobody's.
TEST(HipBackendMemory, ALaunchThatLosesItsDeviceCallsItNoMore) {
  for (const call which : {call::hipMemcpyAsync, call::hipLaunchKernel}) {
    {
      hip_rig rig;
      const auto s = rig.new_stream();
      const std::uint64_t recordings = hip::calls(call::hipEventRecord);
      hip::fail_at(which, 1, hipErrorIllegalAddress);
      EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::device_lost);
      EXPECT_EQ(hip::calls(call::hipEventRecord), recordings) << hip::name_of(which);
      hip::drain(native(*s));
    }
    hip::reset();  // a lost device keeps what it was given
  }
}

TEST(HipBackendMemory, NoDeviceIsTouchedThatWasNotAskedFor) {
  {
    hip_rig rig(staged_images, {.devices = {1}});
    const auto s = rig.new_stream();
    const auto e = rig.new_event();
    std::jthread([&] {
      rig.dev().adopt_thread();
      ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
      ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(1)), status::ok);
      ASSERT_EQ(rig.dev().record(*e, *s), status::ok);
      while (rig.dev().query(*e) == event_state::pending) std::this_thread::yield();
    }).join();
    EXPECT_EQ(rig.dev().query(*e), event_state::fired);
  }
  EXPECT_TRUE(hip::context_made(1));
  EXPECT_FALSE(hip::context_made(0));
}

}  // namespace
}  // namespace cairn::tests
