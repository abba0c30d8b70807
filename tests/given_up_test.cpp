// Copies that were given up and restores that failed, through a runtime: what is refused, what is
// kept and until when, on every rank.
#include "tests/runtime_fixture.hpp"
#include "tests/virtual_clock.hpp"

namespace cairn::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto limit = std::chrono::nanoseconds(10min);

rig_options timed(std::uint32_t ranks = 1, completion_mode mode = completion_mode::immediate) {
  return {.ranks = ranks, .tune = [mode](runtime_options& o) {
            o.op_timeout = limit;
            o.completions = mode;
          }};
}

/// Launches what is there, and lets its time pass.
void give_up(runtime_rig& rig) {
  while (rig.rt->pump()) {
  }
  advance_clock(limit);
  while (rig.rt->pump()) {
  }
}

/// All that can run on one rank.
void run_rank(runtime_rig& rig, rank_id rank) {
  for (bool any = true; any;) {
    any = rig.rt->pump();
    for (std::uint32_t s = 0; s < 3; ++s)
      while (rig.devices.step(rig.copy_stream(rank, s))) any = true;
    for (std::uint32_t c = 0; c < 2; ++c)
      while (rig.devices.step(rig.compute(rank, c))) any = true;
  }
}

void flip(runtime_rig& rig, rank_id rank) {
  rig.memory[rank]->unit_area[0] ^= std::byte{1};  // of the first image that is stored
}

TEST(GivenUp, AStoreKeepsItsUnitsUntilTheDeviceComesBack) {
  runtime_rig rig(timed());
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  give_up(rig);
  EXPECT_EQ(stored->code(), status::timed_out);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
  rig.expect_ledger(0);
  EXPECT_EQ(rig.rt->drain(clock::now()), status::ok) << "everything has been reported";
  EXPECT_EQ(rig.rt->store(key_of(1), 0, 0).code(), status::busy);
  EXPECT_EQ(rig.rt->reset_slot(0), status::busy);
  EXPECT_EQ(rig.rt->records().counts().copying, 0U) << "a refusal begins nothing";
  rig.run();
  EXPECT_EQ(stored->code(), status::timed_out);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
  rig.expect_ledger(0);
  rig.keep(1);
  EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
}

TEST(GivenUp, ARestoreKeepsItsPinAndItsSlot) {
  runtime_rig rig(timed());
  rig.keep(1);
  auto restored = rig.rt->restore(key_of(1), 2, 0);
  ASSERT_TRUE(restored.ok());
  give_up(rig);
  EXPECT_EQ(restored->code(), status::timed_out);
  EXPECT_EQ(rig.rt->records().evictable(), 0U);
  EXPECT_EQ(rig.rt->restore(key_of(1), 2, 0).code(), status::busy);
  std::vector<unit_id> units(1);
  ticket none;
  EXPECT_EQ(rig.rt->admit({}, 1, 2, units, 0, none).code(), status::busy);
  EXPECT_EQ(rig.rt->own_pool()->counts().live, 0U);
  rig.run();
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  EXPECT_EQ(rig.rt->store(key_of(2), 2, 0).code(), status::poisoned) << "it failed all the same";
  auto again = rig.rt->restore(key_of(1), 2, 0);
  ASSERT_TRUE(again.ok());
  rig.run();
  EXPECT_EQ(again->code(), status::ok);
  EXPECT_TRUE(rig.holds(2, 1));
  EXPECT_TRUE(rig.rt->store(key_of(2), 2, 0).ok());
}

TEST(GivenUp, OneRankIsEnoughToKeepUnitsAndSlot) {
  for (const rank_id stuck : {0U, 1U}) {
    runtime_rig rig(timed(2));
    auto stored = rig.rt->store(key_of(1), 0, 0);
    ASSERT_TRUE(stored.ok());
    run_rank(rig, 1 - stuck);
    EXPECT_EQ(stored->code(), status::pending);
    give_up(rig);
    EXPECT_EQ(stored->code(), status::timed_out);
    EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
    EXPECT_EQ(rig.rt->restore(key_of(1), 0, 0).code(), status::busy);
    rig.run();
    EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
    rig.expect_ledger(0);
    rig.keep(1);
  }
}

TEST(GivenUp, UnitsReturnWithTheLastRank) {
  runtime_rig rig(timed(2));
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  give_up(rig);
  run_rank(rig, 0);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
  EXPECT_EQ(rig.rt->store(key_of(1), 0, 0).code(), status::busy);
  run_rank(rig, 1);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
  rig.expect_ledger(0);
}

// A rank that never had the restore leaves the slot as it was: half of it old, half new.
TEST(GivenUp, ARestoreThatRanOnOneRankOnlySpoilsTheSlot) {
  runtime_rig rig(timed(2));
  rig.keep(1);
  rig.write(3, 7);
  rig.devices.faulty(1).launches.always(status::queue_full);
  auto restored = rig.rt->restore(key_of(1), 3, 0);
  auto behind = rig.rt->store(key_of(2), 3, 0);
  ASSERT_TRUE(restored.ok() && behind.ok());
  run_rank(rig, 0);
  give_up(rig);
  rig.devices.faulty(1).launches.always(status::ok);
  rig.run();
  EXPECT_EQ(restored->code(), status::timed_out);
  EXPECT_NE(behind->code(), status::ok);
  EXPECT_FALSE(rig.rt->records().contains(key_of(2)));
  EXPECT_EQ(rig.rt->store(key_of(3), 3, 0).code(), status::poisoned);
  rig.write(3, 7);
  EXPECT_EQ(rig.rt->reset_slot(3), status::ok);
  rig.keep(7, 3);
  rig.expect_ledger(0);
}

TEST(GivenUp, ProofsAreAppliedWhenTheEngineSettles) {
  runtime_rig rig(timed(2, completion_mode::settled));
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  give_up(rig);
  EXPECT_EQ(stored->code(), status::pending);
  run_rank(rig, 0);  // the end and the proof wait together
  ASSERT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(stored->code(), status::timed_out);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
  rig.run();
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
  ASSERT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
  rig.expect_ledger(0);
}

TEST(GivenUp, ProofsComeAlsoAfterTheEnd) {
  for (const auto mode : {completion_mode::immediate, completion_mode::settled}) {
    runtime_rig rig(timed(2, mode));
    auto late = rig.rt->store(key_of(1), 0, 0);
    give_up(rig);
    auto flying = rig.rt->store(key_of(2), 1, 0);
    ASSERT_TRUE(late.ok() && flying.ok());
    while (rig.rt->pump()) {
    }
    EXPECT_EQ(rig.rt->close(clock::now()), status::timed_out);
    EXPECT_EQ(late->code(), status::timed_out);
    EXPECT_EQ(flying->code(), status::timed_out);
    EXPECT_EQ(rig.rt->records().counts().quarantine_units, 6U);
    rig.expect_ledger(0);
    run_rank(rig, 0);
    EXPECT_EQ(rig.rt->close(clock::now()), status::timed_out);
    rig.run();
    EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
    EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
    rig.expect_ledger(0);
  }
}

TEST(GivenUp, AnEnginesPoolGetsItsUnitsBackWhenTheRuntimeGoes) {
  auto pool =
      std::move(unit_pool::open({.units = 12, .max_units = 12, .compute_streams = 2})).value();
  {
    rig_options opts = timed(2);
    opts.tune = [&](runtime_options& o) {
      o.op_timeout = limit;
      o.pool = pool.get();
    };
    runtime_rig rig(opts);
    ASSERT_TRUE(rig.rt->store(key_of(1), 0, 0).ok());
    give_up(rig);
    EXPECT_EQ(pool->free_units(), 9U);
  }
  EXPECT_EQ(pool->free_units(), 12U);
}

// ---- poisoned slots ---------------------------------------------------------------------------

TEST(PoisonedSlot, AStoreIsRefusedBeforeItBegins) {
  runtime_rig rig(timed(2));
  rig.keep(1);
  flip(rig, 1);
  auto corrupt = rig.rt->restore(key_of(1), 4, 0);
  rig.run();
  ASSERT_EQ(corrupt->code(), status::corrupt);
  const auto refused = rig.rt->store(key_of(2), 4, 0);
  EXPECT_EQ(refused.code(), status::poisoned);
  EXPECT_EQ(rig.rt->records().fates().kept, 1U);
  EXPECT_TRUE(rig.rt->store(key_of(3), 5, 0).ok()) << "another slot";
  EXPECT_EQ(rig.rt->reset_slot(8), status::invalid);
  EXPECT_EQ(rig.rt->reset_slot(4), status::ok);
  rig.keep(2, 4);
  EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->reset_slot(4), status::closed);
}

TEST(PoisonedSlot, AStoreThatIsOnItsWayFails) {
  runtime_rig rig(timed(2));
  rig.keep(1);
  flip(rig, 0);
  auto corrupt = rig.rt->restore(key_of(1), 4, 0);
  auto behind = rig.rt->store(key_of(2), 4, 0);
  ASSERT_TRUE(corrupt.ok() && behind.ok());
  rig.run();
  EXPECT_EQ(corrupt->code(), status::corrupt);
  EXPECT_EQ(behind->code(), status::poisoned);
  EXPECT_FALSE(rig.rt->records().contains(key_of(2)));
  EXPECT_EQ(rig.rt->records().fates().failed, 1U);
  rig.expect_ledger(0);
}

TEST(PoisonedSlot, AStoreBehindTheRestoreThatMakesItGoodIsAccepted) {
  runtime_rig rig(timed());
  rig.keep(1, 0);
  rig.keep(2, 1);
  flip(rig, 0);
  auto corrupt = rig.rt->restore(key_of(1), 4, 0);
  rig.run();
  ASSERT_EQ(corrupt->code(), status::corrupt);
  auto good = rig.rt->restore(key_of(2), 4, 0);
  auto behind = rig.rt->store(key_of(3), 4, 0);
  ASSERT_TRUE(good.ok() && behind.ok());
  rig.run();
  EXPECT_EQ(good->code(), status::ok);
  EXPECT_EQ(behind->code(), status::ok);
}

TEST(PoisonedSlot, ItsBoundariesAreDroppedAndCounted) {
  for (const bool busy : {false, true}) {
    runtime_rig rig(timed());
    rig.keep(1);
    flip(rig, 0);
    auto bad = rig.rt->restore(key_of(1), 4, 0);
    ASSERT_TRUE(bad.ok());
    if (busy)
      give_up(rig);
    else
      rig.run();
    const status expected = busy ? status::busy : status::poisoned;
    ASSERT_TRUE(rig.rt->sequences().set_slot(0, 4).ok());
    ASSERT_TRUE(rig.rt->sequences().file(0, key_of(2)).ok());
    EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
    EXPECT_EQ(rig.rt->sequences().pending(), 0U);
    EXPECT_EQ(rig.dropped(drop_reason::refused), 1U);
    ASSERT_TRUE(rig.rt->sequences().file(0, key_of(2)).ok());
    EXPECT_EQ(rig.rt->store_boundary(0, 0).code(), expected);
    EXPECT_EQ(rig.rt->sequences().pending(), 0U);
    EXPECT_EQ(rig.dropped(drop_reason::refused), 2U);
    EXPECT_EQ(rig.rt->records().fates().kept, 1U);
    rig.run();
    ASSERT_EQ(rig.rt->reset_slot(4), status::ok);
    ASSERT_TRUE(rig.rt->sequences().file(0, key_of(2)).ok());
    EXPECT_EQ(rig.rt->drain_boundaries(0), 1U);
    rig.run();
    EXPECT_TRUE(rig.rt->records().contains(key_of(2)));
  }
}

TEST(PoisonedSlot, OutlivesItsTenant) {
  runtime_rig rig(timed());
  rig.keep(1);
  flip(rig, 0);
  auto corrupt = rig.rt->restore(key_of(1), 4, 0);
  rig.run();
  ASSERT_TRUE(rig.rt->release_slot(4, 0).ok());
  EXPECT_EQ(rig.rt->store(key_of(2), 4, 0).code(), status::poisoned);
  EXPECT_EQ(rig.rt->reset_slot(4), status::ok);
  EXPECT_TRUE(rig.rt->store(key_of(2), 4, 0).ok());
}

}  // namespace
}  // namespace cairn::tests
