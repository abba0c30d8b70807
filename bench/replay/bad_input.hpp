// How the driver refuses what it was given: one line, exit code 2. Knows nothing of what was bad.
#pragma once

#include <stdexcept>
#include <string>

namespace cairn::replay {

/// Bad arguments or a bad trace. `what()` is one line without the program's name.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The run itself went wrong (a copy failed, the books do not close): exit code 1.
class broken_run : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace cairn::replay
