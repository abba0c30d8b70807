// The runtime as an engine sees it: opening, ranks, room, boundaries. All on manual devices, so
// every interleaving is the test's own.
#include <array>

#include "tests/allocations.hpp"
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

TEST(Runtime, OpenRefusesWhatDoesNotFitTogether) {
  faulty_backend devices({1, 1, true, 64});
  tiny_memory a(12, 8);
  tiny_memory fewer_units(9, 8);
  tiny_memory fewer_slots(12, 4);
  const auto with = [&](auto change) {
    runtime_options opts;
    opts.shape = runtime_rig::shape();
    opts.ranks = {a.memory};
    opts.threaded = false;
    change(opts);
    return runtime::open(std::move(opts), devices).code();
  };
  EXPECT_EQ(with([](auto&) {}), status::ok);
  EXPECT_EQ(with([](auto& o) { o.ranks.clear(); }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.shape.layout_id.clear(); }), status::invalid);
  EXPECT_EQ(with([&](auto& o) { o.ranks.push_back(a.memory); }), status::invalid) << "one device";
  EXPECT_EQ(with([](auto& o) { o.compute_streams = 0; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.compute_streams = max_compute_streams + 1; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.units = 13; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.max_ops = 0; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.store_depth = 0; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.max_sequences = 0; }), status::invalid);
  EXPECT_EQ(with([](auto& o) { o.ranks[0].slots = 0; }), status::invalid);
  const auto pool =
      std::move(*unit_pool::open({.units = 12, .max_units = 13, .compute_streams = 1}));
  EXPECT_EQ(with([&](auto& o) { o.pool = pool.get(); }), status::invalid);

  faulty_backend two({2, 1, true, 64});
  for (tiny_memory* other : {&fewer_units, &fewer_slots}) {
    runtime_options opts;
    opts.shape = runtime_rig::shape();
    opts.ranks = {a.memory, other->memory};
    EXPECT_EQ(runtime::open(std::move(opts), two).code(), status::invalid);
  }
}

TEST(Runtime, StoreThenRestoreBringsTheBytesBack) {
  runtime_rig rig({.ranks = 2});
  rig.keep(7, 0);
  rig.write(0, 99);
  auto restored = rig.rt->restore(key_of(7), 3, 1);
  ASSERT_TRUE(restored.ok());
  EXPECT_FALSE(rig.holds(3, 7));
  rig.run();
  EXPECT_EQ(restored->code(), status::ok);
  EXPECT_TRUE(rig.holds(3, 7));
  EXPECT_EQ(rig.rt->latencies().store.count(), 1U);
  EXPECT_EQ(rig.rt->latencies().restore.count(), 1U);
  EXPECT_EQ(rig.rt->latencies().submit.count(), 2U);
  rig.expect_ledger(0);
}

TEST(Runtime, RefusesImpossibleCallsWithAReason) {
  runtime_rig rig;
  EXPECT_EQ(rig.rt->store(key_of(1), 8, 0).code(), status::invalid);
  EXPECT_EQ(rig.rt->store(key_of(1), 0, 2).code(), status::invalid);
  EXPECT_EQ(rig.rt->restore(key_of(1), no_slot, 0).code(), status::invalid);
  EXPECT_EQ(rig.rt->restore(key_of(1), 0, 0).code(), status::not_found);
  EXPECT_EQ(rig.rt->mark(2).code(), status::invalid);
  EXPECT_EQ(rig.rt->attach(1, 0, rig.compute(0, 0)).code(), status::invalid);
  EXPECT_EQ(rig.rt->release_slot(8, 0).code(), status::invalid);
  EXPECT_EQ(rig.rt->order_after(0, ticket(), clock::now()), status::invalid);
  const auto first = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(rig.rt->store(key_of(1), 1, 0).code(), status::duplicate);
  rig.run();
  EXPECT_EQ(rig.rt->store(key_of(1), 1, 0).code(), status::duplicate);
  EXPECT_EQ(rig.rt->records().fates().dropped_total(), 0U) << "a call's answer is not a drop";
}

TEST(Ranks, ReadyOnlyWhenEveryRankHasReported) {
  runtime_rig rig({.ranks = 3});
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  for (const rank_id done : {2U, 0U}) {
    for (bool any = true; any;) {
      any = rig.rt->rank(done).pump();
      while (rig.devices.step()) any = true;
    }
    EXPECT_EQ(rig.rt->rank(done).outstanding(), 0U);
    EXPECT_FALSE(rig.rt->records().contains(key_of(1)));
    EXPECT_EQ(stored->code(), status::pending);
  }
  EXPECT_EQ(rig.rt->drain(clock::now()), status::timed_out);
  rig.run();
  EXPECT_TRUE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(stored->code(), status::ok);
  EXPECT_EQ(rig.rt->drain(clock::now()), status::ok);
}

TEST(Ranks, OneFailureUnwindsAfterAllHaveReported) {
  runtime_rig rig({.ranks = 2});
  rig.devices.faulty(1).launches.at(1, status::failed);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  for (bool any = true; any;) any = rig.rt->rank(1).pump();
  EXPECT_EQ(stored->code(), status::pending);
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 3U) << "rank 0 may still write";
  rig.run();
  EXPECT_EQ(stored->code(), status::failed);
  EXPECT_FALSE(rig.rt->records().contains_or_copying(key_of(1)));
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 0U);
  EXPECT_EQ(rig.rt->records().fates().failed, 1U);
  EXPECT_EQ(rig.rt->latencies().store.count(), 0U);
  rig.keep(1);  // the next store of the key works
}

TEST(Ranks, LostDeviceFailsWhatIsOutAndRefusesMore) {
  runtime_rig rig({.ranks = 2});
  rig.keep(5);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  rig.devices.faulty(1).gone = true;
  rig.run();
  EXPECT_EQ(stored->code(), status::device_lost);
  EXPECT_EQ(rig.rt->store(key_of(2), 1, 0).code(), status::device_lost);
  EXPECT_EQ(rig.rt->restore(key_of(5), 1, 0).code(), status::device_lost);
  EXPECT_EQ(rig.rt->mark(0).code(), status::device_lost);
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 0).ok());
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(3)).ok());
  EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
  EXPECT_EQ(rig.dropped(drop_reason::refused), 1U);
  EXPECT_TRUE(rig.rt->rank(0).try_room(copy_kind::store, 32)) << "refusals gave their room back";
  rig.rt->rank(0).give_room(copy_kind::store, 32);
  EXPECT_EQ(rig.rt->records().counts().ops, 1U) << "the ticket's";
  EXPECT_FALSE(rig.rt->records().contains(key_of(5))) << "a shard of it is lost";
  EXPECT_EQ(rig.rt->records().epoch(), 1U) << "once, however many ops it fails";
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 0U);
}

TEST(Ranks, ALossThatOnlyARefusalShowsForgetsEveryRecordToo) {
  runtime_rig rig({.ranks = 2});
  rig.keep(5);
  rig.devices.faulty(1).gone = true;
  EXPECT_EQ(rig.rt->store(key_of(1), 0, 0).code(), status::device_lost);
  EXPECT_FALSE(rig.rt->records().contains(key_of(5)));
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 0U);
}

TEST(Room, FullOnOneRankTakesNothingOnTheOthers) {
  runtime_rig rig({.ranks = 3});
  ASSERT_TRUE(rig.rt->rank(1).try_room(copy_kind::store, 32));
  EXPECT_EQ(rig.rt->store(key_of(1), 0, 0).code(), status::queue_full);
  for (const rank_id r : {0U, 2U}) {
    EXPECT_TRUE(rig.rt->rank(r).try_room(copy_kind::store, 32));
    rig.rt->rank(r).give_room(copy_kind::store, 32);
  }
  EXPECT_EQ(rig.rt->records().fates().kept, 0U);
  EXPECT_EQ(rig.rt->records().fates().dropped_total(), 0U);
  // As a boundary it is lost, and counted.
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 0).ok());
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(1)).ok());
  EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
  EXPECT_EQ(rig.dropped(drop_reason::queue_full), 1U);
  rig.rt->rank(1).give_room(copy_kind::store, 32);
  rig.keep(1);
  // Full of restores.
  ASSERT_TRUE(rig.rt->rank(2).try_room(copy_kind::restore, 32));
  EXPECT_EQ(rig.rt->restore(key_of(1), 0, 0).code(), status::queue_full);
  EXPECT_TRUE(rig.rt->records().counts().ops == 0);
  rig.rt->rank(2).give_room(copy_kind::restore, 32);
}

TEST(Room, RefusedBeginGivesItsRoomBack) {
  runtime_rig rig({.ranks = 2, .units = 3});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(rig.rt->restore(key_of(9), 0, 0).code(), status::not_found);
  }
  rig.keep(1);
  auto pinned = rig.rt->restore(key_of(1), 1, 0);
  ASSERT_TRUE(pinned.ok());
  for (std::uint64_t n = 2; n < 100; ++n) {
    EXPECT_EQ(rig.rt->store(key_of(n), 0, 0).code(), status::no_room);
  }
  rig.run();
  for (const rank_id r : {0U, 1U}) {
    EXPECT_TRUE(rig.rt->rank(r).try_room(copy_kind::store, 32));
    EXPECT_TRUE(rig.rt->rank(r).try_room(copy_kind::restore, 32));
    rig.rt->rank(r).give_room(copy_kind::store, 32);
    rig.rt->rank(r).give_room(copy_kind::restore, 32);
  }
}

TEST(Boundaries, DrainStoresAndForgetsTheTickets) {
  runtime_rig rig({.ranks = 2});
  for (const sequence_id s : {0U, 1U, 2U}) {
    ASSERT_TRUE(rig.rt->sequences().set_slot(s, s).ok());
    rig.write(s, s + 1);
    ASSERT_TRUE(rig.rt->sequences().file(s, key_of(s + 1)).ok());
  }
  rig.devices.faulty(1).capture = true;
  EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
  EXPECT_EQ(rig.rt->sequences().pending(), 3U) << "a capturing stream is no reason to drop";
  rig.devices.faulty(1).capture = false;
  EXPECT_EQ(rig.rt->drain_boundaries(9), 0U);
  EXPECT_EQ(rig.rt->drain_boundaries(0), 3U);
  EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
  rig.run();
  EXPECT_EQ(rig.rt->records().counts().ready, 3U);
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  auto restored = rig.rt->restore(key_of(2), 7, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_TRUE(rig.holds(7, 2));
}

TEST(Boundaries, OrphanedWhenTheirKvIsTaken) {
  runtime_rig rig({.units = 8});
  unit_pool& pool = *rig.rt->own_pool();
  std::vector<unit_id> kv(2);
  ASSERT_TRUE(rig.rt->records().allocate(kv).ok());
  ASSERT_TRUE(pool.publish(kv[0], key_of(1)).ok());
  ASSERT_TRUE(pool.publish(kv[1], key_of(2)).ok());
  rig.keep(1);
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 0).ok());
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(2)).ok());
  const auto freed_at = rig.rt->mark(0);
  ASSERT_TRUE(freed_at.ok());
  ASSERT_TRUE(pool.free(kv[1], *freed_at).ok());
  ASSERT_TRUE(pool.free(kv[0], *freed_at).ok());
  // Three vacant units and two cached ones are free; the next four take the older cached one.
  std::vector<unit_id> fresh(4);
  ASSERT_TRUE(rig.rt->records().allocate(fresh).ok());
  EXPECT_EQ(rig.rt->sequences().pending(), 0U);
  EXPECT_EQ(rig.rt->records().fates().orphaned, 1U);
  EXPECT_TRUE(rig.rt->records().contains(key_of(1)));
  std::vector<unit_id> one(1);
  ASSERT_TRUE(rig.rt->records().allocate(one).ok());
  EXPECT_FALSE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(rig.rt->records().fates().orphaned, 2U);
  EXPECT_EQ(rig.rt->records().fates().evicted, 0U);
}

TEST(HotPaths, AllocateNothingOnceAThreadHasMadeItsFirstCalls) {
  if (!allocations_are_counted) GTEST_SKIP() << "a sanitizer owns malloc";
  runtime_rig rig({.ranks = 2, .units = 200});
  rig.keep(1);
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 4).ok());
  std::array<unit_id, 3> units{};
  const std::array<checkpoint_key, 1> prompt = {key_of(1)};
  ASSERT_TRUE(rig.rt->records().allocate(units).ok());
  ASSERT_TRUE(rig.rt->own_pool()->publish(units[0], prompt[0]).ok());
  for (const unit_id u : units) ASSERT_TRUE(rig.rt->own_pool()->free(u).ok());
  std::uint64_t before = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    if (n == 10) before = allocations_of_this_thread();
    {
      auto stored = rig.rt->store(key_of(100 + n), 1, 0);
      EXPECT_TRUE(stored.ok());
      auto restored = rig.rt->restore(key_of(1), 2, 1);
      EXPECT_TRUE(restored.ok());
      ticket admitted;
      EXPECT_TRUE(rig.rt->admit(prompt, 2, 3, units, 0, admitted).ok());
      EXPECT_TRUE(admitted.valid());
      const auto until = rig.rt->mark(0);
      for (const unit_id u : units) EXPECT_TRUE(rig.rt->own_pool()->free(u, *until).ok());
      EXPECT_TRUE(rig.rt->sequences().file(0, key_of(500 + n)).ok());
      EXPECT_EQ(rig.rt->drain_boundaries(1), 1U);
      EXPECT_EQ(rig.rt->store(key_of(1), 0, 0).code(), status::duplicate);
      EXPECT_EQ(rig.rt->restore(key_of(99), 0, 0).code(), status::not_found);
      EXPECT_EQ(*rig.rt->release_slot(2, 0), 1U);
      EXPECT_TRUE(stored->cancel());
    }
    const std::uint64_t kept = allocations_of_this_thread();
    rig.run();  // the copy thread's side has tests of its own
    before += allocations_of_this_thread() - kept;
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST(Runtimes, TwoInOneProcessDoNotMeet) {
  runtime_rig a;
  runtime_rig b({.ranks = 2});
  a.write(0, 1);
  b.write(0, 2);
  auto in_a = a.rt->store(key_of(1), 0, 0);
  auto in_b = b.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(in_a.ok() && in_b.ok());
  a.run();
  EXPECT_EQ(in_a->code(), status::ok);
  EXPECT_EQ(in_b->code(), status::pending);
  EXPECT_FALSE(b.rt->records().contains(key_of(1)));
  b.run();
  auto from_b = b.rt->restore(key_of(1), 4, 0);
  ASSERT_TRUE(from_b.ok());
  b.run();
  EXPECT_TRUE(b.holds(4, 2));
  // And on one backend, one after the other.
  in_a = ticket();
  a.rt.reset();
  runtime_options again;
  again.shape = runtime_rig::shape();
  again.ranks = {a.memory[0]->memory};
  again.threaded = false;
  auto opened = runtime::open(std::move(again), a.devices);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE((*opened)->records().contains(key_of(1)));
}

TEST(Runtimes, EnginesOwnPoolServesInsteadOfTheRuntimes) {
  const auto pool =
      std::move(*unit_pool::open({.units = 9, .max_units = 12, .compute_streams = 2}));
  {
    runtime_rig rig({.tune = [&](runtime_options& o) { o.pool = pool.get(); }});
    EXPECT_EQ(rig.rt->own_pool(), nullptr);
    EXPECT_EQ(&rig.rt->pool(), pool.get());
    rig.keep(1);
    EXPECT_EQ(pool->counts().reserved, 3U);
  }
  std::vector<unit_id> rest(6);
  EXPECT_TRUE(pool->allocate(rest).ok()) << "the pool outlives the runtime's hook";
}

TEST(Runtimes, EnginesOwnPoolMayNotRememberAStreamThatThereIsNot) {
  const auto pool = std::move(*unit_pool::open({.units = 3, .compute_streams = 2}));
  tiny_memory memory(3, 2);
  faulty_backend devices({1, 1, true, 64});
  const auto opens = [&](std::uint32_t compute_streams) {
    runtime_options opts;
    opts.shape = runtime_rig::shape();
    opts.ranks = {memory.memory};
    opts.threaded = false;
    opts.compute_streams = compute_streams;
    opts.pool = pool.get();
    return runtime::open(std::move(opts), devices).code();
  };
  unit_id unit = no_unit;
  ASSERT_TRUE(pool->allocate({&unit, 1}).ok());
  ASSERT_TRUE(pool->free(unit, {0, 7}).ok());
  EXPECT_EQ(opens(1), status::ok);
  ASSERT_TRUE(pool->allocate({&unit, 1}).ok());
  ASSERT_TRUE(pool->free(unit, {1, 7}).ok());
  EXPECT_EQ(opens(1), status::invalid) << "every store into the unit would end as invalid";
  EXPECT_EQ(opens(2), status::ok);
}

}  // namespace
}  // namespace cairn::tests
