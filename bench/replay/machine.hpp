// How much memory this machine can still give. Asks the kernel; knows nothing of what it is for.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace cairn::replay {

/// Bytes that can be had without swapping: of the machine, and of the control group if it has a
/// limit.
inline double memory_there() {
  double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    constexpr const char* wanted = "MemAvailable:";
    if (line.starts_with(wanted))
      there = std::min(
          there,
          std::strtod(line.c_str() + std::char_traits<char>::length(wanted), nullptr) * 1024.0);
  }
  // What the group has used already is mostly cache, which it would give back.
  double limit = 0.0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) there = std::min(there, limit);
  return there;
}

}  // namespace cairn::replay
