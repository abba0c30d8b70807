// make_hip_backend of this build on a machine without a device: a status and one line. Knows which
// build it is by CAIRN_EXPECT_HIP.
#include <gtest/gtest.h>

#include <cairn/backend.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace cairn {
namespace {

std::string refusal() {
  const result<std::unique_ptr<backend>> made = make_hip_backend();
  return made.ok() ? std::string() : made.why().message();
}

TEST(HipBackendWithoutADevice, SaysWhyInOneLine) {
  const result<std::unique_ptr<backend>> made = make_hip_backend();
  if (made.ok()) GTEST_SKIP() << "there is a device";
  const std::string line = made.why().message();
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
#if CAIRN_EXPECT_HIP
  EXPECT_EQ(made.code(), status::device_lost);
  EXPECT_NE(line.find("no HIP device: "), std::string::npos) << line;
#else
  EXPECT_EQ(made.code(), status::unsupported);
  EXPECT_NE(line.find("this build of cairn has no HIP backend"), std::string::npos) << line;
#endif
}

TEST(HipBackendWithoutADevice, SaysTheSameAgainAndOnEveryThread) {
  const std::string first = refusal();
  if (first.empty()) GTEST_SKIP() << "there is a device";
  std::vector<std::string> said(4);
  std::vector<std::thread> threads;
  for (std::string& line : said) threads.emplace_back([&line] { line = refusal(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& line : said) EXPECT_EQ(line, first);
}

}  // namespace
}  // namespace cairn
