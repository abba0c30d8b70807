// Sequence numbers of a slot that are missing, skipped or repeated. That ops run in the order of
// their numbers is in fences_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "tests/copier_fixture.hpp"

namespace cairn::tests {
namespace {

using codes = std::vector<status>;

// A number missing in between holds the slot, and no other.
TEST(SlotOrder, MissingNumberHoldsItsSlotOnly) {
  copier_bench b;
  const copy_op held = b.store(5, 0, 2);
  const copy_op other = b.store(6, 1, 1);
  ASSERT_EQ(b.submit({held, other}), status::ok);
  b.settle();
  EXPECT_TRUE(b.codes(held).empty());
  EXPECT_EQ(b.codes(other), codes{status::ok});
  b.get().skip(5, 1);
  b.settle();
  EXPECT_EQ(b.codes(held), codes{status::ok});
}

TEST(SlotOrder, NumbersToSkipMayComeEarly) {
  copier_bench b;
  for (std::uint64_t n = 40; n >= 3; --n) b.get().skip(5, n);
  const copy_op first = b.store(5, 0, 1);
  const copy_op last = b.store(5, 1, 41);
  ASSERT_EQ(b.submit({last, first}), status::ok);
  b.settle();
  EXPECT_EQ(b.codes(first), codes{status::ok});
  EXPECT_TRUE(b.codes(last).empty());
  b.get().skip(5, 2);
  b.settle();
  EXPECT_EQ(b.codes(last), codes{status::ok});
}

TEST(SlotOrder, NumberThatCameTwiceIsInvalid) {
  copier_bench b;
  const copy_op first = b.store(5, 0, 1);
  const copy_op passed = b.store(5, 1, 1);
  const copy_op waits = b.store(5, 2, 3);
  const copy_op twice = b.store(5, 3, 3);
  ASSERT_EQ(b.submit({first, waits, twice}), status::ok);
  b.settle();
  ASSERT_EQ(b.submit(passed), status::ok);
  b.get().skip(5, 2);
  b.settle();
  EXPECT_EQ(b.codes(first), codes{status::ok});
  EXPECT_EQ(b.codes(passed), codes{status::invalid});
  EXPECT_EQ(b.codes(waits), codes{status::ok});
  EXPECT_EQ(b.codes(twice), codes{status::invalid});
}

}  // namespace
}  // namespace cairn::tests
