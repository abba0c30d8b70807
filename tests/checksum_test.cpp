// What a copier and a runtime do about images whose bytes changed while they lay in their units.
#include <gtest/gtest.h>

#include "tests/copier_fixture.hpp"
#include "tests/runtime_fixture.hpp"

namespace cairn::tests {
namespace {

/// One bit of the image in list `image`, in the k-th unit.
void flip(copier_bench& bench, std::size_t image, std::size_t k, std::size_t region = 0) {
  const strided& where = bench.rank().memory().regions[region];
  std::byte* const at =
      where.base + static_cast<std::int64_t>(bench.units(image)[k]) * where.stride;
  *at ^= std::byte{0x10};
}

std::vector<status> run(copier_bench& bench, const copy_op& op) {
  EXPECT_EQ(bench.submit(op), status::ok);
  bench.settle();
  return bench.codes(op);
}

using codes = std::vector<status>;

TEST(Checksums, ARestoreOfChangedBytesIsCorrupt) {
  copier_bench bench;
  EXPECT_EQ(run(bench, bench.store(0, 0)), codes{status::ok});
  EXPECT_EQ(run(bench, bench.restore(1, 0)), codes{status::ok});
  for (std::size_t k = 0; k < bench.shape().units_per_image; ++k) {
    flip(bench, 0, k);
    EXPECT_EQ(run(bench, bench.restore(1, 0)), codes{status::corrupt}) << "unit " << k;
    flip(bench, 0, k);
    EXPECT_EQ(run(bench, bench.restore(1, 0)), codes{status::ok}) << "unit " << k;
  }
}

TEST(Checksums, AWrongImageInTheRightUnitsIsCorrupt) {
  copier_bench bench;
  EXPECT_EQ(run(bench, bench.store(0, 0)), codes{status::ok});
  EXPECT_EQ(run(bench, bench.store(1, 1)), codes{status::ok});
  // The image of list 1, byte for byte where that of list 0 should be.
  for (const strided& region : bench.rank().memory().regions)
    for (std::size_t k = 0; k < bench.shape().units_per_image; ++k)
      std::memcpy(region.base + static_cast<std::int64_t>(bench.units(0)[k]) * region.stride,
                  region.base + static_cast<std::int64_t>(bench.units(1)[k]) * region.stride,
                  region.bytes);
  EXPECT_EQ(run(bench, bench.restore(2, 0)), codes{status::corrupt});
  EXPECT_EQ(run(bench, bench.restore(2, 1)), codes{status::ok});
}

TEST(Checksums, ALaterStoreIntoTheUnitsIsWhatCounts) {
  copier_bench bench;
  EXPECT_EQ(run(bench, bench.store(0, 0)), codes{status::ok});
  EXPECT_EQ(run(bench, bench.store(1, 0)), codes{status::ok});
  EXPECT_EQ(run(bench, bench.restore(2, 0)), codes{status::ok});
}

TEST(Checksums, OneCorruptImageFailsNoOtherOfItsBatch) {
  copier_bench bench;
  for (std::size_t image = 0; image < 4; ++image)
    EXPECT_EQ(run(bench, bench.store(static_cast<slot_id>(image), image)), codes{status::ok});
  flip(bench, 2, 0);
  std::vector<copy_op> ops;
  for (std::size_t image = 0; image < 4; ++image)
    ops.push_back(bench.restore(static_cast<slot_id>(4 + image), image));
  ASSERT_EQ(bench.submit(ops), status::ok);
  bench.settle();
  for (std::size_t image = 0; image < 4; ++image)
    EXPECT_EQ(bench.codes(ops[image]), codes{image == 2 ? status::corrupt : status::ok});
}

// A launch that says nothing of what it did not do. The earlier image of the same bytes left its
// sum in the same place.
TEST(Checksums, AnImageThatTheDeviceLeftOutIsAFailure) {
  copier_bench bench;
  const std::vector<copy_op> first = {bench.store(0, 0), bench.store(1, 1)};
  ASSERT_EQ(bench.submit(first), status::ok);
  bench.settle();
  EXPECT_EQ(bench.codes(first[1]), codes{status::ok});
  bench.faults().shorten = 1;
  for (int round = 0; round < 12; ++round) {  // in every batch that a stream has
    const std::vector<copy_op> stores = {bench.store(0, 0), bench.store(1, 1)};
    ASSERT_EQ(bench.submit(stores), status::ok);
    bench.settle();
    EXPECT_EQ(bench.codes(stores[0]), codes{status::ok});
    EXPECT_EQ(bench.codes(stores[1]), codes{status::failed});
    const std::vector<copy_op> restores = {bench.restore(2, 0), bench.restore(3, 1)};
    ASSERT_EQ(bench.submit(restores), status::ok);
    bench.settle();
    EXPECT_EQ(bench.codes(restores[0]), codes{status::ok});
    EXPECT_EQ(bench.codes(restores[1]), codes{status::failed});
  }
}

TEST(Checksums, BytesBehindTheImageInItsLastUnitDoNotCount) {
  copier_bench bench({.geometry = "replay"});
  EXPECT_EQ(run(bench, bench.store(0, 0)), codes{status::ok});
  // The last unit of an image of 60,000 bytes in units of 16,384 is filled up to its third region.
  flip(bench, 0, 3, 3);
  EXPECT_EQ(run(bench, bench.restore(1, 0)), codes{status::ok});
}

TEST(Checksums, AnImageThatWasNotStoredHereIsNotVerified) {
  copier_bench bench;
  EXPECT_EQ(run(bench, bench.restore(0, 0)), codes{status::ok});
}

TEST(Checksums, CanBeSwitchedOff) {
  copier_bench bench({.checksums = false});
  EXPECT_EQ(run(bench, bench.store(0, 0)), codes{status::ok});
  flip(bench, 0, 0);
  EXPECT_EQ(run(bench, bench.restore(1, 0)), codes{status::ok});
}

TEST(Checksums, ACorruptRestoreForgetsTheRecord) {
  runtime_rig rig({.ranks = 2});
  rig.keep(1);
  rig.keep(2);
  const unit_id unit = 0;  // lowest id first: the first image's
  rig.memory[1]->unit_area[unit * tiny_memory::unit_bytes] ^= std::byte{1};  // on one rank only
  auto restored = rig.rt->restore(key_of(1), 3, 0);
  ASSERT_TRUE(restored.ok());
  rig.run();
  EXPECT_EQ(restored->code(), status::corrupt);
  EXPECT_FALSE(rig.rt->records().contains(key_of(1)));
  EXPECT_EQ(rig.rt->restore(key_of(1), 3, 0).code(), status::not_found);
  rig.expect_ledger(0);

  auto other = rig.rt->restore(key_of(2), 4, 0);
  ASSERT_TRUE(other.ok());
  rig.run();
  EXPECT_EQ(other->code(), status::ok);
  EXPECT_TRUE(rig.holds(4, 2));
}

}  // namespace
}  // namespace cairn::tests
