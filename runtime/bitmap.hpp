// A lock-free set of small integers that hands out its lowest member. It knows nothing of what
// the integers name.
//
// Level 0 holds one bit per member: the truth. Above it stand summary levels: bit w of level l+1
// says that word w of level l may be non-zero. The summary is a hint; the words are the truth.
// Levels are added until the top fits two cache lines.
//
//   put          sets the bit, then makes sure of the bit of each summary level, bottom up: looks,
//                and sets it where it reads as clear.
//   take         clears the bit, no more. A word that runs empty keeps its summary bit: more often
//                than not somebody puts a member back before anyone comes by.
//   take_lowest  descends along the lowest set bits. It passes over some empty words that lie side
//                by side, as many as the takers of a moment may leave behind: to clear bits that
//                are soon set again would let these threads take the summary from each other.
//                Where there are more, or nothing else is left, it *settles* each of them:
//                clears the summary bit, looks at the word again, and if it is not empty after all,
//                raises the bit again at all levels above; else goes on upwards while the summary
//                word is empty too. An empty word can only cost a visit.
//
// Why no member is lost. Hiding is the danger: a summary bit that is clear over a word with
// a member. Putter P has put member x into a word and reads the summary bit as set; settler S has
// cleared it before its second look. Each of them writes one place and reads the other's, so both
// do a read-modify-write of one word: P's put, and S's second look, which writes what it reads. If
// S's is later, S sees x and raises. If P's is later, P acquires S's clearing: it reads the summary
// bit as clear, or as somebody has set it since, and raises. One level up P may only have read a
// set bit, but then from a raiser R whose write it acquires: if S's look at that word is earlier
// than R's write, R and so P acquire S's clearing above; if it is later, S has seen the bit.
//
// So a clear bit hides x only between S's clearing and S's raising, and only calls that overlap S
// can be deceived. S may be preempted there for long,
// hence `settlers_`: S enters before it clears and leaves when it has repaired. A taker that
// finds the summary empty believes it if no settler was inside when it began to look and none
// has entered since:
//   * it read the clear bit with acquire, so it sees that the settler who cleared it had entered;
//   * that entry was there when it began, and nobody was inside, so the settler had left and
//     what it raised was visible: the word was empty when the settler looked.
// The same argument climbs level by level, since a put looks after all levels above. Otherwise the
// taker passes over all words of level 0 once before it says none.
//
// A member that comes or goes while take_lowest runs may or may not count; while no other call
// is under way the answer is exactly the lowest member.
//
// Several members of one word (a bit_run) go in or come out by one read-modify-write of it: each of
// them as if alone.
//
// Progress: put, take, contains are wait-free; take_lowest is lock-free (it repeats only when
// another call took the bit that it wanted). Nothing allocates after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/bit_run.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class bitmap {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Empty words that a way down passes over before it settles them.
  static constexpr std::uint32_t passes_max = 16;
  /// Empty; members are below `capacity`.
  explicit bitmap(std::uint32_t capacity);
  /// Adds `i`; a member stays one. Publishes the caller's earlier writes to the taker.
  void put(std::uint32_t i) noexcept;
  /// Adds them all. What the caller did to any of them before is published to its taker.
  void put(bit_run members) noexcept;
  /// Removes and returns the lowest member; none when no member stayed in it during the call.
  std::uint32_t take_lowest() noexcept;
  /// Removes the lowest members, of one word, at most `most`; none when no member stayed in it
  /// during the call, or when `most` is 0.
  bit_run take_lowest(std::uint32_t most) noexcept;
  /// Removes `i`; false when it is not a member.
  bool take(std::uint32_t i) noexcept;
  [[nodiscard]] bool contains(std::uint32_t i) const noexcept;
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  /// Calls f(i) for each member seen in one pass, lowest first.
  template <class F>
  void for_each(F&& f) const;

 private:
  using word = sync::atomic<std::uint64_t>;
  static constexpr std::uint32_t bits = 64;
  static constexpr std::uint32_t top_words_max = 2 * sync::cache_line / sizeof(std::uint64_t);
  static constexpr std::uint32_t levels_max = 6;  // 64^5 words would hold every 32-bit integer

  /// `settlers_`: how many are inside (low 16 bits), how many ever entered (the rest).
  static constexpr std::uint64_t inside_mask = 0xffff;
  static constexpr std::uint64_t settler_enters = (inside_mask + 1) + 1;
  static constexpr std::uint64_t settler_leaves = 1;

  static constexpr std::uint64_t bit_of(std::uint32_t i) noexcept {
    return std::uint64_t{1} << (i % bits);
  }
  static std::uint32_t lowest(std::uint64_t w) noexcept {
    return static_cast<std::uint32_t>(std::countr_zero(w));
  }

  /// The lowest word of level 0 that is not empty, by way of the summary; none.
  std::uint32_t descend() noexcept;
  /// The first word that is not empty below a summary word that reads `seen`, whose first word
  /// below is `begin`; none, if it would have to pass over too many, or there is none.
  std::uint32_t first_below(std::uint32_t begin, std::uint64_t seen) const noexcept;
  /// Settles the empty ones of the words that first_below passed over.
  void settle_below(std::uint32_t begin, std::uint64_t seen) noexcept;
  /// Takes the lowest bits of word `w` of level 0; none when it was or became empty.
  bit_run take_in(std::uint32_t w, std::uint32_t most) noexcept;
  /// Word `w` of `level` was seen empty: brings the levels above into line.
  void settle(std::uint32_t level, std::uint32_t w) noexcept;
  /// Word `w` of `level` is not empty: makes sure that all levels above say so.
  void raise(std::uint32_t level, std::uint32_t w) noexcept;

  const std::uint32_t capacity_;
  std::uint32_t levels_ = 1;
  std::uint32_t words_[levels_max] = {};
  std::unique_ptr<word[]> level_[levels_max];
  alignas(sync::cache_line) word settlers_{};
};

template <class F>
void bitmap::for_each(F&& f) const {
  for (std::uint32_t w = 0; w < words_[0]; ++w)
    // (11) acquire: pairs with (1)
    for (std::uint64_t left = level_[0][w].load_acquire(); left != 0; left &= left - 1)
      f(w * bits + lowest(left));
}

}  // namespace cairn::detail
