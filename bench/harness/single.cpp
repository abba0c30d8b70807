// A reporter that keeps the median.
#include "bench/harness/single.hpp"

#include <benchmark/benchmark.h>

#include <string>

namespace cairn::bench {
namespace {

class keeps_median : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& each : runs)
      if (each.run_type == Run::RT_Iteration) ns.push_back(each.GetAdjustedCPUTime());
  }
  std::vector<double> ns;
};

}  // namespace

double single_ns(effort how, const std::function<void()>& call) {
  static int known = 0;
  const std::string name = "single_" + std::to_string(++known);
  benchmark::RegisterBenchmark(name.c_str(),
                               [&call](benchmark::State& state) {
                                 for (auto _ : state) call();
                               })
      ->Unit(benchmark::kNanosecond)
      ->MinTime(how == effort::small ? 0.0001 : 0.02)
      ->Repetitions(how == effort::small ? 1 : 9);
  keeps_median reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, "^" + name + "/");
  return median(reporter.ns);
}

}  // namespace cairn::bench
