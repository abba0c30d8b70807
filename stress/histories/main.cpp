// The command line of the campaign of histories: plays scenes in stretches, checks each key's
// history, prints what was reached.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "stress/histories/checker.hpp"
#include "stress/histories/scene.hpp"
#include "tests/threads.hpp"

namespace {

using namespace cairn::histories;

struct campaign {
  std::uint64_t operations = 10'000'000;
  double seconds = 240;
  std::uint64_t seed = 1;
  std::uint32_t threads = 4;
  std::uint64_t stretch = 30'000;  ///< calls of a thread between two looks
  std::string told = "none";
  std::string clock = "automatic";
};

unsigned long long wide(std::uint64_t n) {
  return n;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Checks every key's part of what was written down. False: `why` holds the first complaint.
bool check_all(const scene& in, const std::vector<journal>& logs,
               std::vector<key_checker>& checkers, std::string& why) {
  std::vector<std::vector<entry>> by_key(in.keys);
  for (const journal& one : logs)
    for (const entry& e : one) by_key[e.key].push_back(e);
  std::atomic<std::uint32_t> next{0};
  std::atomic<bool> wrong{false};
  const auto work = [&] {
    for (;;) {
      const std::uint32_t key = next.fetch_add(1);
      if (key >= in.keys) return;
      std::string text;
      if (checkers[key].check(by_key[key], in.with, text)) continue;
      if (!wrong.exchange(true)) why = "key " + std::to_string(key) + ": " + text;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return !wrong.load();
}

struct outcome {
  check_figures figures;
  std::uint64_t lies = 0;
  double seconds = 0;
  bool failed = false;
};

outcome run(const scene& in, const campaign& how, std::uint64_t operations, double seconds,
            stamps& time, lie told) {
  outcome out;
  liar lies(told);
  const double began = now_seconds();
  auto players =
      in.whole_runtime ? make_runtime_player(in, time) : make_catalog_player(in, time, lies);
  std::vector<key_checker> checkers(in.keys);
  std::vector<journal> logs;
  std::uint64_t done = 0;
  for (std::uint64_t n = 0; done < operations && now_seconds() - began < seconds; ++n) {
    const std::uint64_t left = (operations - done + how.threads - 1) / how.threads;
    std::string why;
    bool good = players->play(how.seed * 1'000'003 + n, how.threads,
                              std::min(how.stretch, std::max<std::uint64_t>(left, 100)), logs, why);
    if (good) good = check_all(in, logs, checkers, why);
    for (const journal& one : logs) done += one.size();
    if (!good) {
      std::printf("VIOLATION in %s, stretch %llu of seed %llu: %s\n", in.name, wide(n),
                  wide(how.seed), why.c_str());
      out.failed = true;
      break;
    }
    if (in.window < in.keys) {  // every stretch passes over all keys
      players->clear();
      for (key_checker& each : checkers) each.reset();
    }
  }
  for (const key_checker& each : checkers) out.figures.merge(each.figures());
  out.lies = lies.count();
  out.seconds = now_seconds() - began;
  return out;
}

void print(const char* name, const outcome& o) {
  const check_figures& f = o.figures;
  std::printf(
      "%-12s %10llu calls, %4.1f %% of them overlapped on their key, at most %llu at once, one "
      "held "
      "open across %llu; at most %llu configurations; %.1f s\n",
      name, wide(f.calls),
      f.calls == 0 ? 0.0 : 100.0 * static_cast<double>(f.overlapped) / static_cast<double>(f.calls),
      wide(f.widest), wide(f.longest), wide(f.configurations), o.seconds);
  std::fflush(stdout);
}

lie lie_named(const std::string& name) {
  const std::vector<std::string> all = lie_names();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == name) return static_cast<lie>(i);
  return lie::none;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Checks histories of concurrent calls for linearizability, key by key.",
               "histories");
  campaign how;
  std::vector<std::string> names;
  app.add_option("--scene", names, "scenes by name (all)");
  app.add_option("--operations", how.operations, "calls in all, over all scenes")
      ->capture_default_str();
  app.add_option("--seconds", how.seconds, "in all")->capture_default_str();
  app.add_option("--seed", how.seed, "of the choices, not of the schedule")->capture_default_str();
  app.add_option("--threads", how.threads)->capture_default_str()->check(CLI::Range(1, 32));
  app.add_option("--stretch", how.stretch, "calls of a thread between two checks")
      ->capture_default_str();
  app.add_option("--clock", how.clock)
      ->check(CLI::IsMember({"automatic", "cycles", "counter"}))
      ->capture_default_str();
  app.add_option("--lie", how.told, "a bug on purpose: exit status 0 when it is found")
      ->check(CLI::IsMember(lie_names()))
      ->capture_default_str();
  bool list_lies = false;
  app.add_flag("--list-lies", list_lies, "print the bugs on purpose");
  CLI11_PARSE(app, argc, argv);
  if (list_lies) {
    for (const std::string& each : lie_names())
      if (each != "none") std::puts(each.c_str());
    return 0;
  }

  std::vector<const scene*> chosen;
  for (const scene& each : scenes())
    if ((names.empty() && (how.told == "none" || !each.whole_runtime)) ||
        std::find(names.begin(), names.end(), each.name) != names.end())
      chosen.push_back(&each);
  if (chosen.empty() || (!names.empty() && chosen.size() != names.size())) {
    std::fputs("histories: no such scene; there are:", stderr);
    for (const scene& each : scenes()) std::fprintf(stderr, " %s", each.name);
    std::fputs("\n", stderr);
    return 2;
  }

  stamps time(how.clock == "cycles"    ? stamps::source::cycles
              : how.clock == "counter" ? stamps::source::counter
                                       : stamps::source::automatic);
  const cairn::test::yields yielding;  // before any thread that reads the hook
  const lie told = lie_named(how.told);
  check_figures sum;
  std::uint64_t violations = 0;
  std::uint64_t lies = 0;
  const double began = now_seconds();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::uint64_t share =
        (how.operations - std::min(how.operations, sum.calls)) / (chosen.size() - i);
    double seconds =
        (how.seconds - (now_seconds() - began)) / static_cast<double>(chosen.size() - i);
    if (chosen[i]->whole_runtime) seconds = std::min(seconds, how.seconds / 8);
    const outcome o = run(*chosen[i], how, share, seconds, time, told);
    print(chosen[i]->name, o);
    sum.merge(o.figures);
    lies += o.lies;
    if (o.failed) ++violations;
  }
  std::printf("histories: %llu of %llu calls checked by %s, %llu violations, %.1f s\n",
              wide(sum.calls), wide(how.operations),
              time.counts_cycles() ? "the cycle counter" : "a shared counter", wide(violations),
              now_seconds() - began);
  if (told != lie::none) {
    std::printf("histories: %s was told %llu times and %s\n", how.told.c_str(), wide(lies),
                violations > 0 ? "found" : "NOT FOUND");
    return violations > 0 ? 0 : 1;
  }
  if (violations > 0) return 1;
  if (sum.calls < how.operations / 2) {
    std::puts("histories: fewer than half of the calls in the time given");
    return 1;
  }
  return 0;
}
