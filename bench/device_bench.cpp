// device_bench: what cairn's copies reach on one GPU, each against a peer in the same run. Exit
// status 0: measured, and every byte in its place; 1: a case failed, or time ran out; 2: no device,
// or a wrong option. Whether goals are met stands in the table, not in the status.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "bench/device/suites.hpp"

namespace {

using namespace cairn::bench;

struct command_line {
  rig_options rig;
  std::string json_path;
  std::vector<std::string> geometries;
  std::vector<std::string> suites;
};

void add_options(CLI::App& app, command_line& into) {
  app.add_option("--device", into.rig.device, "ordinal of the device")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rounds", into.rig.rounds, "samples of each figure, whose median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seconds", into.rig.seconds, "no case begins later than this")
      ->check(CLI::PositiveNumber);
  app.add_option("--copy-groups", into.rig.copy_groups, "work groups of a launch; 0: as shipped");
  app.add_option("--geometry", into.geometries, "only these (default: all)");
  app.add_option("--suite", into.suites, "only these: images sums calls host both limits beside");
  app.add_flag("--small", into.rig.small, "sizes for a test: the figures mean nothing");
  app.add_option("--json", into.json_path, "write the rows here");
  for (CLI::Option* each : app.get_options()) each->capture_default_str();
}

class bench_run {
 public:
  bench_run(rig& on, const command_line& wanted) : on_(on), wanted_(wanted) {}

  findings all() {
    for (const geometry& each : measured_geometries(on_.options().small))
      if (is_wanted(each.name, wanted_.geometries)) measure(each);
    if (is_wanted("images", wanted_.suites)) measure_peak(found_);
    return std::move(found_);
  }

 private:
  static bool is_wanted(const std::string& name, const std::vector<std::string>& chosen) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
  }

  void measure(const geometry& of) {
    const bool large = of.name == "dsv4_flash" || of.name == "gdn_36";
    std::unique_ptr<workload> laid_out;
    found_.attempt(on_, "memory", of.name, "",
                   [&] { laid_out = std::make_unique<workload>(on_, of, batch_sizes().back()); });
    if (!laid_out) return;
    const auto suite = [&](const char* name, bool applies,
                           void (*run)(rig&, workload&, findings&)) {
      if (applies && is_wanted(name, wanted_.suites)) run(on_, *laid_out, found_);
    };
    suite("images", true, measure_images);
    suite("sums", large, measure_checksums);
    suite("calls", true, measure_calls);
    suite("host", true, measure_host_cost);
    suite("both", large, measure_both_ways);
    suite("limits", large, measure_limits);
    suite("beside", large, measure_beside);
  }

  rig& on_;
  const command_line& wanted_;
  findings found_;
};

int run(const command_line& wanted) {
  std::ofstream json;
  if (!wanted.json_path.empty()) {
    json.open(wanted.json_path, std::ios::trunc);
    if (!json) {
      std::cerr << "device_bench: --json: expected a file to write, got " << wanted.json_path
                << '\n';
      return 2;
    }
  }
  std::unique_ptr<rig> on;
  try {
    on = std::make_unique<rig>(wanted.rig);
  } catch (const broken_case& why) {
    std::cerr << "device_bench: " << why.what() << '\n';
    return 2;
  }
  std::cout << "device_bench: " << on->dev().name() << ", " << on->compute_units()
            << " compute units, medians of " << wanted.rig.rounds
            << " rounds; GB/s read and written"
            << (wanted.rig.small ? "; small sizes, figures without meaning" : "") << '\n';
  const findings found = bench_run(*on, wanted).all();
  write_table(std::cout, found.rows);
  write_goals(std::cout, found.rows);
  if (json.is_open()) {
    write_json(json, found.rows);
    if (!json.flush()) {
      std::cerr << "device_bench: could not write " << wanted.json_path << '\n';
      return 1;
    }
  }
  if (found.broken) std::cerr << "device_bench: a case failed or was not begun, see the table\n";
  return found.broken ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  command_line wanted;
  CLI::App app("Measures cairn's copies on one GPU.");
  app.name("device_bench");
  add_options(app, wanted);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& wrong) {
    std::string text = wrong.what();
    std::cerr << "device_bench: " << text.substr(0, text.find('\n')) << '\n';
    return 2;
  }
  try {
    return run(wanted);
  } catch (const std::exception& wrong) {
    std::cerr << "device_bench: " << wrong.what() << '\n';
    return 1;
  }
}
