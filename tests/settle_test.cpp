// When completions are applied: at once, or at settle, in begin order. Manual devices make the
// later op finish first.
#include <atomic>
#include <thread>

#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

rig_options two_images(completion_mode mode) {
  return {.units = 6, .tune = [mode](runtime_options& o) { o.completions = mode; }};
}

/// Stores keys 1 and 2, in this order; key 1's compute is late, so key 2 finishes first. Returns
/// once both are reported.
void store_two_second_first(runtime_rig& rig) {
  std::function<void()> late = [&] { rig.write(0, 1); };
  rig.enqueue(0, 0, late);
  auto first = rig.rt->store(key_of(1), 0, 0);
  (void)rig.rt->pump();  // a batch of its own
  rig.write(1, 2);
  auto second = rig.rt->store(key_of(2), 1, 1);
  ASSERT_TRUE(first.ok() && second.ok());
  for (bool any = true; any;) {
    any = rig.rt->pump();
    while (rig.devices.step(rig.compute(0, 1))) any = true;
    for (std::uint32_t s = 0; s < 3; ++s)
      while (rig.devices.step(rig.copy_stream(0, s))) any = true;
  }
  EXPECT_EQ(rig.rt->rank(0).outstanding(), 1U) << "the second has been reported alone";
  rig.run();
}

/// Which of the two goes first when a third image needs room.
std::uint64_t survivor(runtime_rig& rig) {
  EXPECT_TRUE(rig.rt->records().ensure_free_units(3).ok());
  EXPECT_EQ(rig.rt->records().counts().ready, 1U);
  return rig.rt->records().contains(key_of(1)) ? 1 : 2;
}

TEST(Completions, ImmediateOnesPublishAsTheyCome) {
  runtime_rig rig(two_images(completion_mode::immediate));
  store_two_second_first(rig);
  EXPECT_EQ(rig.rt->records().counts().ready, 2U);
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(survivor(rig), 1U) << "key 2 was published first, so it is the older";
}

TEST(Completions, SettledOnesPublishInBeginOrder) {
  runtime_rig rig(two_images(completion_mode::settled));
  store_two_second_first(rig);
  EXPECT_EQ(rig.rt->records().counts().ready, 0U);
  EXPECT_EQ(rig.rt->records().counts().copying, 2U);
  EXPECT_EQ(rig.rt->drain(clock::now()), status::ok) << "all reported";
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->records().counts().ready, 2U);
  EXPECT_EQ(survivor(rig), 2U);
}

TEST(Completions, SettleAppliesNothingWhileARankOwesAReport) {
  runtime_rig rig(
      {.ranks = 2, .tune = [](runtime_options& o) { o.completions = completion_mode::settled; }});
  auto done = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(done.ok());
  rig.run();
  std::function<void()> late = [] {};
  rig.enqueue(1, 1, late);
  auto owed = rig.rt->store(key_of(2), 1, 1);
  ASSERT_TRUE(owed.ok());
  EXPECT_EQ(rig.rt->settle(clock::now()), status::timed_out);
  EXPECT_EQ(done->code(), status::pending);
  rig.run();
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(done->code(), status::ok);
  EXPECT_EQ(owed->code(), status::ok);
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok) << "nothing left is no reason to wait";
}

TEST(Completions, SettleDoesNotWaitForCancelledOps) {
  runtime_rig rig(
      {.ranks = 2, .tune = [](runtime_options& o) { o.completions = completion_mode::settled; }});
  for (std::uint64_t n = 0; n < 60; ++n) {
    auto cancelled = rig.rt->store(key_of(n), 0, 0);
    ASSERT_TRUE(cancelled.ok()) << cancelled.why().message();
    EXPECT_TRUE(cancelled->cancel());
    if (n % 20 == 19) rig.run();
    if (n % 20 == 19) {
      EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
    }
  }
  rig.keep(1);
  rig.expect_ledger(0);
}

TEST(Completions, PinsAndFailuresAreSettledToo) {
  runtime_rig rig({.tune = [](runtime_options& o) { o.completions = completion_mode::settled; }});
  rig.keep(1);
  auto restored = rig.rt->restore(key_of(1), 2, 0);
  ASSERT_TRUE(restored.ok());
  rig.devices.faulty(0).launches.at(2, status::failed);
  auto failed = rig.rt->store(key_of(2), 3, 0);
  ASSERT_TRUE(failed.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(2, 1));
  EXPECT_EQ(restored->code(), status::pending);
  EXPECT_EQ(rig.rt->records().evictable(), 0U) << "the pin stays until the settlement";
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(restored->code(), status::ok);
  EXPECT_EQ(failed->code(), status::failed);
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  rig.expect_ledger(0);
}

// A settlement may happen while others submit: what it takes is whole.
TEST(Completions, SettlingBesideSubmittersLosesNothing) {
  runtime_rig rig({.ranks = 2, .units = 60, .manual = false, .tune = [](runtime_options& o) {
                     o.completions = completion_mode::settled;
                   }});
  constexpr std::uint64_t each = 150;
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < each; ++i) {
        auto stored = rig.rt->store(key_of(t * each + i), static_cast<slot_id>(t), 0);
        while (!stored && stored.code() != status::duplicate) {
          std::this_thread::yield();
          stored = rig.rt->store(key_of(t * each + i), static_cast<slot_id>(t), 0);
        }
        if (i % 7 == 0) (void)stored->cancel();
      }
      --running;
    });
  while (running != 0) (void)rig.rt->settle(clock::now() + std::chrono::milliseconds(5));
  for (auto& t : threads) t.join();
  EXPECT_EQ(rig.rt->settle(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->records().counts().copying, 0U);
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  const fate_counts fates = rig.rt->records().fates();
  EXPECT_EQ(fates.kept, 2 * each);
  EXPECT_EQ(fates.kept, fates.cancelled + fates.evicted + rig.rt->records().counts().ready);
  rig.expect_ledger(0);
}

}  // namespace
}  // namespace cairn::tests
