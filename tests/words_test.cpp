// Words whose fields are bit-fields: each field lies where masks and sums expect it. And the hash.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/index_words.hpp"
#include "runtime/op_table.hpp"
#include "runtime/record.hpp"
#include "runtime/record_homes.hpp"

namespace {

using cairn::checkpoint_key;
using cairn::status;
using cairn::detail::edge;
using cairn::detail::guest_word;
using cairn::detail::hash_of;
using cairn::detail::op_phase;
using cairn::detail::op_word;
using cairn::detail::print_of;
using cairn::detail::record_state;
using cairn::detail::record_word;

constexpr std::uint64_t at(int bit, std::uint64_t value) {
  return value << bit;
}

/// The bits of a word of which `set` has changed one field of a word of zeros.
template <class Word, class Set>
std::uint64_t bits_with(Set&& set) {
  Word w = Word::of(0);
  set(w);
  return w.bits();
}

TEST(Words, OfARecordCountPinsAndRestoresBySums) {
  const auto bits = [](auto set) { return bits_with<record_word>(set); };
  EXPECT_EQ(bits([](record_word& w) { w.pins = 1; }), record_word::one_pin);
  EXPECT_EQ(bits([](record_word& w) { w.restores = 1; }), record_word::one_restore);
  EXPECT_EQ(bits([](record_word& w) { w.pins = 0xffff; }), at(0, 0xffff));
  EXPECT_EQ(bits([](record_word& w) { w.restores = 0xffff; }), at(16, 0xffff));
  EXPECT_EQ(bits([](record_word& w) { w.state = record_state::reclaiming; }), at(32, 5));
  EXPECT_EQ(bits([](record_word& w) { w.parked = true; }), at(35, 1));
  EXPECT_EQ(bits([](record_word& w) { w.generation = record_word::generation_mask; }),
            at(36, record_word::generation_mask));
}

TEST(Words, OfAGuestComeBackWhole) {
  for (const std::uint32_t id : {0U, 1U, cairn::max_index}) {
    const auto guest = guest_word::unpack(guest_word::of(id, 0xa5).pack());
    EXPECT_EQ(guest.id, id);
    EXPECT_EQ(guest.print, 0xa5);
  }
}

TEST(Words, OfSmallNumbersTheHashSpreadsInEitherHalf) {
  constexpr std::uint64_t count = 1 << 16;
  const auto spread = [](auto key_of, const char* name) {
    // As the index and the homes take it: the low half times the number of places.
    std::vector<bool> taken(2 * count);
    std::array<std::uint32_t, 256> prints{};
    std::uint64_t places = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t hash = hash_of(key_of(i));
      const std::uint64_t place = (hash & 0xffff'ffff) * taken.size() >> 32;
      if (!taken[place]) ++places;
      taken[place] = true;
      ++prints[print_of(hash)];
    }
    EXPECT_GT(places, count * 3 / 4) << name;  // of random ones 79 %
    const auto [least, most] = std::minmax_element(prints.begin(), prints.end());
    EXPECT_GT(*least, count / 256 / 2) << name;
    EXPECT_LT(*most, count / 256 * 2) << name;
  };
  spread([](std::uint64_t i) { return checkpoint_key{i, 0}; }, "hi");
  spread([](std::uint64_t i) { return checkpoint_key{0, i}; }, "lo");
  spread([](std::uint64_t i) { return checkpoint_key{i, i}; }, "both");
  spread([](std::uint64_t i) { return checkpoint_key{i / 256, i % 256}; }, "pairs");
  spread([](std::uint64_t i) { return checkpoint_key{i << 48, 7}; }, "hi, upper bits");
  spread([](std::uint64_t i) { return checkpoint_key{7, i << 48}; }, "lo, upper bits");
  spread([](std::uint64_t i) { return checkpoint_key{7, i << 24}; }, "lo, middle bits");
}

TEST(Words, OfAnOpHaveThePhaseLowestAndTheGenerationInTheUpperHalf) {
  const auto bits = [](auto set) { return bits_with<op_word>(set); };
  EXPECT_EQ(bits([](op_word& w) { w.phase = op_phase::ended; }), at(0, 5));
  EXPECT_EQ(bits([](op_word& w) { w.code = status::pending; }),
            at(8, static_cast<std::uint8_t>(status::pending)));
  EXPECT_EQ(bits([](op_word& w) { w.observed = true; }), at(16, 1));
  EXPECT_EQ(bits([](op_word& w) { w.unproven = true; }), at(17, 1));
  EXPECT_EQ(bits([](op_word& w) { w.corrupt = true; }), at(18, 1));
  EXPECT_EQ(bits([](op_word& w) { w.kept = true; }), at(19, 1));
  EXPECT_EQ(bits([](op_word& w) { w.awaited = true; }), at(20, 1));
  EXPECT_EQ(bits([](op_word& w) { w.reported = 63; }), at(21, 63));
  EXPECT_EQ(bits([](op_word& w) { w.generation = 0xffffffff; }), at(32, 0xffffffff));
}

TEST(Words, OfTheIndexKeepTheEdgeInTheBitsOfItsMask) {
  EXPECT_EQ((edge{0xabcdef, 0, 0, false}.pack()), at(0, 0xabcdef));
  EXPECT_EQ((edge{0, 0xff, 0, false}.pack()), at(24, 0xff));
  EXPECT_EQ((edge{0, 0, 0x7fff, false}.pack()), at(32, 0x7fff));
  EXPECT_EQ((edge{0, 0, 0, true}.pack()), at(47, 1));
  EXPECT_EQ((edge{edge::no_id, 0xff, edge::life_mask, true}.pack()), edge::mask);
}

TEST(Words, AnEdgeDiffersByItsPrintOrBecauseItNamesNobody) {
  EXPECT_TRUE(edge{}.last);  // else who follows it would look for a node
  constexpr std::array<std::uint8_t, 4> prints{0, 1, 0x80, 0xff};
  for (const std::uint32_t id : {0U, 1U, edge::no_id - 1, +edge::no_id})
    for (const std::uint8_t print : prints)
      for (const std::uint8_t wanted : prints)
        for (const bool last : {false, true}) {
          const edge to = edge::to(id, print, edge::life_mask, last);
          EXPECT_EQ(to.differs(wanted), to.ends() || print != wanted) << id << ' ' << +print;
        }
}

}  // namespace
