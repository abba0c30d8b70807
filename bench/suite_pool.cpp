// Suite `pool`: a reservation of 16 or 48 units is taken and released, all or nothing, with owner
// checks on both sides. The pool has room for all, so nobody is refused. Once more, without a bar,
// from a pool of which one unit in sixteen is free, wherever chance has left it.
//
// Bars: at one thread not slower than moodycamel's bulk calls nor than a mutex and a vector; at two
// and eight twice as fast as both. cairn checks more than its peers do (the order of a reservation,
// that it is whole) and hands out the lowest units first; that is not taken off.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "bench/peers/pool_turns.hpp"
#include "bench/peers/unit_pools.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "pool";

/// All units are taken one by one; one in sixteen comes back, in an order that is the same for all.
template <class Pool>
std::shared_ptr<Pool> scattered(std::shared_ptr<Pool> pool, std::uint32_t units) {
  constexpr owner_id holder = ~owner_id{0};
  std::vector<unit_id> ids(units);
  for (unit_id& id : ids)
    if (!pool->reserve(0, {&id, 1}, holder)) std::abort();
  std::shuffle(ids.begin(), ids.end(), std::mt19937_64(1));
  for (std::uint32_t i = 0; i < units / 16; ++i)
    if (!pool->release(0, {&ids[i], 1}, holder)) std::abort();
  return pool;
}

}  // namespace

void measure_pool(const suite_options& how, std::vector<row>& into) {
  constexpr std::uint32_t units = 1U << 16;
  const auto measure = [&](const std::string& what, std::uint32_t each, std::uint32_t threads,
                           const auto& prepared, std::optional<double> bar) {
    const auto s = hold_contest(
        contest_options::of(how.how, threads),
        {pool_turns("cairn", prepared(std::make_shared<cairn_pool>(units)), each),
         pool_turns("moodycamel, bulk", prepared(std::make_shared<queue_pool>(units, threads)),
                    each),
         pool_turns("mutex and vector", prepared(std::make_shared<vector_pool>(units)), each)});
    for (std::size_t i = 1; i < s.size(); ++i)
      into.push_back(contest_row(suite_name, what, threads, s[0], s[i], bar));
  };
  const auto whole = [](auto pool) { return pool; };
  const auto in_pieces = [](auto pool) { return scattered(std::move(pool), units); };
  for (const std::uint32_t each : {16U, 48U})
    for (const std::uint32_t threads : how.threads())
      measure("reserve and release " + std::to_string(each) + " units", each, threads, whole,
              threads == 1 ? 1.0 : 2.0);
  for (const std::uint32_t threads : how.threads())
    measure("reserve and release 16 units that lie apart", 16, threads, in_pieces, {});
}

}  // namespace cairn::bench
