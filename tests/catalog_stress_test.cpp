// The catalog and its pool under several threads: for each run the ledger closes, one key has one
// store at a time, and no holder of units ever sees another's bytes in them.
#include <gtest/gtest.h>

#include <atomic>
#include <cairn/catalog.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/threads.hpp"

namespace cairn {
namespace {

using namespace std::chrono_literals;

#if defined(CAIRN_SYNC_HOOK)
constexpr int steps_divisor = 10;  // with yields, and mostly under a sanitizer
#else
constexpr int steps_divisor = 1;
#endif
int test_steps(int steps) {
  return steps / steps_divisor;
}

/// CAIRN_STRESS_SEED=N repeats a run's choices (not its schedule).
std::uint64_t test_seed() {
  const char* given = std::getenv("CAIRN_STRESS_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

constexpr std::uint32_t unit_count = 30;
constexpr std::uint32_t per_image = 3;
constexpr std::uint32_t key_count = 16;

checkpoint_key key(std::uint64_t n) {
  return {n + 1, ~n};
}

/// What each unit holds: plain words, so that a race on them is a race to the tools as well.
struct memory {
  std::uint64_t content[unit_count] = {};
};

struct world {
  world() {
    pool = std::move(unit_pool::open({unit_count, unit_count, 1})).value();
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.slots = 8;
    opts.max_ops = 256;
    opts.max_pins = 16;
    opts.max_threads = 8;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
  }
  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
  memory bytes;
  std::atomic<std::uint64_t> stores{0};
  std::atomic<std::uint64_t> restores{0};
  std::atomic<std::uint64_t> wrong{0};
};

/// One scheduling thread that also plays the device for its own ops.
class player {
 public:
  player(world& in, std::uint64_t seed) : w_(in), random_(seed) {}

  void play(int steps) {
    for (int i = 0; i < steps; ++i) step();
    while (!flying_.empty()) finish_one();
    for (unit_id id : live_) (void)w_.pool->free(id);
    for (const pin& p : pins_) w_.records->release_pin(p);
  }

 private:
  struct flight {
    copy_op op;
    std::uint64_t key;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void step() {
    const std::uint64_t n = draw(key_count);
    switch (draw(13)) {
      case 0:
      case 1:
      case 2:
        store(n);
        break;
      case 3:
      case 4:
      case 5:
        restore(n);
        break;
      case 6:
        if (draw(4) == 0) w_.records->forget(key(n));
        break;
      case 7:
        allocate(n);
        break;
      case 8:
        if (!live_.empty()) {
          (void)w_.pool->free(live_.back(), {0, draw(100)});
          live_.pop_back();
        }
        break;
      case 9:
        take_pin(n);
        break;
      case 10:
        admit(n);
        break;
      case 11:
        if (draw(64) == 0) w_.records->clear();
        (void)w_.records->has_available_units(static_cast<std::uint32_t>(draw(unit_count)));
        break;
      default:
        break;
    }
    if (flying_.size() > 3 || draw(2) == 0) finish_one();
  }

  void store(std::uint64_t n) {
    auto op = w_.records->begin_store(key(n), 0);
    if (!op) return;
    // Between begin and finish the key is this thread's, unless it was forgotten meanwhile.
    for (unit_id id : op->units) w_.bytes.content[id] = n + 1;
    flying_.push_back({*op, n});
    w_.stores.fetch_add(1, std::memory_order_relaxed);
  }

  void restore(std::uint64_t n) {
    auto op = w_.records->begin_restore(key(n), static_cast<slot_id>(draw(8)));
    if (!op) return;
    verify(*op, n);
    flying_.push_back({*op, n});
    w_.restores.fetch_add(1, std::memory_order_relaxed);
  }

  void verify(const copy_op& op, std::uint64_t n) {
    for (unit_id id : op.units)
      if (w_.bytes.content[id] != n + 1) w_.wrong.fetch_add(1, std::memory_order_relaxed);
  }

  void allocate(std::uint64_t n) {
    if (live_.size() > 1) return;
    unit_id id = no_unit;
    if (!w_.records->allocate({&id, 1})) return;
    w_.bytes.content[id] = 1000;  // this unit is ours alone until it is published
    if (draw(2) == 0) (void)w_.pool->publish(id, key(n));
    live_.push_back(id);
  }

  void take_pin(std::uint64_t n) {
    if (pins_.size() > 2) {
      w_.records->release_pin(pins_.back());
      pins_.pop_back();
      return;
    }
    const checkpoint_key keys[] = {key(n)};
    auto held = w_.records->pin_longest(keys, 1, clock::now() + 1h);
    if (held) pins_.push_back(*held);
  }

  void admit(std::uint64_t n) {
    if (!live_.empty()) return;
    const checkpoint_key keys[] = {key(n), key((n + 1) % key_count)};
    unit_id units[3];
    auto made = w_.records->admit(keys, 1, 1, units);
    if (!made) return;
    if (made->restore) {
      const std::uint64_t boundary = (n + made->resumed - 1) % key_count;
      verify(*made->restore, boundary);
      flying_.push_back({*made->restore, boundary});
    }
    for (std::uint32_t i = made->resumed; i < 3; ++i) w_.bytes.content[units[i]] = 2000;
    live_.insert(live_.end(), units, units + 3);
  }

  void finish_one() {
    if (flying_.empty()) return;
    const std::size_t at = draw(flying_.size());
    const flight f = flying_[at];
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(at));
    verify(f.op, f.key);  // still ours until it is reported
    completion done;
    done.op = f.op.header.op;
    done.epoch = f.op.header.epoch;
    done.code = draw(16) == 0 ? status::failed : status::ok;
    if (draw(8) == 0 && w_.records->cancel(done.op)) return;
    w_.records->take(done.op);
    const finish_outcome outcome = w_.records->finish(done);
    EXPECT_TRUE(outcome.ended);
    EXPECT_FALSE(w_.records->finish(done).counted);
  }

  world& w_;
  std::mt19937_64 random_;
  std::vector<flight> flying_;
  std::vector<unit_id> live_;
  std::vector<pin> pins_;
};

TEST(CatalogStress, TheLedgerClosesAndNoHolderSeesAnothersBytes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed);
  for (int round = 0; round < 4; ++round) {
    world w;
    const test::yields yielding;
    test::together(4, [&w, seed, round](std::uint32_t t) {
      player p(w, seed * 1000 + static_cast<std::uint64_t>(round) * 10 + t);
      p.play(test_steps(60000));  // a sanitizer's share of them has the restores below, too
    });
    EXPECT_EQ(w.wrong.load(), 0U);
    EXPECT_GT(w.stores.load(), 100U);
    EXPECT_GT(w.restores.load(), 100U);
    const catalog_counts c = w.records->counts();
    const pool_counts p = w.pool->counts();
    EXPECT_EQ(c.copying + c.evicting + c.ops + c.pins, 0U);
    EXPECT_EQ(p.live, 0U);
    EXPECT_EQ(p.reserved, c.checkpoint_units);
    EXPECT_EQ(p.vacant + p.cached + p.reserved, unit_count);
    EXPECT_EQ(w.pool->free_units(), p.vacant + p.cached);
    EXPECT_EQ(w.records->evictable(), c.ready);
    // Everything that is counted can really be had.
    std::vector<unit_id> all(unit_count);
    EXPECT_TRUE(w.records->allocate(all).ok());
  }
}

TEST(CatalogStress, OfManyStoresOfOneKeyExactlyOneBegins) {
  world w;
  const test::yields yielding;
  for (int round = 0; round < test_steps(2000); ++round) {
    std::atomic<int> begun{0};
    copy_op won;
    test::together(3, [&](std::uint32_t) {
      auto op = w.records->begin_store(key(3), 0);
      if (op) {
        begun.fetch_add(1);
        won = *op;
      } else {
        EXPECT_EQ(op.code(), status::duplicate);
      }
    });
    ASSERT_EQ(begun.load(), 1);
    completion done;
    done.op = won.header.op;
    done.epoch = won.header.epoch;
    ASSERT_TRUE(w.records->finish(done).ended);
    ASSERT_TRUE(w.records->forget(key(3)));
    ASSERT_EQ(w.pool->free_units(), unit_count);
  }
}

TEST(CatalogStress, WaitersAreServedInTurnWhileOthersStore) {
  // Live units fill the pool but for one image; two threads wait for twelve units each while a
  // third stores and frees. Whoever waits gets all it asked for, nobody holds part of it.
  world w;
  std::vector<unit_id> live(unit_count - per_image);
  ASSERT_TRUE(w.records->allocate(live).ok());
  std::atomic<int> served{0};
  const test::yields yielding;
  test::together(3, [&](std::uint32_t t) {
    if (t < 2) {
      for (int round = 0; round < test_steps(100); ++round) {
        std::vector<unit_id> mine(12);
        const owner_id owner = 1000 + t;
        auto got = w.records->wait_reserve(mine, owner, clock::now() + 30s);
        ASSERT_TRUE(got.ok()) << got.why().message();
        for (unit_id id : mine) w.bytes.content[id] = 5000 + t;  // nobody else's meanwhile
        for (unit_id id : mine) EXPECT_EQ(w.bytes.content[id], 5000 + t);
        ASSERT_TRUE(w.pool->release(mine, owner).ok());
      }
      served.fetch_add(1);
      return;
    }
    std::uint64_t n = 0;
    while (served.load() < 2) {
      if (!live.empty()) {
        EXPECT_TRUE(w.pool->free(live.back()).ok());
        live.pop_back();
      }
      auto op = w.records->begin_store(key(100 + n++ % 40), 0);
      if (!op) continue;
      for (unit_id id : op->units) w.bytes.content[id] = 1;
      completion done;
      done.op = op->header.op;
      done.epoch = op->header.epoch;
      EXPECT_TRUE(w.records->finish(done).ended);
    }
  });
  EXPECT_EQ(served.load(), 2);
  // The waiters may be through before the third thread has come to the last live unit.
  for (const unit_id id : live) EXPECT_TRUE(w.pool->free(id).ok());
  EXPECT_TRUE(w.records->ensure_free_units(unit_count).ok()) << "somebody holds units still";
}

TEST(CatalogStress, OneVictimAlwaysSufficesAStore) {
  // The pool is full of evictable images. However many threads store at once, none that evicts is
  // refused, and no store evicts more than one image.
  world w;
  for (std::uint64_t n = 0; n < unit_count / per_image; ++n) {
    auto op = w.records->begin_store(key(100 + n), 0);
    ASSERT_TRUE(op.ok());
    completion done;
    done.op = op->header.op;
    done.epoch = op->header.epoch;
    w.records->finish(done);
  }
  std::atomic<std::uint64_t> stored{0};
  const test::yields yielding;
  test::together(3, [&w, &stored](std::uint32_t t) {
    const int steps = test_steps(20000);
    for (int i = 0; i < steps; ++i) {
      auto op = w.records->begin_store(
          key(1000 + std::uint64_t{t} * 1000000 + static_cast<std::uint64_t>(i)), 0);
      ASSERT_TRUE(op.ok()) << op.why().message();
      completion done;
      done.op = op->header.op;
      done.epoch = op->header.epoch;
      w.records->finish(done);
      stored.fetch_add(1);
    }
  });
  EXPECT_EQ(w.records->fates().evicted, stored.load());
  EXPECT_EQ(w.records->counts().ready, unit_count / per_image);
}

}  // namespace
}  // namespace cairn
