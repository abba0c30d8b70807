// Reading a trace: JSON lines, one object each, checked field by field.
#include "bench/replay/trace.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/keys.hpp"

namespace cairn::replay {
namespace {

using nlohmann::json;

// Far beyond any real request, and small enough that sums stay far from overflow.
constexpr std::uint64_t tokens_max = 1'000'000'000;
constexpr double timestamp_max_ms = 1e14;

/// One line of the file and its name in messages.
class line_reader {
 public:
  line_reader(const std::string& name, std::size_t number, const json& object)
      : place_(name + ":" + std::to_string(number) + ": "), object_(object) {}

  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    throw bad_input(place_ + "expected " + expected + ", got " + got);
  }

  [[nodiscard]] std::uint32_t tokens(const char* field, std::uint64_t least) const {
    const json& value = at(field);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > tokens_max)
      refuse(std::string(field) + " to be an integer from " + std::to_string(least) + " to " +
                 std::to_string(tokens_max),
             shown(value));
    return value.get<std::uint32_t>();
  }

  [[nodiscard]] std::int64_t arrival_us() const {
    const json& value = at("timestamp");
    const double ms = value.is_number() ? value.get<double>() : -1.0;
    if (!(ms >= 0.0 && ms <= timestamp_max_ms))
      refuse("timestamp to be a number of milliseconds from 0 to 1e14", shown(value));
    return static_cast<std::int64_t>(std::llround(ms * 1000.0));
  }

  [[nodiscard]] std::vector<std::uint64_t> block_ids(std::uint32_t input_tokens) const {
    const json& value = at("hash_ids");
    if (!value.is_array()) refuse("hash_ids to be an array", shown(value));
    const std::uint64_t whole = input_tokens / block_tokens;
    const std::uint64_t all = (std::uint64_t{input_tokens} + block_tokens - 1) / block_tokens;
    if (value.size() < whole || value.size() > all)
      refuse("hash_ids to name the " + std::to_string(all) +
                 " blocks of 512 tokens in input_length " + std::to_string(input_tokens) +
                 (whole < all ? " (or the " + std::to_string(whole) + " whole ones)" : ""),
             std::to_string(value.size()) + " ids");
    std::vector<std::uint64_t> ids;
    ids.reserve(value.size());
    for (const json& id : value) {
      if (!id.is_number_unsigned())
        refuse("hash_ids[" + std::to_string(ids.size()) + "] to be a non-negative integer",
               shown(id));
      ids.push_back(id.get<std::uint64_t>());
    }
    return ids;
  }

 private:
  [[nodiscard]] const json& at(const char* field) const {
    auto found = object_.find(field);
    if (found == object_.end())
      refuse(std::string("the field \"") + field + "\"", "an object without it");
    return *found;
  }

  /// A value as it may stand in one line of a message.
  static std::string shown(const json& value) {
    constexpr std::size_t longest = 40;
    if (value.is_array() || value.is_object())
      return std::string(value.type_name()) + " of " + std::to_string(value.size());
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > longest) text = text.substr(0, longest) + "...";
    return text;
  }

  std::string place_;
  const json& object_;
};

json parse_line(const std::string& text, const std::string& name, std::size_t number) {
  const std::string place = name + ":" + std::to_string(number) + ": expected a JSON object, got ";
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& broken) {
    const bool ends_early = broken.byte > text.size();
    throw bad_input(
        place +
        (ends_early ? "a line that ends early, after " + std::to_string(text.size()) + " characters"
                    : "something else at column " + std::to_string(broken.byte)));
  } catch (const json::exception&) {
    throw bad_input(place + "a number out of range");
  }
  if (!parsed.is_object()) throw bad_input(place + parsed.type_name());
  return parsed;
}

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

void trace_builder::add(std::int64_t arrival_us, std::uint32_t input_tokens,
                        std::uint32_t output_tokens, const std::vector<std::uint64_t>& block_ids) {
  entry added;
  added.made.arrival_us = arrival_us;
  added.made.input_tokens = input_tokens;
  added.made.output_tokens = output_tokens;
  const std::size_t whole = input_tokens / block_tokens;
  added.ids.assign(block_ids.begin(), block_ids.begin() + static_cast<std::ptrdiff_t>(whole));
  added.made.keys.reserve(whole);
  for (std::uint64_t id : added.ids) added.made.keys.push_back(key_of(key_domain::block, id));
  entries_.push_back(std::move(added));
}

trace trace_builder::finish() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const entry& a, const entry& b) {
    return a.made.arrival_us < b.made.arrival_us;
  });
  trace made;
  made.requests.reserve(entries_.size());
  std::unordered_set<std::uint64_t> seen;
  for (entry& each : entries_) {
    bool all_seen = true;
    for (std::uint64_t id : each.ids) {
      const bool known = !seen.insert(id).second;
      all_seen = all_seen && known;
      if (all_seen) made.seen_tokens += block_tokens;
    }
    made.requests.push_back(std::move(each.made));
  }
  entries_.clear();
  return made;
}

trace read_trace(std::istream& from, const std::string& name) {
  trace_builder builder;
  std::string text;
  std::size_t number = 0;
  bool any = false;
  while (std::getline(from, text)) {
    ++number;
    if (blank(text)) continue;
    const json object = parse_line(text, name, number);
    const line_reader line(name, number, object);
    const std::int64_t arrival_us = line.arrival_us();
    const std::uint32_t input = line.tokens("input_length", 1);
    const std::uint32_t output = line.tokens("output_length", 0);
    builder.add(arrival_us, input, output, line.block_ids(input));
    any = true;
  }
  if (from.bad()) throw bad_input(name + ": expected a readable file, got a read error");
  if (!any) throw bad_input(name + ": expected at least one request, got an empty trace");
  return builder.finish();
}

trace read_trace_file(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    throw bad_input(path + ": expected a trace, got no such file");
  if (S_ISDIR(about.st_mode)) throw bad_input(path + ": expected a trace, got a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw bad_input(path + ": expected a readable file, got a refusal to open it");
  return read_trace(file, path);
}

}  // namespace cairn::replay
