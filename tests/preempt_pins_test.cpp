// The count of bare pins while one is being opened: a pin that is held all the while is in it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "runtime/pin_table.hpp"
#include "tests/held_up.hpp"

namespace cairn::detail {
namespace {

struct filed {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

// The pin that is being opened has a deadline that has passed, so that whoever sees it ends it,
// before its opening has come to an end.
TEST(PreemptPins, OneThatIsHeldIsCountedWhileAnotherFallsInItsOpening) {
  const deadline past{std::chrono::nanoseconds(1)};
  const deadline never = deadline::max();
  bool came = true;
  bool fell = false;  ///< in some round
  for (std::uint64_t nth = 1; came; ++nth) {
    SCOPED_TRACE(testing::Message() << "before access " << nth);
    pin_table pins(3);  // one entry is everybody's own, two are shared
    filed own;
    filed held;
    filed brief;
    ASSERT_TRUE(pins.open({1, 1}, never, own.index, own.generation));
    ASSERT_TRUE(pins.open({2, 1}, never, held.index, held.generation));
    record_handle record;
    const auto open = [&] { EXPECT_TRUE(pins.open({3, 1}, past, brief.index, brief.generation)); };
    came = tests::run_held_up(nth, open, [&] {
      EXPECT_TRUE(pins.shut(own.index, own.generation, record));
      if (pins.expire(past, [](record_handle) {}) == 1) fell = true;
      EXPECT_GE(pins.live(), 1U);
    });
    pins.expire(past, [](record_handle) {});
    EXPECT_EQ(pins.live(), came ? 1U : 2U);
  }
  EXPECT_TRUE(fell);
}

}  // namespace
}  // namespace cairn::detail
