// Suite `index`: a record is found by its key, held, and let go; or is not there.
//
// cairn's side is catalog::state::pin_key and unpin: how begin_restore and admit find and hold a
// record. The bare pin of the public interface (pin_longest, release_pin) does that and keeps books
// on deadlines besides, which no peer has; it has rows of its own, against the same peers.
#include <algorithm>
#include <memory>
#include <utility>

#include "bench/harness/cursor.hpp"
#include "bench/peers/catalog_records.hpp"
#include "bench/peers/maps.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "index";
constexpr const char* hyper_clock = "HyperClockCache";
constexpr const char* tbb_name = "tbb::concurrent_hash_map";
constexpr const char* cuckoo_name = "libcuckoo";
constexpr const char* xenium_name = "xenium vyukov_hash_map";

using key_stream = std::vector<checkpoint_key>;

template <class Map>
contender hits(const char* name, Map& map, const key_stream& keys) {
  auto from = std::make_shared<cursor<checkpoint_key>>(keys);
  return {name, [&map, from](std::uint32_t thread, std::uint64_t ops) {
            from->walk(thread, ops, [&map](const checkpoint_key& key) -> std::uint64_t {
              typename Map::held held;
              std::uint32_t id = 0;
              if (!map.pin(key, held, id)) std::abort();
              map.unpin(held);
              return id;
            });
          }};
}

template <class Map>
contender misses(const char* name, Map& map, const key_stream& keys) {
  auto from = std::make_shared<cursor<checkpoint_key>>(keys);
  return {name, [&map, from](std::uint32_t thread, std::uint64_t ops) {
            from->walk(thread, ops, [&map](const checkpoint_key& key) -> std::uint64_t {
              if (!map.miss(key)) std::abort();
              return 1;
            });
          }};
}

contender bare_pins(catalog_records& map, const key_stream& keys) {
  auto from = std::make_shared<cursor<checkpoint_key>>(keys);
  return {"pin_longest", [&map, from](std::uint32_t thread, std::uint64_t ops) {
            const deadline until = clock::now() + std::chrono::hours(1);
            from->walk(thread, ops, [&map, until](const checkpoint_key& key) -> std::uint64_t {
              const auto held = map.records().pin_longest({&key, 1}, 1, until);
              if (!held || !map.records().release_pin(*held)) std::abort();
              return held->record.index;
            });
          }};
}

/// cairn and all its peers, holding the same keys.
struct maps {
  catalog_records cairn;
  rocksdb_map hyper;
  tbb_map tbb;
  cuckoo_map cuckoo;
  xenium_map xenium;

  explicit maps(std::uint32_t keys)
      : cairn(keys),
        hyper(rocksdb_map::hyper_clock(keys, 25)),
        tbb(keys),
        cuckoo(keys),
        xenium(keys) {
    for (std::uint32_t i = 0; i < keys; ++i) {
      const checkpoint_key key = key_of(i);
      cairn.insert(key, i);
      hyper.insert(key, i);
      tbb.insert(key, i);
      cuckoo.insert(key, i);
      xenium.insert(key, i);
    }
  }
  template <class Make>
  std::vector<contender> all(Make&& make) {
    return {make("cairn", cairn), make(hyper_clock, hyper), make(tbb_name, tbb),
            make(cuckoo_name, cuckoo), make(xenium_name, xenium)};
  }
};

const standing& better(const standing& a, const standing& b) {
  return a.ns() <= b.ns() ? a : b;
}

struct bars {
  double hyper = 0;
  double tbb = 0;     ///< 0: counts among the others
  double others = 0;  ///< against the better of them; 0: no bar
};

void compare(const std::vector<standing>& s, const std::string& what, std::uint32_t threads,
             const standing& ours, bars at, bool with_bars, std::vector<row>& into) {
  const auto bar = [&](double value) {
    return with_bars && value > 0 ? std::optional<double>(value) : std::nullopt;
  };
  const auto add = [&](const standing& theirs, double value) {
    into.push_back(contest_row(suite_name, what, threads, ours, theirs, bar(value)));
  };
  add(s[1], at.hyper);
  const standing& other = better(s[3], s[4]);
  const bool tbb_is_best = at.tbb <= 0 && s[2].ns() < other.ns();
  const standing& best = tbb_is_best ? s[2] : other;
  for (std::size_t i = 2; i < 5; ++i)
    add(s[i], i == 2 && at.tbb > 0 ? at.tbb : &s[i] == &best ? at.others : 0);
}

void measure_hits(const suite_options& how, maps& on, const std::string& what,
                  const key_stream& keys, bars at, bool at_two, std::vector<row>& into) {
  for (const std::uint32_t threads : how.threads()) {
    auto all = on.all([&](const char* name, auto& map) { return hits(name, map, keys); });
    all.push_back(bare_pins(on.cairn, keys));
    const auto s = hold_contest(contest_options::of(how.how, threads), std::move(all));
    compare(s, what, threads, s[0], at, threads != 2 || at_two || how.small(), into);
    compare({s.begin(), s.begin() + 5}, what + ", bare pin", threads, s[5], at, false, into);
  }
}

void measure_misses(const suite_options& how, maps& on, const std::string& what, std::uint32_t keys,
                    std::vector<row>& into) {
  // Numbers beyond those that are there.
  std::vector<std::uint32_t> absent = draw(keys, std::min<std::size_t>(keys, 1U << 20), 0, 3);
  for (std::uint32_t& each : absent) each += keys;
  const key_stream stream = keys_of(absent);
  for (const std::uint32_t threads : how.threads()) {
    const auto s = hold_contest(
        contest_options::of(how.how, threads),
        on.all([&](const char* name, auto& map) { return misses(name, map, stream); }));
    compare(s, what, threads, s[0], {4, 2, 0}, true, into);
  }
}

/// Nine records of ten are held by bare pins; stores of new keys evict among the rest.
void measure_pinned(const suite_options& how, std::vector<row>& into) {
  const std::uint32_t records = how.small() ? 1024 : 32 * 1024;
  for (const std::uint32_t threads : how.threads()) {
    struct side {
      catalog_records on;
      std::vector<std::uint64_t> next = std::vector<std::uint64_t>(64 * 8);
      side(std::uint32_t count, std::uint32_t pinned) : on(count, 1, 32 * 1024 - 1) {
        for (std::uint32_t i = 0; i < count; ++i) on.insert(key_of(i), i);
        const deadline until = clock::now() + std::chrono::hours(24);
        for (std::uint32_t i = 0; i < pinned; ++i) {
          const checkpoint_key key = key_of(i);
          if (!on.records().pin_longest({&key, 1}, 1, until)) std::abort();
        }
        // The first eviction sets aside all that is pinned. Once, so it is no part of the rate, and
        // must not be taken for it when the operations of a round are chosen.
        (void)on.store(key_of(std::uint64_t{64} << 40));
      }
    };
    auto pinned = std::make_shared<side>(records, records / 10 * 9);
    auto unpinned = std::make_shared<side>(records, 0);
    const auto inserts = [](const char* name, const std::shared_ptr<side>& of) {
      return contender{name, [of](std::uint32_t thread, std::uint64_t ops) {
                         std::uint64_t& next = of->next[std::size_t{thread} * 8];
                         for (std::uint64_t i = 0; i < ops; ++i)
                           (void)of->on.store(key_of((std::uint64_t{thread} + 1) << 40 | next++));
                       }};
    };
    const auto s =
        hold_contest(contest_options::of(how.how, threads),
                     {inserts("cairn", pinned), inserts("itself, nothing pinned", unpinned)});
    into.push_back(
        contest_row(suite_name, "insertion with eviction, 90 % pinned", threads, s[0], s[1], 0.5));
  }
}

std::string thousands(std::uint32_t keys) {
  return keys >= 1U << 20 ? std::to_string(keys >> 20) + " M" : std::to_string(keys >> 10) + " K";
}

}  // namespace

void measure_index(const suite_options& how, std::vector<row>& into) {
  const std::vector<std::uint32_t> sizes = how.small()
                                               ? std::vector<std::uint32_t>{4096}
                                               : std::vector<std::uint32_t>{1U << 16, 1U << 21};
  for (const std::uint32_t keys : sizes) {
    maps on(keys);
    const std::size_t stream = std::min<std::size_t>(std::size_t{keys} * 2, 1U << 20);
    const std::string size = ", " + thousands(keys) + " keys";
    measure_hits(how, on, "hit, uniform" + size, keys_of(draw(keys, stream, 0, 1)), {3, 2, 1.5},
                 false, into);
    measure_hits(how, on, "hit, zipf 0.99" + size, keys_of(draw(keys, stream, 0.99, 2)),
                 {3, 2, 1.5}, false, into);
    if (keys == sizes.front())
      measure_hits(how, on, "hit, one hot key", key_stream(64, key_of(42)), {2, 0, 1.2}, true,
                   into);
    measure_misses(how, on, "miss" + size, keys, into);
  }
  measure_pinned(how, into);
}

}  // namespace cairn::bench
