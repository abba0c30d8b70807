// Instructions as callgrind counts them: they repeat exactly, whatever else the machine does.
#pragma once

#include <optional>
#include <string>

namespace cairn::bench {

/// Runs `program` with `arguments` under callgrind and returns the instructions that it counts
/// inside functions named `function` (a pattern); nothing where valgrind is missing or fails.
std::optional<double> counted_instructions(const std::string& program, const std::string& arguments,
                                           const std::string& function);

}  // namespace cairn::bench
