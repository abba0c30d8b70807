// The command line, by CLI11; its complaints are cut down to one line.
#include "bench/replay/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/machine.hpp"

namespace cairn::replay {
namespace {

std::string first_line(std::string text) {
  text.erase(std::min(text.find('\n'), text.size()));
  return text;
}

template <class T>
void check_range(const char* option, T value, T least, T most) {
  if (value >= least && value <= most) return;
  std::ostringstream text;
  text << option << ": expected " << least << " to " << most << ", got " << value;
  throw bad_input(text.str());
}

void parse_place(replay_options& opts) {
  if (opts.place.empty())
    throw bad_input("--place: expected some of anchor, demand, ladder (or none), got nothing");
  opts.rules = {false, false, false, opts.interval_tokens};
  std::istringstream words(opts.place);
  std::string word;
  while (std::getline(words, word, ',')) {
    if (word == "anchor")
      opts.rules.anchor = true;
    else if (word == "demand")
      opts.rules.demand = true;
    else if (word == "ladder")
      opts.rules.ladder = true;
    else if (word != "none" || opts.place != "none")
      throw bad_input("--place: expected some of anchor, demand, ladder (or none), got " +
                      opts.place);
  }
}

void check_numbers(const replay_options& opts) {
  check_range<std::uint32_t>("--threads", opts.threads, 1, 256);
  check_range<std::uint32_t>("--live", opts.live, 1, 1U << 16);
  check_range<std::uint32_t>("--slots", opts.slots, 1, 1U << 16);
  check_range<std::uint32_t>("--devices", opts.devices, 1, max_ranks);
  check_range<std::uint32_t>("--units", opts.units, 1, max_index);
  check_range<std::uint32_t>("--chunk-tokens", opts.chunk_tokens, 1, 1U << 30);
  check_range<std::uint32_t>("--interval-tokens", opts.interval_tokens, block_tokens, 1U << 30);
  check_range<double>("--prefill-rate", opts.prefill_rate, 1.0, 1e9);
  check_range<double>("--decode-rate", opts.decode_rate, 1.0, 1e9);
  check_range<std::uint32_t>("--requests", opts.workload.requests, 1, 10'000'000);
  if (opts.interval_tokens % block_tokens != 0)
    throw bad_input("--interval-tokens: expected a multiple of 512, got " +
                    std::to_string(opts.interval_tokens));
  if (opts.slots < opts.live)
    throw bad_input("--slots: expected at least --live " + std::to_string(opts.live) + ", got " +
                    std::to_string(opts.slots));
  if (opts.backend != "host" && opts.backend != "hip")
    throw bad_input("--backend: expected host or hip, got " + opts.backend);
  if (opts.pool != "shared" && opts.pool != "separate")
    throw bad_input("--pool: expected shared or separate, got " + opts.pool);
  if (opts.policy != "lru") throw bad_input("--policy: expected lru, got " + opts.policy);
}

/// Outputs must not overwrite the trace, nor each other.
void check_paths(const replay_options& opts) {
  const std::pair<const char*, const std::string*> paths[] = {{"--trace", &opts.trace_path},
                                                              {"--json", &opts.json_path},
                                                              {"--timeline", &opts.timeline_path},
                                                              {"--log-calls", &opts.calls_path}};
  for (const auto& [name, path] : paths)
    for (const auto& [other, same] : paths) {
      if (path == same || path->empty() || same->empty()) continue;
      std::error_code none;
      const bool one_file = std::filesystem::exists(*path, none)
                                ? std::filesystem::is_regular_file(*path, none) &&
                                      std::filesystem::equivalent(*path, *same, none)
                                : *path == *same;
      if (one_file)
        throw bad_input(std::string(name) + " and " + other + ": expected different files, got " +
                        *path);
    }
}

/// The pool must hold an image and at least one unit of KV; the machine must hold the pool.
void check_room(const replay_options& opts) {
  const std::string image =
      "an image of " + opts.geometry_name + " (" + std::to_string(opts.image_units) + " units)";
  if (opts.separate_pool()) {
    if (opts.checkpoint_units < opts.image_units || opts.checkpoint_units >= opts.units)
      throw bad_input("--checkpoint-units: expected room for " + image + " and less than --units " +
                      std::to_string(opts.units) + ", got " +
                      std::to_string(opts.checkpoint_units));
  } else if (opts.units <= opts.image_units) {
    throw bad_input("--units: expected more than " + image + ", got " + std::to_string(opts.units));
  }
  const double needed = static_cast<double>(opts.shape.memory_bytes(opts.units, opts.slots)) *
                        static_cast<double>(opts.devices);
  const double there = memory_there();
  if (opts.backend == "host" && needed > 0.9 * there) {
    std::ostringstream text;
    text.precision(3);
    text << "--units: expected units and slots to fit in the " << there / 0x1p30
         << " GiB that are free, got " << needed / 0x1p30 << " GiB (" << opts.units << " units of "
         << opts.geometry_name << " on " << opts.devices << " devices)";
    throw bad_input(text.str());
  }
}

void add_options(CLI::App& app, replay_options& opts) {
  app.add_option("--trace", opts.trace_path,
                 "JSON lines to replay; without it, a workload is made");
  app.add_option("--requests", opts.workload.requests, "requests of the made workload");
  app.add_option("--seed", opts.workload.seed, "seed of the made workload")
      ->check([](const std::string& text) {
        std::uint64_t seed = 0;
        const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), seed);
        const bool whole = wrong == std::errc() && end == text.data() + text.size();
        return whole ? std::string() : "expected a number from 0 to 2^64 - 1, got " + text;
      });
  app.add_option("--threads", opts.threads, "scheduling threads");
  app.add_option("--live", opts.live, "requests in flight");
  app.add_option("--slots", opts.slots, "state slots (default: --live)");
  app.add_option("--devices", opts.devices, "devices (ranks)");
  app.add_option("--backend", opts.backend, "host or hip");
  app.add_option("--geometry", opts.geometry_name, geometry_names());
  app.add_option("--units", opts.units, "units of the pool, per device");
  app.add_option("--pool", opts.pool,
                 "shared: one pool for live KV and checkpoints; separate: one for each");
  app.add_option("--checkpoint-units", opts.checkpoint_units,
                 "of --units, with --pool separate (default: a quarter)");
  app.add_flag("!--no-link", opts.link, "let checkpoints outlive their KV, to compare");
  app.add_option("--place", opts.place, "some of anchor,demand,ladder, or none");
  app.add_option("--interval-tokens", opts.interval_tokens, "distance of the ladder's rungs");
  app.add_option("--chunk-tokens", opts.chunk_tokens, "longest chunk of a prefill");
  app.add_option("--policy", opts.policy, "who is evicted first: lru");
  app.add_option("--prefill-rate", opts.prefill_rate, "tokens/s of one request, virtual time");
  app.add_option("--decode-rate", opts.decode_rate, "tokens/s of one request, virtual time");
  app.add_option("--spoil-step", opts.spoil_step,
                 "make a byte wrong before this step of compute, which must be found (0: none)");
  app.add_option("--json", opts.json_path, "write the figures here (-: standard output)");
  app.add_option("--timeline", opts.timeline_path, "write a timeline for Perfetto here");
  app.add_option("--log-calls", opts.calls_path, "write the order of calls here");
  for (CLI::Option* each : app.get_options()) each->capture_default_str();
}

}  // namespace

simulation_options replay_options::simulation() const {
  simulation_options made;
  made.threads = threads;
  made.live = live;
  made.slots = slots;
  made.kv_units = kv_units();
  made.image_units = image_units;
  made.chunk_tokens = chunk_tokens;
  made.prefill_rate = prefill_rate;
  made.decode_rate = decode_rate;
  made.place = rules;
  return made;
}

bool parse_options(int argc, const char* const* argv, replay_options& into, std::string& help) {
  CLI::App app("Replays a trace of requests through cairn, in virtual time with real copies.");
  app.name("cairn_replay");
  add_options(app, into);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return false;
  } catch (const CLI::ConversionError& wrong) {
    throw bad_input(first_line(wrong.what()) + ": expected a number in the option's range");
  } catch (const CLI::ParseError& wrong) {
    throw bad_input(first_line(wrong.what()));
  }
  if (app.count("--slots") == 0) into.slots = into.live;
  check_paths(into);
  check_numbers(into);
  parse_place(into);
  into.shape = find_geometry(into.geometry_name);
  into.image_units = into.shape.shape().units_per_checkpoint();
  if (!into.separate_pool() && app.count("--checkpoint-units") > 0)
    throw bad_input("--checkpoint-units: expected with --pool separate only, got a shared pool");
  if (into.separate_pool() && app.count("--checkpoint-units") == 0)
    into.checkpoint_units = into.units / 4;
  check_room(into);
  return true;
}

}  // namespace cairn::replay
