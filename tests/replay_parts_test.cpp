// The parts of the replay one by one: traces and their errors, the generator, patterns, placements,
// geometries, compute that notices a wrong byte, overlap, separate pools.
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/replay/cairn_engine.hpp"
#include "bench/replay/pattern.hpp"
#include "tests/replay_fixture.hpp"

namespace cairn::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

trace read(const std::string& text) {
  std::istringstream from(text);
  return read_trace(from, "t.jsonl");
}

// ---- traces ---------------------------------------------------------------------------

TEST(Trace, KeysOnlyWholeBlocks) {
  const trace got = read(
      R"({"timestamp": 5, "input_length": 1100, "output_length": 0, "hash_ids": [7, 8, 9]})"
      "\n\n"
      R"({"timestamp": 2.5, "input_length": 1024, "output_length": 9, "hash_ids": [7, 8], "x": 1})");
  ASSERT_EQ(got.requests.size(), 2U);
  const request& first = got.requests[0];  // by arrival
  EXPECT_EQ(first.arrival_us, 2500);
  EXPECT_EQ(first.hit_limit(), 1U);
  EXPECT_EQ(first.prompt_units(), 2U);
  EXPECT_EQ(first.final_units(), 3U);
  const request& second = got.requests[1];
  EXPECT_EQ(second.keys.size(), 2U);
  EXPECT_EQ(second.hit_limit(), 2U);
  EXPECT_EQ(second.keys, first.keys);
  EXPECT_EQ(got.seen_tokens, 1024U);
}

struct bad_line {
  const char* text;
  const char* complaint;
};
std::ostream& operator<<(std::ostream& to, const bad_line& shown) {
  return to << shown.text;
}

class BadTrace : public testing::TestWithParam<bad_line> {};

TEST_P(BadTrace, IsRefusedInOneLine) {
  const std::string good =
      R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1]})";
  try {
    read(good + "\n" + GetParam().text);
    FAIL() << "accepted: " << GetParam().text;
  } catch (const bad_input& wrong) {
    EXPECT_THAT(wrong.what(), HasSubstr("t.jsonl:2: expected "));
    EXPECT_THAT(wrong.what(), HasSubstr(GetParam().complaint));
    EXPECT_THAT(wrong.what(), testing::Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Replay, BadTrace,
    testing::Values(
        bad_line{R"({"timestamp": 0, "input_le)", "a line that ends early, after 26 characters"},
        bad_line{"hello", "something else at column 1"}, bad_line{"[1, 2]", "got array"},
        bad_line{"17", "got number"}, bad_line{"{}", "the field \"timestamp\""},
        bad_line{R"({"timestamp": 0, "output_length": 5, "hash_ids": [1]})",
                 "the field \"input_length\""},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": 5})",
                 "the field \"hash_ids\""},
        bad_line{R"({"timestamp": "0", "input_length": 600, "output_length": 5, "hash_ids": [1]})",
                 R"(got "0")"},
        bad_line{R"({"timestamp": -1, "input_length": 600, "output_length": 5, "hash_ids": [1]})",
                 "got -1"},
        bad_line{
            R"({"timestamp": 1e300, "input_length": 600, "output_length": 5, "hash_ids": [1]})",
            "from 0 to 1e14"},
        bad_line{
            R"({"timestamp": 1e999, "input_length": 600, "output_length": 5, "hash_ids": [1]})",
            "a number out of range"},
        bad_line{R"({"timestamp": 0, "input_length": 0, "output_length": 5, "hash_ids": []})",
                 "input_length to be an integer from 1"},
        bad_line{R"({"timestamp": 0, "input_length": -600, "output_length": 5, "hash_ids": [1]})",
                 "got -600"},
        bad_line{R"({"timestamp": 0, "input_length": 600.5, "output_length": 5, "hash_ids": [1]})",
                 "got 600.5"},
        bad_line{
            R"({"timestamp": 0, "input_length": 99999999999999999999, "output_length": 5, "hash_ids": [1]})",
            "input_length to be an integer from 1 to 1000000000"},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": -5, "hash_ids": [1]})",
                 "output_length to be an integer from 0"},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": null, "hash_ids": [1]})",
                 "got null"},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": 1})",
                 "hash_ids to be an array"},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": []})",
                 "got 0 ids"},
        bad_line{
            R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2, 3]})",
            "got 3 ids"},
        bad_line{R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [-1]})",
                 "hash_ids[0] to be a non-negative integer"},
        bad_line{
            R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, "a\nb"]})",
            "hash_ids[1]"}));

TEST(Trace, WithoutARequestIsRefused) {
  EXPECT_THROW(read(""), bad_input);
  EXPECT_THROW(read("\n  \r\n"), bad_input);
  EXPECT_THROW(read_trace_file("/nonexistent/trace"), bad_input);
  EXPECT_THROW(read_trace_file("/"), bad_input);
}

// ---- the generator --------------------------------------------------------------------

TEST(Workload, RepeatsForASeedAndOnlyForThat) {
  workload_options opts;
  opts.requests = 200;
  const trace first = make_workload(opts);
  const trace again = make_workload(opts);
  opts.seed = 2;
  const trace other = make_workload(opts);
  ASSERT_EQ(first.requests.size(), 200U);
  bool differs = false;
  for (std::size_t i = 0; i < first.requests.size(); ++i) {
    EXPECT_EQ(first.requests[i].arrival_us, again.requests[i].arrival_us);
    EXPECT_EQ(first.requests[i].output_tokens, again.requests[i].output_tokens);
    EXPECT_EQ(first.requests[i].keys, again.requests[i].keys);
    differs = differs || first.requests[i].input_tokens != other.requests[i].input_tokens;
  }
  EXPECT_TRUE(differs);
  EXPECT_GT(first.seen_tokens, 0U);
}

// ---- patterns, placements, geometries -------------------------------------------------

TEST(Pattern, NoticesAnyByteKeyRankOrPiece) {
  const checkpoint_key key = key_of(key_domain::block, 1);
  const std::uint64_t seed = pattern_seed(key, 0, piece_kind::segment, 0);
  for (std::size_t bytes : {1U, 7U, 8U, 25U}) {
    std::vector<std::byte> memory(bytes);
    write_pattern(memory.data(), bytes, seed);
    EXPECT_TRUE(has_pattern(memory.data(), bytes, seed));
    for (std::byte& each : memory) {
      each ^= std::byte{1};
      EXPECT_FALSE(has_pattern(memory.data(), bytes, seed));
      each ^= std::byte{1};
    }
  }
  EXPECT_NE(seed, pattern_seed(key, 1, piece_kind::segment, 0));
  EXPECT_NE(seed, pattern_seed(key, 0, piece_kind::segment, 1));
  EXPECT_NE(seed, pattern_seed(key, 0, piece_kind::region, 0));
  EXPECT_NE(seed, pattern_seed(key_of(key_domain::state, 1), 0, piece_kind::segment, 0));
}

TEST(Placement, PutsBoundariesInOrderOnceEach) {
  request of;
  of.input_tokens = 20 * block_tokens;
  of.keys.resize(20);
  auto blocks = [&](const placement_rules& rules, std::uint32_t resumed, std::uint32_t demanded) {
    std::vector<std::uint32_t> found;
    for (const placement& each : placements(rules, of, resumed, demanded))
      found.push_back(each.blocks);
    return found;
  };
  placement_rules all{true, true, true, 4 * block_tokens};
  EXPECT_THAT(blocks(all, 0, 8), ElementsAre(4, 8, 12, 16, 19, 20));
  EXPECT_THAT(blocks(all, 12, 14), ElementsAre(14, 16, 19, 20));
  EXPECT_THAT(blocks({true, true, false, 0}, 3, 0), ElementsAre(19));
  EXPECT_THAT(blocks({true, true, false, 0}, 19, 0), ElementsAre());
}

TEST(Geometry, MatchesTheTable) {
  struct row {
    const char* name;
    std::uint64_t unit;
    std::uint64_t image;
    std::uint32_t units;
    std::size_t segments;
  };
  for (const row& each :
       {row{"tiny", 10, 25, 3, 1}, row{"dsv4_flash", 1'619'200, 9'060'352, 6, 4},
        row{"gdn_36", 393'216, 39'518'208, 101, 72}, row{"ragged", 5'107, 12'345, 3, 5},
        row{"replay", 16'384, 60'000, 4, 6}}) {
    const geometry found = find_geometry(each.name);
    const layout shape = found.shape();
    EXPECT_TRUE(shape.validate()) << each.name;
    EXPECT_EQ(shape.page_unit_bytes, each.unit) << each.name;
    EXPECT_EQ(shape.image_bytes, each.image) << each.name;
    EXPECT_EQ(shape.units_per_checkpoint(), each.units) << each.name;
    EXPECT_EQ(found.segments.size(), each.segments) << each.name;
    std::uint64_t outside = 0;
    for (const stretch& gap : found.gaps) outside += gap.bytes;
    EXPECT_EQ(outside + shape.image_bytes, shape.slot_bytes) << each.name;
  }
  EXPECT_THROW(find_geometry("other"), bad_input);
}

// ---- compute --------------------------------------------------------------------------

TEST(Compute, NoticesOneWrongByteInSlotAndUnit) {
  const geometry shape = find_geometry("ragged");
  auto devices = make_host_backend();
  ASSERT_TRUE(devices);
  std::vector<device_memory> memory;
  memory.push_back(place_memory(shape, (*devices)->at(0), 10, 2));
  compute work(shape, **devices, memory);
  cairn_engine library({.units = 10, .slots = 2}, shape, **devices, memory);
  work.attach(library.library());

  const checkpoint_key key = key_of(key_domain::block, 1);
  const std::vector<kv_content> kv = {{4, key}};
  work.enqueue({.slot = 1, .to = key, .computed = kv});
  work.enqueue({.slot = 1, .continues = true, .from = key, .to = key, .claimed = kv});
  work.wait_idle();
  EXPECT_EQ(work.figures().mismatches, 0U) << work.figures().first_mismatch;

  const strided& segment = memory[0].addresses.segments.back();
  std::byte* const last = segment.base + segment.stride + segment.bytes - 1;
  *last ^= std::byte{1};
  work.enqueue({.slot = 1, .continues = true, .from = key, .to = key});
  work.wait_idle();
  EXPECT_EQ(work.figures().mismatches, 1U);
  EXPECT_THAT(work.figures().first_mismatch, HasSubstr("segment 4 of slot 1"));

  const strided& region = memory[0].addresses.regions[1];
  *(region.base + 4 * region.stride) ^= std::byte{1};
  work.enqueue({.slot = 1, .continues = true, .from = key, .to = key, .claimed = kv});
  work.wait_idle();
  EXPECT_EQ(work.figures().mismatches, 2U);
}

// ---- timelines ------------------------------------------------------------------------

batch_span copied(rank_id rank, std::uint32_t stream, std::int64_t begin, std::int64_t end) {
  batch_span made;
  made.rank = rank;
  made.stream = stream;
  made.begin_ns = begin * 1'000'000'000;
  made.end_ns = end * 1'000'000'000;
  return made;
}

TEST(Timeline, MeasuresOverlapPerDevice) {
  const std::vector<batch_span> copies = {
      copied(0, 0, 0, 10), copied(0, 0, 5, 12),  // one stream never overlaps with itself
      copied(0, 1, 8, 14), copied(1, 0, 0, 4)};
  const std::vector<compute_span> compute = {{0, 3, 13'000'000'000, 20'000'000'000}};
  const overlap_figures found = measure_overlap(copies, compute);
  EXPECT_DOUBLE_EQ(found.busy_seconds, 18.0);
  EXPECT_DOUBLE_EQ(found.overlap_seconds, 4.0);
  EXPECT_DOUBLE_EQ(found.with_compute_seconds, 1.0);
}

TEST(Timeline, IsValidJson) {
  std::ostringstream to;
  write_timeline(to, {copied(0, 0, 1, 2), copied(1, 2, 1, 3)}, {{0, 3, 1, 2}}, 2);
  const auto parsed = nlohmann::json::parse(to.str());
  std::size_t spans = 0;
  for (const auto& each : parsed.at("traceEvents")) spans += each.at("ph") == "X" ? 1U : 0U;
  EXPECT_EQ(spans, 3U);
}

// ---- the report -----------------------------------------------------------------------

TEST(Report, JsonHasTheAgreedShape) {
  workload_options shape;
  shape.requests = 30;
  const replay_options opts = parsed({"--units", "500", "--devices", "2"});
  const replay_outcome ran = replay(opts, make_workload(shape));
  std::ostringstream to;
  write_json(to, opts, ran.figures);
  const auto json = nlohmann::json::parse(to.str());
  EXPECT_EQ(json.at("requests"), 30);
  EXPECT_EQ(json.at("mismatches"), 0);
  auto numbers = [](const nlohmann::json& in, std::initializer_list<const char*> names) {
    for (const char* name : names) EXPECT_TRUE(in.at(name).is_number()) << name;
  };
  numbers(json, {"seconds", "token_hit_rate", "restores", "stores", "overlap",
                 "compute_wait_seconds", "chunk_cuts", "restores_per_store", "virtual_seconds"});
  numbers(json.at("tokens"), {"total", "kv_hit", "wanted", "resumed"});
  numbers(json.at("fates"), {"kept", "evicted", "orphaned", "failed", "cancelled"});
  numbers(json.at("fates").at("dropped"), {"no_room", "superseded", "queue_full", "closed"});
  numbers(json.at("pool"), {"total", "vacant", "cached", "live", "checkpoint", "quarantine"});
  ASSERT_EQ(json.at("streams").size(), 4U) << "two devices, two directions";
  for (const auto& each : json.at("streams")) {
    EXPECT_TRUE(each.at("direction") == "store" || each.at("direction") == "restore");
    numbers(each, {"device", "bytes", "busy_seconds", "gb_per_s"});
  }
  for (const char* name : {"submit", "store", "restore"})
    numbers(json.at("latency_us").at(name), {"p50", "p99", "p999"});
}

TEST(Report, BooksThatDoNotCloseAreNamed) {
  replay_figures figures;
  figures.pool = {.total = 10, .vacant = 5, .cached = 1, .checkpoint = 4, .records = 1};
  EXPECT_THAT(figures.broken_books(10, 4), testing::IsEmpty());
  figures.pool.live = 1;
  EXPECT_THAT(figures.broken_books(10, 4),
              ElementsAre(HasSubstr("units by place"), HasSubstr("live units")));
  figures.pool = {.total = 10, .vacant = 6, .checkpoint = 4, .records = 2, .unfinished_records = 1};
  EXPECT_THAT(figures.broken_books(11, 4),
              ElementsAre(HasSubstr("units of the pool"), HasSubstr("neither READY nor gone"),
                          HasSubstr("held by checkpoints")));
}

// ---- arrangements that the model does not have -----------------------------------------

struct arrangement {
  std::uint32_t requests;
  std::vector<const char*> arguments;
};
std::ostream& operator<<(std::ostream& to, const arrangement& shown) {
  to << shown.requests << " requests";
  for (const char* each : shown.arguments) to << ' ' << each;
  return to;
}

class Arrangement : public testing::TestWithParam<arrangement> {};

TEST_P(Arrangement, IsSoundWithOneThreadAndMany) {
  workload_options shape;
  shape.requests = GetParam().requests;
  const trace from = make_workload(shape);
  for (const char* threads : {"1", "6"}) {
    std::vector<const char*> arguments = GetParam().arguments;
    arguments.insert(arguments.end(), {"--threads", threads});
    const replay_options opts = parsed(arguments);
    const replay_outcome out = replay(opts, from);
    expect_sound(opts, from, out);
    EXPECT_GT(out.figures.run.restores, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Replay, Arrangement,
    testing::Values(arrangement{300, {"--pool", "separate", "--units", "2000"}},
                    arrangement{300,
                                {"--pool", "separate", "--units", "900", "--live", "8",
                                 "--checkpoint-units", "100"}},
                    arrangement{300, {"--no-link", "--units", "1500"}},
                    arrangement{300, {"--no-link", "--pool", "separate", "--units", "1500"}},
                    arrangement{12, {"--geometry", "gdn_36", "--units", "600", "--live", "2"}},
                    arrangement{12,
                                {"--geometry", "dsv4_flash", "--units", "300", "--live", "2"}}));

}  // namespace
}  // namespace cairn::replay
