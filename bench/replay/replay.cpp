// Building it all, running it, and collecting what happened.
#include "bench/replay/replay.hpp"

#include <memory>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/cairn_engine.hpp"
#include "bench/replay/compute.hpp"

namespace cairn::replay {
namespace {

std::unique_ptr<backend> open_backend(const replay_options& opts) {
  auto opened = [&] {
    if (opts.backend == "hip") {
      hip_options wanted;
      for (std::uint32_t ordinal = 0; ordinal < opts.devices; ++ordinal)
        wanted.devices.push_back(static_cast<int>(ordinal));
      return make_hip_backend(wanted);
    }
    host_options wanted;
    wanted.devices = opts.devices;
    return make_host_backend(wanted);
  }();
  if (!opened) throw bad_input("--backend " + opts.backend + ": " + opened.why().message());
  std::unique_ptr<backend> devices = std::move(opened).value();
  if (devices->device_count() < opts.devices)
    throw bad_input("--devices: expected at most " + std::to_string(devices->device_count()) +
                    ", got " + std::to_string(opts.devices));
  return devices;
}

device_memory place(const replay_options& opts, device& on, rank_id rank) {
  if (opts.backend != "hip") return place_memory(opts.shape, on, opts.units, opts.slots);
  return place_memory(
      opts.shape, on, opts.units, opts.slots,
      [&](std::byte* from, std::uint64_t bytes) { clear_on_device(on, rank, from, bytes); });
}

void collect(runtime& from, replay_figures& into) {
  for (rank_id rank = 0; rank < from.ranks(); ++rank)
    for (const stream_stats& each : from.rank(rank).stats()) into.streams.push_back(each);
  into.submit = quantiles_of(from.latencies().submit);
  into.store = quantiles_of(from.latencies().store);
  into.restore = quantiles_of(from.latencies().restore);
}

}  // namespace

trace load_trace(const replay_options& opts) {
  if (opts.trace_path.empty()) return make_workload(opts.workload);
  return read_trace_file(opts.trace_path);
}

replay_outcome replay(const replay_options& opts, const trace& from, simulation_progress* progress,
                      bool log_calls) {
  std::unique_ptr<backend> devices = open_backend(opts);
  std::vector<device_memory> memory;
  for (rank_id rank = 0; rank < opts.devices; ++rank)
    memory.push_back(place(opts, devices->at(rank), rank));
  compute work(opts.shape, *devices, memory);
  work.plant_wrong_byte(opts.spoil_step);
  batch_log batches;
  cairn_engine_options wanted;
  wanted.units = opts.kv_units();
  wanted.checkpoint_units = opts.checkpoint_units;
  wanted.slots = opts.slots;
  wanted.threads = opts.threads;
  wanted.link = opts.link;
  wanted.settled = opts.threads == 1;
  wanted.trace = &batches;
  cairn_engine library(wanted, opts.shape, *devices, memory);
  work.attach(library.library());
  call_log log(library);
  engine& driven = log_calls ? static_cast<engine&>(log) : library;

  replay_outcome out;
  const auto begin = clock::now();
  out.figures.run = simulate(from, opts.simulation(), driven, &work, progress);
  library.finish();
  work.wait_idle();
  if (!work.planted())
    throw bad_input("--spoil-step: expected a step that looks at something, got " +
                    std::to_string(opts.spoil_step) + ", and none of that number or later does");
  out.figures.seconds = std::chrono::duration<double>(clock::now() - begin).count();

  out.figures.seen_tokens = from.seen_tokens;
  out.figures.unaided = without_checkpoints(from, opts.simulation());
  out.figures.pool = library.counts();
  out.figures.compute = work.figures();
  collect(library.library(), out.figures);
  out.copies = batches.sorted();
  out.compute = work.spans();
  out.figures.overlap = measure_overlap(out.copies, out.compute);
  out.calls = log.calls();
  return out;
}

}  // namespace cairn::replay
