// A campaign of planned faults: episodes, one seed each, until enough faults have come to pass or
// time is up. Prints what came to pass and how ops ended; exits with 1 when anything was wrong, or
// when time was up below half of the nominal count.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <numeric>

#include "stress/faults/episode.hpp"

namespace {

using cairn::stress::episode;
using cairn::stress::fault;
using cairn::stress::fault_counts;
using cairn::stress::tally;

double seconds_now() {
  std::timespec at{};
  (void)std::timespec_get(&at, TIME_UTC);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

void print(const fault_counts& met, const tally& sum) {
  std::printf("faults:");
  for (std::size_t f = 0; f < met.size(); ++f)
    std::printf(" %s %llu", to_string(static_cast<fault>(f)),
                static_cast<unsigned long long>(met[f]));
  std::printf("\nops ended:");
  for (std::size_t s = 0; s < 32; ++s)
    if (sum.ended[s] != 0)
      std::printf(" %s %llu", cairn::to_string(static_cast<cairn::status>(s)),
                  static_cast<unsigned long long>(sum.ended[s]));
  std::printf("\ncalls answered:");
  for (std::size_t s = 0; s < 32; ++s)
    if (sum.refused[s] != 0)
      std::printf(" %s %llu", cairn::to_string(static_cast<cairn::status>(s)),
                  static_cast<unsigned long long>(sum.refused[s]));
  std::printf(
      "\nimages verified %llu, most units in quarantine %llu, devices lost in %llu episodes\n",
      static_cast<unsigned long long>(sum.verified),
      static_cast<unsigned long long>(sum.given_up_units),
      static_cast<unsigned long long>(sum.losses));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t nominal = 100'000;
  std::uint64_t seed = 1;
  double seconds = 170;
  bool one = false;
  CLI::App app{"A campaign of planned faults against the whole runtime, replayed by seed."};
  app.add_option("--faults", nominal, "faults to come to pass")->capture_default_str();
  app.add_option("--seed", seed, "seed of the first episode")->capture_default_str();
  app.add_option("--seconds", seconds, "time for it")->capture_default_str();
  app.add_flag("--one", one, "only that episode");
  CLI11_PARSE(app, argc, argv);

  const double end = seconds_now() + seconds;
  fault_counts met{};
  tally sum;
  std::uint64_t episodes = 0;
  const auto total = [&] { return std::accumulate(met.begin(), met.end(), std::uint64_t{0}); };
  while (total() < nominal && seconds_now() < end) {
    episode each(seed + episodes, met, sum);
    const std::string wrong = each.run();
    ++episodes;
    if (!wrong.empty()) {
      print(met, sum);
      std::printf("FAILED: %s; again with --one --seed %llu\n", wrong.c_str(),
                  static_cast<unsigned long long>(seed + episodes - 1));
      return 1;
    }
    if (one) break;
  }
  print(met, sum);
  const bool enough = one || total() * 2 >= nominal;
  std::printf("%llu faults of %llu, %llu episodes from seed %llu, %llu steps, 0 wrong%s\n",
              static_cast<unsigned long long>(total()), static_cast<unsigned long long>(nominal),
              static_cast<unsigned long long>(episodes), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(sum.steps), enough ? "" : ": too few");
  return enough ? 0 : 1;
}
