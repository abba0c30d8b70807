// Suite `catalog`: a store, its completion, a restore of it and that completion, on a full pool, so
// that each store evicts; with ten thousand records and with a million. Against itself: at a
// million at most 1.2 times the instructions (callgrind counts them) and 4 times the time (caches).
//
// And has_available_units, which must not depend on the number of records: under 25 ns without a
// protected key; with one, a lookup more.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "bench/harness/callgrind.hpp"
#include "bench/harness/single.hpp"
#include "bench/peers/catalog_records.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "catalog";
constexpr std::uint32_t per_image = 4;

struct full_catalog {
  catalog_records on;
  std::uint64_t next;

  explicit full_catalog(std::uint32_t records) : on(records * per_image, per_image), next(records) {
    for (std::uint64_t i = 0; i < records; ++i)
      if (!on.store(key_of(i))) std::abort();
  }
};

}  // namespace

/// Named for callgrind.
[[gnu::noinline]] void catalog_cycles(full_catalog& with, std::uint64_t count);
void catalog_cycles(full_catalog& with, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const checkpoint_key key = key_of(with.next++);
    if (!with.on.store(key) || !with.on.restore(key)) std::abort();
  }
}

void run_catalog_cycles(std::uint32_t records, std::uint64_t count) {
  full_catalog with(records);
  catalog_cycles(with, count);
}

namespace {

void measure_cycles(const suite_options& how, std::uint32_t few, std::uint32_t many,
                    std::vector<row>& into) {
  const auto cycles = [](const char* name, const std::shared_ptr<full_catalog>& on) {
    return contender{name, [on](std::uint32_t, std::uint64_t ops) { catalog_cycles(*on, ops); }};
  };
  const auto s = hold_contest(contest_options::of(how.how, 1),
                              {cycles("many", std::make_shared<full_catalog>(many)),
                               cycles("few", std::make_shared<full_catalog>(few))});
  const std::string what = std::to_string(many) + " records, store to restored";
  const std::string peer = "itself, " + std::to_string(few);
  row time = contest_row(suite_name, what, 1, s[0], s[1]);
  time.peer = peer;
  time.ratio = 1 / times_faster_in_turn(s[0], s[1]);
  time.bar = 4.0;
  time.ok = *time.ratio <= 4.0;
  into.push_back(time);

  const std::uint64_t count = how.small() ? 200 : 4000;
  const auto instructions = [&](std::uint32_t records) {
    return counted_instructions(
        how.program, "--catalog-cycles " + std::to_string(records) + " " + std::to_string(count),
        "cairn::bench::catalog_cycles*");
  };
  const auto at_few = instructions(few);
  const auto at_many = instructions(many);
  if (!at_few || !at_many) {
    into.push_back(without_figures(suite_name, what, peer, "callgrind did not run", false));
    return;
  }
  const auto per = static_cast<double>(count);
  into.push_back(at_most(suite_name, what, *at_many / per, peer, *at_few / per, "instr", 1.2));
}

void measure_room(const suite_options& how, std::uint32_t records, std::vector<row>& into) {
  full_catalog with(records);
  catalog& of = with.on.records();
  const checkpoint_key there = key_of(records / 2);
  const double alone =
      single_ns(how.how, [&] { benchmark::DoNotOptimize(of.has_available_units(per_image)); });
  const double lookup = single_ns(how.how, [&] { benchmark::DoNotOptimize(of.contains(there)); });
  const double protecting = single_ns(
      how.how, [&] { benchmark::DoNotOptimize(of.has_available_units(per_image, &there)); });
  const std::string what = "has_available_units, " + std::to_string(records) + " records";
  into.push_back(at_most(suite_name, what, alone, "at most", 25, "ns"));
  // A tenth and a nanosecond are left to the clock.
  const double both = alone + lookup;
  into.push_back(at_most(suite_name, what + ", protected", protecting, "alone, and a lookup", both,
                         "ns", 1.1 + 1 / both));
}

}  // namespace

void measure_catalog(const suite_options& how, std::vector<row>& into) {
  const std::uint32_t few = how.small() ? 1000 : 10'000;
  const std::uint32_t many = how.small() ? 4000 : 1'000'000;
  measure_cycles(how, few, many, into);
  measure_room(how, few, into);
  measure_room(how, many, into);
}

}  // namespace cairn::bench
