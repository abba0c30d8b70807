// The simulation by itself, over an engine that is scripted by the test: who is admitted, cut,
// preempted and freed, and in which order.
#include <algorithm>
#include <map>

#include "bench/replay/event_queue.hpp"
#include "tests/replay_fixture.hpp"

namespace cairn::replay {
namespace {

using testing::ElementsAre;

/// As many units as it is given, numbered upwards; no cache unless the test says so.
class scripted_engine final : public engine {
 public:
  explicit scripted_engine(std::uint32_t units) : free_(units) {}

  admitted answer;  ///< of the next admissions
  bool restores_succeed = true;
  std::vector<std::string> calls;
  std::vector<std::vector<unit_id>> freed;
  std::map<run_id, std::vector<unit_id>> held;

  void settle(std::int64_t) override {}
  void quiet(bool) override {}
  std::optional<admitted> admit(run_id run, slot_id, std::span<const checkpoint_key>, std::uint32_t,
                                std::span<unit_id> units) override {
    if (units.size() > free_) return std::nullopt;
    for (unit_id& each : units) each = take();
    held[run].assign(units.begin(), units.end());
    calls.push_back("admit " + std::to_string(run));
    return answer;
  }
  bool has_available_units(std::uint32_t, const checkpoint_key*) override { return true; }
  bool has_kv(const checkpoint_key&) override { return false; }
  bool restored(run_id, slot_id) override {
    answer = {};
    return restores_succeed;
  }
  unit_id grow(run_id run) override {
    if (free_ == 0) return no_unit;
    held[run].push_back(take());
    return held[run].back();
  }
  void publish(run_id run, std::uint32_t block, unit_id, const checkpoint_key&) override {
    calls.push_back("publish " + std::to_string(run) + "." + std::to_string(block));
  }
  void reach(run_id run, slot_id, const checkpoint_key&, placement_hint hint,
             std::int64_t) override {
    static constexpr const char* names[] = {"none", "anchor", "rung", "demand"};
    calls.push_back(std::string(names[static_cast<std::size_t>(hint)]) + " " + std::to_string(run));
  }
  void release(run_id run, slot_id, std::span<const unit_id> units, bool preempted) override {
    std::vector<unit_id> last_first(held[run].rbegin(), held[run].rend());
    EXPECT_EQ(std::vector<unit_id>(units.begin(), units.end()), last_first);
    free_ += static_cast<std::uint32_t>(units.size());
    calls.push_back((preempted ? "preempt " : "end ") + std::to_string(run));
  }
  void finish() override {}
  engine_counts counts() override { return {}; }

 private:
  unit_id take() {
    --free_;
    return next_++;
  }
  std::uint32_t free_;
  unit_id next_ = 0;
};

trace make_trace(std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths) {
  trace_builder builder;
  std::uint64_t id = 0;
  std::int64_t at_us = 0;
  for (const auto& [input, output] : lengths) {
    std::vector<std::uint64_t> ids;
    for (std::uint32_t block = 0; block < input / block_tokens; ++block) ids.push_back(id++);
    builder.add(at_us++, input, output, ids);
  }
  return builder.finish();
}

simulation_options options(std::uint32_t units, std::uint32_t live) {
  simulation_options opts;
  opts.live = live;
  opts.slots = live;
  opts.kv_units = units;
  opts.image_units = 1;
  opts.chunk_tokens = 1024;
  opts.prefill_rate = 1000.0;
  opts.decode_rate = 10.0;
  return opts;
}

TEST(Simulation, CutsChunksAtPlacementsAndPublishesAsItComputes) {
  scripted_engine on(100);
  on.answer = {0, 3};
  const auto got = simulate(make_trace({{5 * 512 + 100, 0}}), options(100, 1), on, nullptr);
  EXPECT_THAT(on.calls, ElementsAre("admit 1", "publish 1.0", "publish 1.1", "publish 1.2",
                                    "demand 1", "publish 1.3", "publish 1.4", "anchor 1", "end 1"));
  EXPECT_EQ(got.chunks, 4U);
  EXPECT_EQ(got.chunk_cuts, 1U);  // the anchor falls on the end of a whole chunk
  EXPECT_EQ(got.kv_hit_tokens, 3 * 512U);
  EXPECT_EQ(got.resumed_tokens, 0U);
  EXPECT_EQ(got.end_us, 2'660'000);
}

TEST(Simulation, PreemptsTheYoungestAndTakesItFirstWhenARunHasEnded) {
  scripted_engine on(4);
  // Two prompts of one unit; both want three in the end.
  const auto got =
      simulate(make_trace({{500, 1000}, {500, 1000}, {500, 1}}), options(4, 2), on, nullptr);
  EXPECT_EQ(got.preempted, 1U);
  EXPECT_EQ(got.requests, 3U);
  EXPECT_THAT(on.calls, ElementsAre("admit 1", "admit 2", "preempt 2", "end 1", "admit 3",
                                    "admit 4", "end 4", "end 3"));
  EXPECT_EQ(got.total_tokens, 1500U);
  EXPECT_EQ(got.computed_tokens, 2000U);
}

TEST(Simulation, RefusesWhatCanNeverFit) {
  scripted_engine on(2);
  const auto got = simulate(make_trace({{2000, 1}, {600, 1}}), options(2, 1), on, nullptr);
  EXPECT_EQ(got.refused, 1U);
  EXPECT_EQ(got.requests, 1U);
  EXPECT_EQ(got.total_tokens, 600U);
}

TEST(Simulation, RunsAgainWhatWasNotRestored) {
  scripted_engine on(100);
  on.answer = {2, 2};
  on.restores_succeed = false;
  const auto got = simulate(make_trace({{2000, 1}}), options(100, 1), on, nullptr);
  EXPECT_EQ(got.failed_restores, 1U);
  EXPECT_EQ(got.requests, 1U);
  EXPECT_THAT(on.calls, ElementsAre("admit 1", "preempt 1", "admit 2", "publish 2.0", "publish 2.1",
                                    "publish 2.2", "anchor 2", "end 2"));
}

TEST(Simulation, WithoutCheckpointsComputesEveryPromptWhole) {
  const auto found = without_checkpoints(make_trace({{1000, 10}, {1000, 10}}), options(100, 1));
  EXPECT_EQ(found.end_us, 4'000'000);
  EXPECT_EQ(found.first_token_us, 1'000'000 + 3'000'000 - 1);
}

TEST(EventQueue, HoldsBackThreadsThatWouldRunAway) {
  event_queue events(1);
  for (std::int64_t at_us : {0, 10, 20, 30, 5'000'000}) events.push({at_us, true, 0});
  std::uint64_t slow = 0;
  std::uint64_t quick = 0;
  EXPECT_EQ(events.take(slow).at_us, 0);
  for (int overtaking = 0; overtaking < 2; ++overtaking) {
    ASSERT_TRUE(events.may_take());
    events.take(quick);
    events.put_away(quick);
  }
  EXPECT_FALSE(events.may_take());  // two for each thread are enough
  events.put_away(slow);
  ASSERT_TRUE(events.may_take());
  EXPECT_EQ(events.take(slow).at_us, 30);
  EXPECT_FALSE(events.may_take());  // too far in the future
  events.put_away(slow);
  EXPECT_TRUE(events.may_take());
}

}  // namespace
}  // namespace cairn::replay
