// The HIP backend over the double, with several threads that launch large batches on streams of
// their own: they share the device's staging ring.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hip_rig.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

/// One launching thread: units that hold images base, base + 1, ..., and slots of its own.
struct launching_thread {
  launching_thread(const hip_rig& rig, std::uint64_t first)
      : shared(rig), images(staged_images), base(first), on(rig.new_stream()) {
    auto loaded = rig.dev().load(*rig.cut, images.memory.memory);
    EXPECT_TRUE(loaded.ok());
    plan = std::move(loaded).value();
    images.write_slots(staged_images, base);
    EXPECT_EQ(launch(copy_kind::store, images.tasks), status::ok);
    shared.finish(*on);
  }

  /// Until a place is free.
  status launch(copy_kind kind, std::span<const copy_task> tasks) {
    for (;;) {
      const status code = shared.dev().launch(*on, *plan, kind, tasks, nullptr);
      if (code != status::queue_full) return code;
      std::this_thread::yield();
    }
  }
  /// Restores image i into slot i - by.
  void restore_shifted(std::uint32_t by) {
    std::vector<copy_task> shifted = images.tasks;
    for (std::uint32_t i = 0; i < staged_images; ++i)
      shifted[i].slot = (i + staged_images - by) % staged_images;
    ASSERT_EQ(launch(copy_kind::restore, shifted), status::ok);
  }
  [[nodiscard]] bool holds_shifted(std::uint32_t by) const {
    for (std::uint32_t i = 0; i < staged_images; ++i)
      if (!images.memory.holds((i + staged_images - by) % staged_images, base + i)) return false;
    return true;
  }

  const hip_rig& shared;
  tiny_images images;
  std::uint64_t base;
  std::unique_ptr<stream> on;
  std::unique_ptr<device_plan> plan;
};

TEST(HipBackendThreads, LaunchersOfLargeBatchesNeverReadEachOthersWords) {
  constexpr std::uint32_t launchers = 4;
  constexpr std::uint32_t rounds = 12;
  const hip_rig rig;
  std::vector<std::unique_ptr<launching_thread>> all;
  for (std::uint32_t t = 0; t < launchers; ++t)
    all.push_back(std::make_unique<launching_thread>(rig, 10'000 * (t + 1)));
  const test::yields yields;
  test::together(launchers, [&](std::uint32_t t) {
    test::dice dice(t);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      // More batches in all than the ring has places; only the last one shows.
      std::uint32_t by = 0;
      for (std::uint32_t batch = 0; batch < 8; ++batch)
        all[t]->restore_shifted(by = dice.below(staged_images));
      rig.finish(*all[t]->on);
      ASSERT_TRUE(all[t]->holds_shifted(by)) << "thread " << t << " round " << round;
    }
  });
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

}  // namespace
}  // namespace cairn::tests
