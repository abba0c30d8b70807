// The HIP runtime's double: streams and events, which other tests lean on. Through its entry points
// alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <semaphore>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

constexpr auto limit = std::chrono::seconds(20);

TEST_F(HipDouble, AnEventNeverRecordedHasFired) {
  hipEvent_t const e = new_event();
  EXPECT_EQ(hipEventQuery(e), hipSuccess);
  hipStream_t const s = new_stream();
  EXPECT_EQ(hipStreamWaitEvent(s, e, 0), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipSuccess);
}

TEST_F(HipDouble, AHeldStreamRunsNothingAndItsEventsWait) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  std::atomic<bool> ran{false};
  std::function<void()> set = [&] { ran = true; };
  hold(s);
  enqueue(s, set);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  EXPECT_EQ(queued(s), 2U);
  release(s);
  EXPECT_TRUE(fires(e));
  EXPECT_TRUE(ran);
}

TEST_F(HipDouble, AWaitRefersToTheRecordingAtItsCall) {
  hipStream_t const a = new_stream(), b = new_stream(), c = new_stream();
  hipEvent_t const source = new_event(), after = new_event();
  hold(a);
  ASSERT_EQ(hipEventRecord(source, a), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(b, source, 0), hipSuccess);
  ASSERT_EQ(hipEventRecord(after, b), hipSuccess);
  ASSERT_EQ(hipEventRecord(source, c), hipSuccess);  // moves the event
  EXPECT_TRUE(fires(source));
  EXPECT_EQ(hipEventQuery(after), hipErrorNotReady);
  release(a);
  EXPECT_TRUE(fires(after));
}

TEST_F(HipDouble, ARecordingAfterwardsDoesNotDelayAnEarlierWait) {
  hipStream_t const a = new_stream(), b = new_stream(), c = new_stream();
  hipEvent_t const source = new_event(), after = new_event();
  ASSERT_EQ(hipEventRecord(source, a), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(b, source, 0), hipSuccess);
  ASSERT_EQ(hipEventRecord(after, b), hipSuccess);
  hold(c);
  ASSERT_EQ(hipEventRecord(source, c), hipSuccess);
  EXPECT_TRUE(fires(after));
  EXPECT_EQ(hipEventQuery(source), hipErrorNotReady);
}

TEST_F(HipDouble, HeldEventsFireWhenReleasedThoughTheirStreamGoesOn) {
  hipStream_t const s = new_stream();
  hipEvent_t const late = new_event(), next = new_event();
  hold_events(1);
  ASSERT_EQ(hipEventRecord(late, s), hipSuccess);
  ASSERT_EQ(hipEventRecord(next, s), hipSuccess);
  EXPECT_TRUE(fires(next));
  EXPECT_EQ(hipEventQuery(late), hipErrorNotReady);
  release_events();
  EXPECT_TRUE(fires(late));
}

TEST_F(HipDouble, ADestroyedStreamStillRunsWhatItHolds) {
  hipStream_t const s = new_stream();
  hipEvent_t const e = new_event();
  hold(s);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(s), hipSuccess);  // does not wait
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  release(s);
  EXPECT_TRUE(fires(e));
}

TEST_F(HipDouble, WaitsForARecordingWhoseEventIsGone) {
  hipStream_t const a = new_stream(), b = new_stream();
  hipEvent_t const gone = new_event(), after = new_event();
  hold(a);
  ASSERT_EQ(hipEventRecord(gone, a), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(b, gone, 0), hipSuccess);
  ASSERT_EQ(hipEventDestroy(gone), hipSuccess);
  ASSERT_EQ(hipEventRecord(after, b), hipSuccess);
  EXPECT_EQ(hipEventQuery(after), hipErrorNotReady);
  release(a);
  EXPECT_TRUE(fires(after));
}

TEST_F(HipDouble, TheNullStreamAndBlockingStreamsWaitForEachOther) {
  hipStream_t const blocking = new_stream(hipStreamDefault), free = new_stream();
  hipEvent_t const on_null = new_event(), behind = new_event(), beside = new_event();
  hold(blocking);
  ASSERT_EQ(hipEventRecord(behind, blocking), hipSuccess);
  ASSERT_EQ(hipEventRecord(on_null, nullptr), hipSuccess);  // behind the blocking stream
  ASSERT_EQ(hipEventRecord(beside, free), hipSuccess);
  EXPECT_TRUE(fires(beside));
  EXPECT_EQ(hipEventQuery(on_null), hipErrorNotReady);
  release(blocking);
  EXPECT_TRUE(fires(on_null));

  // And the other way: a blocking stream waits for the null stream.
  std::binary_semaphore go{0};
  std::function<void()> wait = [&] { EXPECT_TRUE(go.try_acquire_for(limit)); };
  enqueue(nullptr, wait);
  ASSERT_EQ(hipEventRecord(behind, blocking), hipSuccess);
  ASSERT_EQ(hipEventRecord(beside, free), hipSuccess);
  EXPECT_TRUE(fires(beside));
  EXPECT_EQ(hipEventQuery(behind), hipErrorNotReady);
  go.release();
  EXPECT_TRUE(fires(behind));
}

TEST_F(HipDouble, ATimedPairOfEventsTellsTheTimeBetween) {
  hipStream_t const s = new_stream();
  hipEvent_t const begin = new_event(hipEventDefault), end = new_event(hipEventDefault);
  float ms = -1;
  EXPECT_EQ(hipEventElapsedTime(&ms, begin, end), hipErrorInvalidHandle);
  ASSERT_EQ(hipEventRecord(begin, s), hipSuccess);
  ASSERT_EQ(hipEventRecord(end, s), hipSuccess);
  ASSERT_TRUE(fires(end));
  EXPECT_EQ(hipEventElapsedTime(&ms, begin, end), hipSuccess);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(hipEventElapsedTime(&ms, new_event(), end), hipErrorInvalidHandle);
}

TEST_F(HipDouble, StreamsHaveTheirFlagsAndPrioritiesInRange) {
  int least = 0, greatest = 0;
  ASSERT_EQ(hipDeviceGetStreamPriorityRange(&least, &greatest), hipSuccess);
  EXPECT_LT(greatest, least);
  new_stream(hipStreamNonBlocking, greatest - 7);
  new_stream(hipStreamDefault, least);
  const auto made = streams();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].priority, greatest);
  EXPECT_EQ(made[0].flags, hipStreamNonBlocking);
  EXPECT_EQ(made[1].priority, least);
  EXPECT_EQ(made[1].flags, hipStreamDefault);
}

// Threads that are ordered by nothing but the double: what it runs, it runs in order.
TEST_F(HipDouble, RunsManyStreamsUnderRandomDelays) {
  plan({.seed = 5, .which = {}, .delay_one_in = 2});
  constexpr int rounds = 50;
  hipStream_t const a = new_stream(), b = new_stream();
  hipEvent_t const there = new_event(), back = new_event();
  std::uint32_t* const host = pinned_words(1);
  std::uint32_t* const device = device_words(1);
  std::uint32_t* const result = pinned_words(rounds);
  *host = 7;
  std::function<void()> next = [&] { ++*host; };
  for (int i = 0; i < rounds; ++i) {
    ASSERT_EQ(copy(device, host, hipMemcpyHostToDevice, a), hipSuccess);
    ASSERT_EQ(hipEventRecord(there, a), hipSuccess);
    ASSERT_EQ(hipStreamWaitEvent(b, there, 0), hipSuccess);
    ASSERT_EQ(copy(result + i, device, hipMemcpyDeviceToHost, b), hipSuccess);
    enqueue(b, next);
    ASSERT_EQ(hipEventRecord(back, b), hipSuccess);
    ASSERT_EQ(hipStreamWaitEvent(a, back, 0), hipSuccess);
  }
  ASSERT_TRUE(fires(back));
  for (std::uint32_t i = 0; i < rounds; ++i) EXPECT_EQ(result[i], 7 + i);
}

}  // namespace
}  // namespace cairn::tests::hip
