// The command line of the schedule explorer.
//
//   explore --schedules 20000000 --time 300 --at-least 10000000   all scenes, mixed strategies
//   explore --scene evict-evict --strategy exhaustive --preemptions 3
//   explore --scene evict-evict --strategy pct --seed 1 --replay 4711      one schedule again
//   explore --scene evict-evict --decisions '41>1,f1>0'        the same, by its switches
//   explore --scene trouble-one --decisions '90>1,d3>2'        and by what its draws came to
//   explore --strategy freeze    suspends each thread for ever before each of its steps; fails when
//                                time or --schedules do not reach for all of them
//   explore --faults             looks for each known fault; in a build with CAIRN_SANITIZE=thread
//                                also for those that only weaken an order
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "stress/explore/campaign.hpp"

namespace {

using namespace cairn::explore;

unsigned long long wide(std::uint64_t n) {
  return n;
}

void print(const std::string& name, const plan& how, const tally& t) {
  std::printf(
      "%-28s %-10s %10llu schedules %8llu orders %7llu states %6.1f steps %8.0f/s%s\n",
      name.c_str(), how.strategy.c_str(), wide(t.schedules), wide(t.orders.count()),
      wide(t.states.count()),
      t.schedules == 0 ? 0.0 : static_cast<double>(t.steps) / static_cast<double>(t.schedules),
      t.seconds > 0 ? static_cast<double>(t.schedules) / t.seconds : 0.0,
      t.complete && (how.strategy == "exhaustive" || how.strategy == "freeze") ? " complete" : "");
  if (!t.failed) return;
  std::printf("FAILED: %s: %s\n", name.c_str(), t.why);
  if (t.again[0] == '\0') return;
  std::printf("  after %llu schedules; again: explore %s\n", wide(t.failed_after), t.again);
  if (t.shortest[0] != '\0') std::printf("  short: explore %s\n", t.shortest);
}

#if defined(CAIRN_EXPLORE_ON_TSAN)
constexpr bool tool = true;
#else
constexpr bool tool = false;
#endif

}  // namespace

int main(int argc, char** argv) {
  // Whoever runs all tests tells the tool to pass over modules that it has not instrumented; it
  // passes over copies of whole structs then, and with them over the races that are looked for.
  if (tool && std::getenv("TSAN_OPTIONS") != nullptr) {
    unsetenv("TSAN_OPTIONS");
    execv("/proc/self/exe", argv);
  }
  CLI::App app("Explores the schedules of cairn's lock-free code.", "explore");
  plan how;
  std::vector<std::string> names;
  std::string group;
  bool list = false;
  bool here = false;
  how.schedules = 1'000'000;
  how.seconds = 60;
  how.jobs = 2;
  app.add_option("--scene", names, "scenes by name (all)");
  app.add_option("--group", group, "only scenes of this group");
  app.add_option("--strategy", how.strategy)
      ->check(CLI::IsMember({"exhaustive", "random", "pct", "hunt", "freeze", "mix"}))
      ->capture_default_str();
  app.add_option("--preemptions", how.preemptions, "bound of exhaustive")->capture_default_str();
  app.add_option("--troubles", how.troubles, "bound of exhaustive on draws that come out unusual")
      ->capture_default_str();
  app.add_option("--seed", how.seed)->capture_default_str();
  app.add_option("--schedules", how.schedules, "in all, over all scenes")->capture_default_str();
  app.add_option("--time", how.seconds, "seconds in all")->capture_default_str();
  std::uint64_t at_least = 0;
  app.add_option("--at-least", at_least, "fewer schedules than these are a failure");
  app.add_option("--jobs", how.jobs, "processes")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--replay", how.replay, "only the schedule of this number");
  app.add_option("--decisions", how.decisions, "only this schedule");
  app.add_flag("--trace", how.trace, "print a hash of each schedule");
  bool twice = false;
  app.add_flag("--twice", twice, "run each scene twice: the same schedules must do the same");
  bool faults = false;
  std::string fault_name;
  app.add_flag("--faults", faults, "look for each known fault, print the score");
  app.add_option("--fault", fault_name, "the same for one fault, in its scene or in --scene");
  std::uint64_t median_max = 0;
  app.add_option("--median-max", median_max,
                 "known faults that take more schedules than these, in the median, are a failure");
  app.add_flag("--here", here, "in this process: for a debugger");
  app.add_flag("--list", list, "print the scenes");
  CLI11_PARSE(app, argc, argv);

  if (faults || !fault_name.empty()) {
    if (app.count("--strategy") == 0) how.strategy = "hunt";
    if (app.count("--schedules") == 0) how.schedules = 200'000;  // of each, at most
    const std::string in = fault_name.empty() || names.empty() ? std::string() : names.front();
    return explore_faults(how, fault_name, in, median_max) ? 0 : 1;
  }
  std::vector<const scene_entry*> chosen;
  for (const std::string& name : names) {
    const scene_entry* one = find_scene(name);
    if (one == nullptr) {
      std::fprintf(stderr, "explore: no scene '%s' (see --list)\n", name.c_str());
      return 2;
    }
    chosen.push_back(one);
  }
  if (names.empty())
    for (const scene_entry& each : scenes())
      if (!tool || !each.group.ends_with("-plain")) chosen.push_back(&each);
  if (!group.empty())
    std::erase_if(chosen, [&](const scene_entry* s) { return s->group != group; });
  if (how.strategy == "freeze")
    std::erase_if(chosen, [](const scene_entry* s) { return s->waits; });
  if (list) {
    for (const scene_entry* s : chosen)
      std::printf("%-10s %s\n", s->group.c_str(), s->name.c_str());
    return 0;
  }
  if (chosen.empty()) {
    std::fputs("explore: no scene is left\n", stderr);
    return 2;
  }
  if (here) {
    how.jobs = 1;
    how.shrink = false;
    auto t = std::make_unique<tally>();
    explore_here(*chosen.front(), how, 0, *t);
    print(chosen.front()->name, how, *t);
    return t->failed ? 1 : 0;
  }

  tally sum;
  const double began = real_seconds();
  std::uint64_t failures = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    // What a scene leaves is the later ones'.
    const auto left = static_cast<double>(chosen.size() - i);
    plan one = how;
    one.schedules = (how.schedules - std::min(how.schedules, sum.schedules)) / (chosen.size() - i);
    one.seconds = how.seconds - (real_seconds() - began);
    // Freezing ends by itself, and must.
    if (how.strategy != "freeze") one.seconds /= left;
    if (one.schedules == 0) one.schedules = 1;
    tally t = explore_apart(*chosen[i], one);
    if (twice) {
      one.seconds = how.seconds;
      const tally again = explore_apart(*chosen[i], one);
      if (again.chain != t.chain || again.schedules != t.schedules) {
        t.failed = true;
        std::snprintf(t.why, sizeof t.why, "the same seeds did something else the second time");
      }
    }
    if (how.strategy == "freeze" && how.replay == ~std::uint64_t{0} && !t.failed && !t.complete) {
      t.failed = true;
      std::snprintf(t.why, sizeof t.why, "not every thread was suspended before each of its steps");
    }
    print(chosen[i]->name, one, t);
    std::fflush(stdout);
    sum.schedules += t.schedules;
    sum.steps += t.steps;
    sum.traces += t.traces;
    sum.orders.merge(t.orders);
    sum.states.merge(t.states);
    if (t.failed) ++failures;
  }
  std::printf(
      "%zu scenes: %llu schedules, %llu orders, %llu states, %.1f s, digest %016llx, %llu failed\n",
      chosen.size(), wide(sum.schedules), wide(sum.orders.count()), wide(sum.states.count()),
      real_seconds() - began, wide(sum.traces), wide(failures));
  if (sum.schedules < at_least) {
    std::printf("explore: %llu schedules are fewer than the %llu wanted\n", wide(sum.schedules),
                wide(at_least));
    return 3;
  }
  return failures == 0 ? 0 : 1;
}
