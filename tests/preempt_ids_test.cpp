// A store held up at each of its atomic accesses while somebody asks for its op, whose id he has
// guessed. See preempt_test.cpp.
#include <gtest/gtest.h>

#include <cairn/catalog.hpp>
#include <memory>

#include "tests/held_up.hpp"

namespace cairn {
namespace {

TEST(PreemptedByGuesses, AnOpIsPendingFromItsBeginningOnly) {
  const op_id guess{0, 1};  // the slot's own entry, for the first time
  bool came = true;
  for (std::uint64_t at = 1; came; ++at) {
    SCOPED_TRACE(at);
    const auto pool = std::move(unit_pool::open({4, 4, 1})).value();
    catalog_options opts;
    opts.shape = {64, 64, 64, "one"};
    opts.slots = 1;
    opts.max_ops = 4;
    const auto records = std::move(catalog::open(std::move(opts), *pool)).value();
    status told = status::stale;
    completion done;
    came = tests::run_held_up(
        at,
        [&] {
          const copy_op op = *records->begin_store({1, 1}, 0);
          done.op = op.header.op;
          done.epoch = op.header.epoch;
        },
        [&] {
          told = records->op_status(guess);
          records->observe(guess);
        });
    ASSERT_EQ(done.op, guess);
    ASSERT_TRUE(records->finish(done).ended);
    // Who was told that it is pending has a mark on it, which keeps how it ended.
    EXPECT_EQ(records->op_status(guess), told == status::pending ? status::ok : status::stale);
    records->unobserve(guess);
    EXPECT_EQ(records->counts().ops, 0U);
  }
}

}  // namespace
}  // namespace cairn
