// Threads of an engine over copies that are often late: ops run out of time while they wait and
// while they run, slots are refused, units come back. Every op ends once, what is restored is
// right, and in the end nothing is missing.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

constexpr std::uint32_t threads = 3;
constexpr std::uint32_t ranks = 2;

struct hurried_rig : runtime_rig {
  explicit hurried_rig(std::chrono::nanoseconds timeout)
      : runtime_rig(
            {.ranks = ranks, .units = 24, .manual = false, .tune = [timeout](runtime_options& o) {
               o.op_timeout = timeout;
             }}) {}

  /// Compute that writes the image of key n into the slot, after a pause.
  void compute_slot(std::uint32_t stream, slot_id slot, std::uint64_t n,
                    std::chrono::microseconds pause) {
    for (rank_id r = 0; r < ranks; ++r) {
      auto* work = new std::function<void()>([this, r, slot, n, pause] {
        if (pause.count() != 0) std::this_thread::sleep_for(pause);
        memory[r]->write(slot, n + 1000 * r);
      });
      const status code = devices.at(r).call(
          compute(r, stream),
          [](void* f) {
            const std::unique_ptr<std::function<void()>> mine(
                static_cast<std::function<void()>*>(f));
            (*mine)();
          },
          work);
      ASSERT_EQ(code, status::ok);
    }
  }
};

void hurry(std::uint64_t seed) {
  const test::yields yields;
  hurried_rig rig(std::chrono::microseconds(400));
  std::atomic<std::uint64_t> late{0};
  std::atomic<std::uint64_t> well{0};
  test::together(threads, [&](std::uint32_t t) {
    test::dice dice(seed * 16 + t);
    const std::uint32_t stream = t % 2;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const slot_id slot = t * 2 + dice.below(2);
      const std::uint64_t key = t * 8 + dice.below(4);
      const auto pause = std::chrono::microseconds(dice.below(4) == 0 ? 900 : 0);
      ASSERT_EQ(rig.rt->order_after_slot(stream, slot, runtime_rig::soon()), status::ok);
      rig.compute_slot(stream, slot, key, pause);
      (void)rig.rt->reset_slot(slot);
      auto stored = rig.rt->store(key_of(key), slot, stream);
      if (stored) {
        const status code = stored->wait(runtime_rig::soon());
        ASSERT_NE(code, status::pending);
        if (code == status::timed_out) ++late;
      }
      auto restored = rig.rt->restore(key_of(key), slot, stream);
      if (!restored) continue;
      if (dice.below(3) == 0) {  // nobody waits
        if (dice.below(2) == 0) (void)rig.rt->release_slot(slot, stream);
        continue;
      }
      const status code = restored->wait(runtime_rig::soon());
      ASSERT_NE(code, status::pending);
      if (code == status::timed_out) ++late;
      if (code != status::ok) continue;
      ++well;
      EXPECT_TRUE(rig.holds(slot, key));
    }
  });
  ASSERT_EQ(rig.rt->drain(runtime_rig::soon()), status::ok);
  ASSERT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  EXPECT_EQ(rig.rt->records().counts().copying, 0U);
  rig.expect_ledger(0);
  EXPECT_GT(late + well, 0U);
}

TEST(DeadlinesUnderLoad, EveryOpEndsAndEverythingComesBack) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) hurry(seed);
}

}  // namespace
}  // namespace cairn::tests
