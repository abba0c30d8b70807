// Ranks that report, give up and prove one op at once, and a cancel beside them: each call held up
// at each of its atomic accesses while another runs from beginning to end. See preempt_test.cpp.
#include <gtest/gtest.h>

#include <cairn/catalog.hpp>
#include <functional>
#include <memory>

#include "tests/held_up.hpp"

namespace cairn {
namespace {

constexpr std::uint32_t units_in_pool = 6;
constexpr std::uint32_t per_image = 3;

/// One store on two ranks.
struct flight {
  flight() {
    pool = std::move(unit_pool::open({units_in_pool, units_in_pool, 1})).value();
    catalog_options opts;
    opts.shape = {10, 40, 25, "tiny"};
    opts.ranks = 2;
    opts.slots = 1;
    opts.max_ops = 4;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
    const auto op = records->begin_store({1, 1}, 0);
    header = op->header;
  }
  finish_outcome tell(rank_id rank, status code, bool unproven = false, bool proven = false) {
    completion c;
    c.op = header.op;
    c.rank = rank;
    c.epoch = header.epoch;
    c.code = code;
    c.unproven = unproven;
    c.proven = proven;
    return records->finish(c);
  }
  finish_outcome give_up(rank_id rank) { return tell(rank, status::timed_out, true); }
  bool prove(rank_id rank) { return tell(rank, status::ok, false, true).counted; }
  [[nodiscard]] std::uint32_t kept() const { return records->counts().quarantine_units; }
  /// Nobody may still touch its units.
  void expect_over() const {
    EXPECT_EQ(kept(), 0U);
    EXPECT_EQ(records->counts().ops, 0U);
    EXPECT_EQ(pool->free_units(), units_in_pool);
  }

  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
  copy_op_header header;
};

/// `first` held up at each access while `second` runs; then `judge`. Also one after the other.
void hold_up(const std::function<void(flight&)>& before, const std::function<void(flight&)>& first,
             const std::function<void(flight&)>& second,
             const std::function<void(flight&)>& judge) {
  bool came = true;
  for (std::uint64_t at = 1; came; ++at) {
    flight f;
    before(f);
    came = tests::run_held_up(
        at, [&] { first(f); }, [&] { second(f); });
    if (!came) second(f);
    judge(f);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "held up at access " << at;
  }
}

TEST(PreemptOwed, RanksThatGiveUpAtOnceOweAProofEach) {
  for (const rank_id proves_first : {0U, 1U})
    hold_up([](flight& f) { ASSERT_TRUE(f.records->take(f.header.op)); },
            [](flight& f) { EXPECT_TRUE(f.give_up(0).counted); },
            [](flight& f) { EXPECT_TRUE(f.give_up(1).counted); },
            [&](flight& f) {
              EXPECT_EQ(f.kept(), per_image);
              EXPECT_TRUE(f.prove(proves_first));
              EXPECT_EQ(f.kept(), per_image) << "the other rank's copy may still run";
              EXPECT_EQ(f.pool->free_units(), units_in_pool - per_image);
              EXPECT_TRUE(f.prove(1 - proves_first));
              f.expect_over();
            });
}

TEST(PreemptOwed, ProofsAtOnceGiveTheUnitsBackOnce) {
  hold_up(
      [](flight& f) {
        f.give_up(0);
        f.give_up(1);
      },
      [](flight& f) { EXPECT_TRUE(f.prove(0)); }, [](flight& f) { EXPECT_TRUE(f.prove(1)); },
      [](flight& f) {
        f.expect_over();
        EXPECT_FALSE(f.prove(0) || f.prove(1));
        f.expect_over();
      });
}

TEST(PreemptOwed, AProofBesideAnotherRanksGivingUpFreesNothing) {
  hold_up([](flight& f) { f.give_up(1); }, [](flight& f) { EXPECT_TRUE(f.give_up(0).ended); },
          [](flight& f) { EXPECT_TRUE(f.prove(1)); },
          [](flight& f) {
            EXPECT_EQ(f.kept(), per_image);
            EXPECT_TRUE(f.prove(0));
            f.expect_over();
          });
}

// A cancel gives the units back: it must lose to any report, for a copy may still touch them.
TEST(PreemptOwed, ACancelAndAReportNeverBothCount) {
  bool cancelled = false;
  bool counted = false;
  const auto cancel = [&](flight& f) { cancelled = f.records->cancel(f.header.op); };
  const auto report = [&](flight& f) { counted = f.give_up(0).counted; };
  const auto nothing = [](flight&) {};
  const auto judge = [&](flight& f) {
    EXPECT_NE(cancelled, counted);
    if (!counted) return f.expect_over();
    EXPECT_TRUE(f.tell(1, status::ok).ended);
    EXPECT_EQ(f.kept(), per_image);
    EXPECT_FALSE(f.records->contains({1, 1}));
    EXPECT_TRUE(f.prove(0));
    f.expect_over();
  };
  hold_up(nothing, cancel, report, judge);
  hold_up(nothing, report, cancel, judge);
}

}  // namespace
}  // namespace cairn
