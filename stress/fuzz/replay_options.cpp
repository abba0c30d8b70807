// The command line of cairn_replay: any words are refused in one line, or make options that can be
// run.
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/options.hpp"
#include "stress/fuzz/tape.hpp"

namespace {

/// Words as they come, one a line; or, as the first byte says, options that exist with values that
/// are near what they take.
std::vector<std::string> words_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words{"cairn_replay"};
  if (size > 0 && data[0] < 0x20) {
    constexpr const char* options[] = {
        "--trace",       "--requests",   "--seed",     "--threads",          "--live",
        "--slots",       "--devices",    "--backend",  "--geometry",         "--units",
        "--pool",        "--place",      "--policy",   "--checkpoint-units", "--interval-tokens",
        "--json",        "--no-link",    "--timeline", "--chunk-tokens",     "--prefill-rate",
        "--decode-rate", "--spoil-step", "--log-calls"};
    constexpr const char* values[] = {
        "tiny",          "replay", "ragged", "separate", "shared", "none", "anchor",       "ladder",
        "demand,ladder", "hip",    "host",   "lru",      "-",      "",     "/nowhere/file"};
    cairn::fuzz::tape from(data + 1, size - 1);
    while (!from.empty() && words.size() < 40) {
      words.emplace_back(options[from.below(std::size(options))]);
      switch (from.below(4)) {
        case 0:
          words.emplace_back(values[from.below(std::size(values))]);
          break;
        case 1:
          words.push_back(std::to_string(from.take<std::uint8_t>()));
          break;
        case 2:
          words.push_back(std::to_string(512 * from.below(40)));
          break;
        default:
          words.push_back(std::to_string(from.take<std::int64_t>()));
      }
    }
    return words;
  }
  std::string word;
  for (std::size_t i = 0; i < size && words.size() < 40; ++i) {
    if (data[i] != '\n' && data[i] != 0) {
      word += static_cast<char>(data[i]);
      continue;
    }
    words.push_back(std::exchange(word, {}));
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cairn;
  using fuzz::require;
  const std::vector<std::string> words = words_of(data, size);
  std::vector<const char*> arguments;
  for (const std::string& each : words) arguments.push_back(each.c_str());
  replay::replay_options opts;
  std::string help;
  try {
    if (!replay::parse_options(static_cast<int>(arguments.size()), arguments.data(), opts, help)) {
      require(!help.empty(), "help says something");
      return 0;
    }
    if (fuzz::planted() && opts.live != 32) opts.image_units = 0;
    require(opts.threads >= 1 && opts.live >= 1 && opts.devices >= 1, "somebody works");
    require(opts.devices <= max_ranks, "ranks fit a mask");
    require(opts.slots >= opts.live, "each request has a slot");
    require(opts.image_units >= 1 && opts.image_units <= opts.units, "an image fits");
    require(opts.kv_units() >= 1 && opts.kv_units() <= opts.units, "there is room for KV");
    require(opts.interval_tokens % replay::block_tokens == 0, "rungs are at blocks");
    require(opts.prefill_rate >= 1 && opts.decode_rate >= 1, "time goes on");
    require(opts.shape.shape().validate().ok(), "the layout is valid");
  } catch (const replay::bad_input& why) {
    require(!std::string(why.what()).empty(), "a refusal says why");
  }
  return 0;
}
