// The replay on the HIP backend, over the double of the runtime: the same answers as on the host,
// byte for byte the same compute, and a wrong byte found where it is.
#include "tests/hip_double/hip_double.hpp"
#include "tests/replay_fixture.hpp"

namespace cairn::replay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Values;

trace small_workload(std::uint32_t requests, std::uint64_t seed) {
  workload_options opts;
  opts.requests = requests;
  opts.seed = seed;
  return make_workload(opts);
}

std::string written(const compute_figures& of) {
  return "mismatches " + std::to_string(of.mismatches) + " " + of.first_mismatch + "\nimages " +
         std::to_string(of.images_verified) + "\nunits " + std::to_string(of.units_verified) +
         "\nbytes verified " + std::to_string(of.bytes_verified) + "\nbytes written " +
         std::to_string(of.bytes_written) + "\n";
}

class OnHip : public testing::Test {
 protected:
  void SetUp() override { tests::hip::reset(); }
  void TearDown() override {
    EXPECT_THAT(tests::hip::complaints(), IsEmpty());
    EXPECT_EQ(tests::hip::live(), tests::hip::live_objects());
  }
  /// The same arguments on both backends.
  static replay_outcome run(const char* backend, std::vector<const char*> arguments,
                            const trace& from) {
    arguments.insert(arguments.end(), {"--backend", backend});
    opts_ = parsed(std::move(arguments));
    return replay(opts_, from);
  }
  static inline replay_options opts_;
};

class OneThreadOnHip : public OnHip, public testing::WithParamInterface<const char*> {};

TEST_P(OneThreadOnHip, EqualsTheHost) {
  const trace from = small_workload(60, 7);
  const std::vector<const char*> arguments = {"--units",   "300", "--live",     "8",
                                              "--devices", "2",   "--geometry", GetParam()};
  const replay_outcome host = run("host", arguments, from);
  const replay_outcome hip = run("hip", arguments, from);
  expect_sound(opts_, from, hip);
  EXPECT_EQ(written(hip.figures.run, hip.figures.pool),
            written(host.figures.run, host.figures.pool));
  EXPECT_EQ(written(hip.figures.compute), written(host.figures.compute));
  EXPECT_GT(hip.figures.compute.images_verified, 0U);
  EXPECT_GT(hip.figures.compute.units_verified, 0U);
}

TEST_P(OneThreadOnHip, FindsTheSameWrongByteAsTheHost) {
  const trace from = small_workload(30, 7);
  bool in_slot = false;
  bool in_unit = false;
  for (const char* step : {"2", "40"}) {
    const std::vector<const char*> arguments = {"--units",    "300",      "--live",       "4",
                                                "--geometry", GetParam(), "--spoil-step", step};
    const replay_outcome host = run("host", arguments, from);
    const replay_outcome hip = run("hip", arguments, from);
    EXPECT_GT(hip.figures.compute.mismatches, 0U);
    EXPECT_EQ(written(hip.figures.compute), written(host.figures.compute));
    const std::string& found = hip.figures.compute.first_mismatch;
    in_slot = in_slot || found.find("slot") != std::string::npos;
    in_unit = in_unit || found.find("unit") != std::string::npos;
  }
  EXPECT_TRUE(in_slot);
  EXPECT_TRUE(in_unit);
}

INSTANTIATE_TEST_SUITE_P(Replay, OneThreadOnHip, Values("replay", "ragged", "tiny"));

TEST_F(OnHip, ManyThreadsFindNoWrongByte) {
  const trace from = small_workload(60, 11);
  const replay_outcome out =
      run("hip", {"--threads", "4", "--units", "400", "--live", "12", "--devices", "2"}, from);
  expect_sound(opts_, from, out);
  EXPECT_GT(out.figures.compute.images_verified, 0U);
}

TEST_F(OnHip, StepsHaveTimesOfTheStream) {
  const trace from = small_workload(30, 3);
  const replay_outcome out = run("hip", {"--units", "400", "--live", "4"}, from);
  EXPECT_GT(out.figures.compute.busy_seconds, 0.0);
  EXPECT_GE(out.figures.compute.wait_seconds, 0.0);
  EXPECT_EQ(out.compute.size(),
            run("host", {"--units", "400", "--live", "4"}, from).compute.size());
  std::int64_t last_ns = 0;
  for (const compute_span& each : out.compute) {
    EXPECT_GE(each.begin_ns, last_ns);
    EXPECT_GE(each.end_ns, each.begin_ns);
    last_ns = each.end_ns;
  }
}

TEST_F(OnHip, SaysThatThereIsNoDevice) {
  tests::hip::set_device_count(0);
  try {
    static_cast<void>(run("hip", {"--units", "300"}, small_workload(2, 1)));
    ADD_FAILURE() << "it ran";
  } catch (const bad_input& why) {
    EXPECT_THAT(why.what(), HasSubstr("no HIP device"));
  }
  tests::hip::set_device_count(2);
}

TEST_F(OnHip, ALostDeviceEndsTheRunWithAReason) {
  tests::hip::lose_at(tests::hip::call::hipLaunchKernel, 40, hipErrorIllegalAddress);
  EXPECT_THROW(static_cast<void>(run("hip", {"--units", "300"}, small_workload(40, 1))),
               broken_run);
  tests::hip::reset();
}

}  // namespace
}  // namespace cairn::replay
