// Fates and latency histograms.
#include <gtest/gtest.h>

#include <cairn/metrics.hpp>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace cairn {
namespace {

TEST(Fates, TotalsEveryReasonForADrop) {
  fate_counts fates;
  EXPECT_EQ(fates.dropped_total(), 0U);
  for (std::size_t i = 0; i < fates.dropped.size(); ++i) fates.dropped[i] = i + 1;
  EXPECT_EQ(fates.dropped_total(), 15U);
  EXPECT_STREQ(to_string(drop_reason::no_room), "no_room");
  EXPECT_STREQ(to_string(drop_reason::superseded), "superseded");
  EXPECT_STREQ(to_string(drop_reason::queue_full), "queue_full");
  EXPECT_STREQ(to_string(drop_reason::closed), "closed");
}

TEST(Histogram, EmptyAnswersZero) {
  const auto h = std::make_unique<latency_histogram>();
  EXPECT_EQ(h->count(), 0U);
  EXPECT_EQ(h->quantile_ns(0.5), 0);
  EXPECT_EQ(h->total_ns(), 0);
}

TEST(Histogram, EveryValueIsReportedWithinASixteenth) {
  std::vector<std::int64_t> values = {0, 1, 15, 16, 17, 31, 32, 33, 1000, 123456789};
  for (int bit = 4; bit < 63; ++bit) {
    values.push_back((std::int64_t{1} << bit) - 1);
    values.push_back(std::int64_t{1} << bit);
    values.push_back((std::int64_t{1} << bit) + 1);
  }
  values.push_back(std::numeric_limits<std::int64_t>::max());
  for (const std::int64_t v : values) {
    const auto h = std::make_unique<latency_histogram>();
    h->add(v);
    const std::int64_t got = h->quantile_ns(0.5);
    EXPECT_GE(got, v);
    EXPECT_LE(got - v, v / 16) << v;
  }
}

TEST(Histogram, QuantilesFollowTheCounts) {
  const auto h = std::make_unique<latency_histogram>();
  for (int i = 1; i <= 100; ++i) h->add(i <= 50 ? 10 : i <= 99 ? 1000 : 1000000);
  h->add(-5);  // a clock that went backwards counts as nothing
  EXPECT_EQ(h->count(), 101U);
  EXPECT_EQ(h->quantile_ns(0), 0);
  EXPECT_EQ(h->quantile_ns(0.25), 10);
  EXPECT_NEAR(static_cast<double>(h->quantile_ns(0.9)), 1000, 63);
  EXPECT_NEAR(static_cast<double>(h->quantile_ns(1)), 1e6, 62500);
  EXPECT_EQ(h->quantile_ns(7), h->quantile_ns(1));
  EXPECT_EQ(h->total_ns(), 50 * 10 + 49 * 1000 + 1000000);
}

TEST(Histogram, ThreadsLoseNothing) {
  const auto h = std::make_unique<latency_histogram>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&h, t] {
      for (int i = 0; i < 5000; ++i) h->add(t * 100 + i % 7);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(h->count(), 20000U);
}

}  // namespace
}  // namespace cairn
