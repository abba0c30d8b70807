// Every pair of catalog and pool calls, one of them held up at each of its atomic accesses in turn
// while the other runs from beginning to end. So each window that one preemption can open is
// opened, without luck; and a call that had to wait for the one that is held up would hang here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cairn/catalog.hpp>
#include <cctype>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/held_up.hpp"

namespace cairn {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t unit_count = 7;  // two images of three units, and one unit more
constexpr std::uint32_t ranks = 2;

checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL + 1, n};
}

/// A catalog over a small pool, memory that shows whose bytes lie where, and what is in flight.
struct stage {
  struct flight {
    copy_op op;
    std::uint64_t key = 0;
    std::uint32_t reported = 0;  ///< ranks below this have reported
  };

  stage() {
    pool = std::move(unit_pool::open({unit_count, unit_count + 1, 1})).value();
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.ranks = ranks;
    opts.slots = 4;
    opts.max_ops = 16;
    opts.max_pins = 4;
    opts.max_threads = 4;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
  }

  void begin_store(std::uint64_t n) {
    auto op = records->begin_store(key(n), 0);
    if (!op) return;
    for (unit_id id : op->units) write(id, n);
    stored_in[n] = op->header.epoch;
    flying.push_back({*op, n});
  }
  void begin_restore(std::uint64_t n) {
    auto op = records->begin_restore(key(n), 1);
    if (!op) return;
    verify(*op, n);
    flying.push_back({*op, n});
  }
  /// Reports the oldest op in flight on every rank that has not reported.
  void finish_oldest(status code = status::ok) {
    if (flying.empty()) return;
    flight f = flying.front();
    flying.erase(flying.begin());
    finish(f, code);
  }
  void finish(flight f, status code) {
    if (!records->take(f.op.header.op)) return;  // cancelled: the units are not its own any more
    for (rank_id rank = f.reported; rank < ranks; ++rank) {
      verify(f.op, f.key);  // the units are this op's until its last rank has reported
      tell(f, rank, code);
    }
  }
  void tell(const flight& f, rank_id rank, status code) {
    if (!records->finish(report(f, rank, code)).counted) return;
    const auto what = std::make_tuple(f.op.header.begin_stamp, rank);
    EXPECT_TRUE(counted.insert(what).second) << "a rank counted twice";
  }
  static completion report(const flight& f, rank_id rank, status code) {
    completion c;
    c.op = f.op.header.op;
    c.rank = rank;
    c.epoch = f.op.header.epoch;
    c.code = code;
    return c;
  }
  /// Reports the oldest op in flight as given up by rank 0 and, if `all`, by the others.
  void give_up(bool all, std::uint32_t times = 1) {
    if (flying.empty()) return;
    flight f = flying.front();
    flying.erase(flying.begin());
    if (!records->take(f.op.header.op)) return;
    completion what = report(f, 0, status::timed_out);
    what.unproven = true;
    if (f.reported == 0) {
      owing.push_back(f);  // first: a proof may come as soon as the rank has counted
      bool counts = false;
      for (std::uint32_t i = 0; i < times; ++i) counts |= records->finish(what).counted;
      if (!counts)  // the rank had reported, or is lost
        std::erase_if(owing, [&](const flight& o) { return o.op.header.op == what.op; });
    }
    for (rank_id rank = std::max(f.reported, 1U); rank < ranks; ++rank)
      tell(f, rank, all ? status::timed_out : status::ok);
  }
  /// The oldest copy that was given up is over.
  void prove() {
    if (owing.empty()) return;
    const flight f = owing.front();
    owing.erase(owing.begin());
    verify(f.op, f.key);  // the units are this op's until the proof
    completion what = report(f, 0, status::ok);
    what.proven = true;
    const bool counts = records->finish(what).counted;
    (void)records->finish(what);
    // Held up before the rank had counted: then it does afterwards.
    if (!counts) owing.push_back(f);
  }
  void store(std::uint64_t n) {
    const std::size_t before = flying.size();
    begin_store(n);
    if (flying.size() == before) return;
    const flight f = flying.back();
    flying.pop_back();
    finish(f, status::ok);
  }
  void cache(std::uint64_t n) {
    unit_id id = no_unit;
    if (!records->allocate({&id, 1})) return;
    write(id, 1000);
    EXPECT_TRUE(pool->publish(id, key(n)).ok());
    EXPECT_TRUE(pool->free(id).ok());
  }
  void take_live() {
    unit_id id = no_unit;
    if (!records->allocate({&id, 1})) return;
    write(id, 1000);
    live.push_back(id);
  }
  void claim(std::uint64_t n) {
    const unit_id id = pool->claim(key(n));
    if (id != no_unit) live.push_back(id);
  }
  void admit(std::uint64_t n) {
    const checkpoint_key keys[] = {key(n)};
    unit_id units[2] = {no_unit, no_unit};
    auto made = records->admit(keys, 1, 2, units);
    if (!made) return;
    for (unit_id id : units) live.push_back(id);
    if (!made->restore) return;
    verify(*made->restore, n);
    flying.push_back({*made->restore, n});
  }

  void write(unit_id id, std::uint64_t n) { content[id] = n; }
  void verify(const copy_op& op, std::uint64_t n) {
    for (unit_id id : op.units) EXPECT_EQ(content[id], n) << "unit " << id << " is another's";
  }

  /// Ends everything and checks that every unit is in exactly one place.
  void wind_up() {
    while (!flying.empty()) finish_oldest();
    if (lost_0) {
      owing.clear();
      records->lose_rank(0);  // for what was counted while it was lost
    }
    for (std::size_t left = owing.size(); left > 0; --left) prove();
    EXPECT_TRUE(owing.empty()) << "a proof that is owed did not count";
    EXPECT_EQ(records->counts().quarantine_units, 0U);
    for (unit_id id : live) EXPECT_TRUE(pool->free(id).ok());
    live.clear();
    for (const pin& each : pins) records->release_pin(each);
    const catalog_counts c = records->counts();
    const pool_counts p = pool->counts();
    EXPECT_EQ(c.copying + c.evicting + c.ops + c.pins, 0U);
    EXPECT_EQ(p.live, 0U);
    EXPECT_EQ(p.reserved, c.checkpoint_units);
    EXPECT_EQ(p.vacant + p.cached + p.reserved, p.total);
    EXPECT_EQ(pool->free_units(), p.vacant + p.cached);
    EXPECT_EQ(records->evictable(), c.ready);
    std::uint32_t visible = 0;
    for (std::uint64_t n = 0; n < 8; ++n) {
      if (!records->contains(key(n))) continue;
      ++visible;
      EXPECT_EQ(stored_in[n], records->epoch()) << "a shard of a READY record is lost";
    }
    EXPECT_EQ(visible, c.ready) << "a key has two records, or a record no key";
    std::vector<unit_id> all(p.total);
    EXPECT_TRUE(records->allocate(all).ok()) << "what is counted as evictable cannot be had";
  }

  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
  std::uint64_t content[unit_count + 1] = {};
  std::uint32_t stored_in[8] = {};  ///< epoch, by key
  std::vector<flight> flying;
  bool lost_0 = false;
  std::vector<flight> owing;  ///< rank 0 gave its copy up
  std::set<std::tuple<std::uint64_t, rank_id>> counted;
  std::vector<unit_id> live;
  std::vector<pin> pins;
};

struct call {
  const char* name;
  std::function<void(stage&)> run;
};

/// Key 1 and 2 are READY or 2 is COPYING, as a setting says; 3 is nowhere.
const std::vector<call>& calls() {
  static const std::vector<call> all = {
      {"store 3", [](stage& s) { s.store(3); }},
      {"begin store 2", [](stage& s) { s.begin_store(2); }},
      {"store 1 anew",
       [](stage& s) {
         s.records->forget(key(1));
         s.store(1);
       }},
      {"begin restore 1", [](stage& s) { s.begin_restore(1); }},
      {"restore 1",
       [](stage& s) {
         s.begin_restore(1);
         s.finish_oldest();
       }},
      {"forget 1", [](stage& s) { s.records->forget(key(1)); }},
      {"forget 2", [](stage& s) { s.records->forget(key(2)); }},
      {"forget 1, store 3 and 4",
       [](stage& s) {
         s.records->forget(key(1));
         s.store(3);
         s.store(4);
       }},
      {"orphan 1", [](stage& s) { s.records->orphan(key(1)); }},
      {"clear", [](stage& s) { s.records->clear(); }},
      {"finish", [](stage& s) { s.finish_oldest(); }},
      {"fail", [](stage& s) { s.finish_oldest(status::failed); }},
      {"rank 0 twice, one failing",
       [](stage& s) {
         if (s.flying.empty()) return;
         const stage::flight f = s.flying.front();  // what runs inside may move or take it
         s.tell(f, 0, status::ok);
         s.tell(f, 0, status::failed);
         for (stage::flight& each : s.flying)
           if (each.op.header.op == f.op.header.op) each.reported = 1;
       }},
      {"give up", [](stage& s) { s.give_up(true); }},
      {"give up twice on rank 0, prove",
       [](stage& s) {
         s.give_up(false, 2);
         s.prove();
       }},
      {"prove", [](stage& s) { s.prove(); }},
      {"lose rank 0",
       [](stage& s) {
         s.lost_0 = true;
         s.records->lose_rank(0);
       }},
      {"cancel slot",
       [](stage& s) {
         s.records->cancel_restores(1);
         s.records->cancel_stores(0);
       }},
      {"lose rank 1", [](stage& s) { s.records->lose_rank(1); }},
      {"take live", [](stage& s) { s.take_live(); }},
      {"free live",
       [](stage& s) {
         if (s.live.empty()) return;
         const unit_id id = s.live.back();
         s.live.pop_back();
         EXPECT_TRUE(s.pool->free(id, {0, 1}).ok());
       }},
      {"cache 1", [](stage& s) { s.cache(1); }},
      {"cache 3 twice",
       [](stage& s) {
         s.cache(3);
         s.cache(3);
       }},
      {"claim 1", [](stage& s) { s.claim(1); }},
      {"admit 1", [](stage& s) { s.admit(1); }},
      {"pin 1",
       [](stage& s) {
         const checkpoint_key keys[] = {key(1)};
         auto held = s.records->pin_longest(keys, 1, clock::now() + 1h);
         if (held) s.pins.push_back(*held);
       }},
      {"unpin",
       [](stage& s) {
         if (s.pins.empty()) return;
         const pin which = s.pins.back();
         s.pins.pop_back();
         EXPECT_TRUE(s.records->release_pin(which));
       }},
      {"clear index", [](stage& s) { s.pool->clear_index(); }},
      {"extend", [](stage& s) { s.pool->extend(1); }},
      {"ensure 5", [](stage& s) { (void)s.records->ensure_free_units(5); }},
      {"look",
       [](stage& s) {
         (void)s.records->contains(key(1));
         (void)s.records->contains_or_copying(key(2));
         const checkpoint_key protect = key(1);
         (void)s.records->has_available_units(5, &protect);
       }},
  };
  return all;
}

const std::vector<call>& settings() {
  static const std::vector<call> all = {
      {"1 and 2 READY",
       [](stage& s) {
         s.store(1);
         s.store(2);
       }},
      {"1 READY, 2 COPYING",
       [](stage& s) {
         s.store(1);
         s.begin_store(2);
       }},
      {"1 READY and being restored",
       [](stage& s) {
         s.store(1);
         s.begin_restore(1);
       }},
      {"1 READY, 2 given up",
       [](stage& s) {
         s.store(1);
         s.begin_store(2);
         s.give_up(true);
       }},
      {"1 READY, its restore given up",
       [](stage& s) {
         s.store(1);
         s.begin_restore(1);
         s.give_up(true);
       }},
      {"1 READY and pinned",
       [](stage& s) {
         s.store(1);
         const checkpoint_key keys[] = {key(1)};
         s.pins.push_back(*s.records->pin_longest(keys, 1, clock::now() + 1h));
       }},
      {"1 READY, its KV cached",
       [](stage& s) {
         s.store(1);
         s.cache(1);
         s.store(2);
       }},
      {"1 READY, live units",
       [](stage& s) {
         s.store(1);
         s.take_live();
         s.take_live();
       }},
  };
  return all;
}

/// Holds `first` up at each of its accesses; returns how many there were.
std::uint64_t play(const call& setting, const call& first, const call& second) {
  for (std::uint64_t at = 1;; ++at) {
    stage s;
    setting.run(s);
    const bool came = tests::run_held_up(
        at, [&] { first.run(s); }, [&] { second.run(s); });
    s.wind_up();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "setting '" << setting.name << "': '" << first.name << "' held up at access "
                    << at << " while '" << second.name << "' ran";
      return at;
    }
    if (!came) return at;
  }
}

class Preempted : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Preempted, ByEveryCallAtEveryAccess) {
  const call& first = calls()[GetParam()];
  std::uint64_t schedules = 0;
  for (const call& setting : settings())
    for (const call& second : calls()) {
      schedules += play(setting, first, second);
      if (HasFailure()) return;
    }
  RecordProperty("schedules", static_cast<int>(schedules));
  EXPECT_GT(schedules, settings().size() * calls().size());
}

std::string name_of(const ::testing::TestParamInfo<std::size_t>& of) {
  std::string name = calls()[of.param].name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Calls, Preempted, ::testing::Range(std::size_t{0}, calls().size()),
                         name_of);

}  // namespace
}  // namespace cairn
