// When batches ran: as the backend says, or as the copy thread saw it where the backend cannot
// tell.
#include <gtest/gtest.h>

#include <cairn/copier.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

std::int64_t time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

struct spans final : trace_sink {
  std::vector<batch_span> seen;
  void on_batch(const batch_span& span) noexcept override { seen.push_back(span); }
};

/// Batches of one store on one stream.
struct times_bench {
  explicit times_bench(bool timeless) : bench(small()) {
    bench.faults().timeless = timeless;
    copier_options o = bench.options();
    o.trace = &sink;
    made = std::move(copier::open(o, bench.faults())).value();
    // Behind the streams of the bench's own copier.
    on = &bench.faults().created(bench.faults().created_count() - 2);
  }
  static bench_options small() {
    bench_options opts;
    opts.max_batch = 1;
    opts.store_streams = 1;
    return opts;
  }
  void pump() {
    while (made->pump()) {
    }
  }
  void submit(const copy_op& op) { ASSERT_TRUE(made->submit({&op, 1})); }
  /// Runs the oldest batch and its event.
  void finish_one() {
    ASSERT_TRUE(bench.step(*on));
    ASSERT_TRUE(bench.step(*on));
  }

  copier_bench bench;
  spans sink;
  std::unique_ptr<copier> made;
  stream* on = nullptr;
};

TEST(BatchTimes, AreTakenByTheCopyThreadWhereTheBackendCannotTell) {
  times_bench b(true);
  const std::int64_t before = time_ns();
  b.submit(b.bench.store(0, 0));
  b.submit(b.bench.store(1, 1));
  b.pump();
  const std::int64_t handed = time_ns();
  b.finish_one();
  const std::int64_t over = time_ns();
  b.pump();
  const std::int64_t seen = time_ns();
  ASSERT_EQ(b.sink.seen.size(), 1U);
  const batch_span first = b.sink.seen[0];
  EXPECT_GE(first.begin_ns, before);
  EXPECT_LE(first.begin_ns, handed);
  EXPECT_GE(first.end_ns, over);
  EXPECT_LE(first.end_ns, seen);

  b.finish_one();
  const std::int64_t second_over = time_ns();
  b.pump();
  ASSERT_EQ(b.sink.seen.size(), 2U);
  const batch_span second = b.sink.seen[1];
  EXPECT_EQ(second.begin_ns, first.end_ns) << "handed over before, but behind the first";
  EXPECT_GE(second.end_ns, second_over);

  const std::int64_t later = time_ns();
  b.submit(b.bench.store(2, 2));
  b.pump();
  b.finish_one();
  b.pump();
  ASSERT_EQ(b.sink.seen.size(), 3U);
  const batch_span third = b.sink.seen[2];
  EXPECT_GE(third.begin_ns, later) << "the stream was idle before";

  const std::int64_t busy = first.end_ns - first.begin_ns + second.end_ns - second.begin_ns +
                            third.end_ns - third.begin_ns;
  EXPECT_EQ(b.made->stats()[0].busy_ns, busy);
}

TEST(BatchTimes, OfTheBackendStand) {
  times_bench b(false);
  b.submit(b.bench.store(0, 0));
  b.pump();
  const std::int64_t handed = time_ns();
  b.finish_one();
  const std::int64_t over = time_ns();
  b.pump();
  ASSERT_EQ(b.sink.seen.size(), 1U);
  EXPECT_GE(b.sink.seen[0].begin_ns, handed);
  EXPECT_LE(b.sink.seen[0].end_ns, over);
}

}  // namespace
}  // namespace cairn::tests
