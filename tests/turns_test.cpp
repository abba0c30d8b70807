// Who wakes the copy thread: an op that stands behind another one on its slot does not, for the
// copy thread is awake when that one passes. What is counted are the rings of the calling thread:
// the linker puts a function of this file between the library and doorbell::ring (--wrap).
#include <gtest/gtest.h>

#include <cairn/copier.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace {
thread_local int rings = 0;
}

// The names that the linker makes: NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void __real__ZN5cairn8doorbell4ringEv(cairn::doorbell* bell);
void __wrap__ZN5cairn8doorbell4ringEv(cairn::doorbell* bell) {
  ++rings;
  __real__ZN5cairn8doorbell4ringEv(bell);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace cairn {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t units = 4;
constexpr std::uint32_t slots = 4;
constexpr std::uint64_t bytes = 64;

/// A copier whose copies wait until `step` runs them.
struct one_copier {
  std::unique_ptr<backend> host;
  std::vector<std::byte> memory = std::vector<std::byte>((units + slots) * bytes);
  std::unique_ptr<copier> on;
  std::uint32_t next_op = 0;
  std::uint64_t turn[slots] = {};

  explicit one_copier(std::chrono::nanoseconds op_timeout) {
    host_options manual;
    manual.manual = true;
    host = std::move(make_host_backend(manual)).value();
    copier_options opts;
    opts.shape = {bytes, bytes, bytes, "turns"};
    opts.memory.regions = {{memory.data(), bytes, bytes}};
    opts.memory.units = units;
    opts.memory.segments = {{memory.data() + units * bytes, bytes, bytes}};
    opts.memory.slots = slots;
    opts.max_batch = 1;
    opts.op_timeout = op_timeout;
    opts.on_completion = [](void*, const completion&) {};
    on = std::move(copier::open(opts, host->at(0))).value();
  }
  /// How often the caller has rung for it.
  int submit(copy_kind kind, slot_id slot) {
    const unit_id unit = slot;
    copy_op op;
    op.units = {&unit, 1};
    op.header.op = {next_op++, 1};
    op.header.kind = kind;
    op.header.layout_fingerprint = layout{bytes, bytes, bytes, "turns"}.fingerprint();
    op.header.image_bytes = bytes;
    op.header.slot = slot;
    op.header.unit_count = 1;
    op.header.slot_sequence = ++turn[slot];
    const int before = rings;
    EXPECT_TRUE(on->submit({&op, 1}).ok());
    return rings - before;
  }
  /// Runs copies until all ops have ended; false: some never do.
  [[nodiscard]] bool run_all() {
    const deadline until = clock::now() + 1min;
    while (on->outstanding() != 0) {
      if (clock::now() > until) return false;
      if (!host->step()) std::this_thread::yield();
    }
    return true;
  }
};

/// Restores take all the batches there are for them, and more wait on slot 0: so the copy thread
/// sleeps, and wants to hear of stores.
void fill(one_copier& with) {
  for (std::uint32_t i = 0; i < 16; ++i) (void)with.submit(copy_kind::restore, 0);
}

TEST(Turns, AnOpBehindAnotherOneWakesNobodyAndRunsInItsTurn) {
  one_copier with(0s);
  fill(with);
  // Until the copy thread has said what it wants, all ring.
  const deadline until = clock::now() + 1min;
  std::uint32_t quiet = 0;
  while (quiet < 3 && clock::now() < until && with.next_op < 900) {
    quiet = with.submit(copy_kind::store, 0) == 0 ? quiet + 1 : 0;
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(quiet, 3U) << "stores behind restores on their slot wake the copy thread";
  EXPECT_EQ(with.submit(copy_kind::store, 1), 1) << "in its turn";
  EXPECT_TRUE(with.run_all());
  EXPECT_EQ(with.submit(copy_kind::store, 1), 1) << "the one before has passed";
  EXPECT_TRUE(with.run_all());
}

// With nothing whose time it keeps, the copy thread would not know of an op whose predecessor never
// comes, and could not end it in time.
TEST(Turns, AnOpWhoseTurnNeverComesIsHeardOfAndTimesOut) {
  one_copier with(200ms);
  // Has the copy thread asleep and told.
  EXPECT_EQ(with.submit(copy_kind::store, 1), 1);
  EXPECT_TRUE(with.run_all());
  ++with.turn[0];
  (void)with.submit(copy_kind::store, 0);
  EXPECT_TRUE(with.run_all());
}

}  // namespace
}  // namespace cairn
