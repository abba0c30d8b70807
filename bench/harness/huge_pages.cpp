// A variable of the environment, and exec.
#include "bench/harness/huge_pages.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace cairn::bench {
namespace {

constexpr const char* variable = "GLIBC_TUNABLES";
constexpr const char* tunable = "glibc.malloc.hugetlb";

}  // namespace

void malloc_with_huge_pages(char** argv) {
  const char* const set = std::getenv(variable);
  std::string all = set == nullptr ? "" : set;
  if (all.find(tunable) != std::string::npos) return;
  if (!all.empty()) all += ':';
  all += std::string(tunable) + "=1";
  if (setenv(variable, all.c_str(), 1) != 0) return;
  (void)execv("/proc/self/exe", argv);  // returns where it fails
}

}  // namespace cairn::bench
