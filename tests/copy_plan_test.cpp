// Plans: what is cut from sizes, what is refused.
#include "runtime/copy_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/geometries.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;
using tests::geometry;

/// Memory of a geometry's sizes; the bases are never followed.
rank_memory sizes_of(const geometry& g, std::uint32_t units = 8, std::uint32_t slots = 2) {
  static std::byte somewhere;
  rank_memory memory;
  memory.units = units;
  memory.slots = slots;
  for (const std::uint64_t bytes : g.region_bytes)
    memory.regions.push_back({&somewhere, static_cast<std::int64_t>(bytes), bytes});
  for (const std::uint64_t bytes : g.segment_bytes)
    memory.segments.push_back({&somewhere, static_cast<std::int64_t>(g.slot_bytes), bytes});
  return memory;
}

copy_plan plan_of(const geometry& g) {
  return make_copy_plan(g.shape(), sizes_of(g)).value();
}

class EveryGeometry : public testing::TestWithParam<geometry> {};
INSTANTIATE_TEST_SUITE_P(Spec, EveryGeometry, testing::ValuesIn(tests::geometries()),
                         [](const auto& each) { return std::string(each.param.name); });

/// Checks that the pieces cover the image once, in order, and stay within their pieces.
void expect_covers(const copy_plan& plan, const std::vector<copy_span>& pieces, const geometry& g) {
  const std::uint64_t unit_bytes = g.shape().page_unit_bytes;
  std::uint64_t at = 0;
  for (const copy_span& piece : pieces) {
    ASSERT_EQ(piece.image_offset, at);
    ASSERT_GT(piece.bytes, 0U);
    ASSERT_LE(piece.segment_offset + piece.bytes, g.segment_bytes.at(piece.segment));
    ASSERT_LE(piece.region_offset + piece.bytes, g.region_bytes.at(piece.region));
    const auto sum = [](const std::vector<std::uint64_t>& bytes, std::uint32_t count) {
      return std::accumulate(bytes.begin(), bytes.begin() + count, std::uint64_t{0});
    };
    ASSERT_EQ(sum(g.segment_bytes, piece.segment) + piece.segment_offset, at);
    ASSERT_EQ(piece.unit * unit_bytes + sum(g.region_bytes, piece.region) + piece.region_offset,
              at);
    at += piece.bytes;
  }
  EXPECT_EQ(at, plan.image_bytes);
  EXPECT_EQ(pieces.back().unit + 1, plan.units);
}

TEST_P(EveryGeometry, SpansAndTilesCoverTheImageOnce) {
  const copy_plan plan = plan_of(GetParam());
  EXPECT_EQ(plan.units, GetParam().units_per_image);
  expect_covers(plan, plan.spans, GetParam());
  expect_covers(plan, plan.tiles, GetParam());
}

TEST_P(EveryGeometry, TilesAreBoundedPiecesOfSpans) {
  const copy_plan plan = plan_of(GetParam());
  std::size_t whole = 0;
  for (const copy_span& tile : plan.tiles) {
    EXPECT_LE(tile.bytes, copy_plan::tile_bytes);
    const copy_span& span = plan.spans.at(whole);
    EXPECT_EQ((tile.image_offset - span.image_offset) % copy_plan::tile_bytes, 0U);
    if (tile.image_offset + tile.bytes == span.image_offset + span.bytes) ++whole;
  }
  EXPECT_EQ(whole, plan.spans.size());
}

// Each unit starts each region and each segment starts once: at most units * regions +
// segments - 1 spans (135 and 2,495), fewer where the last unit is partly filled or a segment
// ends with a region.
TEST(CopyPlan, HasTheSpansThatTheSizesImply) {
  EXPECT_EQ(plan_of(tests::geometry_named("tiny")).spans.size(), 3U);
  const copy_plan flash = plan_of(tests::geometry_named("dsv4_flash"));
  EXPECT_EQ(flash.spans.size(), 5U * 22 + 1 + 3);
  const copy_plan gdn = plan_of(tests::geometry_named("gdn_36"));
  EXPECT_EQ(gdn.spans.size(), 100U * 24 + 12);
  for (const copy_span& span : gdn.spans) EXPECT_LE(span.bytes, 16'384U);
}

TEST(CopyPlan, CutsTinyByHand) {
  const copy_plan plan = plan_of(tests::geometry_named("tiny"));
  const std::vector<copy_span> expected = {
      {0, 0, 0, 10, 0, 0, 0}, {10, 10, 0, 10, 0, 0, 1}, {20, 20, 0, 5, 0, 0, 2}};
  EXPECT_EQ(plan.spans, expected);
  EXPECT_EQ(plan.tiles, expected);
}

/// What a changed memory is refused with.
template <class Change>
std::string refusal(Change&& change, status code = status::invalid) {
  const geometry& g = tests::geometry_named("ragged");
  rank_memory memory = sizes_of(g);
  change(memory);
  const auto plan = make_copy_plan(g.shape(), memory);
  EXPECT_EQ(plan.code(), code);
  return plan.ok() ? "accepted" : plan.why().message();
}

TEST(CopyPlan, RefusesMemoryThatDoesNotAddUpToTheLayout) {
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions.pop_back(); }), HasSubstr("page_unit_bytes"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions[1].bytes -= 1; }),
              HasSubstr("page_unit_bytes"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.segments.push_back(m.segments[3]); }),
              HasSubstr("image_bytes"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.segments.clear(); }), HasSubstr("no segments"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions.clear(); }), HasSubstr("no regions"));
}

TEST(CopyPlan, RefusesSumsThatWrapAround) {
  EXPECT_THAT(refusal([](rank_memory& m) {
                m.regions[0].bytes = std::numeric_limits<std::uint64_t>::max() - 5;
                m.regions[0].stride = 0;
                m.units = 1;
              }),
              HasSubstr("do not fit"));
  EXPECT_THAT(refusal([](rank_memory& m) {
                for (strided& r : m.regions) r.bytes = std::uint64_t{1} << 62;
                m.units = 1;
              }),
              HasSubstr("page_unit_bytes"));
}

TEST(CopyPlan, RefusesPiecesOfNoBytes) {
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions[1].bytes = 0; }),
              HasSubstr("region has no bytes"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.segments[2].bytes = 0; }),
              HasSubstr("segment has no bytes"));
}

TEST(CopyPlan, RefusesStridesThatOverlapOrOverflow) {
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions[0].stride = 1'000; }), HasSubstr("shorter"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.regions[0].stride = -1'000; }), HasSubstr("shorter"));
  EXPECT_THAT(refusal([](rank_memory& m) { m.segments[0].stride = 0; }), HasSubstr("shorter"));
  EXPECT_THAT(refusal([](rank_memory& m) {
                m.regions[0].stride = std::numeric_limits<std::int64_t>::min();
              }),
              HasSubstr("63 bits"));
  EXPECT_THAT(refusal([](rank_memory& m) {
                m.segments[0].stride = std::numeric_limits<std::int64_t>::max();
              }),
              HasSubstr("63 bits"));
}

TEST(CopyPlan, TakesAnyStrideOfASinglePiece) {
  const geometry& g = tests::geometry_named("ragged");
  rank_memory memory = sizes_of(g, 3, 1);
  for (strided& s : memory.segments) s.stride = 0;
  for (strided& r : memory.regions) r.stride = -r.stride;
  EXPECT_TRUE(make_copy_plan(g.shape(), memory).ok());
}

TEST(CopyPlan, RefusesAnInvalidLayoutAndAnAbsurdNumberOfTiles) {
  geometry g = tests::geometry_named("tiny");
  layout unnamed = g.shape();
  unnamed.layout_id.clear();
  EXPECT_EQ(make_copy_plan(unnamed, sizes_of(g)).code(), status::invalid);

  g.region_bytes = {std::uint64_t{1} << 40};
  g.segment_bytes = {std::uint64_t{1} << 42};
  g.slot_bytes = std::uint64_t{1} << 42;
  EXPECT_EQ(make_copy_plan(g.shape(), sizes_of(g)).code(), status::limit);
}

TEST(CopyPlan, RefusesAddressesThatItWasNotCutFor) {
  const geometry& g = tests::geometry_named("ragged");
  const copy_plan plan = plan_of(g);
  const rank_memory good = sizes_of(g);
  EXPECT_TRUE(check_plan_memory(plan, good).ok());

  rank_memory memory = good;
  memory.segments[1].base = nullptr;
  EXPECT_THAT(check_plan_memory(plan, memory).why().message(), HasSubstr("null base"));
  memory = good;
  memory.regions[0].base = nullptr;
  EXPECT_THAT(check_plan_memory(plan, memory).why().message(), HasSubstr("null base"));
  memory = good;
  memory.regions.resize(1);  // one array of addresses for all regions
  EXPECT_FALSE(check_plan_memory(plan, memory).ok());
  memory = good;
  std::swap(memory.segments[0], memory.segments[1]);
  EXPECT_FALSE(check_plan_memory(plan, memory).ok());
}

// Whatever lies in a byte twice would be copied in parallel, and in no order.
TEST(CopyPlan, RefusesMemoryInWhichPiecesShareBytes) {
  std::vector<std::byte> area(400);
  // Slots of two segments, 30 and 20 bytes, one behind the other; units interleaved alike.
  rank_memory good;
  good.units = 4;
  good.slots = 3;
  good.segments = {{area.data(), 50, 30}, {area.data() + 30, 50, 20}};
  good.regions = {{area.data() + 150, 40, 16}, {area.data() + 166, 40, 24}};
  EXPECT_TRUE(check_apart(good).ok());
  good.segments[1] = {area.data() + 130, -50, 20};  // the same places, from the other end
  EXPECT_TRUE(check_apart(good).ok());

  rank_memory memory = good;
  memory.segments = {{area.data(), 30, 30}, {area.data() + 30, 30, 20}};  // slots overlap
  EXPECT_THAT(check_apart(memory).why().message(),
              HasSubstr("segment 1 shares bytes with segment 0"));
  memory = good;
  memory.regions[1].base -= 1;
  EXPECT_THAT(check_apart(memory).why().message(),
              HasSubstr("region 1 shares bytes with region 0"));
  memory = good;
  memory.slots = 4;  // the last one would lie in unit 0
  EXPECT_THAT(check_apart(memory).why().message(),
              HasSubstr("segment 0 shares bytes with region 0"));
  memory = good;
  memory.regions.assign(2, good.regions[0]);  // one address for all
  EXPECT_FALSE(check_apart(memory).ok());
}

TEST(CopyPlan, MemoryLiesApartExactlyWhenNoByteIsMetTwice) {
  std::vector<std::byte> area(256);
  std::uint64_t state = 11;
  const auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % n;
  };
  int apart = 0;
  for (int round = 0; round < 4000; ++round) {
    rank_memory memory;
    memory.units = 1 + static_cast<std::uint32_t>(below(5));
    memory.slots = 1 + static_cast<std::uint32_t>(below(4));
    std::vector<int> met(area.size());
    const auto add = [&](std::vector<strided>& to, std::uint32_t count) {
      const std::uint64_t bytes = 1 + below(6);
      const auto stride = static_cast<std::int64_t>(bytes + below(14));
      const bool down = below(2) == 1;
      const std::uint64_t first = 96 + below(60);
      to.push_back({area.data() + first, down ? -stride : stride, bytes});
      for (std::uint32_t i = 0; i < count; ++i)
        for (std::uint64_t b = 0; b < bytes; ++b)
          ++met[static_cast<std::size_t>(static_cast<std::int64_t>(first + b) +
                                         to.back().stride * static_cast<std::int64_t>(i))];
    };
    for (std::uint64_t n = 1 + below(2); n > 0; --n) add(memory.regions, memory.units);
    for (std::uint64_t n = 1 + below(2); n > 0; --n) add(memory.segments, memory.slots);
    const bool once = std::all_of(met.begin(), met.end(), [](int n) { return n <= 1; });
    EXPECT_EQ(check_apart(memory).ok(), once) << "round " << round;
    apart += once ? 1 : 0;
  }
  EXPECT_GT(apart, 400);
  EXPECT_LT(apart, 3600);
}

}  // namespace
}  // namespace cairn
