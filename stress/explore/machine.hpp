// What scenes on a whole runtime share: a small runtime over the host backend, whose copy thread
// and streams are logical threads; compute on a stream of its own, ordered by what the runtime
// offers; and a device between the two that fails when told to, and knows when it must not be
// called. Time is virtual.
#pragma once

#include <array>
#include <atomic>
#include <cairn/runtime.hpp>
#include <chrono>
#include <memory>

#include "runtime/sync.hpp"
#include "stress/explore/part.hpp"
#include "stress/explore/watched_device.hpp"

namespace cairn::explore {

struct machine_options {
  std::uint32_t scene_threads = 2;
  std::uint32_t ranks = 1;
  bool second_compute = false;  ///< rank 0 has another compute stream: number 1
  std::chrono::nanoseconds op_timeout = std::chrono::seconds(30);
  bool threaded = true;       ///< false: the scene pumps the copier and steps the streams
  trouble_set troubles = {};  ///< of the devices, that are left to the schedule
};

struct machine : trace_sink {
  static constexpr std::uint32_t ranks_max = 2;
  static constexpr std::uint32_t unit_bytes = 16;
  static constexpr std::uint32_t image_bytes = 24;  // two units
  static constexpr std::uint32_t slot_words = 4;    // three of the image, one of the slot's own
  static constexpr std::uint32_t units = 4;
  static constexpr std::uint32_t slots = 3;

  // Plain memory: whoever is not ordered is seen by ThreadSanitizer.
  std::array<std::array<std::uint64_t, units * unit_bytes / 8>, ranks_max> unit_areas{};
  std::array<std::array<std::uint64_t, slots * slot_words>, ranks_max> slot_areas{};
  std::unique_ptr<backend> host;
  std::array<std::unique_ptr<stream>, ranks_max> compute;
  std::unique_ptr<stream> compute2;
  watched_backend devices;
  std::unique_ptr<runtime> rt;

  explicit machine(const machine_options& how = {})
      : host(std::move(*make_host_backend({how.ranks, 1, !how.threaded, 16}))) {
    runtime_options opts;
    opts.shape = {unit_bytes, slot_words * 8, image_bytes, "small"};
    for (rank_id r = 0; r < how.ranks; ++r) {
      compute[r] = std::move(*host->at(r).create_stream(stream_priority::normal));
      watched_device& its = devices.add(host->at(r), how.scene_threads);
      its.drawn = how.troubles;
      its.unit_area = reinterpret_cast<std::byte*>(unit_areas[r].data());
      its.unit_bytes = unit_bytes;
      rank_memory memory;
      memory.regions = {{its.unit_area, unit_bytes, unit_bytes}};
      memory.units = units;
      memory.segments = {
          {reinterpret_cast<std::byte*>(slot_areas[r].data()), slot_words * 8, image_bytes}};
      memory.slots = slots;
      opts.ranks.push_back(memory);
    }
    if (!how.troubles.empty()) opts.trace = this;
    opts.compute_streams = how.second_compute ? 2 : 1;
    opts.max_sequences = 2;
    opts.max_ops = 8;
    opts.max_pins = 2;
    opts.max_threads = 4;
    opts.store_depth = 4;
    opts.restore_depth = 4;
    opts.store_streams = 1;
    opts.max_batch = 2;
    opts.op_timeout = how.op_timeout;
    opts.threaded = how.threaded;
    rt = std::move(*runtime::open(std::move(opts), devices));
    for (rank_id r = 0; r < how.ranks; ++r)
      require(rt->attach(r, 0, *compute[r]).ok(), "a compute stream cannot be attached");
    if (!how.second_compute) return;
    compute2 = std::move(*host->at(0).create_stream(stream_priority::normal));
    require(rt->attach(0, 1, *compute2).ok(), "a compute stream cannot be attached");
  }
  void on_batch(const batch_span& span) noexcept override { devices.at(span.rank).judge(span); }
  watched_device& device() { return devices.at(0); }

  static checkpoint_key key(std::uint64_t n) { return {n * 0x9e3779b97f4a7c15ULL + 1, n}; }
  /// The scene's patience: shorter than what the scheduler takes for a lost wake-up.
  static deadline patience() { return in_ns(8'000'000'000LL); }
  static deadline in_ns(std::int64_t ns) {
    return deadline(std::chrono::nanoseconds(now_ns() + ns));
  }

  // ---- compute ----
  // An image is three words that a number names; each rank has its own.
  struct job {
    machine* in = nullptr;
    rank_id rank = 0;
    slot_id slot = 0;
    std::uint64_t value = 0;
  };
  std::array<job, 64> jobs{};
  std::atomic<std::uint32_t> job_count{0};
  sync::atomic<std::uint32_t> opened{0};  ///< compute that was held goes on

  void enqueue(void (*f)(void*), rank_id rank, slot_id slot, std::uint64_t value) {
    enqueue(*compute[rank], f, rank, slot, value);
  }
  void enqueue(stream& on, void (*f)(void*), rank_id rank, slot_id slot, std::uint64_t value) {
    const std::uint32_t n = job_count.fetch_add(1, std::memory_order_relaxed);
    require(n < jobs.size(), "a scene has more compute than it may");
    jobs[n] = {this, rank, slot, value};
    require(host->at(rank).call(on, f, &jobs[n]) == status::ok, "the compute stream is full");
  }
  static void write_job(void* at) {
    const job& j = *static_cast<job*>(at);
    std::uint64_t* const to = &j.in->slot_areas[j.rank][j.slot * slot_words];
    for (std::uint32_t i = 0; i < 3; ++i) to[i] = j.value + i;
  }
  static void check_job(void* at) {
    const job& j = *static_cast<job*>(at);
    const std::uint64_t* const from = &j.in->slot_areas[j.rank][j.slot * slot_words];
    for (std::uint32_t i = 0; i < 3; ++i)
      if (from[i] != j.value + i) fail("a slot does not hold what was restored into it");
  }
  static void hold_job(void* at) {
    machine& m = *static_cast<job*>(at)->in;
    while (m.opened.load_acquire() == 0) sync::sleep_until(m.opened.raw(), 0, patience());
  }
  void write(slot_id slot, std::uint64_t n) { on_each_rank(write_job, slot, n); }
  void check(slot_id slot, std::uint64_t n) { on_each_rank(check_job, slot, n); }
  void on_each_rank(void (*f)(void*), slot_id slot, std::uint64_t n) {
    for (rank_id r = 0; r < rt->ranks(); ++r) enqueue(f, r, slot, 100 * n + 10 * r);
  }
  /// Compute stops here until `open`.
  void hold() { enqueue(hold_job, 0, 0, 0); }
  void open() {
    opened.store_release(1);
    sync::wake_all(opened.raw());
  }

  // ---- waiting ----
  sync::atomic<std::uint32_t> nobody_rings{0};
  void nap(std::int64_t ns) { sync::sleep_until(nobody_rings.raw(), 0, in_ns(ns)); }
  template <class Done>
  void wait_until(Done done, const char* otherwise) {
    for (const deadline until = patience(); !done();) {
      if (clock::now() >= until) fail(otherwise);
      nap(100'000);
    }
  }

  // ---- the engine's calls ----
  /// Compute, a store of what it wrote, and compute that overwrites the slot behind it.
  status store(std::uint64_t n, slot_id slot = 0) {
    write(slot, n);
    auto made = rt->store(key(n), slot, 0);
    if (!made) return made.code();
    require(rt->order_after(0, *made, patience()) == status::ok, "a store was never launched");
    write(slot, 50 + n);
    const status got = made->wait(patience());
    require(got != status::pending, "a store never ended");
    return got;
  }
  status restore(std::uint64_t n, slot_id slot = 1) {
    auto made = rt->restore(key(n), slot, 0);
    if (!made) return made.code();
    require(rt->order_after(0, *made, patience()) == status::ok, "a restore was never launched");
    const status got = made->wait(patience());
    require(got != status::pending, "a restore never ended");
    if (got == status::ok) check(slot, n);
    return got;
  }
  /// All that was accepted has ended, and compute has run.
  void wait_for_all() {
    require(rt->drain(patience()) == status::ok, "accepted ops do not end");
    for (rank_id r = 0; r < rt->ranks(); ++r)
      require(rt->rank(r).drain(patience()) == status::ok, "accepted ops do not end");
    wait_for_compute();
  }
  /// The same where nobody runs by himself.
  void settle() {
    while (rt->pump() || host->step()) {
    }
  }
  void wait_for_compute() {
    for (rank_id r = 0; r < rt->ranks(); ++r) {
      auto done = host->at(r).create_event(nullptr);
      static_cast<void>(host->at(r).record(**done, *compute[r]));
      wait_until([&] { return host->at(r).query(**done) != event_state::pending; },
                 "compute does not end");
    }
  }
  /// A copy that was given up is over, and keeps nothing any more. No other op is on its way.
  void wait_for_proof(slot_id slot) {
    wait_until(
        [&] {
          const catalog_counts c = rt->records().counts();
          return rt->rank(0).slot_status(slot) != status::busy && c.quarantine_units == 0 &&
                 c.ops == 0;
        },
        "a copy that was given up is over and keeps its slot or its units");
  }
  void judge_ledger() {
    const catalog_counts c = rt->records().counts();
    const pool_counts p = rt->own_pool()->counts();
    require(c.copying == 0 && c.evicting == 0, "a record is neither READY nor gone");
    require(c.ops == 0, "an op has not ended");
    require(c.quarantine_units == 0, "units are left in quarantine");
    require(p.live == 0, "a live unit is left");
    judge_units(c, p);
    require(rt->records().evictable() == c.ready, "the count of evictable records is wrong");
  }
  /// Of copies on a device that is lost nobody knows: what they may touch stays in quarantine.
  void judge_ledger_of_lost() {
    const catalog_counts c = rt->records().counts();
    require(c.copying == 0 && c.ready == 0, "a record outlives its shard");
    judge_units(c, rt->own_pool()->counts());
  }
  void judge_units(const catalog_counts& c, const pool_counts& p) {
    require(p.reserved == c.checkpoint_units + c.quarantine_units,
            "the pool and the catalog differ");
    require(p.vacant + p.cached + p.reserved == p.total, "the ledger of units does not close");
  }
};

}  // namespace cairn::explore
