// A runtime over host devices that can be made to fail, with small memory whose content is a
// function of a key. In manual mode nothing runs but what the test steps.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cairn/runtime.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "tests/faulty_device.hpp"

namespace cairn::tests {

constexpr checkpoint_key key_of(std::uint64_t n) {
  return {n * 0x9E3779B97F4A7C15U, n};
}

/// The byte at `offset` of the image that stands under key n.
constexpr std::byte byte_of(std::uint64_t n, std::size_t offset) {
  return static_cast<std::byte>((n * 31 + offset * 7 + (n >> 3) + 1) & 0xFF);
}

class faulty_backend final : public backend {
 public:
  explicit faulty_backend(const host_options& opts) : faulty_backend(*make_host_backend(opts)) {}
  explicit faulty_backend(std::unique_ptr<backend> real) : real_(std::move(real)) {
    for (std::uint32_t i = 0; i < real_->device_count(); ++i)
      devices_.push_back(std::make_unique<faulty_device>(real_->at(i)));
  }
  [[nodiscard]] std::uint32_t device_count() const noexcept override {
    return real_->device_count();
  }
  [[nodiscard]] device& at(std::uint32_t index) override { return *devices_[index]; }
  [[nodiscard]] faulty_device& faulty(std::uint32_t index) { return *devices_[index]; }
  bool step() override { return real_->step(); }
  bool step(stream& on) override { return real_->step(on); }

 private:
  std::unique_ptr<backend> real_;
  std::vector<std::unique_ptr<faulty_device>> devices_;
};

/// Units of 10 bytes, images of 25 (three units), slots of 40. The rest of a slot is not the
/// image's.
struct tiny_memory {
  static constexpr std::uint32_t unit_bytes = 10;
  static constexpr std::uint32_t image_bytes = 25;
  static constexpr std::uint32_t slot_bytes = 40;

  tiny_memory(std::uint32_t units, std::uint32_t slots)
      : unit_area(std::size_t{units} * unit_bytes), slot_area(std::size_t{slots} * slot_bytes) {
    memory.regions = {{unit_area.data(), unit_bytes, unit_bytes}};
    memory.units = units;
    memory.segments = {{slot_area.data(), slot_bytes, image_bytes}};
    memory.slots = slots;
  }
  void write(slot_id slot, std::uint64_t n) {
    std::byte* at = &slot_area[std::size_t{slot} * slot_bytes];
    for (std::size_t i = 0; i < image_bytes; ++i) at[i] = byte_of(n, i);
  }
  [[nodiscard]] bool holds(slot_id slot, std::uint64_t n) const {
    const std::byte* at = &slot_area[std::size_t{slot} * slot_bytes];
    for (std::size_t i = 0; i < image_bytes; ++i)
      if (at[i] != byte_of(n, i)) return false;
    return true;
  }

  std::vector<std::byte> unit_area;
  std::vector<std::byte> slot_area;
  rank_memory memory;
};

struct rig_options {
  std::uint32_t ranks = 1;
  std::uint32_t units = 12;
  std::uint32_t slots = 8;
  std::uint32_t compute_streams = 2;
  bool manual = true;
  std::function<void(runtime_options&)> tune = nullptr;
  std::function<std::unique_ptr<backend>()> over = nullptr;  ///< instead of the host backend
};

struct runtime_rig {
  explicit runtime_rig(const rig_options& opts = {})
      : devices(opts.over ? opts.over() : *make_host_backend({opts.ranks, 1, opts.manual, 4096})),
        manual(opts.manual) {
    runtime_options with;
    with.shape = shape();
    for (std::uint32_t r = 0; r < opts.ranks; ++r) {
      memory.push_back(std::make_unique<tiny_memory>(opts.units, opts.slots));
      with.ranks.push_back(memory.back()->memory);
      devices.faulty(r).quiet = true;
    }
    with.compute_streams = opts.compute_streams;
    with.threaded = !opts.manual;
    with.max_sequences = 64;
    with.max_ops = 256;
    with.store_depth = 32;
    with.restore_depth = 32;
    if (opts.tune) opts.tune(with);
    for (std::uint32_t r = 0; r < opts.ranks; ++r)
      for (std::uint32_t c = 0; c < opts.compute_streams; ++c)
        computes.push_back(std::move(*devices.at(r).create_stream(stream_priority::normal)));
    auto opened = runtime::open(std::move(with), devices);
    if (!opened) {
      ADD_FAILURE() << opened.why().message();
      return;
    }
    rt = std::move(*opened);
    for (std::uint32_t r = 0; r < opts.ranks; ++r)
      for (std::uint32_t c = 0; c < opts.compute_streams; ++c)
        EXPECT_TRUE(rt->attach(r, c, *computes[r * opts.compute_streams + c]).ok());
    per_rank = opts.compute_streams;
  }

  static layout shape() {
    return {tiny_memory::unit_bytes, tiny_memory::slot_bytes, tiny_memory::image_bytes, "tiny"};
  }
  static deadline soon() { return clock::now() + std::chrono::seconds(20); }

  stream& compute(rank_id rank, std::uint32_t index) { return *computes[rank * per_rank + index]; }
  /// A stream that the rank's copier made: stores first, then restores.
  stream& copy_stream(rank_id rank, std::uint32_t index) {
    return devices.faulty(rank).created(per_rank + index);
  }
  /// Enqueues compute; `work` must live until it has run.
  void enqueue(rank_id rank, std::uint32_t index, std::function<void()>& work) {
    ASSERT_EQ(devices.at(rank).call(
                  compute(rank, index),
                  [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &work),
              status::ok);
  }
  /// Manual mode: everything that can run, runs.
  void run() {
    for (bool any = true; any;) {
      any = rt->pump();
      while (devices.step()) any = true;
    }
  }
  void write(slot_id slot, std::uint64_t n) {
    for (std::size_t r = 0; r < memory.size(); ++r) memory[r]->write(slot, n + 1000 * r);
  }
  [[nodiscard]] bool holds(slot_id slot, std::uint64_t n) const {
    for (std::size_t r = 0; r < memory.size(); ++r)
      if (!memory[r]->holds(slot, n + 1000 * r)) return false;
    return true;
  }
  /// Writes, stores and runs to the end (manual mode).
  void keep(std::uint64_t n, slot_id slot = 0) {
    write(slot, n);
    auto stored = rt->store(key_of(n), slot, 0);
    ASSERT_TRUE(stored.ok()) << stored.why().message();
    run();
    (void)rt->settle(clock::now());
    ASSERT_EQ(stored->code(), status::ok);
  }
  [[nodiscard]] std::uint64_t dropped(drop_reason why) const {
    return rt->records().fates().dropped[static_cast<std::size_t>(why)];
  }
  /// Every unit is somewhere, and what is not a record's or a request's is free.
  void expect_ledger(std::uint32_t live) const {
    const pool_counts pool = rt->own_pool()->counts();
    const catalog_counts records = rt->records().counts();
    EXPECT_EQ(pool.vacant + pool.cached + pool.live + pool.reserved, pool.total);
    EXPECT_EQ(pool.reserved, records.checkpoint_units + records.quarantine_units);
    EXPECT_EQ(pool.live, live);
  }

  faulty_backend devices;
  bool manual;
  std::uint32_t per_rank = 0;
  std::vector<std::unique_ptr<tiny_memory>> memory;
  std::vector<std::unique_ptr<stream>> computes;
  std::unique_ptr<runtime> rt;
};

}  // namespace cairn::tests
