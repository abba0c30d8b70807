// Lines of a trace: any text is refused in one line that names the place, or makes requests that
// keep what trace.hpp promises.
#include <sstream>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/trace.hpp"
#include "stress/fuzz/tape.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cairn;
  using fuzz::require;
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  try {
    replay::trace made = replay::read_trace(file, "input");
    if (fuzz::planted() && made.requests.size() > 1)
      made.requests.back().keys.resize(made.requests.back().keys.size() + 1);
    require(!made.requests.empty(), "an empty trace is refused");
    std::int64_t last = 0;
    std::uint64_t tokens = 0;
    for (const replay::request& each : made.requests) {
      require(each.arrival_us >= last, "requests are in order of arrival");
      last = each.arrival_us;
      require(each.input_tokens > 0, "a prompt has a token");
      require(each.keys.size() == each.input_tokens / replay::block_tokens,
              "whole blocks have keys");
      require(each.hit_limit() <= each.keys.size(), "a hit ends at a key");
      require(each.final_units() >= each.prompt_units(), "the prompt's units are among all");
      tokens += each.keys.size() * replay::block_tokens;
    }
    require(made.seen_tokens <= tokens, "seen tokens are among the blocks'");
  } catch (const replay::bad_input& why) {
    require(fuzz::one_line(why.what()), "a refusal is one line");
    require(std::string(why.what()).rfind("input:", 0) == 0, "a refusal names the place");
  }
  return 0;
}
