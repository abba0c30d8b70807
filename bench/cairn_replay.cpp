// The program: options in, figures out, one line and an exit code when something is wrong. 0: all
// well. 1: a byte was wrong, a copy failed or the books do not close. 2: bad input.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <thread>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/replay.hpp"

namespace {

using namespace cairn::replay;

/// Tells a terminal how far the replay is, until it goes out of scope.
class progress_line {
 public:
  explicit progress_line(std::size_t requests) : requests_(requests) {
    if (isatty(STDERR_FILENO) != 0) teller_ = std::thread([this] { tell(); });
  }
  ~progress_line() {
    stop_.store(true);
    if (!teller_.joinable()) return;
    teller_.join();
    std::fputs("\r\033[K", stderr);
  }
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  simulation_progress& counters() { return counters_; }

 private:
  void tell() {
    constexpr auto tick = std::chrono::milliseconds(50);
    for (int ticks = 1; !stop_.load(); ++ticks) {
      std::this_thread::sleep_for(tick);
      if (ticks % 10 != 0) continue;
      std::fprintf(stderr, "\r%llu of %zu requests, virtual time %.0f s\033[K",
                   static_cast<unsigned long long>(counters_.done.load()), requests_,
                   static_cast<double>(counters_.now_us.load()) * 1e-6);
    }
  }

  std::size_t requests_;
  simulation_progress counters_;
  std::atomic<bool> stop_{false};
  std::thread teller_;
};

/// Opened before the run: a file that cannot be written is bad input, and is told at once.
class output_file {
 public:
  output_file(const char* option, const std::string& path) : path_(path) {
    if (path.empty() || path == "-") return;
    file_.open(path, std::ios::trunc);
    if (!file_) throw bad_input(std::string(option) + ": expected a file to write, got " + path);
  }
  explicit operator bool() const { return !path_.empty(); }
  std::ostream& stream() { return path_ == "-" ? std::cout : file_; }
  void close() {
    if (!path_.empty() && !stream().flush()) throw broken_run("could not write " + path_);
  }

 private:
  std::string path_;
  std::ofstream file_;
};

void check_sizes(const replay_options& opts, const trace& from) {
  for (const request& each : from.requests)
    if (each.final_units() <= opts.kv_units()) return;
  throw bad_input("--units: expected room for at least one request of the trace, got " +
                  std::to_string(opts.kv_units()) + " units for live KV");
}

int run(int argc, const char* const* argv) {
  replay_options opts;
  std::string help;
  if (!parse_options(argc, argv, opts, help)) {
    std::cout << help;
    return 0;
  }
  const trace from = load_trace(opts);
  check_sizes(opts, from);
  output_file json("--json", opts.json_path);
  output_file timeline("--timeline", opts.timeline_path);
  output_file calls("--log-calls", opts.calls_path);

  replay_outcome out;
  {
    progress_line progress(from.requests.size());
    out = replay(opts, from, &progress.counters(), static_cast<bool>(calls));
  }
  if (opts.json_path != "-") write_table(std::cout, opts, out.figures);
  if (json) write_json(json.stream(), opts, out.figures);
  if (timeline) write_timeline(timeline.stream(), out.copies, out.compute, 2);
  if (calls) write_calls(calls.stream(), out.calls);
  json.close();
  timeline.close();
  calls.close();

  int code = 0;
  if (out.figures.compute.mismatches > 0) {
    std::cerr << "cairn_replay: " << out.figures.compute.mismatches
              << " mismatches, the first: " << out.figures.compute.first_mismatch << '\n';
    code = 1;
  }
  for (const std::string& line : out.figures.broken_books(opts.units, opts.image_units)) {
    std::cerr << "cairn_replay: " << line << '\n';
    code = 1;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const bad_input& wrong) {
    std::cerr << "cairn_replay: " << wrong.what() << '\n';
    return 2;
  } catch (const std::exception& wrong) {
    std::cerr << "cairn_replay: " << wrong.what() << '\n';
    return 1;
  }
}
