// The copier on the host backend: what is accepted, in which order it runs, how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cairn/copier.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/allocations.hpp"
#include "tests/copier_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;
using test::together;
using test::yields;
using testing::HasSubstr;

// ---- bytes ---------------------------------------------------------------------------------

class CopierGeometry : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(CopierGeometry, StoredImageComesBackInAnotherSlot) {
  const geometry& g = geometries()[std::get<0>(GetParam())];
  bench_options opts;
  opts.geometry = g.name;
  opts.negative = std::get<1>(GetParam());
  opts.manual = false;
  opts.threaded = true;
  opts.slots = 3;
  opts.units = 2 * g.units_per_image + 1;
  copier_bench b(opts);
  const copy_op store = b.store(0, 0);
  const copy_op other = b.store(1, 1);
  ASSERT_EQ(b.submit({store, other}), status::ok);
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  const copy_op restore = b.restore(2, 0);
  const copy_op back = b.restore(0, 1);
  ASSERT_EQ(b.submit({restore, back}), status::ok);
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  for (const copy_op& op : {store, other, restore, back}) {
    b.model(op);
    EXPECT_EQ(b.codes(op), codes{status::ok});
  }
  EXPECT_TRUE(b.rank().matches());
}
// By place in `geometries()`; negative strides on the small ones only, to spare time.
INSTANTIATE_TEST_SUITE_P(All, CopierGeometry,
                         testing::Combine(testing::Range<std::size_t>(0, 5),
                                          testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Backwards, CopierGeometry,
                         testing::Combine(testing::Values<std::size_t>(0, 3, 4),
                                          testing::Values(true)));

TEST(Copier, CompletionCarriesRankAndEpoch) {
  copier_bench b;
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.settle();
  ASSERT_EQ(b.completions.size(), 1U);
  EXPECT_EQ(b.completions[0].op, store.header.op);
  EXPECT_EQ(b.completions[0].rank, 3U);
  EXPECT_EQ(b.completions[0].epoch, 5U);
}

// ---- what is refused -----------------------------------------------------------------------

struct bad_op {
  const char* what;
  void (*spoil)(copy_op&);
};
class CopierRefuses : public testing::TestWithParam<bad_op> {};

TEST_P(CopierRefuses, TheWholeCall) {
  copier_bench b;
  const copy_op good = b.store(0, 0);
  copy_op bad = b.store(1, 1);
  std::vector<unit_id> units(bad.units.begin(), bad.units.end());
  units.back() = 96;
  if (std::string(GetParam().what).find("unit is") == 0) bad.units = units;
  GetParam().spoil(bad);
  const std::vector<copy_op> both = {good, bad};
  const auto refused = b.get().submit(both);
  ASSERT_EQ(refused.code(), status::invalid);
  EXPECT_THAT(refused.why().message(), HasSubstr(GetParam().what));
  EXPECT_EQ(b.get().check(bad).code(), status::invalid);
  EXPECT_TRUE(b.get().check(good));
  EXPECT_EQ(b.get().outstanding(), 0U);
  b.settle();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_TRUE(b.rank().matches());
}
INSTANTIATE_TEST_SUITE_P(
    Each, CopierRefuses,
    testing::Values(bad_op{"op index", [](copy_op& o) { o.header.op.index = 1024; }},
                    bad_op{"neither a store nor a restore",
                           [](copy_op& o) { o.header.kind = static_cast<copy_kind>(2); }},
                    bad_op{"another layout", [](copy_op& o) { ++o.header.layout_fingerprint; }},
                    bad_op{"image size", [](copy_op& o) { --o.header.image_bytes; }},
                    bad_op{"wrong number of units", [](copy_op& o) { ++o.header.unit_count; }},
                    bad_op{"disagree on the number",
                           [](copy_op& o) { o.units = o.units.first(2); }},
                    bad_op{"slot is out of range", [](copy_op& o) { o.header.slot = 12; }},
                    bad_op{"unit is out of range", [](copy_op&) {}},
                    bad_op{"never marked", [](copy_op& o) { o.header.fences.steps[0] = 1; }},
                    bad_op{"never marked", [](copy_op& o) { o.header.fences.steps[7] = 1; }}),
    [](const auto& each) { return "Case" + std::to_string(each.index); });

TEST(Copier, MessageSaysWhatWasExpectedAndWhatCame) {
  copier_bench b;
  const copy_op op = b.store(12, 0);
  const std::string message = b.get().check(op).why().message();
  EXPECT_THAT(message, HasSubstr("expected 12"));
  EXPECT_THAT(message, HasSubstr("got 12"));
}

TEST(Copier, RepeatedUnitIsReportedAsInvalidAndPassesItsTurn) {
  copier_bench b;
  const std::vector<unit_id> twice = {4, 9, 4};
  copy_op bad = b.store(1, 0, 1);
  bad.units = twice;
  const copy_op next = b.store(1, 1, 2);
  ASSERT_EQ(b.submit({bad, next}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(bad), codes{status::invalid});
  EXPECT_EQ(b.codes(next), codes{status::ok});
  b.model(next);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Copier, OpenRefusesImpossibleOptions) {
  copier_bench b;
  const auto refused = [&](auto spoil) {
    copier_options o = b.options();
    spoil(o);
    const auto made = copier::open(o, b.faults());
    EXPECT_FALSE(made.ok());
    return made.ok() ? std::string() : made.why().message();
  };
  EXPECT_THAT(refused([](auto& o) { o.on_completion = nullptr; }), HasSubstr("on_completion"));
  EXPECT_THAT(refused([](auto& o) { o.store_depth = 0; }), HasSubstr("store_depth"));
  EXPECT_THAT(refused([](auto& o) { o.restore_streams = 0; }), HasSubstr("restore_streams"));
  EXPECT_THAT(refused([](auto& o) { o.store_streams = 200; }), HasSubstr("store_streams"));
  EXPECT_THAT(refused([](auto& o) { o.compute_streams = 9; }), HasSubstr("compute_streams"));
  EXPECT_THAT(refused([](auto& o) { o.memory.slots = 0; }), HasSubstr("slots"));
  EXPECT_THAT(refused([](auto& o) { o.rank = max_ranks; }), HasSubstr("rank"));
  refused([](auto& o) { o.shape.layout_id.clear(); });
  refused([](auto& o) { o.memory.regions.pop_back(); });
  refused([](auto& o) { o.memory.segments[0].base = nullptr; });
  EXPECT_FALSE(b.get().attach(2, b.compute()));
}

// ---- room ----------------------------------------------------------------------------------

TEST(Copier, RoomIsAllOrNothingPerDirection) {
  bench_options opts;
  opts.store_depth = 4;
  opts.restore_depth = 2;
  copier_bench b(opts);
  std::vector<copy_op> stores;
  for (std::uint32_t i = 0; i < 3; ++i) stores.push_back(b.store(i, i));
  ASSERT_EQ(b.submit(stores), status::ok);
  EXPECT_EQ(b.submit({b.store(4, 4), b.store(5, 5)}), status::queue_full);
  EXPECT_EQ(b.get().outstanding(), 3U);
  const copy_op fourth = b.store(6, 6);
  ASSERT_EQ(b.submit(fourth), status::ok);
  EXPECT_EQ(b.submit(b.store(7, 7)), status::queue_full);
  // Full of stores, it still takes restores, and a mixed call takes room in both or in none.
  EXPECT_EQ(b.submit({b.restore(8, 8), b.store(7, 7)}), status::queue_full);
  const copy_op restore = b.restore(8, 8);
  ASSERT_EQ(b.submit(restore), status::ok);
  EXPECT_TRUE(b.get().try_room(copy_kind::restore, 1));
  EXPECT_FALSE(b.get().try_room(copy_kind::restore, 1));
  b.get().give_room(copy_kind::restore, 1);
  b.settle();
  EXPECT_EQ(b.completions.size(), 5U);
  EXPECT_TRUE(b.get().try_room(copy_kind::store, 4));
  EXPECT_FALSE(b.get().try_room(copy_kind::store, 1));
  b.get().give_room(copy_kind::store, 4);
}

TEST(Copier, RoomIsBackWhenTheCompletionIsSeen) {
  bench_options opts;
  opts.store_depth = 1;
  copier_bench b(opts);
  copy_op second = b.store(1, 1);
  b.on_completion = [&](const completion&) {
    if (b.completions.size() == 1) {
      EXPECT_EQ(b.submit(second), status::ok);
    }
  };
  ASSERT_EQ(b.submit(b.store(0, 0)), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(second), codes{status::ok});
}

// ---- order ---------------------------------------------------------------------------------

TEST(Copier, RestoresGoBeforeStores) {
  copier_bench b;
  ASSERT_EQ(
      b.submit({b.store(0, 0), b.store(1, 1), b.restore(2, 2), b.store(3, 3), b.restore(4, 4)}),
      status::ok);
  b.pump();
  ASSERT_EQ(b.faults().launched().size(), 2U) << "one launch per batch and direction";
  EXPECT_EQ(b.faults().launched()[0].kind, copy_kind::restore);
  EXPECT_EQ(b.faults().launched()[0].slots, (std::vector<slot_id>{2, 4}));
  EXPECT_EQ(b.faults().launched()[1].kind, copy_kind::store);
  EXPECT_EQ(b.faults().launched()[1].slots, (std::vector<slot_id>{0, 1, 3}));
  b.settle();
}

TEST(Copier, RestoreThatComesLateGoesBeforeTheNextBatchOfStores) {
  bench_options opts;
  opts.max_batch = 2;
  copier_bench b(opts);
  std::vector<copy_op> stores;
  for (std::uint32_t i = 0; i < 6; ++i) stores.push_back(b.store(i, i));
  ASSERT_EQ(b.submit(stores), status::ok);
  ASSERT_TRUE(b.get().pump());
  ASSERT_EQ(b.submit(b.restore(8, 8)), status::ok);
  b.pump();
  ASSERT_EQ(b.faults().launched().size(), 4U);
  EXPECT_EQ(b.faults().launched()[0].kind, copy_kind::store);
  EXPECT_EQ(b.faults().launched()[1].kind, copy_kind::restore);
  b.settle();
}

TEST(Copier, TwoOpsOnOneSlotAreNeverInOneBatch) {
  copier_bench b;
  ASSERT_EQ(b.submit({b.store(1, 0), b.store(1, 1), b.store(2, 2), b.store(1, 3)}), status::ok);
  b.pump();
  for (const auto& each : b.faults().launched()) {
    const std::set<slot_id> slots(each.slots.begin(), each.slots.end());
    EXPECT_EQ(slots.size(), each.slots.size());
  }
  EXPECT_EQ(b.faults().launched().size(), 3U) << "an op is not held back by its predecessor's copy";
  b.settle();
  EXPECT_EQ(b.completions.size(), 4U);
}

TEST(Copier, StoresUseSeveralStreamsWithinTheBatchLimit) {
  bench_options opts;
  opts.max_batch = 3;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.store(i, i));
  ASSERT_EQ(b.submit(ops), status::ok);
  b.pump();
  std::set<stream*> used;
  for (const auto& each : b.faults().launched()) {
    EXPECT_EQ(each.slots.size(), 3U);
    used.insert(each.on);
  }
  EXPECT_EQ(used.size(), 2U);
  b.settle();
  const std::vector<stream_stats> all = b.get().stats();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].images + all[1].images, 12U);
  EXPECT_EQ(all[0].batches + all[1].batches, 4U);
  EXPECT_EQ(all[0].bytes + all[1].bytes, 12U * 12'345U);
  EXPECT_EQ(all[2].kind, copy_kind::restore);
  EXPECT_EQ(all[2].batches, 0U);
}

TEST(Copier, CancelledOpPassesItsTurnWithoutACompletion) {
  copier_bench b;
  const copy_op first = b.store(1, 0, 1);
  const copy_op cancelled = b.restore(1, 1, 2);
  const copy_op third = b.store(1, 2, 3);
  std::vector<op_id> asked;
  b.on_take = [&](op_id op) {
    asked.push_back(op);
    return op != cancelled.header.op;
  };
  ASSERT_EQ(b.submit({third, cancelled, first}), status::ok);
  b.settle();
  EXPECT_EQ(asked, (std::vector<op_id>{first.header.op, cancelled.header.op, third.header.op}));
  EXPECT_TRUE(b.codes(cancelled).empty());
  b.model(first);
  b.model(third);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.get().outstanding(), 0U);
  EXPECT_EQ(b.get().order_after(0, {&cancelled.header.op, 1}, now()), status::ok);
  EXPECT_EQ(b.get().order_after_slot(0, 1, now()), status::ok);
  EXPECT_TRUE(b.get().try_room(copy_kind::restore, 64));
  b.get().give_room(copy_kind::restore, 64);
}

// The catalog ends a cancelled op at once: its index and its units may be in use again while the
// cancelled op still waits in the queue.
TEST(Copier, CancelledOpAndTheNextTenantOfItsIndexDoNotMix) {
  copier_bench b;
  std::vector<unit_id> list = b.units(0);
  copy_op old = b.store(1, 0);
  old.units = list;
  ASSERT_EQ(b.submit(old), status::ok);
  b.on_take = [&](op_id op) { return op != old.header.op; };
  list = b.units(1);
  copy_op fresh = b.store(2, 1);
  fresh.units = list;
  fresh.header.op = {old.header.op.index, old.header.op.generation + 1};
  ASSERT_EQ(b.submit(fresh), status::ok);
  b.settle();
  b.model(fresh);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.codes(fresh), codes{status::ok});
  EXPECT_TRUE(b.codes(old).empty());
}

TEST(Copier, EndOfACancelledOpDoesNotHideTheNextTenantOfItsIndex) {
  copier_bench b;
  const copy_op old = b.store(1, 0, 2);  // waits for a number
  copy_op fresh = b.store(2, 1);
  fresh.header.op = {old.header.op.index, old.header.op.generation + 1};
  b.on_take = [&](op_id op) { return op != old.header.op; };
  ASSERT_EQ(b.submit({old, fresh}), status::ok);
  b.pump();
  ASSERT_EQ(b.faults().launched().size(), 1U);
  b.get().skip(1, 1);
  b.pump();
  EXPECT_EQ(b.get().outstanding(), 1U) << "the old op has been dropped";
  EXPECT_EQ(b.get().order_after(0, {&fresh.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0);
  b.settle();
}

// ---- failures ------------------------------------------------------------------------------

TEST(Copier, FailedLaunchFailsItsOpsAndNoOthers) {
  bench_options opts;
  opts.max_batch = 2;
  copier_bench b(opts);
  const std::vector<copy_op> ops = {b.store(0, 0), b.store(1, 1), b.store(2, 2), b.store(3, 3)};
  b.faults().launches.at(1, status::failed);
  ASSERT_EQ(b.submit(ops), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(ops[0]), codes{status::failed});
  EXPECT_EQ(b.codes(ops[1]), codes{status::failed});
  EXPECT_EQ(b.codes(ops[2]), codes{status::ok});
  EXPECT_EQ(b.codes(ops[3]), codes{status::ok});
  b.model(ops[2]);
  b.model(ops[3]);
  EXPECT_TRUE(b.rank().matches());
  // The slot is not stuck.
  const copy_op again = b.store(0, 5);
  ASSERT_EQ(b.submit(again), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(again), codes{status::ok});
}

// A launch that failed may have enqueued a part: its ops end when the stream has passed it.
TEST(Copier, OpsOfAFailedLaunchEndOnlyWhenNothingCanRunAnyMore) {
  copier_bench b;
  b.faults().launches.at(1, status::failed);
  b.faults().launch_then_fail = true;
  const copy_op store = b.store(0, 0);
  ASSERT_EQ(b.submit(store), status::ok);
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0) << "ordered behind what may still run";
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::failed});
}

TEST(Copier, FailedRecordHoldsItsOpsUntilTheyAreProvenOver) {
  copier_bench b;
  b.faults().records.always(status::failed);
  const copy_op store = b.store(0, 0);
  const copy_op next = b.restore(0, 1);
  ASSERT_EQ(b.submit({store, next}), status::ok);
  b.pump();
  while (b.host().step()) {
  }
  b.pump();
  EXPECT_TRUE(b.completions.empty());
  EXPECT_EQ(b.get().order_after(0, {&store.header.op, 1}, now()), status::timed_out);
  b.faults().records.always(status::ok);
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::failed});
  EXPECT_EQ(b.codes(next), codes{status::ok});
}

TEST(Copier, FailedWaitFailsItsOpsBeforeTheyRun) {
  copier_bench b;
  const copy_op store = b.store(0, 0);
  const copy_op restore = b.restore(0, 1);
  const copy_op last = b.store(0, 2);
  b.faults().waits.at(1, status::failed);
  ASSERT_EQ(b.submit({store, restore, last}), status::ok);
  b.pump();
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::ok});
  EXPECT_EQ(b.codes(restore), codes{status::failed});
  EXPECT_EQ(b.codes(last), codes{status::ok});
  b.model(store);
  b.model(last);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Copier, FullStreamIsNotAFailure) {
  bench_options opts;
  opts.stream_depth = 4;
  opts.max_batch = 1;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.store(i, i));
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.restore(i, 12 + i));
  ASSERT_EQ(b.submit(ops), status::ok);
  b.settle();
  for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
}

TEST(Copier, LostDeviceFailsWhatIsOutstandingAndRefusesMore) {
  bench_options opts;
  opts.max_batch = 1;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 12; ++i) ops.push_back(b.store(i, i));
  ops.push_back(b.restore(3, 3, 2));  // waits for a number
  ASSERT_EQ(b.submit(ops), status::ok);
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 1));
  b.pump();
  b.faults().gone = true;
  EXPECT_EQ(b.get().mark({0, 1}), status::device_lost);
  EXPECT_TRUE(b.get().lost());
  b.pump();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(b.codes(ops[i]).size(), 1U);
  for (std::size_t i = 8; i < ops.size(); ++i)
    EXPECT_EQ(b.codes(ops[i]), codes{status::device_lost});
  for (const completion& each : b.completions) EXPECT_NE(each.code, status::ok);
  EXPECT_EQ(b.submit(b.store(0, 0)), status::device_lost);
  EXPECT_FALSE(b.get().try_room(copy_kind::restore, 1));
  EXPECT_EQ(b.get().order_after(0, {&ops[0].header.op, 1}, now()), status::device_lost);
  // An op whose room was taken before is reported all the same.
  const copy_op late = b.store(1, 1);
  b.get().enqueue(late);
  b.pump();
  EXPECT_EQ(b.codes(late), codes{status::device_lost});
  EXPECT_EQ(b.get().close(now()), status::ok);
}

TEST(Copier, DeviceLostInALaunchEndsAllThatWaits) {
  copier_bench b;
  b.faults().launches.at(1, status::device_lost);
  const copy_op store = b.store(0, 0);
  const copy_op behind = b.restore(0, 1);
  ASSERT_EQ(b.submit({store, behind}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(store), codes{status::device_lost});
  EXPECT_EQ(b.codes(behind), codes{status::device_lost});
  EXPECT_EQ(b.get().outstanding(), 0U);
}

// ---- closing -------------------------------------------------------------------------------

TEST(Copier, CloseReportsTheRestWhenTimeIsUp) {
  copier_bench b;
  const copy_op flying = b.store(0, 0, 1);
  const copy_op held = b.store(1, 1, 2);
  const copy_op dropped = b.store(2, 2, 2);
  b.on_take = [&](op_id op) { return op != dropped.header.op; };
  ASSERT_EQ(b.submit({flying, held, dropped}), status::ok);
  b.pump();
  EXPECT_EQ(b.get().close(now()), status::timed_out);
  EXPECT_EQ(b.codes(flying), codes{status::timed_out});
  EXPECT_EQ(b.codes(held), codes{status::cancelled});
  EXPECT_TRUE(b.codes(dropped).empty());
  EXPECT_EQ(b.submit(b.store(3, 3)), status::closed);
  // Still ordered behind what may run, and proven over later.
  EXPECT_EQ(b.get().order_after(0, {&flying.header.op, 1}, now()), status::ok);
  std::function<void()> step = [] {};
  b.enqueue(b.compute(), step);
  EXPECT_EQ(b.run(b.compute()), 0);
  b.settle();
  EXPECT_EQ(b.get().close(now()), status::ok);
  EXPECT_EQ(b.completions.size(), 2U) << "nothing is reported twice";
  b.model(flying);
  EXPECT_TRUE(b.rank().matches());
}

TEST(Copier, CloseLetsAcceptedOpsFinish) {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  copier_bench b(opts);
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 30; ++i) ops.push_back(b.store(i % 12, i));
  ASSERT_EQ(b.submit(ops), status::ok);
  EXPECT_EQ(b.get().close(soon()), status::ok);
  for (const copy_op& op : ops) EXPECT_EQ(b.codes(op), codes{status::ok});
  EXPECT_EQ(b.get().close(soon()), status::ok);
}

TEST(Copier, CloseWaitsForRoomsThatAreStillOut) {
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  copier_bench b(opts);
  ASSERT_TRUE(b.get().try_room(copy_kind::store, 2));
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    // Long after the test has been ended: only the room that comes back may wake it.
    EXPECT_EQ(b.get().close(clock::now() + std::chrono::hours(1)), status::ok);
    closed = true;
  });
  while (b.get().try_room(copy_kind::restore, 1)) b.get().give_room(copy_kind::restore, 1);
  const copy_op late = b.store(0, 0);
  b.get().enqueue(late);
  while (b.get().outstanding() != 0) std::this_thread::yield();
  EXPECT_FALSE(closed.load());
  b.get().give_room(copy_kind::store, 1);
  closer.join();
  EXPECT_EQ(b.codes(late), codes{status::ok});
}

TEST(Copier, DestructionReportsWhatIsLeft) {
  copier_bench b;
  const copy_op held = b.store(1, 1, 2);
  ASSERT_EQ(b.submit(held), status::ok);
  b.destroy_copier();
  EXPECT_EQ(b.codes(held), codes{status::cancelled});
}

class CopierUnderLoad : public testing::TestWithParam<bool> {};

TEST_P(CopierUnderLoad, EveryAcceptedOpIsReportedOnceAtShutdown) {
  yields injected;
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t each_thread = 250;
  for (std::uint32_t round = 0; round < 6; ++round) {
    bench_options opts;
    opts.geometry = "tiny";
    opts.manual = false;
    opts.threaded = true;
    opts.store_depth = 48;
    opts.restore_depth = 32;
    opts.max_batch = 1 + round * 3;
    copier_bench b(opts);
    b.faults().poll = GetParam();
    if (round % 2 == 1) b.faults().launches.at(40, status::failed);
    std::vector<std::atomic<std::uint32_t>> reports(1024);
    std::vector<std::atomic<std::uint32_t>> accepted(1024);
    b.on_completion = [&](const completion& what) { reports[what.op.index].fetch_add(1); };
    std::atomic<std::uint32_t> refused{0};
    std::vector<copy_op> ops;
    for (std::uint32_t i = 0; i < threads * each_thread; ++i)
      ops.push_back(i % 3 == 0 ? b.restore(i % 12, i % b.images())
                               : b.store(i % 12, i % b.images()));
    together(threads + 1, [&](std::uint32_t t) {
      if (t == threads) {
        while (b.get().outstanding() < 20 && refused.load() < 100) std::this_thread::yield();
        if (round < 4)
          (void)b.get().close(round < 2 ? now() : soon());
        else
          b.faults().gone = true;
        return;
      }
      for (std::uint32_t i = 0; i < each_thread; ++i) {
        const copy_op& op = ops[t * each_thread + i];
        if (i % 5 == 0) {
          (void)b.get().mark({t % 2, i + 1});
          (void)b.get().order_after_slot(t % 2, op.header.slot, now());
        }
        if (i % 2 == 0) {
          if (b.get().submit({&op, 1}))
            accepted[op.header.op.index].fetch_add(1);
          else
            refused.fetch_add(1);
        } else if (b.get().try_room(op.header.kind, 1)) {
          accepted[op.header.op.index].fetch_add(1);
          b.get().enqueue(op);
          if (i % 7 == 0) (void)b.get().order_after(t % 2, {&op.header.op, 1}, soon());
        } else {
          refused.fetch_add(1);
        }
      }
    });
    (void)b.get().close(soon());
    EXPECT_EQ(b.get().outstanding(), 0U);
    for (std::size_t i = 0; i < reports.size(); ++i)
      ASSERT_EQ(reports[i].load(), accepted[i].load()) << "op " << i << " in round " << round;
    b.faults().gone = false;
  }
}
INSTANTIATE_TEST_SUITE_P(BellAndPolling, CopierUnderLoad, testing::Bool());

TEST(Copier, ManyThreadsKeepTheOrderOfEachSlot) {
  yields injected;
  bench_options opts;
  opts.manual = false;
  opts.threaded = true;
  opts.slots = 4;
  copier_bench b(opts);
  // Slot s: restores images in the order of their numbers, from shuffled threads; the last one
  // is what it holds in the end.
  constexpr std::uint32_t each_slot = 60;
  std::vector<copy_op> ops;
  for (std::uint32_t n = 1; n <= each_slot; ++n)
    for (slot_id s = 0; s < 4; ++s) ops.push_back(b.restore(s, (n * 7 + s * 3) % b.images(), n));
  together(4, [&](std::uint32_t t) {
    test::dice d(t + 1);
    std::vector<std::size_t> mine;
    for (std::size_t i = t; i < ops.size(); i += 4) mine.push_back(i);
    // Each thread's ops come in disorder, but not so far apart that the queue fills with
    // numbers that wait for others.
    for (std::size_t i = 0; i + 1 < mine.size(); ++i)
      if (d.below(2) == 0) std::swap(mine[i], mine[i + 1]);
    for (const std::size_t i : mine)
      while (!b.get().submit({&ops[i], 1})) std::this_thread::yield();
  });
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  for (const copy_op& op : ops) b.model(op);
  EXPECT_TRUE(b.rank().matches());
  EXPECT_EQ(b.completions.size(), ops.size());
}

// ---- the rest ------------------------------------------------------------------------------

TEST(Copier, SubmitDoesNotAllocateAfterAThreadsFirstCalls) {
  if (!allocations_are_counted) GTEST_SKIP() << "a sanitizer owns malloc";
  bench_options opts;
  opts.geometry = "tiny";
  opts.manual = false;
  opts.threaded = true;
  opts.store_depth = 512;
  copier_bench b(opts);
  b.completions.reserve(10'000);
  b.faults().quiet = true;
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 300; ++i) ops.push_back(b.store(i % 12, i % b.images()));
  ASSERT_TRUE(b.get().submit({ops.data(), 1}));
  ASSERT_EQ(b.get().drain(soon()), status::ok);
  const std::uint64_t at_first = allocations_of_this_thread();
  ops.reserve(ops.capacity() + 1);
  ASSERT_GT(allocations_of_this_thread(), at_first) << "nothing is counted";
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = allocations_of_this_thread();
    const bool accepted = b.get().submit(ops).ok();
    const status marked = b.get().mark({0, static_cast<std::uint64_t>(round) + 1});
    const status ordered = b.get().order_after(0, {&ops[299].header.op, 1}, soon());
    const status drained = b.get().drain(soon());
    const std::uint64_t after = allocations_of_this_thread();
    EXPECT_TRUE(accepted);
    EXPECT_EQ(marked, status::ok);
    EXPECT_EQ(ordered, status::ok);
    EXPECT_EQ(drained, status::ok);
    EXPECT_EQ(after, before) << "round " << round;
  }
}

TEST(Copier, PassesDoNotAllocate) {
  if (!allocations_are_counted) GTEST_SKIP() << "a sanitizer owns malloc";
  bench_options opts;
  opts.geometry = "tiny";
  copier_bench b(opts);
  b.completions.reserve(10'000);
  b.faults().quiet = true;
  std::vector<copy_op> ops;
  for (std::uint32_t i = 0; i < 40; ++i) ops.push_back(b.store(i % 12, i % b.images()));
  for (std::uint32_t i = 0; i < 40; ++i) ops.push_back(b.restore(i % 12, i % b.images()));
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(b.get().submit(ops));
    std::uint64_t in_pump = 0;
    bool did = true;
    while (did) {
      const std::uint64_t before = allocations_of_this_thread();
      did = b.get().pump();
      in_pump += allocations_of_this_thread() - before;
      while (b.host().step()) did = true;
    }
    if (round > 0) {
      EXPECT_EQ(in_pump, 0U);
    }
  }
}

struct collected_spans final : trace_sink {
  std::vector<batch_span> spans;
  void on_batch(const batch_span& span) noexcept override { spans.push_back(span); }
};

TEST(Copier, EachBatchIsTraced) {
  copier_bench b;
  collected_spans sink;
  copier_options o = b.options();
  o.trace = &sink;
  auto traced = copier::open(o, b.faults());
  ASSERT_TRUE(traced);
  b.faults().launches.at(2, status::failed);
  const std::vector<copy_op> ops = {b.store(0, 0), b.store(1, 1)};
  ASSERT_TRUE((*traced)->submit(ops));
  const copy_op last = b.store(0, 2);
  ASSERT_TRUE((*traced)->submit({&last, 1}));
  while ((*traced)->pump() || b.host().step()) {
  }
  ASSERT_EQ(sink.spans.size(), 2U);
  std::sort(sink.spans.begin(), sink.spans.end(),
            [](const auto& x, const auto& y) { return x.images > y.images; });
  EXPECT_EQ(sink.spans[0].images, 2U);
  EXPECT_EQ(sink.spans[0].bytes, 2U * 12'345U);
  EXPECT_EQ(sink.spans[0].rank, 3U);
  EXPECT_EQ(sink.spans[0].code, status::ok);
  EXPECT_GT(sink.spans[0].begin_ns, 0);
  EXPECT_GE(sink.spans[0].end_ns, sink.spans[0].begin_ns);
  EXPECT_EQ(sink.spans[1].code, status::failed);
}

TEST(Copier, DrainWithoutTimeTimesOut) {
  copier_bench b;
  EXPECT_EQ(b.get().drain(now()), status::ok);
  ASSERT_EQ(b.submit(b.store(0, 0)), status::ok);
  EXPECT_EQ(b.get().drain(now()), status::timed_out);
  b.settle();
  EXPECT_EQ(b.get().drain(now()), status::ok);
}

}  // namespace
}  // namespace cairn::tests
