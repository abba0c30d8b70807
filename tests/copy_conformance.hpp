// What every backend must do with batches of copies: each byte of each image, and no other.
// Included and instantiated like backend_conformance.hpp:
//
//   INSTANTIATE_TEST_SUITE_P(Host, CopyConformance,
//                            testing::Combine(testing::Values(backend_factory{...}),
//                                             testing::ValuesIn(geometries()), testing::Bool()));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/checksum.hpp"
#include "runtime/copy_plan.hpp"
#include "tests/backend_conformance.hpp"
#include "tests/geometries.hpp"

namespace cairn::tests {

/// Which backend, which geometry, negative strides or not.
using copy_case = std::tuple<backend_factory, geometry, bool>;

inline std::string copy_case_name(const testing::TestParamInfo<copy_case>& each) {
  return std::string(std::get<1>(each.param).name) +
         (std::get<2>(each.param) ? "_negative" : "_positive");
}

class CopyConformance : public testing::TestWithParam<copy_case> {
 protected:
  static constexpr std::uint32_t images = 2;
  static constexpr std::uint32_t slots = 2;

  void SetUp() override {
    const auto& [factory, shape, negative] = GetParam();
    auto made = factory.make();
    ASSERT_TRUE(made.ok()) << made.why().message();
    backend_ = std::move(made).value();
    const std::uint32_t pool = images * shape.units_per_image + 3;
    rank_.emplace(dev(), shape, pool, slots, negative, factory.memory);
    lists_ = scattered_units(pool, shape.units_per_image, images);
    const auto plan = make_copy_plan(shape.shape(), rank_->memory());
    ASSERT_TRUE(plan.ok()) << plan.why().message();
    auto loaded = dev().load(plan.value(), rank_->memory());
    ASSERT_TRUE(loaded.ok()) << loaded.why().message();
    plan_ = std::move(loaded).value();
    for (auto& s : streams_) s = std::move(dev().create_stream(stream_priority::normal)).value();
  }

  [[nodiscard]] device& dev() { return backend_->at(0); }
  [[nodiscard]] copy_task task(slot_id slot, std::uint32_t list) const {
    return {slot, lists_[list].data()};
  }
  /// Launches on one stream and waits.
  void run(copy_kind kind, std::span<const copy_task> tasks, batch_report* report = nullptr) {
    awaited_event done(dev());
    batch_report own;
    batch_report& used = report != nullptr ? *report : own;
    ASSERT_EQ(dev().launch(*streams_[0], *plan_, kind, tasks, &used), status::ok);
    ASSERT_EQ(dev().record(done.get(), *streams_[0]), status::ok);
    ASSERT_TRUE(done.fires());
    EXPECT_FALSE(used.failed.load());
  }

  std::unique_ptr<backend> backend_;
  std::optional<modelled_rank> rank_;
  std::vector<std::vector<unit_id>> lists_;
  std::unique_ptr<device_plan> plan_;
  std::array<std::unique_ptr<stream>, 2> streams_;
};

TEST_P(CopyConformance, RestoreBringsBackWhatStoreTook) {
  const copy_task store[] = {task(1, 0)};
  run(copy_kind::store, store);
  rank_->model_store(1, lists_[0]);
  ASSERT_TRUE(rank_->matches());

  const std::vector<std::byte> image = rank_->model_image(1);
  rank_->scribble(1, 77);
  const copy_task restore[] = {task(0, 0), task(1, 0)};
  run(copy_kind::restore, restore);
  rank_->model_restore(0, lists_[0]);
  rank_->model_restore(1, lists_[0]);
  ASSERT_TRUE(rank_->matches());
  EXPECT_TRUE(rank_->model_image(0) == image);
  EXPECT_TRUE(rank_->model_image(1) == image);
}

TEST_P(CopyConformance, ABatchCopiesEachOfItsImages) {
  const copy_task store[] = {task(1, 1), task(0, 0)};
  batch_report report;
  const std::int64_t before = clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  run(copy_kind::store, store, &report);
  const std::int64_t after = clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  rank_->model_store(1, lists_[1]);
  rank_->model_store(0, lists_[0]);
  EXPECT_TRUE(rank_->matches());
  // A backend that is polled need not know when its copies ran.
  if (dev().polls() && report.begin_ns.load() == 0 && report.end_ns.load() == 0) return;
  EXPECT_LE(before, report.begin_ns.load());
  EXPECT_LE(report.begin_ns.load(), report.end_ns.load());
  EXPECT_LE(report.end_ns.load(), after);
}

TEST_P(CopyConformance, AStoreAndARestoreRunOnTwoStreams) {
  const copy_task first[] = {task(1, 0)};
  run(copy_kind::store, first);
  rank_->model_store(1, lists_[0]);

  const copy_task store[] = {task(1, 1)};
  const copy_task restore[] = {task(0, 0)};
  batch_report reports[2];
  awaited_event stored(dev()), restored(dev());
  ASSERT_EQ(dev().launch(*streams_[0], *plan_, copy_kind::store, store, &reports[0]), status::ok);
  ASSERT_EQ(dev().launch(*streams_[1], *plan_, copy_kind::restore, restore, &reports[1]),
            status::ok);
  ASSERT_EQ(dev().record(stored.get(), *streams_[0]), status::ok);
  ASSERT_EQ(dev().record(restored.get(), *streams_[1]), status::ok);
  ASSERT_TRUE(stored.fires());
  ASSERT_TRUE(restored.fires());
  rank_->model_store(1, lists_[1]);
  rank_->model_restore(0, lists_[0]);
  EXPECT_TRUE(rank_->matches());
}

TEST_P(CopyConformance, OneStreamStoresThenRestoresWithoutTheHost) {
  const copy_task store[] = {task(0, 0)};
  const copy_task restore[] = {task(1, 0)};
  batch_report report;
  ASSERT_EQ(dev().launch(*streams_[0], *plan_, copy_kind::store, store, nullptr), status::ok);
  run(copy_kind::restore, restore, &report);
  rank_->model_store(0, lists_[0]);
  rank_->model_restore(1, lists_[0]);
  EXPECT_TRUE(rank_->matches());
}

/// By the definition of kernels/checksum.hpp: words are counted from the start of each span.
inline std::uint64_t checksum_by_definition(const copy_plan& plan,
                                            const std::vector<std::byte>& image) {
  std::uint64_t sum = 0;
  for (const copy_span& span : plan.spans)
    for (std::uint64_t at = 0; at < span.bytes; at += 8) {
      std::uint64_t word = 0;
      const std::size_t bytes = std::min<std::uint64_t>(8, span.bytes - at);
      std::memcpy(&word, image.data() + span.image_offset + at, bytes);
      sum += kernels::word_sum(word, span.image_offset + at);
    }
  return sum;
}

TEST_P(CopyConformance, ReportsTheChecksumOfEachImage) {
  auto memory = dev().allocate_pinned(images * sizeof(std::uint64_t));
  ASSERT_TRUE(memory.ok());
  auto* const sums = reinterpret_cast<std::uint64_t*>(memory.value()->data());
  const auto plan = make_copy_plan(std::get<1>(GetParam()).shape(), rank_->memory());
  batch_report report;
  report.checksums = sums;
  // More than once: each launch leaves everything ready for the next.
  for (std::uint8_t round = 0; round < 2; ++round) {
    rank_->scribble(round % slots, static_cast<std::uint8_t>(round + 1));
    const copy_task store[] = {task(1, 0), task(0, 1)};
    run(copy_kind::store, store, &report);
    const std::uint64_t first = checksum_by_definition(plan.value(), rank_->model_image(1));
    const std::uint64_t second = checksum_by_definition(plan.value(), rank_->model_image(0));
    EXPECT_EQ(sums[0], first);
    EXPECT_EQ(sums[1], second);
    rank_->model_store(1, lists_[0]);
    rank_->model_store(0, lists_[1]);
    const copy_task restore[] = {task(1, 1), task(0, 0)};
    run(copy_kind::restore, restore, &report);
    EXPECT_EQ(sums[0], second);
    EXPECT_EQ(sums[1], first);
    rank_->model_restore(1, lists_[1]);
    rank_->model_restore(0, lists_[0]);
  }
  EXPECT_TRUE(rank_->matches());
}

}  // namespace cairn::tests
