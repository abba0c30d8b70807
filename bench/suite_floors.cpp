// Suite `floors`: what an operation cannot do without, run by itself beside the operation: the
// locked instructions of its protocol, each on a line as the operation finds it. That is a line of
// the thread's own, one that all threads share, or one of many at random. The ratio says how many
// times its floor an operation takes; with one thread, a bar of another suite that lies below a
// floor cannot be met by this protocol. Also how fast a cache would be whose order of use cost
// nothing; and how many instructions the operations have, by callgrind.
//
// With several threads on one line it is no bound: threads that do nothing but take the line from
// each other keep it for fewer instructions at a time than those that compute in between, and the
// ratio may come out below 1. There it says that the line is what counts.
//
// The floors are written out by hand from the protocols: what each line is stands beside it. They
// leave out every comparison, every branch, the lines that are only read, and the locked
// instructions that not every operation needs: so the operation has a few more. To ask for the
// lines beforehand brought nothing.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "bench/harness/callgrind.hpp"
#include "bench/harness/cursor.hpp"
#include "bench/peers/caches.hpp"
#include "bench/peers/catalog_records.hpp"
#include "bench/peers/maps.hpp"
#include "bench/peers/pool_turns.hpp"
#include "bench/peers/unit_pools.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "floors";

/// Words in one cache line. Orders cost nothing beside the lock: all are acq_rel.
struct alignas(64) line {
  std::atomic<std::uint64_t> word[8]{};
};
void locked(std::atomic<std::uint64_t>& word, std::uint64_t by = 1) {
  word.fetch_add(by, std::memory_order_acq_rel);
}

using numbers = std::vector<std::uint32_t>;

/// Records for each that can be in use: see record_homes.hpp.
constexpr std::uint32_t spread = 3;

template <class Each>
contender walk(const char* name, const std::shared_ptr<const numbers>& from, Each each) {
  auto at = std::make_shared<cursor<std::uint32_t>>(*from);
  return {name, [from, at, each](std::uint32_t thread, std::uint64_t ops) {
            at->walk(thread, ops, [&](std::uint32_t i) -> std::uint64_t {
              each(thread, i);
              return 0;
            });
          }};
}

/// `peer`: whom another suite's bar is against. Its time over the floor's, in a row of its own:
/// with one thread, a bar above that ratio is out of reach for this protocol.
void beside(const suite_options& how, const std::string& what, std::uint32_t threads,
            contender ours, contender floor, std::vector<row>& into,
            const std::optional<contender>& peer = {}) {
  std::vector<contender> all{std::move(ours), std::move(floor)};
  if (peer) all.push_back(*peer);
  const auto s = hold_contest(contest_options::of(how.how, threads), std::move(all));
  row found = less_is_better(suite_name, what, s[0].ns(), s[1].name, s[1].ns(), "ns/op");
  found.threads = threads;
  into.push_back(found);
  if (peer) into.push_back(contest_row(suite_name, what + ", floor alone", threads, s[1], s[2]));
}

// ---- index ------------------------------------------------------------------------------------

void measure_hits(const suite_options& how, std::uint32_t keys, std::vector<row>& into) {
  auto on = std::make_shared<catalog_records>(keys);
  for (std::uint32_t i = 0; i < keys; ++i) on->insert(key_of(i), i);
  const auto hit = [on](const checkpoint_key& key) {
    catalog_records::held held = 0;
    std::uint32_t id = 0;
    if (!on->pin(key, held, id)) std::abort();
    on->unpin(held);
  };
  // Keys are made beforehand, as they come to a scheduler.
  const auto ask = [&](const std::vector<std::uint32_t>& drawn) {
    auto stream = std::make_shared<std::vector<checkpoint_key>>(keys_of(drawn));
    auto order = std::make_shared<numbers>(drawn.size());
    for (std::uint32_t i = 0; i < order->size(); ++i) (*order)[i] = i;
    return walk("cairn", order,
                [stream, hit](std::uint32_t, std::uint32_t i) { hit((*stream)[i]); });
  };
  // Each key has a record, and more are vacant: see record_homes.hpp.
  auto records = std::make_shared<std::vector<line>>(std::size_t{keys} * spread);
  const auto pin_and_unpin = [records](std::uint32_t, std::uint32_t i) {
    line& record = (*records)[i];
    if (record.word[1].load(std::memory_order_relaxed) != 0) std::abort();  // the key
    locked(record.word[0]);
    record.word[0].fetch_sub(1, std::memory_order_acq_rel);
  };
  const std::string size = ", " + std::to_string(keys) + " keys";
  const std::size_t length = std::min<std::size_t>(std::size_t{keys} * 2, 1U << 20);
  const auto uniform = draw(keys, length, 0, 1);
  const auto zipf = draw(keys, length, 0.99, 2);
  const auto lines_of = [](numbers drawn) {
    for (std::uint32_t& each : drawn) each *= spread;
    return std::make_shared<numbers>(std::move(drawn));
  };
  for (const std::uint32_t threads : how.threads()) {
    beside(how, "hit, one hot key", threads, ask({42}),
           walk("2 locked, one line", std::make_shared<numbers>(1, 42U), pin_and_unpin), into);
    beside(how, "hit, uniform" + size, threads, ask(uniform),
           walk("2 locked, random line", lines_of(uniform), pin_and_unpin), into);
    beside(how, "hit, zipf 0.99" + size, threads, ask(zipf),
           walk("2 locked, line by zipf", lines_of(zipf), pin_and_unpin), into);
  }
}

// ---- pool -------------------------------------------------------------------------------------

void measure_pool_floor(const suite_options& how, std::vector<row>& into) {
  constexpr std::uint32_t units = 1U << 16;
  constexpr std::uint32_t each = 16;
  for (const std::uint32_t threads : how.threads()) {
    struct lines {
      line credits, bits;
      line own[threads_max];
    };
    auto on = std::make_shared<lines>();
    const contender floor{"5 locked, 2 shared lines",
                          [on](std::uint32_t thread, std::uint64_t ops) {
                            for (std::uint64_t i = 0; i < ops; ++i) {
                              locked(on->credits.word[0]);
                              locked(on->bits.word[0]);
                              locked(on->own[thread].word[0]);  // the reservation ends once
                              locked(on->bits.word[0]);
                              locked(on->credits.word[0]);
                            }
                          }};
    beside(how, "reserve and release 16 units", threads,
           pool_turns("cairn", std::make_shared<cairn_pool>(units), each), floor, into,
           pool_turns("moodycamel, bulk", std::make_shared<queue_pool>(units, threads), each));
  }
}

// ---- eviction ---------------------------------------------------------------------------------

/// The lines of a catalog of so many records, each of one unit, that a use and an evicting store
/// change. More records than can be in use: record_homes.hpp.
struct catalog_lines {
  /// As many words as there are of something, eight to a line.
  struct words {
    explicit words(std::uint32_t count) : lines(count / 8 + 1) {}
    std::atomic<std::uint64_t>& operator[](std::uint32_t i) { return lines[i / 8].word[i % 8]; }
    std::vector<line> lines;
  };

  explicit catalog_lines(std::uint32_t live)
      : record(std::size_t{live} * spread),
        part(live / 2 + 1),
        bucket(live * 4),
        leaf(live * spread),
        by_16(live * spread / 16),
        by_256(live * spread / 256),
        by_4096(live * spread / 4096),
        vacant_records(live * spread / 64),
        vacant_units(live / 64) {}
  std::vector<line> record, part;
  words bucket, leaf, by_16, by_256, by_4096, vacant_records, vacant_units;
  line stamps, top, root, fates;
  struct {
    line op, evictable;
  } own[threads_max];

  void use(std::uint32_t thread, std::uint32_t id) {
    auto& mine = own[thread];
    locked(record[id].word[0]);      // pin
    locked(mine.evictable.word[0]);  // one less
    locked(mine.op.word[0]);         // claimed
    locked(stamps.word[0]);          // of use
    locked(record[id].word[1]);      // when it was used
    locked(leaf[id]);                // its place in the order
    locked(stamps.word[1]);          // of beginning
    locked(mine.op.word[0]);         // counted
    locked(record[id].word[0]);      // unpin
    locked(mine.evictable.word[0]);  // one more
    locked(mine.op.word[0]);         // ended
  }
  void store(std::uint32_t thread, std::uint32_t id, std::uint32_t victim) {
    auto& mine = own[thread];
    const std::uint32_t unit = victim / spread;  // the victim's, and the new record's
    locked(mine.op.word[0]);                     // claimed
    locked(vacant_records[id / 64]);             // a record
    locked(record[id].word[0]);                  // claimed
    locked(bucket[id * 4 / spread]);             // into the index
    locked(record[victim].word[0]);              // evicted
    locked(mine.evictable.word[0]);              // one less
    locked(leaf[victim]);                        // out of the order, and of
    locked(by_16[victim / 16]);                  // the nodes above, all of which name it
    locked(by_256[victim / 256]);
    locked(by_4096[victim / 4096]);
    locked(top.word[victim / 65536 % 8]);
    locked(root.word[0]);
    locked(record[victim].word[2]);         // out of the index: marked
    locked(bucket[victim * 4 / spread]);    // and unlinked
    locked(fates.word[1]);                  // evicted
    locked(part[unit / 2].word[unit % 2]);  // the victim's units: released once
    locked(vacant_units[unit / 64]);        // put
    locked(vacant_units[unit / 64]);        // and taken
    locked(record[victim].word[0]);         // vacant
    locked(vacant_records[victim / 64]);    // put
    locked(record[id].word[0]);             // copying
    locked(fates.word[0]);                  // kept
    locked(stamps.word[1]);                 // of beginning
    locked(mine.op.word[0]);                // counted
    locked(stamps.word[0]);                 // of use
    locked(record[id].word[0]);             // ready
    locked(leaf[id]);                       // into the order
    locked(by_16[id / 16]);                 // and looked at above
    locked(mine.evictable.word[0]);         // one more
    locked(record[id].word[0]);             // unpin
    locked(mine.op.word[0]);                // ended
  }
};

struct request {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t record;
  std::uint32_t victim;  ///< of a store; none: a use
};

void measure_requests(const suite_options& how, std::vector<row>& into) {
  const std::uint32_t entries = how.small() ? 1024 : 64 * 1024;
  for (const std::uint32_t percent : {10U, 50U})
    for (const std::uint32_t threads : how.threads()) {
      const std::uint64_t keys = std::uint64_t{entries} * 100 / (100 - percent);
      auto asked = std::make_shared<numbers>(draw(keys, 1U << 20, 0, 17));
      const auto ask = [&](const char* name, auto cache) {
        for (std::uint64_t i = 0; i < keys; ++i) (void)cache->use(key_of(i), 0);  // fills it
        return walk(name, asked, [cache](std::uint32_t thread, std::uint32_t i) {
          (void)cache->use(key_of(i), thread);
        });
      };
      // The same requests to the lines: each key has its record, any of them may miss, and who was
      // used longest ago is anybody.
      auto lines = std::make_shared<catalog_lines>(entries);
      auto requests = std::make_shared<std::vector<request>>();
      auto order = std::make_shared<numbers>();
      random_bits random(19);
      for (const std::uint32_t key : *asked) {
        order->push_back(static_cast<std::uint32_t>(order->size()));
        const bool miss = random.below(100) < percent;
        requests->push_back(
            {static_cast<std::uint32_t>(key * std::uint64_t{entries} * spread / keys),
             miss ? static_cast<std::uint32_t>(random.below(entries * spread)) : request::none});
      }
      const std::string what = "use or insert, " + std::to_string(percent) + " % misses";
      const contender hyper =
          ask("HyperClockCache",
              std::make_shared<rocksdb_cache>(rocksdb_cache{rocksdb_map::hyper_clock(entries, 0)}));
      beside(how, what, threads, ask("cairn", std::make_shared<cairn_cache>(entries)),
             walk("locked ones alone", order,
                  [lines, requests](std::uint32_t thread, std::uint32_t i) {
                    const request& one = (*requests)[i];
                    if (one.victim == request::none)
                      lines->use(thread, one.record);
                    else
                      lines->store(thread, one.record, one.victim);
                  }),
             into, hyper);
      const auto s = hold_contest(
          contest_options::of(how.how, threads),
          {ask("cairn", std::make_shared<cairn_cache>(entries, std::make_unique<hand_policy>())),
           hyper});
      into.push_back(
          contest_row(suite_name, what + ", without an order of use", threads, s[0], s[1]));
    }
}

// ---- instructions -----------------------------------------------------------------------------

constexpr std::uint32_t counted_records = 4096;

using key_list = std::span<const checkpoint_key>;

struct counted_case {
  const char* name;
  const char* what;
  bool there;  ///< of keys that have a record, or of others
  void (*run)(catalog_records& on, key_list keys);
};

}  // namespace

// Named for callgrind.
[[gnu::noinline]] void counted_hits(catalog_records& on, key_list keys);
[[gnu::noinline]] void counted_misses(catalog_records& on, key_list keys);
[[gnu::noinline]] void counted_uses(catalog_records& on, key_list keys);
[[gnu::noinline]] void counted_stores(catalog_records& on, key_list keys);
void counted_hits(catalog_records& on, key_list keys) {
  for (const checkpoint_key& key : keys) {
    catalog_records::held held = 0;
    std::uint32_t id = 0;
    if (!on.pin(key, held, id)) std::abort();
    on.unpin(held);
  }
}
void counted_misses(catalog_records& on, key_list keys) {
  for (const checkpoint_key& key : keys)
    if (!on.miss(key)) std::abort();
}
void counted_uses(catalog_records& on, key_list keys) {
  for (const checkpoint_key& key : keys)
    if (!on.restore(key)) std::abort();
}
void counted_stores(catalog_records& on, key_list keys) {
  for (const checkpoint_key& key : keys)
    if (!on.store(key)) std::abort();
}

namespace {

constexpr counted_case counted_cases[] = {
    {"counted_hits", "hit", true, counted_hits},
    {"counted_misses", "miss", false, counted_misses},
    {"counted_uses", "use: a restore and its completion", true, counted_uses},
    {"counted_stores", "evicting store and its completion", false, counted_stores},
};

}  // namespace

bool run_counted(const std::string& name, std::uint64_t count) {
  for (const counted_case& each : counted_cases) {
    if (name != each.name) continue;
    catalog_records on(counted_records);
    for (std::uint32_t i = 0; i < counted_records; ++i) on.insert(key_of(i), i);
    // In the order of their last use each would be the first of the order, which is dearer.
    random_bits random(3);
    std::vector<checkpoint_key> keys;
    for (std::uint64_t i = 0; i < count; ++i)
      keys.push_back(key_of(each.there ? random.below(counted_records) : counted_records + i));
    each.run(on, keys);
    return true;
  }
  return false;
}

void measure_floors(const suite_options& how, std::vector<row>& into) {
  measure_hits(how, how.small() ? 4096 : 1U << 21, into);
  measure_pool_floor(how, into);
  measure_requests(how, into);
  const std::uint64_t count = how.small() ? 200 : 4000;
  for (const counted_case& each : counted_cases) {
    const auto got = counted_instructions(
        how.program, "--counted " + std::string(each.name) + " --count " + std::to_string(count),
        std::string("cairn::bench::") + each.name + "*");
    if (got)
      into.push_back(
          less_is_better(suite_name, each.what, *got / static_cast<double>(count), "", 0, "instr"));
    else
      into.push_back(without_figures(suite_name, each.what, "", "callgrind did not run", false));
  }
}

}  // namespace cairn::bench
