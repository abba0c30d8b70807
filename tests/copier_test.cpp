// The copier on the host backend: what is accepted, and in which order it
// runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cairn/copier.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;
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

struct unit_list {
  std::vector<unit_id> ids;
  status code;
};
class CopierUnits : public testing::TestWithParam<unit_list> {};

// Past `check`, as a runtime hands ops over.
TEST_P(CopierUnits, AreDistinctAndInRangeInWhateverOrder) {
  bench_options opts;
  opts.geometry = "dsv4_flash";
  opts.units = 12;
  opts.slots = 2;
  copier_bench b(opts);
  copy_op op = b.store(1, 0);
  op.units = GetParam().ids;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(b.get().try_room(copy_kind::store, 1));
    b.get().enqueue(op);
    b.settle();
    EXPECT_EQ(b.codes(op).back(), GetParam().code);
    if (GetParam().code == status::ok) b.model(op);
  }
  EXPECT_TRUE(b.rank().matches());
}
INSTANTIATE_TEST_SUITE_P(Each, CopierUnits,
                         testing::Values(unit_list{{0, 1, 2, 3, 4, 11}, status::ok},
                                         unit_list{{0, 3, 5, 7, 8, 12}, status::invalid},
                                         unit_list{{0, 3, 5, 7, 8, 0xffffffff}, status::invalid},
                                         unit_list{{0x80000000, 0x80000001, 0x80000002, 0x80000003,
                                                    0x80000004, 0x80000005},
                                                   status::invalid},
                                         unit_list{{0x8000000b, 0, 1, 2, 3, 4}, status::invalid},
                                         unit_list{{11, 9, 7, 5, 3, 1}, status::ok},
                                         unit_list{{6, 7, 8, 0, 1, 2}, status::ok},
                                         unit_list{{6, 7, 8, 7, 10, 11}, status::invalid},
                                         unit_list{{6, 7, 8, 8, 10, 11}, status::invalid},
                                         unit_list{{5, 4, 3, 2, 1, 5}, status::invalid},
                                         unit_list{{5, 4, 3, 2, 0, 0}, status::invalid},
                                         unit_list{{0, 1, 2, 3, 4}, status::invalid},
                                         unit_list{{0, 1, 2, 3, 4, 5, 6}, status::invalid}),
                         [](const auto& each) { return "Case" + std::to_string(each.index); });

// More ops than the stamps by which a copier tells units apart have values.
TEST(Copier, UnitsAreFoundDistinctHoweverManyOpsCameBefore) {
  bench_options opts;
  opts.geometry = "tiny";
  opts.checksums = false;
  copier_bench b(opts);
  const std::vector<unit_id> early = {5, 4,
                                      3};  // named by the first op, and when stamps begin anew
  const std::vector<unit_id> usual = {2, 1, 0};
  const std::vector<unit_id> twice = {2, 1, 2};
  std::size_t refused = 0;
  constexpr int ops = 1 << 16;
  for (int i = 0; i < ops + 10; ++i) {
    copy_op op = b.store(0, 0);
    op.units = i >= ops ? twice : i == 0 || i == ops - 1 ? early : usual;
    ASSERT_EQ(b.submit(op), status::ok);
    if (i % 32 == 0 || i >= ops) b.settle();
  }
  b.settle();
  for (const completion& each : b.completions) refused += each.code == status::ok ? 0U : 1U;
  EXPECT_EQ(b.completions.size(), std::size_t{ops} + 10);
  EXPECT_EQ(refused, 10U);
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

// ---- the rest ------------------------------------------------------------------------------

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

}  // namespace
}  // namespace cairn::tests
