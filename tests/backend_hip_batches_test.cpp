// The HIP backend's batches over the double: through a launch's arguments and through the staging
// ring, whose places are used again only when nothing reads them any more.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

// A runtime may look at the stream to answer for an event that was recorded there.
TEST(HipBackendBatches, NoPlaceIsAskedForAStreamThatIsGone) {
  for (const bool older : {false, true}) {
    hip::set_older_runtime(older);
    hip_rig rig;
    rig.images.write_slots(staged_images, 1);
    auto first = rig.new_stream();
    for (std::uint32_t i = 0; i < store_places; ++i)
      ASSERT_EQ(rig.launch(*first, copy_kind::store, rig.images.tasks), status::ok);
    first.reset();  // waits
    const std::uint64_t asked = hip::calls(hip::call::hipEventQuery);
    const auto second = rig.new_stream();
    for (std::uint32_t i = 0; i < store_places; ++i)
      ASSERT_EQ(rig.launch(*second, copy_kind::store, rig.images.tasks), status::ok);
    EXPECT_EQ(hip::calls(hip::call::hipEventQuery), asked);
    rig.finish(*second);
  }
}

TEST(HipBackendBatches, AStreamsEndGivesNoOtherStreamsPlaces) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  const auto busy = rig.new_stream();
  auto gone = rig.new_stream();
  const auto launch_half = [&](stream& on) {
    for (std::uint32_t i = 0; i < store_places / 2; ++i)
      ASSERT_EQ(rig.launch(on, copy_kind::store, rig.images.tasks), status::ok);
  };
  hip::hold_events(store_places / 2);
  launch_half(*busy);
  hip::drain(native(*busy));  // both store the same images
  launch_half(*gone);
  gone.reset();
  hip::hold_events(store_places / 2);
  launch_half(*busy);
  EXPECT_EQ(rig.launch(*busy, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release_events();
  rig.finish(*busy);
}

// A launch takes a place of it, and is held up before it sends anything.
TEST(HipBackendBatches, AStreamsEndGivesNoPlaceThatALaunchHasTaken) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  auto gone = rig.new_stream();
  const auto taking = rig.new_stream();
  const auto other = rig.new_stream();
  for (std::uint32_t i = 0; i < store_places; ++i)
    ASSERT_EQ(rig.launch(*gone, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*gone);
  hip::hold(native(*other));
  hip::before_next(hip::call::hipMemcpyAsync, [&] {
    gone.reset();
    for (std::uint32_t i = 1; i < store_places; ++i)
      EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::ok);
    EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::queue_full);
  });
  EXPECT_EQ(rig.launch(*taking, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*taking);
  hip::release(native(*other));
  rig.finish(*other);
}

TEST(HipBackendBatches, DestroyingAStreamWaitsForItsCopies) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  auto s = rig.new_stream();
  hipStream_t const handle = native(*s);
  hip::hold(handle);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  std::atomic<bool> gone{false};
  std::jthread destroyer([&] {
    s.reset();
    gone = true;
  });
  while (hip::calls(hip::call::hipStreamSynchronize) < 2) std::this_thread::yield();
  EXPECT_FALSE(gone);
  // Nor is its place free before that.
  const auto next = rig.new_stream();
  hip::hold(native(*next));
  for (std::uint32_t i = 1; i < store_places; ++i)
    EXPECT_EQ(rig.launch(*next, copy_kind::store, rig.images.tasks), status::ok);
  EXPECT_EQ(rig.launch(*next, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release(native(*next));
  rig.finish(*next);
  hip::release(handle);
  destroyer.join();
  rig.images.write_slots(staged_images, 9000);
  ASSERT_EQ(rig.launch(*next, copy_kind::restore, rig.images.tasks), status::ok);
  rig.finish(*next);
  EXPECT_TRUE(rig.images.holds(staged_images, 1));
}

// 247 images of three units each are 988 words, and a launch carries 990.
TEST(HipBackendBatches, WhatALaunchCanCarryNeedsNoCopy) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  const auto s = rig.new_stream();
  const std::uint64_t copies = hip::calls(hip::call::hipMemcpyAsync);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(247)), status::ok);
  EXPECT_EQ(hip::calls(hip::call::hipMemcpyAsync), copies);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.some(248)), status::ok);
  EXPECT_EQ(hip::calls(hip::call::hipMemcpyAsync), copies + 1);
  rig.finish(*s);
}

// The words of a batch are read when the stream comes to them: a place that is used too early makes
// an earlier batch copy a later one's images.
TEST(HipBackendBatches, AStagingPlaceIsNotUsedAgainBeforeItsBatchIsOver) {
  hip_rig rig;
  const std::uint32_t n = staged_images;
  const auto s = rig.new_stream();
  // Batch k restores image i into slot i - k, so that each batch has words of its own; the last
  // batch that was accepted decides what the slots hold.
  rig.images.write_slots(n, 1);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*s);
  hip::hold(native(*s));
  std::uint32_t accepted = 0;
  for (;; ++accepted) {
    ASSERT_LE(accepted, staging_places);
    std::vector<copy_task> shifted = rig.images.tasks;
    for (std::uint32_t i = 0; i < n; ++i) shifted[i].slot = (i + n - accepted) % n;
    const status code = rig.launch(*s, copy_kind::restore, shifted);
    if (code == status::queue_full) break;
    ASSERT_EQ(code, status::ok);
  }
  EXPECT_EQ(accepted, staging_places);
  // What fits in a launch's arguments needs no place.
  EXPECT_EQ(rig.launch(*s, copy_kind::restore, {}), status::ok);
  rig.images.write_slots(n, 9000);
  hip::release(native(*s));
  rig.finish(*s);
  for (std::uint32_t i = 0; i < n; ++i)
    ASSERT_TRUE(rig.images.memory.holds((i + n - (accepted - 1)) % n, 1 + i)) << "image " << i;
  for (std::uint32_t i = 0; i < 2 * staging_places; ++i) {
    ASSERT_EQ(rig.launch(*s, copy_kind::restore, rig.images.tasks), status::ok);
    rig.finish(*s);
  }
  EXPECT_TRUE(rig.images.holds(n, 1));
}

// The event behind a place is behind the kernel that reads it, not only behind the copy of its
// words.
TEST(HipBackendBatches, APlaceIsInUseUntilItsKernelIsOver) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  const auto s = rig.new_stream();
  const auto other = rig.new_stream();
  // Whatever was enqueued before the launch is over, and the kernel does not begin.
  hip::before_next(hip::call::hipLaunchKernel, [&] {
    hip::drain(native(*s));
    hip::hold(native(*s));
  });
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::ok);
  hip::hold(native(*other));
  for (std::uint32_t i = 1; i < store_places; ++i)
    ASSERT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::ok);
  EXPECT_EQ(rig.launch(*other, copy_kind::store, rig.images.tasks), status::queue_full);
  hip::release(native(*other));
  rig.finish(*other);
  hip::release(native(*s));
  rig.finish(*s);
}

// Each batch's words arrive: seen batch by batch, each into slots of its own kind.
TEST(HipBackendBatches, EachBatchInTheRingCopiesItsOwnImages) {
  hip_rig rig(staged_images + store_places);
  tiny_images& images = rig.images;
  const auto s = rig.new_stream();
  images.write_slots(staged_images + store_places, 1);
  hip::hold(native(*s));
  // Batch k stores images k to k + 299; between batches nothing else runs.
  for (std::uint32_t k = 0; k < store_places; ++k)
    ASSERT_EQ(rig.launch(*s, copy_kind::store, std::span(images.tasks).subspan(k, staged_images)),
              status::ok);
  hip::release(native(*s));
  rig.finish(*s);
  const std::uint32_t stored = staged_images + store_places - 1;
  images.write_slots(stored, 9000);
  for (std::uint32_t i = 0; i < stored; i += 200) {
    const std::uint32_t n = std::min(200U, stored - i);
    ASSERT_EQ(rig.launch(*s, copy_kind::restore, std::span(images.tasks).subspan(i, n)),
              status::ok);
  }
  rig.finish(*s);
  EXPECT_TRUE(images.holds(stored, 1));
}

TEST(HipBackendBatches, OneStreamInTheWayHoldsUpOnlyItsOwnPlaces) {
  hip_rig rig;
  rig.images.write_slots(staged_images, 1);
  const auto held = rig.new_stream();
  const auto free = rig.new_stream();
  hip::hold(native(*held));
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(rig.launch(*held, copy_kind::store, rig.images.tasks), status::ok);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(rig.launch(*free, copy_kind::store, rig.images.tasks), status::ok);
    rig.finish(*free);
  }
  hip::release(native(*held));
}

// Somebody waits for restores, and nobody for stores, which may wait for compute themselves.
TEST(HipBackendBatches, StoresThatWaitLeavePlacesToRestores) {
  hip_rig rig(4096);  // four places, as a copier's batches may fill
  rig.images.write_slots(4096, 1);
  const auto storing = rig.new_stream();
  const auto restoring = rig.new_stream(stream_priority::high);
  ASSERT_EQ(rig.launch(*restoring, copy_kind::store, rig.images.tasks), status::ok);
  rig.finish(*restoring);
  hip::hold(native(*storing));
  std::uint32_t accepted = 0;
  while (rig.launch(*storing, copy_kind::store, rig.images.tasks) == status::ok) ++accepted;
  EXPECT_EQ(accepted, store_places / 4);
  rig.images.write_slots(4096, 50'000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.launch(*restoring, copy_kind::restore, rig.images.tasks), status::ok);
    rig.finish(*restoring);
  }
  EXPECT_TRUE(rig.images.holds(4096, 1));
  hip::release(native(*storing));
  rig.finish(*storing);
}

// All of a batch's places or none: those that it found are as free as before.
TEST(HipBackendBatches, ABatchThatFindsTooFewPlacesTakesNone) {
  hip_rig rig(4096);
  rig.images.write_slots(4096, 1);
  const auto s = rig.new_stream();
  hip::hold(native(*s));
  const auto one_place = rig.images.some(staged_images);
  for (std::uint32_t i = 0; i < store_places - 2; ++i)
    ASSERT_EQ(rig.launch(*s, copy_kind::store, one_place), status::ok);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks), status::queue_full);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.launch(*s, copy_kind::store, one_place), status::ok);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, one_place), status::queue_full);
  hip::release(native(*s));
  rig.finish(*s);
}

// Between the answer that a place's event has fired and the taking of it, another launch may take
// it and send it off again: the answer was about an older flight.
TEST(HipBackendBatches, APlaceThatFliesAgainMeanwhileIsNotTaken) {
  hip_rig rig(2 * staged_images);
  rig.images.write_slots(2 * staged_images, 1);
  const auto all = std::span<const copy_task>(rig.images.tasks);
  const auto first = rig.new_stream();
  const auto held = rig.new_stream();
  for (std::uint32_t i = 0; i < store_places; ++i)
    ASSERT_EQ(rig.launch(*first, copy_kind::store, all.last(staged_images)), status::ok);
  rig.finish(*first);
  hip::hold(native(*held));
  hip::after_next(hip::call::hipEventQuery, [&] {
    EXPECT_EQ(rig.launch(*held, copy_kind::store, all.first(staged_images)), status::ok);
  });
  EXPECT_EQ(rig.launch(*first, copy_kind::store, all.last(staged_images)), status::ok);
  rig.finish(*first);
  hip::release(native(*held));
  rig.finish(*held);
  rig.images.write_slots(staged_images, 9000);
  ASSERT_EQ(rig.launch(*first, copy_kind::restore, all.first(staged_images)), status::ok);
  rig.finish(*first);
  EXPECT_TRUE(rig.images.holds(staged_images, 1));
}

// The engine may capture it at any time: the copies would go into its graph.
TEST(HipBackendBatches, NothingIsCopiedOnTheEnginesStream) {
  hip_rig rig;
  const auto own = rig.new_stream();
  const auto wrapped = rig.dev().wrap_stream(own->native()).value();
  for (const std::uint32_t count : {0U, 1U, staged_images})
    EXPECT_EQ(rig.launch(*wrapped, copy_kind::store, rig.images.some(count)), status::unsupported);
  EXPECT_EQ(hip::calls(hip::call::hipLaunchKernel), 0U);
  EXPECT_EQ(rig.dev().why_lost(), "");
}

// More images than a board or a place has room for.
TEST(HipBackendBatches, ABatchMayFillSeveralPlaces) {
  constexpr std::uint32_t n = 2500;
  hip_rig rig(n);
  const auto s = rig.new_stream();
  const auto sums = rig.dev().allocate_pinned(n * sizeof(std::uint64_t)).value();
  batch_report stored, restored;
  stored.checksums = reinterpret_cast<std::uint64_t*>(sums->data());
  rig.images.write_slots(n, 1);
  ASSERT_EQ(rig.launch(*s, copy_kind::store, rig.images.tasks, &stored), status::ok);
  rig.finish(*s);
  const std::vector<std::uint64_t> first(stored.checksums, stored.checksums + n);
  EXPECT_NE(first[0], first[n - 1]);
  rig.images.write_slots(n, 50'000);
  restored.checksums = stored.checksums;
  std::fill_n(stored.checksums, n, 0U);
  ASSERT_EQ(rig.launch(*s, copy_kind::restore, rig.images.tasks, &restored), status::ok);
  rig.finish(*s);
  EXPECT_TRUE(rig.images.holds(n, 1));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), restored.checksums));
}

// A copier keeps to it, so that no batch needs all of the ring.
TEST(HipBackendBatches, APlanSaysHowManyImagesABatchShouldBring) {
  constexpr std::uint32_t units = 7500;
  const hip_rig rig(units / 3);
  EXPECT_EQ(rig.plan->images_max(), 4096U);
  copy_plan wide = *rig.cut;
  wide.units = units;  // two lists of them fill a place
  const auto loaded = rig.dev().load(wide, rig.images.memory.memory);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.value()->images_max(), staging_places / 4 * 2);
  const std::vector<copy_task> one_more(store_places * 2 + 1, rig.images.tasks[0]);
  const auto s = rig.new_stream();
  EXPECT_EQ(rig.dev().launch(*s, *loaded.value(), copy_kind::store, one_more, nullptr),
            status::limit);
}

TEST(HipBackendBatches, ABatchThatNeverFitsIsRefusedForGood) {
  const hip_rig rig(4);
  const auto s = rig.new_stream();
  const std::vector<copy_task> many(store_places * 1024 + 1, rig.images.tasks[0]);
  EXPECT_EQ(rig.launch(*s, copy_kind::store, many), status::limit);
  EXPECT_EQ(hip::calls(hip::call::hipLaunchKernel), 0U);
}

TEST(HipBackendBatches, RefusesWhatTheRankDoesNotHave) {
  hip_rig rig;
  const auto s = rig.new_stream();
  std::vector<unit_id> foreign = {0, 1, rig.images.memory.memory.units};
  for (const copy_task& bad : {copy_task{0, foreign.data()}, copy_task{0, nullptr},
                               copy_task{rig.images.memory.memory.slots, rig.images.units.data()},
                               copy_task{no_slot, rig.images.units.data()}}) {
    EXPECT_EQ(rig.launch(*s, copy_kind::store, {&bad, 1}), status::invalid);
    std::vector<copy_task> many = rig.images.tasks;
    many.back() = bad;
    // And no place of the ring goes with it.
    for (std::uint32_t i = 0; i < 2 * staging_places; ++i)
      ASSERT_EQ(rig.launch(*s, copy_kind::store, many), status::invalid);
  }
  EXPECT_EQ(hip::calls(hip::call::hipLaunchKernel), 0U);
}

TEST(HipBackendBatches, RefusesPlansThatItsBatchesCannotName) {
  const auto over = make_hip_backend().value();
  tiny_images images(4);
  rank_memory memory = images.memory.memory;
  const copy_plan cut = make_copy_plan(runtime_rig::shape(), memory).value();
  memory.slots = 1U << 31;
  EXPECT_FALSE(over->at(0).load(cut, memory).ok());
  memory.slots = 4;
  memory.regions.clear();  // not what the plan was cut for
  EXPECT_EQ(over->at(0).load(cut, memory).code(), status::invalid);
  memory = images.memory.memory;
  copy_plan long_list = cut;
  long_list.units = 16 * 1024;
  EXPECT_FALSE(over->at(0).load(long_list, memory).ok());
  EXPECT_EQ(hip::calls(hip::call::hipMemcpyAsync), 0U);
}

}  // namespace
}  // namespace cairn::tests
