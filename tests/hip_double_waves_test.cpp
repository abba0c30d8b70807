// The HIP runtime's double: waves of several lanes, and how weak its memory is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/hip_double_fixture.hpp"

namespace cairn::tests::hip {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One word per thread of the grid, and two that all have.
struct words_of_lanes {
  std::uint32_t* own;
  unsigned long long* sum;
  unsigned* count;
};

std::uint32_t thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

void shuffle_kernel(words_of_lanes w) {
  std::uint32_t total = thread();
  for (int distance = warpSize / 2; distance > 0; distance /= 2)
    total += static_cast<std::uint32_t>(__shfl_xor(total, distance));
  w.own[thread()] = 1000 * __shfl(thread(), 0) + total;
}
void place_kernel(words_of_lanes w) {
  w.own[thread()] += 1 + static_cast<std::uint32_t>(warpSize) * 100 + gridDim.x * 10'000;
}
/// Lane 1 does not come.
void parting_kernel(words_of_lanes w) {
  w.own[thread()] = threadIdx.x == 1 ? 7 : __shfl(threadIdx.x, 0);
}
/// Seen by the one lane: before the fence, behind it.
void posting_kernel(words_of_lanes w) {
  atomicAdd(w.sum, 5ULL);
  w.own[0] = static_cast<std::uint32_t>(__atomic_load_n(w.sum, __ATOMIC_RELAXED));
  __threadfence();
  w.own[1] = static_cast<std::uint32_t>(__atomic_load_n(w.sum, __ATOMIC_RELAXED));
  w.own[2] = atomicAdd(w.count, 3U);  // asked for
  w.own[3] = __atomic_load_n(w.count, __ATOMIC_RELAXED);
  atomicAdd(w.sum, 1ULL);
  w.own[4] = static_cast<std::uint32_t>(atomicExch(w.sum, 9ULL));
  atomicAdd(w.sum, 1ULL);  // until the lane's end
}
/// The first wave waits for the second one.
void waiting_kernel(words_of_lanes w) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  if (blockIdx.x == 1) atomicAdd(w.sum, 1ULL);
  __threadfence();
  if (blockIdx.x == 0)
    while (__atomic_load_n(w.sum, __ATOMIC_RELAXED) == 0 &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
  w.own[thread()] = std::chrono::steady_clock::now() < until;
}
/// The last lane's word goes to all by memory.
void ordering_kernel(words_of_lanes w) {
  const auto lanes = static_cast<std::uint32_t>(warpSize);
  if (thread() % lanes == lanes - 1) w.own[thread()] = 10 + thread();
  __syncwarp();
  const std::uint32_t seen = w.own[thread() / lanes * lanes + lanes - 1];
  __syncwarp();
  w.own[thread()] = seen;
}

[[maybe_unused]] const bool registered = [] {
  for (auto* const kernel : {&shuffle_kernel, &place_kernel, &parting_kernel, &posting_kernel,
                             &waiting_kernel, &ordering_kernel})
    register_kernel(kernel, [](int, const words_of_lanes&) { return true; });
  return true;
}();

class HipDoubleWaves : public HipDouble {
 protected:
  /// The words of the threads.
  std::vector<std::uint32_t> run(void (*kernel)(words_of_lanes), dim3 grid, dim3 group,
                                 const wave_plan& how) {
    hipStream_t const s = new_stream();
    const std::uint32_t threads = grid.x * group.x;
    own_ = pinned_words(threads + 8);
    std::fill_n(own_, threads + 8, 0U);
    words_of_lanes w{own_, &sum_, &count_};
    void* arguments[] = {&w};
    set_waves(how);
    EXPECT_EQ(hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, group, arguments, 0, s),
              hipSuccess);
    EXPECT_EQ(hipStreamSynchronize(s), hipSuccess);
    return {own_, own_ + threads};
  }
  std::uint32_t* own_ = nullptr;
  unsigned long long sum_ = 0;
  unsigned count_ = 0;
};

TEST_F(HipDoubleWaves, EveryThreadRunsOnceInItsPlace) {
  for (const wave_plan how : {wave_plan{1, 1}, {1, 3}, {4, 1}, {4, 5}, {32, 2}})
    EXPECT_THAT(run(&place_kernel, 3, 10, how), Each(1 + how.lanes * 100 + 30'000));
}

TEST_F(HipDoubleWaves, LanesOfAWaveExchangeRegisters) {
  EXPECT_THAT(run(&shuffle_kernel, 1, 8, {4, 1}), ElementsAre(6, 6, 6, 6, 4022, 4022, 4022, 4022));
  EXPECT_THAT(run(&shuffle_kernel, 2, 4, {4, 2}), ElementsAre(6, 6, 6, 6, 4022, 4022, 4022, 4022));
  EXPECT_THAT(run(&shuffle_kernel, 1, 64, {64, 3}), Each(63 * 64 / 2));
  EXPECT_THAT(run(&shuffle_kernel, 1, 3, {1, 1}), ElementsAre(0, 1001, 2002));
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(HipDoubleWaves, LanesThatPartWaysAreNoticed) {
  run(&parting_kernel, 1, 4, {4, 1});
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("parted ways")));
}

TEST_F(HipDoubleWaves, AWaveInPartMustNotMeet) {
  run(&place_kernel, 2, 6, {4, 2});
  EXPECT_THAT(complaints(), IsEmpty());
  run(&shuffle_kernel, 2, 6, {4, 2});
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("parted ways")));
}

TEST_F(HipDoubleWaves, AnAdditionThatNobodyReadsWaitsForAFence) {
  for (const wave_plan how : {wave_plan{1, 1}, {1, 2}}) {
    sum_ = 0;
    count_ = 0;
    run(&posting_kernel, 1, 1, how);
    EXPECT_THAT(std::vector(own_, own_ + 5), ElementsAre(0, 5, 0, 3, 6));
    EXPECT_EQ(sum_, 10U);
    EXPECT_EQ(count_, 3U);
  }
}

TEST_F(HipDoubleWaves, CrewsRunAtOnce) {
  EXPECT_THAT(run(&waiting_kernel, 2, 1, {1, 2}), Each(1));
  sum_ = 0;
  EXPECT_THAT(run(&waiting_kernel, 2, 4, {4, 2}), Each(1));
}

TEST_F(HipDoubleWaves, ASyncOrdersTheMemoryOfAWave) {
  EXPECT_THAT(run(&ordering_kernel, 1, 8, {4, 2}), ElementsAre(13, 13, 13, 13, 17, 17, 17, 17));
}

}  // namespace
}  // namespace cairn::tests::hip
