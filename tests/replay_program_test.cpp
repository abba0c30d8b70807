// The program itself: what it says and how it exits. CAIRN_REPLAY_PROGRAM is its path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace {

using testing::HasSubstr;

struct ran {
  int code = -1;
  std::string out;
  std::string err;
};

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "cairn_replay_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  ran run(const std::string& arguments) const {
    const std::string command = std::string(CAIRN_REPLAY_PROGRAM) + " " + arguments + " >" +
                                path("out") + " 2>" + path("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(path("out")),
            content(path("err"))};
  }
  void expect_refused(const std::string& arguments, const std::string& line) const {
    const ran got = run(arguments);
    EXPECT_EQ(got.code, 2) << arguments << "\n" << got.err;
    EXPECT_EQ(got.out, "") << arguments;
    EXPECT_THAT(got.err, HasSubstr("cairn_replay: " + line)) << arguments;
    EXPECT_EQ(got.err.find('\n') + 1, got.err.size()) << arguments << "\n" << got.err;
  }

  std::string folder_;
  const std::string good_ =
      R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]})"
      "\n";
};

TEST_F(Program, RefusesBadTracesInOneLine) {
  const std::string empty = file("empty", "");
  const std::string truncated = file("truncated", good_ + good_.substr(0, 30));
  const std::string negative = file(
      "negative", R"({"timestamp": 0, "input_length": -1, "output_length": 5, "hash_ids": []})");
  const std::string huge =
      file("huge", R"({"timestamp": 0, "input_length": 1, "output_length": 1e99, "hash_ids": []})");
  const std::string large = file(
      "large", R"({"timestamp": 0, "input_length": 1, "output_length": 90000, "hash_ids": []})");
  expect_refused("--trace " + path("missing"), path("missing") + ": expected a trace, got no");
  expect_refused("--trace " + folder_, folder_ + ": expected a trace, got a folder");
  expect_refused("--trace " + empty, empty + ": expected at least one request");
  expect_refused("--trace " + truncated, truncated + ":2: expected a JSON object, got a line that");
  expect_refused("--trace " + negative, negative + ":1: expected input_length");
  expect_refused("--trace " + huge, huge + ":1: expected output_length");
  expect_refused("--units 100 --trace " + large, "--units: expected room for at least one request");
}

TEST_F(Program, RefusesBadArgumentsInOneLine) {
  expect_refused("--units 0", "--units: expected 1 to");
  expect_refused("--units -3", "Could not convert: --units = -3");
  expect_refused("--units 99999999999999999999", "Could not convert: --units");
  expect_refused("--units 4", "--units: expected more than an image of replay (4 units), got 4");
  expect_refused("--geometry gdn_36 --units 101", "--units: expected more than an image of gdn_36");
  expect_refused("--geometry gdn_36 --units 16000000", "--units: expected units and slots to fit");
  expect_refused("--geometry cube", "--geometry: expected one of tiny, dsv4_flash");
  expect_refused("--frobnicate", "The following argument was not expected: --frobnicate");
  expect_refused("stray", "The following argument was not expected: stray");
  expect_refused("--threads 0", "--threads: expected 1 to 256, got 0");
  expect_refused("--live 0", "--live: expected");
  expect_refused("--live 8 --slots 7", "--slots: expected at least --live 8, got 7");
  expect_refused("--devices 0", "--devices: expected");
  expect_refused("--place here", "--place: expected some of anchor, demand, ladder");
  expect_refused("--interval-tokens 1000", "--interval-tokens: expected a multiple of 512");
  expect_refused("--pool both", "--pool: expected shared or separate, got both");
  expect_refused("--policy mru", "--policy: expected lru, got mru");
  expect_refused("--seed -1", "--seed: expected a number from 0, got -1");
  expect_refused("--backend abacus", "--backend: expected host or hip, got abacus");
  expect_refused("--json /nonexistent/file --requests 1", "--json: expected a file to write");
}

TEST_F(Program, ReportsAsATableAsJsonAndAsATimeline) {
  const std::string trace = file("trace", good_ + good_);
  const ran got =
      run("--units 100 --live 2 --devices 2 --threads 2 --trace " + trace + " --json " +
          path("json") + " --timeline " + path("timeline") + " --log-calls " + path("calls"));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.err, "");
  EXPECT_THAT(got.out, HasSubstr("token hit rate"));
  const auto json = nlohmann::json::parse(content(path("json")));
  EXPECT_EQ(json.at("requests"), 2);
  EXPECT_EQ(json.at("mismatches"), 0);
  EXPECT_EQ(json.at("tokens").at("total"), 1200);
  for (const char* field : {"kv_hit", "wanted", "resumed"})
    EXPECT_TRUE(json.at("tokens").contains(field)) << field;
  for (const char* field :
       {"seconds", "token_hit_rate", "restores", "stores", "overlap", "compute_wait_seconds"})
    EXPECT_TRUE(json.at(field).is_number()) << field;
  for (const char* field : {"kept", "evicted", "orphaned", "failed", "cancelled"})
    EXPECT_TRUE(json.at("fates").at(field).is_number()) << field;
  for (const char* field : {"no_room", "superseded", "queue_full", "closed"})
    EXPECT_EQ(json.at("fates").at("dropped").at(field), 0) << field;
  std::uint64_t units = 0;
  for (const char* field : {"vacant", "cached", "live", "checkpoint", "quarantine"})
    units += json.at("pool").at(field).get<std::uint64_t>();
  EXPECT_EQ(json.at("pool").at("total"), units);
  EXPECT_EQ(json.at("streams").size(), 6U);
  for (const char* field : {"device", "direction", "bytes", "busy_seconds", "gb_per_s"})
    EXPECT_TRUE(json.at("streams").at(0).contains(field)) << field;
  for (const char* field : {"submit", "store", "restore"})
    for (const char* quantile : {"p50", "p99", "p999"})
      EXPECT_TRUE(json.at("latency_us").at(field).at(quantile).is_number());
  EXPECT_FALSE(nlohmann::json::parse(content(path("timeline"))).at("traceEvents").empty());
  std::istringstream calls(content(path("calls")));
  for (std::string line; std::getline(calls, line);)
    EXPECT_TRUE(nlohmann::json::parse(line).contains("call"));
}

TEST_F(Program, HelpNamesEveryOption) {
  const ran got = run("--help");
  EXPECT_EQ(got.code, 0);
  for (const char* option :
       {"--trace", "--threads", "--live", "--devices", "--backend", "--geometry", "--units",
        "--slots", "--pool", "--place", "--interval-tokens", "--chunk-tokens", "--policy", "--seed",
        "--json", "--timeline", "--help"})
    EXPECT_THAT(got.out, HasSubstr(option));
}

}  // namespace
