// The replay as a whole: it repeats itself, it equals the sequential model, and with many threads
// it stays near what the model makes of the same calls.
#include "tests/replay_fixture.hpp"

namespace cairn::replay {
namespace {

using testing::Values;

trace small_workload(std::uint32_t requests, std::uint64_t seed) {
  workload_options opts;
  opts.requests = requests;
  opts.seed = seed;
  return make_workload(opts);
}

// ---- one thread -----------------------------------------------------------------------

/// Arguments of one run, separated by blanks.
class OneThread : public testing::TestWithParam<const char*> {
 protected:
  static replay_options options() {
    static std::string text;
    text = GetParam();
    std::vector<const char*> arguments;
    for (std::size_t at = 0; at < text.size();) {
      arguments.push_back(text.data() + at);
      at = std::min(text.find(' ', at), text.size());
      if (at < text.size()) text[at++] = '\0';
    }
    return parsed(arguments);
  }
};

TEST_P(OneThread, EqualsTheSequentialModelAndItself) {
  const replay_options opts = options();
  const trace from = small_workload(250, 7);
  const model_outcome expected = replay_on_model(opts, from);
  const replay_outcome first = replay(opts, from);
  expect_sound(opts, from, first);
  EXPECT_EQ(written(first.figures.run, first.figures.pool), written(expected.run, expected.pool));
  const replay_outcome second = replay(opts, from);
  EXPECT_EQ(written(first.figures.run, first.figures.pool),
            written(second.figures.run, second.figures.pool));
}

INSTANTIATE_TEST_SUITE_P(Replay, OneThread,
                         Values("--units 6000", "--units 6000 --devices 2", "--units 700 --live 16",
                                "--units 300 --live 16 --slots 20", "--units 1500 --place anchor",
                                "--units 1500 --place ladder", "--units 1500 --place none",
                                "--units 900 --place anchor,demand,ladder --chunk-tokens 1000",
                                "--units 700 --live 16 --geometry ragged --devices 2",
                                "--units 700 --live 16 --geometry tiny",
                                "--units 400 --live 4 --prefill-rate 500 --decode-rate 20"));

// ---- many threads ---------------------------------------------------------------------

class ManyThreads : public testing::TestWithParam<const char*> {};

TEST_P(ManyThreads, StayNearTheModelsReplayOfTheirCalls) {
  const replay_options opts =
      parsed({"--threads", "8", "--units", GetParam(), "--live", "24", "--devices", "2"});
  const trace from = small_workload(400, 11);
  const replay_outcome out = replay(opts, from, nullptr, true);
  expect_sound(opts, from, out);

  cairn_model::replay_engine model(opts.units, opts.slots, opts.image_units);
  const log_replay_figures found = replay_calls(out.calls, model);
  std::uint64_t blocks = 0;
  std::uint64_t resumed = 0;
  for (const logged_call& each : out.calls) {
    if (each.kind != call_kind::admit) continue;
    blocks += each.keys.size() + each.fresh;
    resumed += each.resumed;
  }
  auto percent = [&](std::uint64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(blocks);
  };
  EXPECT_NEAR(percent(resumed), percent(found.resumed_blocks), 2.0);
}

INSTANTIATE_TEST_SUITE_P(Replay, ManyThreads, Values("6000", "1200"));

}  // namespace
}  // namespace cairn::replay
