// Arming faults and meeting them. See fault.hpp.
#include "stress/explore/fault.hpp"

#include <fstream>

#include "stress/explore/gate.hpp"

namespace cairn::explore {

bool faults_armed = false;

namespace {

struct armed_fault {
  fault what;
  unsigned line = 0;
  std::uint64_t hits = 0;
} armed;

// What each thread last saw in each word, for stale loads. Direct mapped; a collision forgets.
struct sight {
  const void* word = nullptr;
  std::uint64_t bits = 0;
};
constexpr std::size_t sights = 256;
sight seen[16][sights];

sight& sight_of(const void* word) noexcept {
  return seen[the_gate.thread][(reinterpret_cast<std::uintptr_t>(word) >> 3) % sights];
}

bool ends_with(const char* path, const char* end) noexcept {
  const std::size_t a = std::strlen(path);
  const std::size_t b = std::strlen(end);
  return a >= b && std::strcmp(path + a - b, end) == 0;
}

}  // namespace

std::string arm(const fault& which) {
  disarm();
  armed.what = which;
  if (which.kind != fault_kind::coded) {
    const std::string path = std::string(CAIRN_SOURCE_DIR) + "/" + which.file;
    std::ifstream source(path);
    if (!source) return "cannot read " + path;
    std::string line;
    for (unsigned n = 1; std::getline(source, line); ++n) {
      if (line.find(which.text) == std::string::npos) continue;
      if (armed.line != 0) return std::string("not unique in ") + which.file + ": " + which.text;
      armed.line = n;
    }
    if (armed.line == 0) return std::string("not found in ") + which.file + ": " + which.text;
  }
  faults_armed = true;
  return {};
}

void disarm() noexcept {
  faults_armed = false;
  armed = {};
}

std::uint64_t fault_hits() noexcept {
  return armed.hits;
}

fault_kind fault_at(const place& at) noexcept {
  // A call that goes over two lines may be said to stand on either.
  if (at.line != armed.line && at.line != armed.line + 1) return fault_kind::none;
  if (!the_gate.running || armed.what.kind == fault_kind::coded) return fault_kind::none;
  if (!ends_with(at.file, armed.what.file)) return fault_kind::none;
  ++armed.hits;
  return armed.what.kind;
}

bool fault_is(const char* name) noexcept {
  if (!the_gate.running || armed.what.kind != fault_kind::coded) return false;
  if (std::strcmp(name, armed.what.name) != 0) return false;
  ++armed.hits;
  return true;
}

void remember_bits(const void* word, std::uint64_t bits) noexcept {
  sight_of(word) = {word, bits};
}

bool recall_bits(const void* word, std::uint64_t& bits) noexcept {
  const sight& s = sight_of(word);
  if (s.word != word) return false;
  bits = s.bits;
  return true;
}

void forget_seen() noexcept {
  std::memset(seen, 0, sizeof seen);
}

}  // namespace cairn::explore
