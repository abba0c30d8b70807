// Failures that other systems had, where no test of a module tells them: see tests/BUGS.md, which
// names a test for each. Through the public headers, in one thread.
#include <gtest/gtest.h>

#include <cairn/runtime.hpp>
#include <functional>
#include <vector>

#include "tests/catalog_fixture.hpp"
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

using catalog_tests::fixture;

stream_stats of_kind(const runtime_rig& rig, copy_kind kind) {
  stream_stats sum;
  for (const stream_stats& each : rig.rt->rank(0).stats()) {
    if (each.kind != kind) continue;
    sum.batches += each.batches;
    sum.images += each.images;
  }
  return sum;
}

/// A request of one key, whose KV and state are there: one unit claimed, one fresh.
struct admitted {
  explicit admitted(runtime_rig& rig, std::uint64_t n, slot_id slot) {
    const checkpoint_key keys[] = {key_of(n)};
    auto made = rig.rt->admit(keys, 1, slot, units, 0, restored);
    if (made)
      resumed = made->resumed;
    else
      ADD_FAILURE() << made.why().message();
  }
  std::uint32_t resumed = 0;
  unit_id units[2] = {no_unit, no_unit};
  ticket restored;
};

void keep_with_kv(runtime_rig& rig, std::uint64_t n) {
  unit_id kv[1];
  ASSERT_TRUE(rig.rt->pool().allocate(kv).ok());
  ASSERT_TRUE(rig.rt->own_pool()->publish(kv[0], key_of(n)).ok());
  rig.keep(n);
  ASSERT_TRUE(rig.rt->pool().free(kv[0]).ok());
}

TEST(SharedPrefix, RestoresOfOneCheckpointDoNotQueueBehindEachOther) {
  runtime_rig rig;
  rig.keep(1);
  std::vector<ticket> all;
  for (slot_id slot = 1; slot < 8; ++slot) {
    auto made = rig.rt->restore(key_of(1), slot, 0);
    ASSERT_TRUE(made.ok()) << made.why().message();
    all.push_back(std::move(*made));
  }
  rig.run();
  for (slot_id slot = 1; slot < 8; ++slot) {
    EXPECT_EQ(all[slot - 1].code(), status::ok);
    EXPECT_TRUE(rig.holds(slot, 1));
  }
  EXPECT_EQ(of_kind(rig, copy_kind::restore).images, 7U);
  EXPECT_EQ(of_kind(rig, copy_kind::restore).batches, 1U);
}

TEST(Batching, StoresThatAreReadyTogetherAreOneLaunch) {
  runtime_rig rig({.units = 30});
  std::vector<ticket> all;
  for (slot_id slot = 0; slot < 8; ++slot) {
    rig.write(slot, slot + 1);
    auto made = rig.rt->store(key_of(slot + 1), slot, 0);
    ASSERT_TRUE(made.ok()) << made.why().message();
    all.push_back(std::move(*made));
  }
  rig.run();
  for (const ticket& each : all) EXPECT_EQ(each.code(), status::ok);
  EXPECT_EQ(of_kind(rig, copy_kind::store).images, 8U);
  EXPECT_EQ(of_kind(rig, copy_kind::store).batches, 1U);
}

TEST(Abort, DuringALoadGivesEverythingBack) {
  runtime_rig rig;
  keep_with_kv(rig, 1);
  {
    admitted request(rig, 1, 3);
    ASSERT_EQ(request.resumed, 1U);
    ASSERT_TRUE(rig.rt->pump());  // the device has it, and has not run it
    ASSERT_EQ(request.restored.code(), status::pending);
    const auto cancelled = rig.rt->release_slot(3, 0);
    ASSERT_TRUE(cancelled.ok());
    EXPECT_EQ(*cancelled, 0U);
    for (const unit_id each : request.units) EXPECT_TRUE(rig.rt->pool().free(each).ok());
  }  // nobody waits for the restore any more
  rig.run();
  rig.expect_ledger(0);
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
  EXPECT_EQ(rig.rt->records().evictable(), 1U);  // its pin has fallen
}

TEST(Abort, BeforeALoadGivesEverythingBackAtOnce) {
  runtime_rig rig;
  keep_with_kv(rig, 1);
  admitted request(rig, 1, 3);
  const auto cancelled = rig.rt->release_slot(3, 0);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(*cancelled, 1U);
  for (const unit_id each : request.units) EXPECT_TRUE(rig.rt->pool().free(each).ok());
  EXPECT_EQ(request.restored.code(), status::cancelled);
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  rig.expect_ledger(0);
  rig.run();
  rig.expect_ledger(0);
}

// The engine may drop the key of a copy that runs; nobody gets the units before it has run.
TEST(Forgotten, UnitsStayUntilTheDeviceHasCopied) {
  runtime_rig rig;
  const std::uint32_t before = rig.rt->pool().free_units();
  rig.write(0, 1);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  ASSERT_TRUE(rig.rt->pump());
  ASSERT_TRUE(rig.rt->records().forget(key_of(1)));
  EXPECT_EQ(rig.rt->pool().free_units(), before - 3);
  EXPECT_EQ(stored->code(), status::pending);
  rig.run();
  EXPECT_EQ(rig.rt->pool().free_units(), before);
  EXPECT_FALSE(rig.rt->records().contains(key_of(1)));

  // The same under a restore: a reader too keeps them.
  rig.keep(2);
  auto restored = rig.rt->restore(key_of(2), 1, 0);
  ASSERT_TRUE(restored.ok());
  ASSERT_TRUE(rig.rt->pump());
  ASSERT_TRUE(rig.rt->records().forget(key_of(2)));
  EXPECT_EQ(rig.rt->pool().free_units(), before - 3);
  rig.run();
  EXPECT_EQ(restored->code(), status::ok);
  EXPECT_TRUE(rig.holds(1, 2));
  EXPECT_EQ(rig.rt->pool().free_units(), before);
}

TEST(Integrity, IsOnUnlessItIsSwitchedOff) {
  EXPECT_TRUE(runtime_options{}.checksums);
  EXPECT_TRUE(copier_options{}.checksums);
  runtime_rig rig;  // says nothing of checksums
  rig.keep(1);
  rig.memory[0]->unit_area[5] ^= std::byte{1};
  auto restored = rig.rt->restore(key_of(1), 1, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_EQ(restored->code(), status::corrupt);
  EXPECT_FALSE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(rig.rt->rank(0).slot_status(1), status::poisoned);
}

TEST(Exhaustion, WithEveryCheckpointUnderCopyIsARefusalAndNoMore) {
  fixture f(6);
  f.store(1);
  f.store(2);
  auto one = f.records->begin_restore(catalog_tests::key(1), 1);
  auto two = f.records->begin_restore(catalog_tests::key(2), 2);
  ASSERT_TRUE(one.ok() && two.ok());
  unit_id unit[1];
  const checkpoint_key fresh[] = {catalog_tests::key(9)};
  unit_id both[2];
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(f.records->begin_store(catalog_tests::key(3), 0).code(), status::no_room);
    EXPECT_EQ(f.records->allocate(unit).code(), status::no_room);
    EXPECT_EQ(f.records->ensure_free_units(1).code(), status::no_room);
    EXPECT_EQ(f.records->admit(fresh, 1, 0, both).code(), status::no_room);
    EXPECT_FALSE(f.records->has_available_units(1));
    f.expect_ledger();
  }
  EXPECT_EQ(f.records->fates().evicted, 0U);
  EXPECT_TRUE(f.finish(*one).ended);
  EXPECT_TRUE(f.records->begin_store(catalog_tests::key(3), 0).ok());

  fixture copying(6);
  const copy_op first = copying.begin(1);
  const copy_op second = copying.begin(2);
  EXPECT_EQ(copying.records->begin_store(catalog_tests::key(3), 0).code(), status::no_room);
  EXPECT_TRUE(copying.finish(first).ended && copying.finish(second).ended);
  EXPECT_TRUE(copying.records->begin_store(catalog_tests::key(3), 0).ok());
}

// Domains are told apart by tags inside the key: all of its bits must count.
TEST(Keys, ThatDifferInAnyBitAreStrangers) {
  fixture f(12);
  const checkpoint_key base{0x1122334455667788, 0x99aabbccddeeff00};
  auto op = f.records->begin_store(base, 0);
  ASSERT_TRUE(op.ok());
  ASSERT_TRUE(f.finish(*op).ended);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t flip = std::uint64_t{1} << bit;
    for (const checkpoint_key other :
         {checkpoint_key{base.hi ^ flip, base.lo}, checkpoint_key{base.hi, base.lo ^ flip}}) {
      EXPECT_FALSE(f.records->contains(other)) << bit;
      EXPECT_EQ(f.records->begin_restore(other, 1).code(), status::not_found) << bit;
      EXPECT_FALSE(f.records->forget(other)) << bit;
    }
  }
  EXPECT_FALSE(f.records->contains({base.lo, base.hi}));
  EXPECT_TRUE(f.records->contains(base));
}

// No key stands for "none": zeros and ones are keys like any other, for records and for KV.
TEST(Keys, NoneIsSpecial) {
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  const checkpoint_key all[] = {{0, 0}, {ones, ones}, {0, ones}, {ones, 0}, {1, 0}, {0, 1}};
  runtime_rig rig({.units = 30});
  std::vector<unit_id> kv(6);
  ASSERT_TRUE(rig.rt->pool().allocate(kv).ok());
  for (std::size_t i = 0; i < kv.size(); ++i) {
    EXPECT_FALSE(rig.rt->records().contains(all[i]));
    EXPECT_EQ(rig.rt->pool().lookup(all[i]), no_unit);
    EXPECT_TRUE(rig.rt->own_pool()->publish(kv[i], all[i]).ok());
    rig.write(0, i + 1);
    auto stored = rig.rt->store(all[i], 0, 0);
    ASSERT_TRUE(stored.ok());
    rig.run();
    EXPECT_EQ(stored->code(), status::ok);
  }
  for (std::size_t i = 0; i < kv.size(); ++i) {
    EXPECT_EQ(rig.rt->pool().lookup(all[i]), kv[i]);
    EXPECT_TRUE(rig.rt->records().contains(all[i]));
    EXPECT_EQ(rig.rt->store(all[i], 0, 0).code(), status::duplicate);
    auto restored = rig.rt->restore(all[i], 1, 0);
    ASSERT_TRUE(restored.ok());
    rig.run();
    EXPECT_EQ(restored->code(), status::ok);
    EXPECT_TRUE(rig.holds(1, i + 1));
    EXPECT_TRUE(rig.rt->records().forget(all[i]));
    EXPECT_FALSE(rig.rt->records().contains(all[i]));
  }
}

// Whichever rank says so, and whoever speaks last: one failure is the op's.
TEST(Failures, OfOneRankAreTheOpsWhateverTheOrder) {
  for (const rank_id bad : {0U, 1U, 2U})
    for (const rank_id first : {0U, 1U, 2U})
      for (const status how : {status::failed, status::corrupt, status::timed_out}) {
        fixture f(6, 3);
        const copy_op stored = f.begin(1);
        finish_outcome last;
        for (rank_id i = 0; i < 3; ++i) {
          const rank_id rank = (first + i) % 3;
          last = f.finish(stored, rank == bad ? how : status::ok, rank);
        }
        EXPECT_TRUE(last.ended);
        EXPECT_EQ(last.code, how);
        EXPECT_FALSE(f.records->contains(catalog_tests::key(1)));
        EXPECT_EQ(f.pool->free_units(), 6U);
      }
}

// A restore that the device refused is no fault of the image's: it stays, unpinned, and the next
// restore brings it. Nothing goes on trying by itself.
TEST(Failures, OfARestoreLeaveTheImageAndAreNotTriedAgain) {
  runtime_rig rig;
  rig.keep(1);
  rig.devices.faulty(0).launches.at(1, status::failed);
  auto restored = rig.rt->restore(key_of(1), 1, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_EQ(restored->code(), status::failed);
  EXPECT_EQ(of_kind(rig, copy_kind::restore).batches, 1U);
  EXPECT_TRUE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(rig.rt->records().evictable(), 1U);
  EXPECT_EQ(rig.rt->rank(0).slot_status(1), status::poisoned);
  auto again = rig.rt->restore(key_of(1), 1, 0);
  ASSERT_TRUE(again.ok());
  rig.run();
  EXPECT_EQ(again->code(), status::ok);
  EXPECT_TRUE(rig.holds(1, 1));
  EXPECT_EQ(rig.rt->rank(0).slot_status(1), status::ok);
}

// A store that came to nothing has still said where the compute was that worked on its slot.
TEST(Abort, OfAStoreKeepsTheNextCopyBehindTheComputeOnItsSlot) {
  runtime_rig rig;
  rig.keep(1);
  std::function<void()> still_works = [&] { rig.write(3, 77); };
  rig.enqueue(0, 0, still_works);
  auto stored = rig.rt->store(key_of(2), 3, 0);
  ASSERT_TRUE(stored.ok());
  ASSERT_TRUE(stored->cancel());
  auto restored = rig.rt->restore(key_of(1), 3, 1);
  ASSERT_TRUE(restored.ok());
  for (int again = 0; again < 3; ++again) {
    (void)rig.rt->pump();
    while (rig.devices.step(rig.compute(0, 1))) {
    }
    for (std::uint32_t s = 0; s < 3; ++s)
      while (rig.devices.step(rig.copy_stream(0, s))) {
      }
  }
  EXPECT_EQ(restored->code(), status::pending) << "it ran before the compute on its slot";
  rig.run();
  EXPECT_EQ(restored->code(), status::ok);
  EXPECT_TRUE(rig.holds(3, 1));
}

TEST(Exhaustion, OfALimitEvictsNothing) {
  auto pool = std::move(unit_pool::open({6, 6, 1})).value();
  catalog_options opts;
  opts.shape = {10, 40, 25, "tiny"};
  opts.slots = 2;
  opts.max_ops = 1;
  auto records = std::move(catalog::open(std::move(opts), *pool)).value();
  for (const std::uint64_t n : {1U, 2U}) {
    auto op = records->begin_store(catalog_tests::key(n), 0);
    ASSERT_TRUE(op.ok());
    completion done;
    done.op = op->header.op;
    done.epoch = op->header.epoch;
    ASSERT_TRUE(records->finish(done).ended);
  }
  auto held = records->begin_restore(catalog_tests::key(1), 1);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(records->begin_store(catalog_tests::key(3), 0).code(), status::limit);
  EXPECT_EQ(records->begin_restore(catalog_tests::key(2), 0).code(), status::limit);
  EXPECT_EQ(records->fates().evicted, 0U);
  EXPECT_TRUE(records->contains(catalog_tests::key(2)));
  EXPECT_EQ(records->evictable(), 1U);
  EXPECT_TRUE(records->cancel(held->header.op));
  EXPECT_TRUE(records->begin_store(catalog_tests::key(3), 0).ok());
}

}  // namespace
}  // namespace cairn::tests
