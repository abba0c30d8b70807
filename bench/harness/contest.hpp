// Contenders that do the same work, measured side by side: rounds of each in turn, in one process,
// so that what disturbs the machine disturbs all alike. Knows neither cairn nor its peers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/device/median.hpp"
#include "bench/device/rows.hpp"
#include "bench/harness/team.hpp"

namespace cairn::bench {

/// How much to measure. `small` is the size of a test: its figures mean nothing.
enum class effort : std::uint8_t { small, quick, full };

struct contest_options {
  std::uint32_t threads = 1;
  std::uint32_t rounds = 15;
  double round_ms = 20;  ///< of each contender in each round

  static contest_options of(effort how, std::uint32_t threads);
};

/// `work(thread, ops)` does `ops` operations; `done` runs after each round, not measured.
struct contender {
  std::string name;
  std::function<void(std::uint32_t thread, std::uint64_t ops)> work;
  std::function<void()> done = {};
};

/// Nanoseconds per operation of all threads together: elapsed time over operations, so with more
/// threads less is better too. With one thread the thread's own time, which a neighbour's turn on
/// the processor does not count into.
struct standing {
  std::string name;
  std::vector<double> rounds_ns;

  [[nodiscard]] double ns() const;  ///< the median
};

std::vector<standing> hold_contest(const contest_options& how, std::vector<contender> all);

/// The median over rounds of how many times the time of `ours` the time of `theirs` is.
double times_faster_in_turn(const standing& ours, const standing& theirs);

/// A row of a contest, without a bar or with one for the ratio.
row contest_row(const std::string& suite, const std::string& what, std::uint32_t threads,
                const standing& ours, const standing& theirs, std::optional<double> bar = {});

}  // namespace cairn::bench
