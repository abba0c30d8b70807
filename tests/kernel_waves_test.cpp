// The copy kernels over waves of several lanes that really run at once: the same bytes and the same
// checksums whatever a wave's size, and the protocol by which the last wave hands the sums over.
// The kernels alone, without the backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/checksum.hpp"
#include "kernels/scatter_gather_hip.hpp"
#include "tests/hip_double_tools.hpp"

namespace cairn::tests {

namespace hip {
void PrintTo(const wave_plan& how, std::ostream* out) {
  *out << how.lanes << " lanes, " << how.crews << " at once";
}
}  // namespace hip

namespace {

using namespace cairn::kernels;

[[maybe_unused]] const bool watched = watch_double();

/// Memory of the double. The device's own too: it lies on this machine.
template <class T>
class double_array {
 public:
  enum class where { device, pinned };
  double_array(std::size_t count, where in) : count_(count), in_(in) {
    void* made = nullptr;
    EXPECT_EQ(in == where::device ? hipMalloc(&made, count * sizeof(T))
                                  : hipHostMalloc(&made, count * sizeof(T),
                                                  hipHostMallocPortable | hipHostMallocMapped),
              hipSuccess);
    data_ = static_cast<T*>(made);
    std::fill_n(data_, count_, T{});
  }
  ~double_array() {
    // A device that is lost, or a double that was reset, has nothing to give back.
    static_cast<void>(in_ == where::device ? hipFree(data_) : hipHostFree(data_));
  }
  double_array(const double_array&) = delete;
  double_array& operator=(const double_array&) = delete;
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] T& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  where in_;
  T* data_ = nullptr;
};
template <class T>
constexpr auto device = double_array<T>::where::device;
template <class T>
constexpr auto pinned = double_array<T>::where::pinned;

/// Tiles of an image: less than a lane's word, less and more than a wave's, ends that agree on 16
/// bytes, on 8, on 4, on 2 and on none, last words in part.
constexpr std::array<std::uint64_t, 9> tile_bytes = {1, 4096, 7, 3000, 511, 8200, 250, 24, 1033};
constexpr std::uint64_t between = 40;  ///< bytes of a piece that belong to no tile

/// Images in one segment and one region, and a board.
class images_on_double {
 public:
  images_on_double(std::uint32_t images, std::uint32_t groups_max)
      : images_(images),
        groups_(groups_max),
        tiles_(tile_bytes.size(), device<copy_span>),
        arrays_(2, device<strided>),
        slots_(piece_bytes() * images, device<std::byte>),
        units_(piece_bytes() * images, device<std::byte>),
        board_(board_bytes / sizeof(unsigned long long), device<unsigned long long>),
        words_(words_per_image(1) * images, device<std::uint32_t>),
        sums_(images + 1, pinned<std::uint64_t>) {
    EXPECT_EQ(hipStreamCreateWithPriority(&on_, hipStreamNonBlocking, 0), hipSuccess);
    std::uint64_t at = 0;
    for (std::size_t t = 0; t < tile_bytes.size(); ++t) {
      const std::uint64_t shift = t % 2 == 0 ? t : 0;  // of one side against the other
      tiles_[t] = {image_bytes_, at, at + shift, tile_bytes[t], 0, 0, 0};
      image_bytes_ += tile_bytes[t];
      at += (tile_bytes[t] + between) / 16 * 16 + 16;
    }
    EXPECT_LE(at, piece_bytes());
    const auto stride = static_cast<std::int64_t>(piece_bytes());
    arrays_[0] = {slots_.data(), stride, piece_bytes()};
    arrays_[1] = {units_.data(), stride, piece_bytes()};
  }
  ~images_on_double() { EXPECT_EQ(hipStreamDestroy(on_), hipSuccess); }
  images_on_double(const images_on_double&) = delete;
  images_on_double& operator=(const images_on_double&) = delete;

  /// Image i is in slot i and goes to unit images - 1 - i, or back.
  void launch(copy_kind kind, bool inlined, std::uint64_t content) {
    fill(kind == copy_kind::store ? slots_ : units_, content);
    fill(kind == copy_kind::store ? units_ : slots_, content + 1000);
    std::fill_n(sums_.data(), sums_.size(), untouched);
    for (std::uint32_t i = 0; i < images_; ++i) {
      words_[i * words_per_image(1)] = slot_word(kind, i);
      words_[i * words_per_image(1) + 1] = images_ - 1 - i;
    }
    const copy_tables tables{tiles_.data(), &arrays_[1], &arrays_[0],
                             static_cast<std::uint32_t>(tile_bytes.size()), 1};
    const sum_board board{board_.data(), reinterpret_cast<unsigned*>(&board_[board_images])};
    if (inlined) {
      inline_batch batch{tables, board, sums_.data(), images_, {}};
      std::memcpy(batch.words, words_.data(), words_.size() * sizeof(std::uint32_t));
      ASSERT_EQ(launch_copy(batch, groups_, on_), hipSuccess);
    } else {
      ASSERT_EQ(launch_copy(staged_batch{tables, board, sums_.data(), images_, words_.data()},
                            groups_, on_),
                hipSuccess);
    }
    ASSERT_EQ(hipStreamSynchronize(on_), hipSuccess);
  }

  /// Every byte of both sides: the images at their places, all else as before.
  [[nodiscard]] testing::AssertionResult moved(copy_kind kind, std::uint64_t content) const {
    const bool store = kind == copy_kind::store;
    const double_array<std::byte>& source = store ? slots_ : units_;
    const double_array<std::byte>& target = store ? units_ : slots_;
    std::vector<std::byte> expected(target.size());
    fill(expected, content + 1000);
    for (std::uint32_t i = 0; i < images_; ++i) {
      const std::uint64_t slot = i * piece_bytes();
      const std::uint64_t unit = (images_ - 1 - i) * piece_bytes();
      for (std::size_t t = 0; t < tiles_.size(); ++t) {
        const std::uint64_t in_slot = slot + tiles_[t].segment_offset;
        const std::uint64_t in_unit = unit + tiles_[t].region_offset;
        std::memcpy(expected.data() + (store ? in_unit : in_slot),
                    source.data() + (store ? in_slot : in_unit), tiles_[t].bytes);
      }
    }
    for (std::size_t at = 0; at < expected.size(); ++at)
      if (target[at] != expected[at])
        return testing::AssertionFailure() << "byte " << at << " of the target is wrong";
    return testing::AssertionSuccess();
  }

  /// As kernels/checksum.hpp defines it.
  [[nodiscard]] std::uint64_t sum_by_definition(copy_kind kind, std::uint32_t image) const {
    std::uint64_t sum = 0;
    for (std::size_t t = 0; t < tiles_.size(); ++t) {
      const copy_span& tile = tiles_[t];
      const std::byte* const from =
          kind == copy_kind::store
              ? slots_.data() + image * piece_bytes() + tile.segment_offset
              : units_.data() + (images_ - 1 - image) * piece_bytes() + tile.region_offset;
      for (std::uint64_t at = 0; at < tile.bytes; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + at, std::min<std::uint64_t>(8, tile.bytes - at));
        sum += word_sum(word, tile.image_offset + at);
      }
    }
    return sum;
  }

  [[nodiscard]] std::vector<std::uint64_t> sums() const {
    return {sums_.data(), sums_.data() + images_};
  }
  [[nodiscard]] bool touched_beyond() const { return sums_[images_] != untouched; }
  [[nodiscard]] bool board_is_clear() const {
    return std::all_of(board_.data(), board_.data() + board_.size(),
                       [](unsigned long long word) { return word == 0; });
  }

 private:
  static constexpr std::uint64_t untouched = 0x0BADC0DE0BADC0DE;

  static constexpr std::uint64_t piece_bytes() {
    std::uint64_t bytes = 16;
    for (const std::uint64_t each : tile_bytes) bytes += (each + between) / 16 * 16 + 16;
    return bytes;
  }
  template <class Bytes>
  static void fill(Bytes&& to, std::uint64_t content) {
    std::uint64_t state = content;
    for (std::size_t i = 0; i < to.size(); ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      to[i] = static_cast<std::byte>(state >> 56);
    }
  }

  std::uint32_t images_;
  std::uint32_t groups_;
  std::uint64_t image_bytes_ = 0;
  double_array<copy_span> tiles_;
  double_array<strided> arrays_;
  double_array<std::byte> slots_;
  double_array<std::byte> units_;
  double_array<unsigned long long> board_;
  double_array<std::uint32_t> words_;
  double_array<std::uint64_t> sums_;
  hipStream_t on_ = nullptr;
};

class KernelWaves : public testing::TestWithParam<hip::wave_plan> {
 protected:
  void SetUp() override { hip::set_waves(GetParam()); }

  /// Looks at everything that a launch leaves.
  static void expect_whole(images_on_double& on, std::uint32_t images, copy_kind kind, bool inlined,
                           std::uint64_t content) {
    on.launch(kind, inlined, content);
    EXPECT_TRUE(on.moved(kind, content));
    const std::vector<std::uint64_t> sums = on.sums();
    for (std::uint32_t i = 0; i < images; ++i)
      EXPECT_EQ(sums[i], on.sum_by_definition(kind, i)) << "image " << i;
    EXPECT_FALSE(on.touched_beyond());
    EXPECT_TRUE(on.board_is_clear());
  }
  static copy_kind either_kind(std::uint64_t turn) {
    return turn % 2 == 0 ? copy_kind::store : copy_kind::restore;
  }
};

// One image has fewer tiles than some launches have groups for; other launches have groups with
// tiles of several images.
TEST_P(KernelWaves, TheLastWaveOfAllGroupsHandsOverTheWholeSums) {
  for (const std::uint32_t groups : {1U, 3U, 10U})
    for (const std::uint32_t images : {1U, 2U}) {
      SCOPED_TRACE(std::to_string(groups) + " groups, " + std::to_string(images) + " images");
      images_on_double on(images, groups);
      expect_whole(on, images, either_kind(groups + images), true, 10 * groups + images);
    }
}

// More images than a wave has lanes: some lanes take two sums, others one.
TEST_P(KernelWaves, EveryImagesSumIsHandedOver) {
  const std::uint32_t images = GetParam().lanes + 2;
  images_on_double on(images, 2);
  expect_whole(on, images, copy_kind::store, false, 1);
}

TEST_P(KernelWaves, EachLaunchLeavesTheBoardReadyForTheNext) {
  images_on_double on(3, 3);
  for (std::uint64_t round = 0; round < 4; ++round)
    expect_whole(on, 3, either_kind(round), round >= 2, 100 * round);
}

// Lanes and waves come between each other's accesses.
TEST_P(KernelWaves, WavesMayComeInAnyOrder) {
  images_on_double on(2, 4);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    hip::plan({.seed = seed, .which = {}, .delay_one_in = 3});
    expect_whole(on, 2, either_kind(seed), false, seed);
  }
}

TEST_P(KernelWaves, BytesAndSumsAreThoseOfWavesOfOneLane) {
  images_on_double on(3, 4);
  for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
    on.launch(kind, false, 7);
    EXPECT_TRUE(on.moved(kind, 7));
    const std::vector<std::uint64_t> sums = on.sums();
    hip::set_waves({});
    on.launch(kind, false, 7);
    EXPECT_TRUE(on.moved(kind, 7));
    EXPECT_EQ(on.sums(), sums);
    hip::set_waves(GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(HipDouble, KernelWaves,
                         testing::Values(hip::wave_plan{1, 1}, hip::wave_plan{1, 5},
                                         hip::wave_plan{4, 1}, hip::wave_plan{4, 6},
                                         hip::wave_plan{32, 3}, hip::wave_plan{64, 2}),
                         [](const auto& each) {
                           return "Of" + std::to_string(each.param.lanes) + "Crews" +
                                  std::to_string(each.param.crews);
                         });

// ---------------------------------------------------------------------------------------
// What the double looks at before it runs the kernels

/// A launch over memory that may be wrong. The checksums' and the board's memory come from the
/// test.
hipError_t launch_once(const sum_board& board, std::uint64_t* checksums, std::uint32_t images) {
  double_array<copy_span> tiles(1, device<copy_span>);
  double_array<strided> array(1, device<strided>);
  double_array<std::byte> bytes(64, device<std::byte>);
  double_array<std::uint32_t> words(std::size_t{2} * images, device<std::uint32_t>);
  tiles[0] = {0, 0, 0, 64, 0, 0, 0};
  array[0] = {bytes.data(), 0, 64};
  hipStream_t on = nullptr;
  EXPECT_EQ(hipStreamCreateWithPriority(&on, hipStreamNonBlocking, 0), hipSuccess);
  EXPECT_EQ(launch_copy(staged_batch{{tiles.data(), array.data(), array.data(), 1, 1},
                                     board,
                                     checksums,
                                     images,
                                     words.data()},
                        1, on),
            hipSuccess);
  const hipError_t code = hipStreamSynchronize(on);
  EXPECT_EQ(hipStreamDestroy(on), code);
  return code;
}

/// A refusal comes with one complaint, and with the device's loss; the double is as new afterwards.
hipError_t launch_with(const sum_board& board, std::uint64_t* checksums, std::uint32_t images) {
  const hipError_t code = launch_once(board, checksums, images);
  if (code == hipSuccess) return code;
  EXPECT_EQ(hip::complaints().size(), 1U);
  hip::reset();
  return code;
}

class KernelSums : public testing::Test {
 protected:
  static constexpr std::uint32_t images = 3;
  /// Memory is the double's until its reset.
  static unsigned long long* words(std::size_t count, bool on_device) {
    void* made = nullptr;
    EXPECT_EQ(on_device ? hipMalloc(&made, count * 8) : hipHostMalloc(&made, count * 8, 0),
              hipSuccess);
    std::memset(made, 0, count * 8);
    return static_cast<unsigned long long*>(made);
  }
  static sum_board board_in(unsigned long long* words) {
    return {words, reinterpret_cast<unsigned*>(words + images)};
  }
  static std::uint64_t* checksums(bool on_device = false, std::size_t count = images) {
    return reinterpret_cast<std::uint64_t*>(words(count, on_device));
  }
  void TearDown() override { hip::reset(); }
};

TEST_F(KernelSums, NeedABoardOnTheDeviceAndChecksumsOnTheHost) {
  EXPECT_EQ(launch_with(board_in(words(images + 1, true)), checksums(), images), hipSuccess);
}

TEST_F(KernelSums, AreNotPutWhereTheyDoNotBelong) {
  unsigned long long here[images + 1] = {};
  EXPECT_EQ(launch_with(board_in(here), checksums(), images), hipErrorIllegalAddress);
  // One word too few, for the sums and for the count.
  EXPECT_EQ(launch_with({words(images - 1, true), reinterpret_cast<unsigned*>(words(1, true))},
                        checksums(), images),
            hipErrorIllegalAddress);
  EXPECT_EQ(launch_with(board_in(words(images, true)), checksums(), images),
            hipErrorIllegalAddress);
  EXPECT_EQ(launch_with({}, checksums(), images), hipErrorIllegalAddress);
  const auto board = [] { return board_in(words(images + 2, true)); };
  EXPECT_EQ(launch_with(board(), checksums(true), images), hipErrorIllegalAddress);
  EXPECT_EQ(launch_with(board(), checksums(false, images - 1), images), hipErrorIllegalAddress);
  std::uint64_t sums_here[images] = {};
  EXPECT_EQ(launch_with(board(), sums_here, images), hipErrorIllegalAddress);
}

TEST_F(KernelSums, AreNotPutWhereAnythingIsGone) {
  unsigned long long* const board = words(images + 1, true);
  ASSERT_EQ(hipFree(board), hipSuccess);
  EXPECT_EQ(launch_with(board_in(board), checksums(), images), hipErrorIllegalAddress);
  std::uint64_t* const sums = checksums();
  ASSERT_EQ(hipHostFree(sums), hipSuccess);
  EXPECT_EQ(launch_with(board_in(words(images + 1, true)), sums, images), hipErrorIllegalAddress);
}

TEST_F(KernelSums, AreAlignedAndBeginAtZero) {
  const auto shifted = [](auto* pointer, std::size_t bytes) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<std::byte*>(pointer) + bytes);
  };
  sum_board board = board_in(words(images + 2, true));
  board.sums = shifted(board.sums, 4);
  EXPECT_EQ(launch_with(board, checksums(), images), hipErrorIllegalAddress);
  board = board_in(words(images + 2, true));
  board.waves_done = shifted(board.waves_done, 2);
  EXPECT_EQ(launch_with(board, checksums(), images), hipErrorIllegalAddress);
  EXPECT_EQ(launch_with(board_in(words(images + 2, true)), shifted(checksums(false, 4), 4), images),
            hipErrorIllegalAddress);
  board = board_in(words(images + 1, true));
  board.sums[images - 1] = 1;
  EXPECT_EQ(launch_with(board, checksums(), images), hipErrorIllegalAddress);
  board = board_in(words(images + 1, true));
  *board.waves_done = 1;
  EXPECT_EQ(launch_with(board, checksums(), images), hipErrorIllegalAddress);
}

TEST_F(KernelSums, AreOfNoMoreImagesThanABoardHas) {
  constexpr std::uint32_t many = board_images + 1;
  const sum_board board{words(many, true), reinterpret_cast<unsigned*>(words(1, true))};
  EXPECT_EQ(launch_with(board, checksums(false, many), many), hipErrorIllegalAddress);
}

}  // namespace
}  // namespace cairn::tests
