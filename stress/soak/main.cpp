// The command line of the soak, and its conductor: lets the threads run, stops them every few
// seconds, looks at everything, resets something, and ends with one line of figures.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <thread>

#include "stress/soak/audit.hpp"
#include "stress/soak/canceller.hpp"
#include "stress/soak/gate.hpp"
#include "stress/soak/memory_curve.hpp"

namespace {

using namespace cairn;
using namespace cairn::soak;

struct settings {
  double minutes = 1;
  double round_seconds = 3;
  bool troubles = true;
  /// Of the heap in use, per minute; 0: only printed. What is in use when all is quiet comes and
  /// goes by some hundreds of KiB.
  double slope_max_kib = 4096;
  std::uint64_t faults = 0;  ///< to come to pass, then the end; 0: as many as will
};

unsigned long long wide(std::uint64_t number) {
  return number;
}

double now_seconds() {
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

class conductor {
 public:
  conductor(const options& opts, const settings& how)
      : how_(how),
        world_(opts),
        gate_(opts.threads + 1),
        dice_(opts.seed + 77),
        taker_back_(world_) {
    for (std::uint32_t t = 0; t < opts.threads; ++t) {
      players_.push_back(std::make_unique<scheduler>(world_, t));
      who_.push_back(players_.back().get());
    }
  }

  bool run() {
    world_.devices.arm(how_.troubles);
    std::vector<std::thread> threads;
    for (scheduler* each : who_)
      threads.emplace_back([this, each] {
        while (gate_.pass(world_.broken.load(), [each] { each->wind_up(); })) each->turn();
      });
    threads.emplace_back([this] {
      while (gate_.pass(false, [] {})) taker_back_.turn();
    });
    const double end = now_seconds() + how_.minutes * 60;
    std::uint64_t rounds = 0;
    for (bool more = true; more; ++rounds) {
      more = let_run(std::min(end, now_seconds() + how_.round_seconds)) && now_seconds() < end &&
             !noticed() && !enough();
      const bool abrupt = more && dice_.below(8) == 0;
      // Beneath the threads: accepted ops must be reported all the same.
      if (abrupt) {
        world_.broken.store(true);
        (void)world_.rt().close(clock::now() + std::chrono::milliseconds(dice_.below(20)));
      }
      stop();
      between(abrupt);
      memory_.add();
      gate_.open();
    }
    stop();
    gate_.finish();
    for (std::thread& each : threads) each.join();
    world_.devices.arm(false);
    for (scheduler* each : who_) each->drop_all();
    world_.close();
    return report(rounds);
  }

 private:
  /// Until then, or until there is a reason to stop; false when nobody gets anything done. A round
  /// may be too short for a busy machine to do anything in; who hangs does so for longer.
  bool let_run(double until) {
    constexpr double hung_seconds = 60;
    const std::uint64_t before = world_.count.operations.load();
    const auto idle = [&] { return world_.count.operations.load() == before; };
    const double hung = now_seconds() + hung_seconds;
    while (goes_on() && (now_seconds() < until || (idle() && now_seconds() < hung))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (dice_.below(40) == 0) world_.devices.release();
    }
    if (!goes_on() || !idle()) return true;
    world_.violation("nothing goes on any more");
    return false;
  }

  [[nodiscard]] bool goes_on() const { return !world_.broken.load() && !noticed() && !enough(); }

  [[nodiscard]] bool enough() const {
    return how_.faults != 0 && world_.devices.met() >= how_.faults;
  }

  /// Until all threads are parked. No new trouble begins, and nothing is held back any more, so
  /// that what they wait for comes.
  void stop() {
    world_.devices.arm(false);
    gate_.close([this] { world_.devices.release(); });
  }

  /// A mistake on purpose has shown: no use in going on.
  [[nodiscard]] bool noticed() const {
    return world_.opts.told != lie::none &&
           world_.count.mismatches.load() + world_.count.violations.load() != 0;
  }

  /// All threads are parked.
  void between(bool closed) {
    const bool lost = world_.devices.any_lost();
    audit(world_, who_, lost || closed);
    if (lost || closed || dice_.below(6) == 0) {
      reopen(closed);
    } else {
      resize(world_, who_);
      switch (dice_.below(6)) {
        case 0:
          world_.rt().records().clear();
          world_.images.all_forgotten(world_.images.now());
          break;
        case 1:
          world_.rt().own_pool()->clear_index();
          break;
        default:
          break;
      }
    }
    world_.broken.store(false);
    world_.devices.arm(how_.troubles);
  }

  void reopen(bool closed) {
    ++world_.count.resets;
    const bool lost = world_.devices.any_lost();
    const status code = world_.rt().close(clock::now() + std::chrono::seconds(30));
    if (code != status::ok && !lost && !closed)
      world_.violation(std::string("close in peace answered ") + to_string(code));
    for (scheduler* each : who_) each->drop_all();
    world_.close();
    world_.images.all_forgotten(world_.images.now());
    world_.images.tidy();
    world_.open();
  }

  bool report(std::uint64_t rounds) {
    const figures& f = world_.count;
    const double slope = memory_.heap_slope_kib();
    std::printf("troubles:");
    for (std::size_t i = 0; i < static_cast<std::size_t>(stress::trouble::count); ++i)
      std::printf(" %s %llu", to_string(static_cast<stress::trouble>(i)),
                  wide(world_.devices.met(static_cast<stress::trouble>(i))));
    std::printf(
        "\n%llu stores, %llu restores, %llu ops failed (%llu timed out, at most %lld ms "
        "after their time; %llu times a slot was poisoned, %llu reset), %llu audits, %llu "
        "runtimes, %llu verified\n",
        wide(f.stores), wide(f.restores), wide(f.failures), wide(f.timed_out),
        static_cast<long long>(f.late_ms_max), wide(f.poisoned), wide(f.slot_resets), wide(rounds),
        wide(f.resets + 1), wide(f.verified));
    std::printf("calls refused:");
    for (std::size_t s = 0; s < f.refused.size(); ++s)
      if (f.refused[s] != 0)
        std::printf(" %s %llu", to_string(static_cast<status>(s)), wide(f.refused[s]));
    std::printf("\n");
    // A schedule: what the threads did between one quiet moment, audited, and the next.
    std::printf(
        "soak: operations %llu, schedules %llu, faults %llu, evictions %llu, mismatches %llu, "
        "violations %llu, units lost %llu, memory slope %+.1f KiB/min (resident %+.1f), seed "
        "%llu\n",
        wide(f.operations), wide(rounds), wide(world_.devices.met()), wide(f.evictions),
        wide(f.mismatches), wide(f.violations), wide(f.units_lost), slope,
        memory_.resident_slope_kib(), wide(world_.opts.seed));
    if (world_.devices.met() * 2 < how_.faults) {
      std::printf("soak: fewer than half of the %llu faults wanted\n", wide(how_.faults));
      return false;
    }
    if (how_.slope_max_kib != 0 && slope > how_.slope_max_kib)
      std::printf("soak: memory grows by more than %.1f KiB/min\n", how_.slope_max_kib);
    return f.mismatches == 0 && f.violations == 0 && f.units_lost == 0 &&
           (how_.slope_max_kib == 0 || slope <= how_.slope_max_kib);
  }

  const settings how_;
  world world_;
  gate gate_;
  test::dice dice_;
  canceller taker_back_;
  std::vector<std::unique_ptr<scheduler>> players_;
  std::vector<scheduler*> who_;
  memory_curve memory_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the whole runtime with many threads, troubles and resets.", "soak");
  options opts;
  settings how;
  bool calm = false;
  app.add_option("--minutes", how.minutes)->capture_default_str();
  app.add_option("--seed", opts.seed, "of the choices, not of the schedule")->capture_default_str();
  app.add_option("--threads", opts.threads, "scheduling threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--ranks", opts.ranks)->capture_default_str()->check(CLI::Range(1, 4));
  app.add_option("--units", opts.shape.units)->capture_default_str()->check(CLI::Range(16, 4096));
  app.add_option("--slots", opts.shape.slots)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--round", how.round_seconds, "seconds between two audits")->capture_default_str();
  app.add_option("--slope-max", how.slope_max_kib,
                 "fail when the heap grows by more KiB/min (0: never)")
      ->capture_default_str();
  app.add_flag("--calm", calm, "without troubles");
  app.add_option("--faults", how.faults,
                 "end when so many have come to pass; half of it is a must");
  std::uint32_t odds = 1;
  app.add_option("--odds", odds, "troubles come so many times as often")
      ->capture_default_str()
      ->check(CLI::Range(1, 50));
  std::vector<std::string> lies;
  for (std::size_t i = 0; i < static_cast<std::size_t>(lie::count); ++i)
    lies.emplace_back(to_string(static_cast<lie>(i)));
  std::string told = "none";
  app.add_option("--lie", told, "a mistake on purpose: exit status 0 when it is noticed")
      ->check(CLI::IsMember(lies))
      ->capture_default_str();
  bool list_lies = false;
  app.add_flag("--list-lies", list_lies, "print the mistakes on purpose");
  CLI11_PARSE(app, argc, argv);
  if (list_lies) {
    for (std::size_t i = 1; i < lies.size(); ++i) std::puts(lies[i].c_str());
    return 0;
  }
  opts.told = static_cast<lie>(std::find(lies.begin(), lies.end(), told) - lies.begin());
  how.troubles = !calm;
  using stress::trouble;
  opts.troubles.of(trouble::launch_fails) = 6000;
  opts.troubles.of(trouble::launch_fails_late) = 2000;
  opts.troubles.of(trouble::launch_full) = 2000;
  opts.troubles.of(trouble::copy_fails) = 1500;
  opts.troubles.of(trouble::copy_short) = 1500;
  opts.troubles.of(trouble::record_fails) = 2000;
  opts.troubles.of(trouble::record_full) = 2000;
  opts.troubles.of(trouble::wait_full) = 2000;
  opts.troubles.of(trouble::wait_fails) = 2000;
  opts.troubles.of(trouble::event_late) = 4000;
  opts.troubles.of(trouble::event_lost) = 600;
  opts.troubles.of(trouble::stalled) = 300;
  opts.troubles.of(trouble::bit_flips) = 4000;
  opts.troubles.of(trouble::device_lost) = 40;
  for (std::uint32_t& each : opts.troubles.chance) each *= odds;

  const test::yields yielding;
  conductor run(opts, how);
  const bool clean = run.run();
  if (opts.told == lie::none) return clean ? 0 : 1;
  std::printf("soak: %s was %s\n", told.c_str(), clean ? "NOT NOTICED" : "noticed");
  return clean ? 1 : 0;
}
