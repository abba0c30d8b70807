// Rounds in turn, and their medians.
#include "bench/harness/contest.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace cairn::bench {

contest_options contest_options::of(effort how, std::uint32_t threads) {
  contest_options made;
  made.threads = threads;
  // More threads than processors need rounds of several time slices each.
  switch (how) {
    case effort::small:
      made.rounds = 1;
      made.round_ms = 0.2;
      break;
    case effort::quick:
      made.rounds = threads > 2 ? 7 : 9;
      made.round_ms = threads > 2 ? 25 : 8;
      break;
    case effort::full:
      made.rounds = threads > 2 ? 15 : 21;
      made.round_ms = threads > 2 ? 50 : 20;
      break;
  }
  return made;
}

double standing::ns() const {
  return median(rounds_ns);
}

double times_faster_in_turn(const standing& ours, const standing& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.rounds_ns.size(), theirs.rounds_ns.size()); ++i)
    if (ours.rounds_ns[i] > 0) ratios.push_back(theirs.rounds_ns[i] / ours.rounds_ns[i]);
  return median(std::move(ratios));
}

std::vector<standing> hold_contest(const contest_options& how, std::vector<contender> all) {
  team threads(how.threads);
  const auto once = [&](const contender& who, std::uint64_t ops) {
    const double ns = threads.run_ns([&](std::uint32_t thread) { who.work(thread, ops); });
    if (who.done) who.done();
    return ns;
  };
  // The operations of a round, from the processor time that one thread takes for fewer: threads
  // that wait for a processor would make it too short. Which is the warming up, too. Of two looks
  // the shorter one: where the machine held up a look at few operations, all rounds would be of
  // few.
  const double share = std::max(
      1.0, static_cast<double>(how.threads) / std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::uint64_t> ops;
  for (const contender& each : all) {
    const auto took_ms = [&](std::uint64_t count) {
      const std::int64_t begin = thread_cpu_ns();
      each.work(0, count);
      const double ms = static_cast<double>(thread_cpu_ns() - begin) / 1e6;
      if (each.done) each.done();
      return ms;
    };
    std::uint64_t count = 64;
    for (;; count *= 2) {
      const double least_ms = how.round_ms / 4;
      double ms = took_ms(count);
      for (int look = 1; look < 5 && ms >= least_ms && ms < 16 * least_ms; ++look)
        ms = std::min(ms, took_ms(count));
      if (ms < least_ms && count < std::uint64_t{1} << 32) continue;
      const double scale = how.round_ms / ms / share;
      ops.push_back(std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(static_cast<double>(count) * scale)));
      break;
    }
  }
  std::vector<standing> standings;
  standings.reserve(all.size());
  for (const contender& each : all) standings.push_back({each.name, {}});
  for (std::uint32_t round = 0; round < how.rounds; ++round) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      // Every second round goes backwards: nobody always comes after the same neighbour.
      const std::size_t i = round % 2 == 0 ? k : all.size() - 1 - k;
      const double total = static_cast<double>(ops[i]) * how.threads;
      standings[i].rounds_ns.push_back(once(all[i], ops[i]) / total);
    }
  }
  return standings;
}

row contest_row(const std::string& suite, const std::string& what, std::uint32_t threads,
                const standing& ours, const standing& theirs, std::optional<double> bar) {
  row made = times_faster(suite, what, ours.ns(), theirs.name, theirs.ns(), "ns/op");
  made.threads = threads;
  made.ratio = times_faster_in_turn(ours, theirs);
  made.bar = bar;
  if (bar) made.ok = *made.ratio >= *bar;
  return made;
}

}  // namespace cairn::bench
