// Single ops of the runtime: tickets, cancelling, and the order among copies and compute on a
// slot. All on manual devices, so every interleaving is the test's own.
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

TEST(Ticket, TellsPendingThenHowItEnded) {
  runtime_rig rig;
  EXPECT_EQ(ticket().code(), status::stale);
  EXPECT_EQ(ticket().wait(clock::now()), status::stale);
  EXPECT_FALSE(ticket().cancel());
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(stored->valid());
  EXPECT_EQ(stored->code(), status::pending);
  EXPECT_EQ(stored->wait(clock::now()), status::pending);
  ticket moved = std::move(*stored);
  EXPECT_FALSE(stored->valid());
  rig.run();
  EXPECT_EQ(moved.code(), status::ok);
  EXPECT_EQ(moved.wait(runtime_rig::soon()), status::ok);
  EXPECT_FALSE(moved.cancel());
  moved = ticket();
  EXPECT_FALSE(moved.valid());
  EXPECT_EQ(rig.rt->records().counts().ops, 0U) << "nobody observes it any more";
}

TEST(Ticket, OutlivedByItsOp) {
  runtime_rig rig;
  { ASSERT_TRUE(rig.rt->store(key_of(1), 0, 0).ok()); }
  rig.run();
  EXPECT_TRUE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
}

TEST(Cancel, OnlyBeforeAnyRankTookTheOp) {
  runtime_rig rig({.ranks = 2});
  auto queued = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(queued.ok());
  EXPECT_TRUE(queued->cancel());
  EXPECT_FALSE(queued->cancel());
  EXPECT_EQ(queued->code(), status::cancelled);
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 0U);
  EXPECT_EQ(rig.rt->rank(1).outstanding(), 1U) << "both ranks still have it queued";
  rig.run();
  EXPECT_EQ(rig.rt->drain(clock::now()), status::ok);

  auto taken = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(taken.ok());
  (void)rig.rt->rank(1).pump();
  EXPECT_FALSE(taken->cancel());
  rig.run();
  EXPECT_EQ(taken->code(), status::ok);
  EXPECT_EQ(rig.rt->records().fates().cancelled, 1U);
}

TEST(Cancel, CancelledOpNeverRuns) {
  runtime_rig rig;
  rig.keep(1);
  rig.write(3, 70);
  auto restored = rig.rt->restore(key_of(1), 3, 0);
  ASSERT_TRUE(restored.ok());
  EXPECT_TRUE(restored->cancel());
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  rig.run();
  EXPECT_TRUE(rig.holds(3, 70));
}

TEST(Cancel, ManyCancelledOpsLeaveNothingBehind) {
  runtime_rig rig({.ranks = 2});
  for (std::uint64_t n = 0; n < 30; ++n) {
    auto stored = rig.rt->store(key_of(n), static_cast<slot_id>(n % 8), 0);
    ASSERT_TRUE(stored.ok()) << stored.why().message();
    EXPECT_TRUE(stored->cancel());
  }
  rig.keep(77, 3);  // behind cancelled ops on its slot, whose indices it reuses
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 3U);
  rig.expect_ledger(0);
}

TEST(Slots, ReleaseCancelsWhatIsQueuedForTheSlotOnly) {
  runtime_rig rig;
  rig.keep(1);
  auto restore = rig.rt->restore(key_of(1), 2, 0);
  auto store = rig.rt->store(key_of(2), 2, 0);
  auto other = rig.rt->store(key_of(3), 4, 0);
  ASSERT_TRUE(restore.ok() && store.ok() && other.ok());
  EXPECT_EQ(*rig.rt->release_slot(2, 0), 2U);
  EXPECT_EQ(restore->code(), status::cancelled);
  EXPECT_EQ(store->code(), status::cancelled);
  EXPECT_EQ(other->code(), status::pending);
  rig.run();
  EXPECT_EQ(other->code(), status::ok);
  rig.expect_ledger(0);
}

TEST(Units, AStoreOverwritesThemBehindTheComputeOfTheirLastShare) {
  // The only units were live KV of a request on compute stream 1, freed at a position
  // that the stream has not reached; the store names compute stream 0.
  runtime_rig rig({.units = 3});
  std::array<unit_id, 3> units{};
  ASSERT_TRUE(rig.rt->records().allocate(units).ok());
  const std::vector<std::byte> before = rig.memory[0]->unit_area;
  bool intact = false;
  std::function<void()> late = [&] { intact = rig.memory[0]->unit_area == before; };
  rig.enqueue(0, 1, late);
  const auto reached = rig.rt->mark(1);
  ASSERT_TRUE(reached.ok());
  for (const unit_id each : units) ASSERT_TRUE(rig.rt->own_pool()->free(each, *reached).ok());
  rig.write(0, 7);
  auto stored = rig.rt->store(key_of(7), 0, 0);
  ASSERT_TRUE(stored.ok());
  // Everything but compute stream 1 runs.
  for (bool any = true; any;) {
    any = rig.rt->pump();
    while (rig.devices.step(rig.compute(0, 0))) any = true;
    for (std::uint32_t copies = 0; copies < 3; ++copies)
      while (rig.devices.step(rig.copy_stream(0, copies))) any = true;
  }
  EXPECT_EQ(stored->code(), status::pending);
  rig.run();
  EXPECT_TRUE(intact) << "the store overwrote units that compute still read";
  EXPECT_EQ(stored->code(), status::ok);
}

TEST(Slots, ANormalEndLetsQueuedStoresGoOn) {
  runtime_rig rig;
  rig.keep(1);
  auto restore = rig.rt->restore(key_of(1), 2, 0);
  auto store = rig.rt->store(key_of(2), 2, 0);
  ASSERT_TRUE(restore.ok() && store.ok());
  EXPECT_EQ(*rig.rt->finish_slot(2, 0), 1U);
  EXPECT_EQ(restore->code(), status::cancelled);
  EXPECT_EQ(store->code(), status::pending);
  rig.run();
  EXPECT_EQ(store->code(), status::ok);
}

TEST(Boundaries, OfOneSequenceAreStoredWithoutTouchingOthers) {
  runtime_rig rig;
  for (sequence_id q : {0U, 1U}) ASSERT_TRUE(rig.rt->sequences().set_slot(q, q).ok());
  EXPECT_EQ(rig.rt->store_boundary(0, 0).code(), status::not_found);
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(10)).ok());
  ASSERT_TRUE(rig.rt->sequences().file(1, key_of(11)).ok());
  auto stored = rig.rt->store_boundary(0, 0);
  ASSERT_TRUE(stored.ok()) << stored.why().message();
  EXPECT_EQ(rig.rt->sequences().pending(), 1U);
  rig.run();
  EXPECT_EQ(stored->code(), status::ok);
  EXPECT_TRUE(rig.rt->records().contains(key_of(10)));
  EXPECT_FALSE(rig.rt->records().contains_or_copying(key_of(11)));
  EXPECT_EQ(rig.rt->store_boundary(99, 0).code(), status::not_found);
}

// Whatever the refusal: a boundary that stayed would be stored by a later call, when the sequence's
// next steps have overwritten the slot.
TEST(Boundaries, ARefusedStoreLeavesNoneBehind) {
  runtime_rig rig;
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 4).ok());
  const auto refused = [&](std::uint32_t compute) {
    EXPECT_TRUE(rig.rt->sequences().file(0, key_of(10)).ok());
    const status code = rig.rt->store_boundary(0, compute).code();
    EXPECT_EQ(rig.rt->sequences().pending(), 0U) << to_string(code);
    EXPECT_EQ(rig.rt->store_boundary(0, 0).code(), status::not_found);
    return code;
  };
  rig.devices.faulty(0).records.always(status::queue_full);
  EXPECT_EQ(refused(0), status::queue_full);
  rig.devices.faulty(0).records.always(status::ok);
  EXPECT_EQ(rig.dropped(drop_reason::queue_full), 1U);
  EXPECT_EQ(refused(9), status::invalid);
  rig.devices.faulty(0).capture = true;
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(10)).ok());
  EXPECT_EQ(rig.rt->store_boundary(0, 0).code(), status::busy);
  rig.devices.faulty(0).capture = false;
  EXPECT_EQ(rig.rt->sequences().pending(), 0U);
  EXPECT_EQ(rig.dropped(drop_reason::refused), 2U);
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(10)).ok());
  EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->store_boundary(0, 0).code(), status::closed);
  EXPECT_EQ(rig.dropped(drop_reason::closed), 1U);
  EXPECT_EQ(rig.rt->records().fates().kept, 0U);
}

TEST(Slots, ACancelledOpIsOverWithoutAStream) {
  runtime_rig rig;
  rig.keep(1);
  // The device takes nothing for now: the first op waits with it, the second behind the first.
  rig.devices.faulty(0).launches.always(status::queue_full);
  auto first = rig.rt->restore(key_of(1), 2, 0);
  ASSERT_TRUE(first.ok());
  while (rig.rt->pump() && rig.rt->rank(0).outstanding() != 1) {
  }
  auto second = rig.rt->restore(key_of(1), 3, 0);
  ASSERT_TRUE(second.ok());
  rig.rt->pump();
  EXPECT_EQ(rig.rt->rank(0).outstanding(), 2U);
  EXPECT_TRUE(second->cancel());
  rig.rt->pump();
  EXPECT_EQ(rig.rt->rank(0).outstanding(), 1U) << "its room and its turn are free";
  EXPECT_EQ(rig.rt->order_after_slot(0, 3, clock::now()), status::ok);
  rig.devices.faulty(0).launches.always(status::ok);
  rig.run();
  EXPECT_EQ(first->code(), status::ok);
}

TEST(Slots, ARefusedReleaseChangesNothing) {
  runtime_rig rig;
  rig.keep(1);
  auto queued = rig.rt->restore(key_of(1), 2, 0);
  ASSERT_TRUE(queued.ok());
  rig.devices.faulty(0).capture = true;  // the position of the stream cannot be had
  EXPECT_EQ(rig.rt->release_slot(2, 0).code(), status::busy);
  EXPECT_EQ(queued->code(), status::pending);
  rig.devices.faulty(0).capture = false;
  EXPECT_EQ(*rig.rt->release_slot(2, 0), 1U);
}

TEST(Runtime, AfterCloseNoStreamIsTouched) {
  runtime_rig rig;
  EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->release_slot(2, 0).code(), status::closed);
  EXPECT_EQ(rig.rt->mark(0).code(), status::closed);
}

TEST(Slots, NextTenantsCopyRunsBehindTheComputeOfTheRelease) {
  runtime_rig rig;
  rig.keep(1);
  // The old tenant's last kernel, on compute stream 1, still writes the slot.
  std::function<void()> late = [&] { rig.write(2, 50); };
  rig.enqueue(0, 1, late);
  EXPECT_EQ(*rig.rt->release_slot(2, 1), 0U);
  auto restored = rig.rt->restore(key_of(1), 2, 0);  // the new tenant computes on stream 0
  ASSERT_TRUE(restored.ok());
  // Everything but compute stream 1 runs.
  for (bool any = true; any;) {
    any = rig.rt->pump();
    while (rig.devices.step(rig.compute(0, 0))) any = true;
    for (std::uint32_t s = 0; s < 3; ++s)
      while (rig.devices.step(rig.copy_stream(0, s))) any = true;
  }
  EXPECT_EQ(restored->code(), status::pending);
  rig.run();
  EXPECT_EQ(restored->code(), status::ok);
  EXPECT_TRUE(rig.holds(2, 1));
}

TEST(Slots, StoreReadsWhatTheComputeStreamLeavesAtTheCall) {
  runtime_rig rig({.ranks = 2});
  std::function<void()> first = [&] { rig.write(0, 1); };
  rig.enqueue(0, 0, first);
  rig.enqueue(1, 0, first);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  for (bool any = true; any;) {
    any = rig.rt->pump();
    for (const rank_id r : {0U, 1U})
      for (std::uint32_t s = 0; s < 3; ++s)
        while (rig.devices.step(rig.copy_stream(r, s))) any = true;
  }
  EXPECT_EQ(stored->code(), status::pending) << "it waits for compute on its own rank";
  rig.run();
  rig.write(0, 60);
  auto restored = rig.rt->restore(key_of(1), 0, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(0, 1));
}

// Restores go before stores, except on one slot.
TEST(Slots, OpsOnOneSlotRunInTheOrderOfTheCalls) {
  runtime_rig rig;
  rig.keep(1);
  rig.write(3, 2);
  auto stored = rig.rt->store(key_of(2), 3, 0);
  auto restored = rig.rt->restore(key_of(1), 3, 1);
  ASSERT_TRUE(stored.ok() && restored.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(3, 1));
  auto check = rig.rt->restore(key_of(2), 4, 0);
  ASSERT_TRUE(check.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(4, 2)) << "the store read the slot before the restore wrote it";
}

// Without the order, the compute streams, which come first, run before the copy.
TEST(OrderAfter, LaterComputeSeesTheRestoredBytesOnEveryRank) {
  runtime_rig rig({.ranks = 2});
  rig.keep(1);
  rig.write(3, 80);
  auto restored = rig.rt->restore(key_of(1), 3, 0);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(rig.rt->order_after(1, *restored, runtime_rig::soon()), status::ok);
  bool seen[2] = {};
  std::function<void()> look[2];
  for (const rank_id r : {0U, 1U}) {
    look[r] = [&rig, &seen, r] { seen[r] = rig.memory[r]->holds(3, 1 + 1000 * r); };
    rig.enqueue(r, 1, look[r]);
  }
  rig.run();
  EXPECT_TRUE(seen[0]);
  EXPECT_TRUE(seen[1]);
  // It has ended: nothing to wait for.
  EXPECT_EQ(rig.rt->order_after(1, *restored, clock::now()), status::ok);
}

TEST(OrderAfter, SlotFormCoversEveryOpOnTheSlot) {
  runtime_rig rig;
  rig.write(3, 1);
  auto stored = rig.rt->store(key_of(1), 3, 0);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(rig.rt->order_after_slot(1, 3, runtime_rig::soon()), status::ok);
  std::function<void()> overwrite = [&] { rig.write(3, 90); };
  rig.enqueue(0, 1, overwrite);
  rig.run();
  auto restored = rig.rt->restore(key_of(1), 5, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(5, 1)) << "the store read the slot before the later compute wrote it";
  EXPECT_EQ(rig.rt->order_after_slot(1, 99, clock::now()), status::invalid);
  EXPECT_EQ(rig.rt->order_after_slot(7, 3, clock::now()), status::invalid);
}

// The last tenant computes on one stream and restores or stores nothing at its end, the next one
// computes on another and restores nothing: no copy stands between them.
TEST(OrderAfter, SlotFormCoversTheLastTenantsComputeOnAnotherStream) {
  for (const bool finished : {true, false}) {
    runtime_rig rig({.ranks = 2});
    bool last[2] = {};
    std::uint32_t next = 0;
    std::function<void()> reads[2];
    std::function<void()> writes[2];
    for (const rank_id r : {0U, 1U}) {
      reads[r] = [&last, r] { last[r] = true; };
      writes[r] = [&last, &next, r] {
        ++next;
        EXPECT_TRUE(last[r]) << "the next tenant's compute overtook the last one's";
      };
      rig.enqueue(r, 1, reads[r]);
    }
    ASSERT_TRUE((finished ? rig.rt->finish_slot(3, 1) : rig.rt->release_slot(3, 1)).ok());
    ASSERT_EQ(rig.rt->order_after_slot(0, 3, runtime_rig::soon()), status::ok);
    for (const rank_id r : {0U, 1U}) {
      rig.enqueue(r, 0, writes[r]);
      while (rig.devices.step(rig.compute(r, 0))) {
      }
    }
    EXPECT_EQ(next, 0U);
    rig.run();
    EXPECT_EQ(next, 2U);
  }
}

TEST(OrderAfter, FencesOfOtherStreamsAreWaitedForOnce) {
  runtime_rig rig;
  faulty_device& device = rig.devices.faulty(0);
  std::vector<int> ran;
  std::function<void()> first = [&] { ran.push_back(1); };
  std::function<void()> second = [&] { ran.push_back(2); };
  rig.enqueue(0, 1, first);
  const auto used = rig.rt->mark(1);
  ASSERT_TRUE(used.ok());
  fence_set until;
  until.merge(*used);
  const auto waits = [&] { return device.waits_put.load(); };
  const std::uint64_t none = waits();
  EXPECT_EQ(rig.rt->order_after_fences(1, until, clock::now()), status::ok);
  EXPECT_EQ(waits(), none) << "a stream runs behind itself";
  device.waits.at(1, status::queue_full);
  EXPECT_EQ(rig.rt->order_after_fences(0, until, runtime_rig::soon()), status::ok);
  EXPECT_EQ(waits(), none + 2) << "asked again while it was full";
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::ok);
  EXPECT_EQ(waits(), none + 2) << "it runs behind the step already";
  rig.enqueue(0, 0, second);
  while (rig.devices.step(rig.compute(0, 0))) {
  }
  EXPECT_TRUE(ran.empty());
  rig.run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));

  until.merge({1, used->step + 1});
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::invalid) << "never marked";
  until = {};
  until.merge({5, 1});
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::invalid)
      << "no such stream";
  EXPECT_EQ(rig.rt->order_after_fences(7, {}, clock::now()), status::invalid);
  const auto later = rig.rt->mark(1);
  ASSERT_TRUE(later.ok());
  until = {};
  until.merge(*later);
  device.waits.at(1, status::failed);
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::failed);
  device.waits.at(1, status::queue_full);
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::timed_out);
  EXPECT_EQ(rig.rt->order_after_fences(0, until, clock::now()), status::ok)
      << "what ordered nothing is not taken for an order";
}

TEST(OrderAfter, OpThatIsNotLaunchedTimesOutAndOrdersNothing) {
  runtime_rig rig;
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(rig.rt->order_after(1, *stored, clock::now()), status::timed_out);
  EXPECT_TRUE(stored->cancel());
  rig.run();
  EXPECT_EQ(rig.rt->order_after(1, *stored, clock::now()), status::ok) << "it has ended";
}

}  // namespace
}  // namespace cairn::tests
