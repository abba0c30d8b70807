// Suite `replay`: the checkpoints of a trace, request by request: how far does a checkpoint reach
// into its prompt, restore it, store the one at the prompt's end. cairn's runtime on the host
// backend, against one mutex around a map and a memcpy of each image in the calling thread.
//
// Processor time: what scheduling threads spend inside the library per op (a store or a restore,
// with the lookups before it); wakes of other threads, and pauses when a queue is full, are counted
// apart; what the peer's mutex does to wait and to wake is not told apart, and stays in its figure
// (nothing with one thread). End to end: elapsed time until the last copy has ended. Requests of
// one slot belong to one thread; both sides have room for the same number of images. Neither
// computes checksums, which the peer has none of; a row says what they cost cairn. Figures are per
// op that a side did: cairn does fewer, a row says how many, as a record whose copy is still under
// way is no hit. Two sizes of image: the real 9 MB of `dsv4_flash`, with the first requests of the
// trace, and the 60 KB of `replay`, which stand for an image where a whole trace is to be played in
// seconds.
#include <algorithm>
#include <cairn/runtime.hpp>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>

#include "bench/harness/team.hpp"
#include "bench/harness/wakes.hpp"
#include "bench/peers/locked_store.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/replay/trace.hpp"
#include "bench/replay/workload.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "replay";

using replay::request;

/// What is replayed, and in how much room.
struct arena {
  const char* geometry;
  std::uint32_t images;
  std::uint32_t slots;
  std::size_t requests;  ///< at most
};

/// What one run of the trace took.
struct effort_spent {
  double cpu_ns_per_op = 0;    ///< of scheduling threads, wakes and pauses apart
  double apart_ns_per_op = 0;  ///< wakes and pauses
  double elapsed_ns_per_op = 0;
  double ops = 0;
};

thread_local std::int64_t pauses_ns = 0;

/// Each request goes to the thread that owns its slot. `each(request, slot) -> ops`.
template <class Each, class Finish>
effort_spent run(std::span<const request> all, std::uint32_t slots, std::uint32_t threads,
                 Each&& each, Finish&& finish) {
  std::vector<std::int64_t> cpu_ns(threads);
  std::vector<std::int64_t> apart_ns(threads);
  std::vector<std::uint64_t> ops(threads);
  const std::int64_t begin = elapsed_ns();
  {
    std::vector<std::jthread> team;
    for (std::uint32_t t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        count_thread_wakes();
        const std::int64_t from = thread_cpu_ns();
        for (std::size_t i = 0; i < all.size(); ++i) {
          const auto slot = static_cast<slot_id>(i % slots);
          if (slot % threads == t && all[i].hit_limit() > 0) ops[t] += each(all[i], slot);
        }
        apart_ns[t] = pauses_ns + thread_wakes_ns();  // of a thread that began with the run
        cpu_ns[t] = thread_cpu_ns() - from - apart_ns[t];
      });
  }
  finish();
  const auto elapsed = static_cast<double>(elapsed_ns() - begin);
  double cpu = 0;
  double apart = 0;
  double count = 0;
  for (std::uint32_t t = 0; t < threads; ++t) {
    cpu += static_cast<double>(cpu_ns[t]);
    apart += static_cast<double>(apart_ns[t]);
    count += static_cast<double>(ops[t]);
  }
  if (count == 0) count = 1;
  return {cpu / count, apart / count, elapsed / count, count};
}

class cairn_side {
 public:
  cairn_side(const arena& in, bool checksums)
      : slots_(in.slots), backend_(std::move(make_host_backend()).value()) {
    const replay::geometry of = replay::find_geometry(in.geometry);
    runtime_options options;
    options.shape = of.shape();
    memory_ = replay::place_memory(of, backend_->at(0),
                                   in.images * options.shape.units_per_checkpoint(), in.slots);
    options.ranks = {memory_.addresses};
    options.checksums = checksums;
    runtime_ = std::move(runtime::open(std::move(options), *backend_)).value();
    compute_ = std::move(backend_->at(0).create_stream(stream_priority::normal)).value();
    if (!runtime_->attach(0, 0, *compute_)) std::abort();
  }
  ~cairn_side() { (void)runtime_->close(clock::now() + std::chrono::minutes(1)); }

  effort_spent replay_all(std::span<const request> all, std::uint32_t threads) {
    runtime& on = *runtime_;
    on.records().clear();
    pause_ = std::chrono::microseconds(100) * threads;
    return run(
        all, slots_, threads,
        [&](const request& each, slot_id slot) -> std::uint64_t {
          std::uint64_t ops = 0;
          const std::uint32_t hit = on.records().resumable_hit(each.keys, each.hit_limit());
          if (hit > 0 && accepted([&] { return on.restore(each.keys[hit - 1], slot, 0).code(); }))
            ++ops;
          if (hit < each.hit_limit() &&
              accepted([&] { return on.store(each.keys[each.hit_limit() - 1], slot, 0).code(); }))
            ++ops;
          return ops;
        },
        [&] {
          if (on.drain(clock::now() + std::chrono::minutes(5)) != status::ok) std::abort();
        });
  }
  [[nodiscard]] const rank_memory& memory() const { return memory_.addresses; }

 private:
  /// A full queue, or no room while copies run, is waited out, as an engine would: some thread
  /// looks again every tenth of a millisecond, in which a few dozen of the thousand ops in a queue
  /// end.
  template <class Call>
  bool accepted(Call&& call) const {
    for (;;) {
      const status code = call();
      if (code == status::ok) return true;
      if (code != status::queue_full && code != status::no_room && code != status::limit)
        return false;
      const std::int64_t begin = thread_cpu_ns();
      std::this_thread::sleep_for(pause_);
      pauses_ns += thread_cpu_ns() - begin;
    }
  }

  std::uint32_t slots_;
  std::chrono::microseconds pause_{};
  std::unique_ptr<backend> backend_;
  replay::device_memory memory_;
  std::unique_ptr<stream> compute_;
  std::unique_ptr<runtime> runtime_;
};

effort_spent replay_locked(const arena& in, std::span<const request> all, std::uint32_t threads,
                           const rank_memory& memory, std::unique_ptr<locked_store>& on) {
  const std::uint64_t image_bytes = replay::find_geometry(in.geometry).shape().image_bytes;
  on = std::make_unique<locked_store>(memory, image_bytes, in.images);
  locked_store& by = *on;
  return run(
      all, in.slots, threads,
      [&](const request& each, slot_id slot) -> std::uint64_t {
        std::uint64_t ops = 0;
        const std::uint32_t hit = by.resumable_hit(each.keys, each.hit_limit());
        if (hit > 0 && by.restore(each.keys[hit - 1], slot)) ++ops;
        if (hit < each.hit_limit() && by.store(each.keys[each.hit_limit() - 1], slot)) ++ops;
        return ops;
      },
      [] {});
}

replay::trace trace_of(const suite_options& how) {
  if (!how.trace.empty()) return replay::read_trace_file(how.trace);
  replay::workload_options made_up;
  made_up.requests = how.small() ? 200 : 12'000;
  return replay::make_workload(made_up);
}

void measure_in(const arena& in, std::span<const request> all, const suite_options& how,
                std::vector<row>& into) {
  const auto named = [&](const char* what) { return what + std::string(", ") + in.geometry; };
  const int rounds = how.small() ? 1 : how.how == effort::quick ? 3 : 7;
  cairn_side plain(in, false);
  cairn_side summed(in, true);
  std::unique_ptr<locked_store> locked;
  for (const std::uint32_t threads : how.threads()) {
    standing cpu[2] = {{"cairn", {}}, {"mutex, map and memcpy", {}}};
    standing elapsed[2] = {{"cairn", {}}, {"mutex, map and memcpy", {}}};
    standing with_sums{"cairn, checksums", {}};
    standing apart{"wakes", {}};
    std::vector<double> ops[2];
    for (int round = 0; round < rounds; ++round) {
      const effort_spent ours = plain.replay_all(all, threads);
      const effort_spent theirs = replay_locked(in, all, threads, plain.memory(), locked);
      cpu[0].rounds_ns.push_back(ours.cpu_ns_per_op);
      cpu[1].rounds_ns.push_back(theirs.cpu_ns_per_op);
      elapsed[0].rounds_ns.push_back(ours.elapsed_ns_per_op);
      elapsed[1].rounds_ns.push_back(theirs.elapsed_ns_per_op);
      apart.rounds_ns.push_back(ours.apart_ns_per_op);
      ops[0].push_back(ours.ops);
      ops[1].push_back(theirs.ops);
      with_sums.rounds_ns.push_back(summed.replay_all(all, threads).elapsed_ns_per_op);
    }
    into.push_back(
        contest_row(suite_name, named("processor time per op"), threads, cpu[0], cpu[1], 20.0));
    row woken =
        less_is_better(suite_name, named("wakes and pauses, per op"), apart.ns(), "", 0, "ns/op");
    woken.threads = threads;
    into.push_back(woken);
    const std::optional<double> bar = threads == 1   ? std::optional(1.0)
                                      : threads == 8 ? std::optional(1.2)
                                                     : std::nullopt;
    into.push_back(
        contest_row(suite_name, named("end to end, per op"), threads, elapsed[0], elapsed[1], bar));
    into.push_back(contest_row(suite_name, named("end to end, per op, checksums"), threads,
                               with_sums, elapsed[1]));
    row done = more_is_better(suite_name, named("ops"), median(ops[0]), elapsed[1].name,
                              median(ops[1]), "ops");
    done.threads = threads;
    into.push_back(done);
  }
}

}  // namespace

void measure_replay(const suite_options& how, std::vector<row>& into) {
  const replay::trace from = trace_of(how);
  const std::span<const request> all = from.requests;
  const arena real{"dsv4_flash", how.small() ? 12U : 250U, how.small() ? 8U : 16U,
                   how.small() ? 40U : 600U};
  const arena small{"replay", 5000, 32, all.size()};
  for (const arena& each : {real, small})
    measure_in(each, all.first(std::min(all.size(), each.requests)), how, into);
}

}  // namespace cairn::bench
