// Suite `eviction`: a cache at its capacity is asked for keys; a miss inserts, and that evicts. And
// how many hits the policy gets, beside a list that is exactly least recently used.
//
// Keys are drawn uniformly from so many that a tenth, or half, of the requests misses, whatever the
// policy. A hit counts as use on both sides: a whole restore for cairn (begun and finished), Lookup
// and Release for RocksDB; a miss is a whole store, or an Insert. Both have the same capacity, in
// entries. Each thread serves a slot of its own, as in an engine.
#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <unordered_map>

#include "bench/peers/caches.hpp"
#include "bench/peers/maps.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "eviction";
constexpr double bar = 1.8;

/// Exactly least recently used, for the hit ratio.
class lru_list {
 public:
  explicit lru_list(std::size_t entries) : entries_(entries) {}
  bool use(const checkpoint_key& key, std::uint32_t) {
    if (const auto at = where_.find(key); at != where_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return true;
    }
    if (order_.size() == entries_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(key);
    where_[key] = order_.begin();
    return false;
  }

 private:
  std::size_t entries_;
  std::list<checkpoint_key> order_;
  std::unordered_map<checkpoint_key, std::list<checkpoint_key>::iterator, key_hash> where_;
};

template <class Cache>
contender requests(const char* name, std::shared_ptr<Cache> on, std::uint64_t keys,
                   std::uint32_t threads) {
  for (std::uint64_t i = 0; i < keys; ++i) (void)on->use(key_of(i), 0);  // fills it
  auto randoms = std::make_shared<std::vector<random_bits>>();
  for (std::uint32_t t = 0; t < threads; ++t) randoms->emplace_back(t + 17);
  return {name, [on, randoms, keys](std::uint32_t thread, std::uint64_t ops) {
            random_bits mine = (*randoms)[thread];
            for (std::uint64_t i = 0; i < ops; ++i) (void)on->use(key_of(mine.below(keys)), thread);
            (*randoms)[thread] = mine;
          }};
}

template <class Cache>
double hits_percent(Cache& on, const std::vector<std::uint32_t>& numbers) {
  std::size_t hits = 0;
  for (const std::uint32_t each : numbers) hits += on.use(key_of(each), 0) ? 1U : 0U;
  return 100.0 * static_cast<double>(hits) / static_cast<double>(numbers.size());
}

void measure_hits(const suite_options& how, std::vector<row>& into) {
  const std::uint32_t entries = how.small() ? 1024 : 16 * 1024;
  for (const double theta : {0.0, 0.99}) {
    const auto numbers = draw(entries * 4, std::size_t{entries} * 32, theta, 5);
    cairn_cache ours(entries);
    lru_list exact(entries);
    rocksdb_cache hyper{rocksdb_map::hyper_clock(entries, 0)};
    const double got = hits_percent(ours, numbers);
    const double best = hits_percent(exact, numbers);
    const std::string what = theta > 0 ? "hits in percent, zipf 0.99" : "hits in percent, uniform";
    row against_exact = more_is_better(suite_name, what, got, "exact LRU", best, "%");
    against_exact.ratio = std::abs(got - best);
    against_exact.bar = 0.5;
    against_exact.ok = *against_exact.ratio <= 0.5;
    against_exact.note = "points apart, at most 0.5";
    into.push_back(against_exact);
    into.push_back(more_is_better(suite_name, what, got, "HyperClockCache",
                                  hits_percent(hyper, numbers), "%"));
  }
}

}  // namespace

void measure_eviction(const suite_options& how, std::vector<row>& into) {
  const std::uint32_t entries = how.small() ? 1024 : 64 * 1024;
  for (const std::uint32_t percent : {10U, 50U})
    for (const std::uint32_t threads : how.threads()) {
      const std::uint64_t keys = std::uint64_t{entries} * 100 / (100 - percent);
      const auto s = hold_contest(
          contest_options::of(how.how, threads),
          {requests("cairn", std::make_shared<cairn_cache>(entries), keys, threads),
           requests(
               "HyperClockCache",
               std::make_shared<rocksdb_cache>(rocksdb_cache{rocksdb_map::hyper_clock(entries, 0)}),
               keys, threads),
           requests("LRUCache",
                    std::make_shared<rocksdb_cache>(rocksdb_cache{rocksdb_map::lru(entries, 0)}),
                    keys, threads)});
      const std::string what = "use or insert, " + std::to_string(percent) + " % misses";
      into.push_back(contest_row(suite_name, what, threads, s[0], s[1], bar));
      into.push_back(contest_row(suite_name, what, threads, s[0], s[2]));
    }
  measure_hits(how, into);
}

}  // namespace cairn::bench
