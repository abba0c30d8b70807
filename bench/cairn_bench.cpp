// cairn_bench: cairn beside its peers, in one process. Prints a table with a verdict for each bar.
// Exit status 0: measured (whether bars are met stands in the table); 1: some figure is missing or
// none; 2: a wrong option.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

#include "bench/harness/huge_pages.hpp"
#include "bench/harness/table.hpp"
#include "bench/suites.hpp"

namespace {

using namespace cairn::bench;

const std::vector<std::pair<std::string, suite>>& suites() {
  static const std::vector<std::pair<std::string, suite>> all = {
      {"index", measure_index},     {"pool", measure_pool},   {"eviction", measure_eviction},
      {"catalog", measure_catalog}, {"queue", measure_queue}, {"plan", measure_plan},
      {"replay", measure_replay},   {"copy", measure_copy},   {"floors", measure_floors},
  };
  return all;
}

/// Whether the suite found what it was to find: figures, of cairn and of whom it is compared with.
bool has_figures(const row& of) {
  const auto sound = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) && *value >= 0;
  };
  return sound(of.cairn) && sound(of.peer_value) && (!of.bar || sound(of.ratio));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("cairn beside its peers: ratios, each with its bar", "cairn_bench");
  bool quick = false;
  bool small = false;
  std::string json_path;
  std::vector<std::string> names;
  suite_options how;
  app.add_flag("--quick", quick, "fewer and shorter rounds: under a minute per suite");
  app.add_flag("--small", small, "sizes for a test: the figures mean nothing");
  app.add_option("--json", json_path, "write the rows here");
  app.add_option("--trace", how.trace, "of suite replay: a trace (default: a made-up workload)");
  app.add_option("suites", names, "which (default: all)");
  std::vector<std::uint64_t> cycles;
  app.add_option("--catalog-cycles", cycles, "records, cycles: what callgrind looks at")
      ->expected(2)
      ->group("");
  std::string counted;
  std::uint64_t count = 0;
  app.add_option("--counted", counted, "the same of suite floors")->group("");
  app.add_option("--count", count, "how many")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!cycles.empty()) {
    run_catalog_cycles(static_cast<std::uint32_t>(cycles[0]), cycles[1]);
    return 0;
  }
  if (!counted.empty()) return run_counted(counted, count) ? 0 : 2;
  malloc_with_huge_pages(argv);
  how.how = small ? effort::small : quick ? effort::quick : effort::full;
  how.program = argv[0];
  for (const std::string& each : names)
    if (std::none_of(suites().begin(), suites().end(),
                     [&](const auto& known) { return known.first == each; })) {
      std::cerr << "cairn_bench: unknown suite '" << each << "'; there are";
      for (const auto& known : suites()) std::cerr << ' ' << known.first;
      std::cerr << '\n';
      return 2;
    }
  std::ofstream json;
  if (!json_path.empty()) {
    json.open(json_path, std::ios::trunc);
    if (!json) {
      std::cerr << "cairn_bench: cannot write " << json_path << '\n';
      return 2;
    }
  }
  std::vector<row> rows;
  bool complete = true;
  write_heading(std::cout);
  for (const auto& [name, run] : suites()) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    const std::size_t before = rows.size();
    run(how, rows);
    if (rows.size() == before) {
      std::cerr << "cairn_bench: suite " << name << " found nothing\n";
      complete = false;
    }
    for (std::size_t i = before; i < rows.size(); ++i) {
      write_line(std::cout, rows[i]);
      if (has_figures(rows[i])) continue;
      std::cerr << "cairn_bench: " << name << ", " << rows[i].what << ": no figure\n";
      complete = false;
    }
    std::cout.flush();
  }
  write_verdicts(std::cout, rows);
  if (json.is_open()) {
    write_json(json, rows);
    json.close();
    if (!json) {
      std::cerr << "cairn_bench: cannot write " << json_path << '\n';
      complete = false;
    }
  }
  return complete ? 0 : 1;
}
