// A HIP backend over the double with one plan on one of its devices and the memory that the plan
// speaks of. The memory is the program's: the double's kernels reach it as a device would its own.
#pragma once

#include <gtest/gtest.h>

#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/copy_plan.hpp"
#include "tests/backend_tools.hpp"
#include "tests/hip_double_tools.hpp"
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {

/// Many images of one batch: more than fit in a launch's arguments.
inline constexpr std::uint32_t staged_images = 300;
/// What the staging ring holds: batches of staged_images that may be in flight at once.
inline constexpr std::uint32_t staging_places = 16;
/// What stores may use of it: the rest is for restores.
inline constexpr std::uint32_t store_places = 12;

/// tiny_memory and its tasks: image i of `images` has the units 3i to 3i + 2 and slot i.
struct tiny_images {
  explicit tiny_images(std::uint32_t images) : memory(images * 3, images), units(images * 3) {
    for (std::uint32_t i = 0; i < units.size(); ++i) units[i] = i;
    for (std::uint32_t i = 0; i < images; ++i) tasks.push_back({i, &units[std::size_t{i} * 3]});
  }
  [[nodiscard]] std::span<const copy_task> some(std::uint32_t count) const {
    return {tasks.data(), count};
  }
  void write_slots(std::uint32_t count, std::uint64_t n) {
    for (std::uint32_t i = 0; i < count; ++i) memory.write(i, n + i);
  }
  /// Whether the slots hold images n, n + 1, ...
  [[nodiscard]] bool holds(std::uint32_t count, std::uint64_t n) const {
    for (std::uint32_t i = 0; i < count; ++i)
      if (!memory.holds(i, n + i)) return false;
    return true;
  }

  tiny_memory memory;
  std::vector<unit_id> units;
  std::vector<copy_task> tasks;
};

struct hip_rig {
  explicit hip_rig(std::uint32_t count = staged_images, const hip_options& opts = {},
                   std::uint32_t index = 0)
      : images(count), which(index) {
    auto made = make_hip_backend(opts);
    EXPECT_TRUE(made.ok()) << made.why().message();
    over = std::move(made).value();
    cut.emplace(make_copy_plan(runtime_rig::shape(), images.memory.memory).value());
    auto loaded = dev().load(*cut, images.memory.memory);
    EXPECT_TRUE(loaded.ok()) << loaded.why().message();
    plan = std::move(loaded).value();
  }

  [[nodiscard]] device& dev() const { return over->at(which); }
  [[nodiscard]] std::unique_ptr<stream> new_stream(
      stream_priority priority = stream_priority::normal) const {
    return std::move(dev().create_stream(priority)).value();
  }
  [[nodiscard]] std::unique_ptr<event> new_event() const {
    return std::move(dev().create_event(nullptr)).value();
  }
  status launch(stream& on, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report = nullptr) const {
    return dev().launch(on, *plan, kind, tasks, report);
  }
  /// Waits for all that the stream holds.
  void finish(stream& on) const {
    awaited_event end(dev());
    ASSERT_EQ(dev().record(end.get(), on), status::ok);
    ASSERT_TRUE(end.fires());
  }

  tiny_images images;
  std::uint32_t which;
  std::unique_ptr<backend> over;
  std::optional<copy_plan> cut;
  std::unique_ptr<device_plan> plan;
};

inline hipStream_t native(const stream& of) {
  return static_cast<hipStream_t>(of.native());
}

}  // namespace cairn::tests
