// Tile copies of every kind: exact bytes and the right share of the checksum at every alignment and
// length, and what the checksum notices.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <span>
#include <vector>

#include "kernels/checksum.hpp"
#include "kernels/scatter_gather.hpp"
#include "kernels/scatter_gather_host.hpp"

namespace cairn {
namespace {

/// The definition, word by word.
std::uint64_t sum_by_definition(const std::byte* tile, std::size_t bytes, std::uint64_t offset) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t w = 0;
    for (std::size_t i = 0; i < 8 && at + i < bytes; ++i)
      w |= std::to_integer<std::uint64_t>(tile[at + i]) << (8 * i);
    const std::uint64_t x = w ^ ((offset + at) * 0x9e3779b97f4a7c15U);
    sum += (x % 0x100000000U) * (x / 0x100000000U) + x;
  }
  return sum;
}

/// Bytes that differ from their neighbours, and from those 256 bytes on.
void write_pattern(std::span<std::byte> into) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
}

/// Copies between two places with the given offsets from a 64-byte boundary; everything around the
/// target must stay as it was. `copy` returns the checksum.
template <class Copy>
void expect_exact(Copy&& copy, std::size_t from_at, std::size_t to_at, std::size_t bytes,
                  const char* name) {
  constexpr std::size_t guard = 128;
  constexpr std::uint64_t offset = 1'234'567;
  const std::size_t size = 2 * guard + 64 + bytes;
  static std::vector<std::byte> source, target, expected;
  source.resize(size);
  write_pattern(source);
  target.assign(size, std::byte{0xEE});
  expected = target;
  const auto origin = [](std::vector<std::byte>& v) {
    return (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64;
  };
  const std::size_t from = origin(source) + from_at;
  const std::size_t to = origin(target) + guard / 2 + to_at;
  const std::uint64_t sum = copy(target.data() + to, source.data() + from, bytes, offset);
  for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = source[from + i];
  ASSERT_TRUE(target == expected) << name << " from " << from_at << " to " << to_at << " bytes "
                                  << bytes;
  ASSERT_EQ(sum, sum_by_definition(source.data() + from, bytes, offset))
      << name << " from " << from_at << " to " << to_at << " bytes " << bytes;
}

class HostCopy : public testing::TestWithParam<kernels::tiles_copy_variant> {
 protected:
  static std::uint64_t copy_only(std::byte* to, const std::byte* from, std::size_t bytes,
                                 std::uint64_t offset) {
    const kernels::placed_tile tile{to, from, bytes, offset, nullptr};
    GetParam().copy({&tile, 1});
    kernels::settle();
    return sum_by_definition(from, bytes, offset);
  }
  static std::uint64_t copy_and_sum(std::byte* to, const std::byte* from, std::size_t bytes,
                                    std::uint64_t offset) {
    constexpr std::uint64_t before = 0xfedcba9876543210;  // sums are added to what is there
    std::uint64_t sum = before;
    const kernels::placed_tile tile{to, from, bytes, offset, &sum};
    GetParam().copy_and_sum({&tile, 1});
    kernels::settle();
    return sum - before;
  }
};

TEST_P(HostCopy, IsExactAtEveryMisalignmentAndLength) {
  for (std::size_t bytes = 0; bytes < 70; ++bytes)
    for (std::size_t from = 0; from < 9; ++from)
      for (std::size_t to = 0; to < 9; ++to) {
        expect_exact(copy_only, from, to, bytes, "copy");
        expect_exact(copy_and_sum, from, to, bytes, "copy_and_sum");
      }
}

TEST_P(HostCopy, IsExactForLongTilesAtEveryMisalignment) {
  for (const std::size_t bytes :
       {1'023U, 1'024U, 1'025U, 1'279U, 1'280U, 1'343U, 4'096U, 4'127U, 16'384U})
    for (std::size_t to = 0; to < 64; ++to) {
      expect_exact(copy_only, (to * 29) % 64, to, bytes, "copy");
      expect_exact(copy_and_sum, (to * 29) % 64, to, bytes, "copy_and_sum");
    }
  for (const std::size_t bytes : {65'535U, 65'536U}) {
    expect_exact(copy_only, 3, 5, bytes, "copy");
    expect_exact(copy_and_sum, 3, 5, bytes, "copy_and_sum");
  }
}

// Tiles that are copied beside each other begin and end at different steps, there are fewer and
// more of them than are copied at a time, and they belong to several images.
TEST_P(HostCopy, IsExactForTilesBesideEachOther) {
  constexpr std::size_t lengths[] = {2'048,  1'023, 16'384, 4'097, 1'152, 8'448, 3,
                                     65'536, 1'024, 12'345, 0,     5'555, 9'001};
  for (std::size_t count = 0; count <= 24; ++count)
    for (std::size_t shift = 0; shift < 64; shift += 7) {
      std::vector<std::size_t> bytes;
      std::vector<std::size_t> at;
      std::size_t end = 64;
      for (std::size_t i = 0; i < count; ++i) {
        bytes.push_back(lengths[(i * 5 + count + shift) % std::size(lengths)]);
        at.push_back(end + (shift * (i + 1)) % 64);
        end = at.back() + bytes.back() + 1 + i % 3;
      }
      std::vector<std::byte> source(end + 64);
      write_pattern(source);
      std::vector<std::byte> target(source.size(), std::byte{0xEE});
      std::vector<std::byte> summed = target;
      std::vector<std::byte> expected = target;
      std::vector<std::uint64_t> sums(count / 3 + 1, shift);
      std::vector<std::uint64_t> expected_sums = sums;
      std::vector<kernels::placed_tile> tiles;
      std::vector<kernels::placed_tile> summed_tiles;
      for (std::size_t i = 0; i < count; ++i) {
        // From elsewhere, so that source and destination are skewed against each other.
        const std::byte* from = source.data() + at[count - 1 - i] % (end - bytes[i]);
        std::copy_n(from, bytes[i], expected.data() + at[i]);
        tiles.push_back({target.data() + at[i], from, bytes[i], at[i] * 8, nullptr});
        summed_tiles.push_back({summed.data() + at[i], from, bytes[i], at[i] * 8, &sums[i / 3]});
        expected_sums[i / 3] += sum_by_definition(from, bytes[i], at[i] * 8);
      }
      GetParam().copy(tiles);
      GetParam().copy_and_sum(summed_tiles);
      EXPECT_EQ(sums, expected_sums) << count << " tiles, shift " << shift;
      kernels::settle();
      ASSERT_TRUE(target == expected) << count << " tiles, shift " << shift;
      ASSERT_TRUE(summed == expected) << count << " tiles, shift " << shift;
    }
}

/// A page between two that cannot be touched.
class lone_page {
 public:
  lone_page() {
    void* const mapped = mmap(nullptr, 3 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<std::byte*>(mapped);
    if (mprotect(all_ + bytes, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~lone_page() { munmap(all_, 3 * bytes); }
  lone_page(const lone_page&) = delete;
  lone_page& operator=(const lone_page&) = delete;
  [[nodiscard]] std::byte* begin() const { return all_ + bytes; }
  [[nodiscard]] std::byte* end() const { return all_ + 2 * bytes; }

  static constexpr std::size_t bytes = 4096;

 private:
  std::byte* all_;
};

// A read behind the end of memory would kill the process, one behind the end of a tile could race
// with another's write.
TEST_P(HostCopy, TouchesNoPageBesideTheTile) {
  const lone_page source;
  const lone_page target;
  write_pattern({source.begin(), source.end()});
  for (std::size_t bytes = 1; bytes <= lone_page::bytes; bytes += bytes < 300 ? 1 : 149) {
    const std::byte* const from[] = {source.begin(), source.end() - bytes};
    std::byte* const to[] = {target.begin(), target.end() - bytes};
    for (int i = 0; i < 4; ++i) {
      std::fill_n(target.begin(), lone_page::bytes, std::byte{0xEE});
      copy_only(to[i / 2], from[i % 2], bytes, 24);
      ASSERT_EQ(std::memcmp(to[i / 2], from[i % 2], bytes), 0) << bytes << " bytes, ends " << i;
      std::fill_n(target.begin(), lone_page::bytes, std::byte{0xEE});
      ASSERT_EQ(copy_and_sum(to[i / 2], from[i % 2], bytes, 24),
                sum_by_definition(from[i % 2], bytes, 24))
          << bytes << " bytes, ends " << i;
      ASSERT_EQ(std::memcmp(to[i / 2], from[i % 2], bytes), 0) << bytes << " bytes, ends " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, HostCopy,
                         testing::ValuesIn(kernels::tile_copies().begin(),
                                           kernels::tile_copies().end()),
                         [](const auto& each) { return std::string(each.param.name); });

template <copy_kind Kind>
void expect_lanes_exact(std::uint32_t lanes, const char* name) {
  const auto copy = [lanes](std::byte* to, const std::byte* from, std::size_t bytes,
                            std::uint64_t offset) {
    std::uint64_t sum = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
      sum += kernels::copy_tile<Kind>(to, from, bytes, offset, lane, lanes);
    return sum;
  };
  for (std::size_t from = 0; from < 17; ++from)
    for (std::size_t to = 0; to < 17; ++to)
      for (const std::size_t bytes :
           {0U, 1U, 2U, 3U, 7U, 8U, 9U, 15U, 16U, 17U, 24U, 31U, 33U, 100U, 1'000U, 4'111U})
        expect_exact(copy, from, to, bytes, name);
}

TEST(LaneCopy, LanesOfAGroupCopyEachByteOnce) {
  for (const std::uint32_t lanes : {1U, 3U, 64U}) {
    expect_lanes_exact<copy_kind::store>(lanes, "store");
    expect_lanes_exact<copy_kind::restore>(lanes, "restore");
  }
}

TEST(LaneCopy, AddressesFollowSignedStrides) {
  std::vector<std::byte> memory(4'096);
  const strided regions[] = {{memory.data() + 1'000, -100, 50}, {memory.data() + 2'000, 64, 64}};
  const strided segments[] = {{memory.data() + 3'000, -300, 114}};
  const unit_id units[] = {9, 4};
  const copy_span tile{50, 60, 7, 20, 0, 1, 1};
  const auto store = kernels::locate(tile, copy_kind::store, regions, segments, 3, units);
  EXPECT_EQ(store.from - memory.data(), 3'000 - 3 * 300 + 60);
  EXPECT_EQ(store.to - memory.data(), 2'000 + 4 * 64 + 7);
  const auto restore = kernels::locate(tile, copy_kind::restore, regions, segments, 3, units);
  EXPECT_EQ(restore.from, store.to);
  EXPECT_EQ(restore.to, store.from);
}

class Checksum : public testing::Test {
 protected:
  Checksum() {
    std::uint64_t state = 7;
    for (std::byte& each : image_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      each = static_cast<std::byte>(state >> 56);
    }
  }
  [[nodiscard]] std::uint64_t sum() const {
    return sum_by_definition(image_.data(), image_.size(), 0);
  }
  std::vector<std::byte> image_ = std::vector<std::byte>(8'192);
};

TEST_F(Checksum, NoticesEveryFlippedBit) {
  const std::uint64_t before = sum();
  for (std::size_t bit = 0; bit < 8 * 512; ++bit) {
    image_[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_NE(sum(), before) << "bit " << bit;
    image_[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_EQ(sum(), before);
}

// The worst words are those whose product vanishes: one half equal to the key's.
TEST_F(Checksum, NoticesEveryChangeWithinOneHalfOfAWord) {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{4'096}}) {
    const std::uint64_t key = offset * kernels::position_key;
    for (const std::uint64_t word :
         {std::uint64_t{0}, key, ~key, key & 0xffffffffU, key & ~std::uint64_t{0xffffffffU},
          key ^ 0xffffffffU, key ^ (std::uint64_t{0xffffffffU} << 32)}) {
      const std::uint64_t before = kernels::word_sum(word, offset);
      for (std::uint64_t change = 1; change < 100'000; change = change * 3 + 1) {
        EXPECT_NE(kernels::word_sum(word ^ change, offset), before);
        EXPECT_NE(kernels::word_sum(word ^ (change << 32), offset), before);
      }
      EXPECT_NE(kernels::word_sum(word ^ 0xffffffffU, offset), before);
      EXPECT_NE(kernels::word_sum(word ^ (std::uint64_t{0xffffffffU} << 32), offset), before);
    }
  }
}

TEST_F(Checksum, NoticesPiecesThatChangedPlaces) {
  const std::uint64_t before = sum();
  for (const std::size_t piece : {8U, 64U, 512U, 4'096U}) {
    std::swap_ranges(image_.begin(), image_.begin() + static_cast<std::ptrdiff_t>(piece),
                     image_.end() - static_cast<std::ptrdiff_t>(piece));
    EXPECT_NE(sum(), before) << piece;
    std::swap_ranges(image_.begin(), image_.begin() + static_cast<std::ptrdiff_t>(piece),
                     image_.end() - static_cast<std::ptrdiff_t>(piece));
  }
}

TEST_F(Checksum, NoticesBytesThatNeverCame) {
  const std::uint64_t before = sum();
  std::fill(image_.begin() + 1'024, image_.begin() + 2'048, std::byte{0});
  const std::uint64_t zeros = sum();
  EXPECT_NE(zeros, before);
  std::fill(image_.begin() + 2'048, image_.begin() + 3'072, std::byte{0});
  EXPECT_NE(sum(), zeros);
}

}  // namespace
}  // namespace cairn
