// A child process, and the line in which callgrind says what it has counted.
#include "bench/harness/callgrind.hpp"

#include <cstdio>
#include <cstdlib>

namespace cairn::bench {

std::optional<double> counted_instructions(const std::string& program, const std::string& arguments,
                                           const std::string& function) {
  const std::string command =
      "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='" + function +
      "' '" + program + "' " + arguments + " 2>&1";
  std::FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return std::nullopt;
  std::optional<double> counted;
  char line[512];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    const std::string text(line);
    const std::size_t at = text.find("Collected :");
    if (at == std::string::npos) continue;
    counted = std::strtod(text.c_str() + at + sizeof("Collected :") - 1, nullptr);
  }
  if (pclose(out) != 0 || (counted && *counted <= 0)) return std::nullopt;
  return counted;
}

}  // namespace cairn::bench
