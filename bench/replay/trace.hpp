// A trace of requests: what it holds and how it is read. Bad lines are refused with file, line,
// what was expected and what came. Knows nothing of cairn but keys.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace cairn::replay {

/// Tokens of one block, and of one unit of KV.
inline constexpr std::uint32_t block_tokens = 512;

struct request {
  std::int64_t arrival_us = 0;
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  /// One per whole block of the prompt: a key stands for the prompt up to the end of its block.
  std::vector<checkpoint_key> keys;

  /// Blocks that a hit may cover: at least one token is left to compute.
  [[nodiscard]] std::uint32_t hit_limit() const noexcept {
    return (input_tokens - 1) / block_tokens;
  }
  [[nodiscard]] std::uint32_t prompt_units() const noexcept { return hit_limit() + 1; }
  [[nodiscard]] std::uint64_t final_units() const noexcept {
    return (std::uint64_t{input_tokens} + output_tokens + block_tokens - 1) / block_tokens;
  }
};

/// Requests in order of arrival.
struct trace {
  std::vector<request> requests;
  /// Prompt tokens in blocks that an earlier request of the trace had: reuse without limits.
  std::uint64_t seen_tokens = 0;
};

/// Reads JSON lines {"timestamp" ms, "input_length", "output_length", "hash_ids"}; other fields
/// are ignored, blank lines skipped. `name` stands in messages. Throws bad_input.
trace read_trace(std::istream& from, const std::string& name);
/// The same from a file.
trace read_trace_file(const std::string& path);

/// Makes the trace of requests whose blocks are named by ids (reader and generator share it).
class trace_builder {
 public:
  /// `block_ids` must hold at least input_tokens / block_tokens ids; the rest is ignored.
  void add(std::int64_t arrival_us, std::uint32_t input_tokens, std::uint32_t output_tokens,
           const std::vector<std::uint64_t>& block_ids);
  /// Orders by arrival; requests that arrive together stay in the order of add.
  trace finish();

 private:
  struct entry {
    request made;
    std::vector<std::uint64_t> ids;
  };
  std::vector<entry> entries_;
};

}  // namespace cairn::replay
