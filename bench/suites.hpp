// The suites of cairn_bench. Each appends rows; what it measures and what the bars are is said at
// the head of its file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/device/rows.hpp"
#include "bench/harness/contest.hpp"

namespace cairn::bench {

struct suite_options {
  effort how = effort::full;
  std::string program;  ///< this one, to run it again under callgrind
  std::string trace;    ///< a trace to replay; empty: a workload that is made up

  [[nodiscard]] bool small() const { return how == effort::small; }
  [[nodiscard]] std::vector<std::uint32_t> threads() const {
    if (small()) return {2};
    return {1, 2, 8};
  }
};

using suite = void (*)(const suite_options& how, std::vector<row>& into);

void measure_index(const suite_options& how, std::vector<row>& into);
void measure_pool(const suite_options& how, std::vector<row>& into);
void measure_eviction(const suite_options& how, std::vector<row>& into);
void measure_catalog(const suite_options& how, std::vector<row>& into);
/// What measure_catalog counts under callgrind.
void run_catalog_cycles(std::uint32_t records, std::uint64_t count);
void measure_queue(const suite_options& how, std::vector<row>& into);
void measure_plan(const suite_options& how, std::vector<row>& into);
void measure_copy(const suite_options& how, std::vector<row>& into);
void measure_replay(const suite_options& how, std::vector<row>& into);
void measure_floors(const suite_options& how, std::vector<row>& into);
/// What measure_floors counts under callgrind; false: nothing of that name.
bool run_counted(const std::string& name, std::uint64_t count);

}  // namespace cairn::bench
