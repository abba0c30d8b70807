// A lock-free set of small integers that hands out its lowest member. It knows nothing of what
// the integers name.
//
// Level 0 holds one bit per member: the truth. Above it stand summary levels: bit w of level l+1
// says that word w of level l may be non-zero. The summary is a hint; the words are the truth.
// Levels are added until the top fits one cache line.
//
//   put          sets the bit, then the bit of each summary level, bottom up; always, by
//                read-modify-write, even where it reads as set.
//   take         clears the bit. Who finds a word of level 0 empty then *settles* it: clears
//                its summary bit, looks at the word again, and if it is not empty after all,
//                raises the bit again at all levels above; else goes on upwards while the
//                summary word is empty too.
//   take_lowest  descends along the lowest set bits. A set bit over an empty word is settled
//                on the way; it can only cost a visit.
//
// Why no member is lost. Hiding is the danger: a summary bit that is clear over a word with
// a member. Putter P of member x and settler S both do a read-modify-write of the summary word.
// If S's is later, S acquires P's bit in the word below, sees it when it looks again, and raises.
// If P's is later, the bit is set. So a clear bit hides x only between S's clearing and S's
// raising, and only calls that overlap S can be deceived. S may be preempted there for long,
// hence `settlers_`: S enters before it clears and leaves when it has repaired. A taker that
// finds the summary empty believes it if no settler was inside when it began to look and none
// has entered since:
//   * it read the clear bit with acquire, so it sees that the settler who cleared it had entered;
//   * that entry was there when it began, and nobody was inside, so the settler had left and
//     what it raised was visible: the word was empty when the settler looked.
// The same argument climbs level by level, since a raise sets all levels above. Otherwise the
// taker passes over all words of level 0 once before it says none.
//
// A member that comes or goes while take_lowest runs may or may not count; while no other call
// is under way the answer is exactly the lowest member.
//
// Progress: put, take, contains are wait-free; take_lowest is lock-free (it repeats only when
// another call took the bit that it wanted). Nothing allocates after construction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class bitmap {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// Empty; members are below `capacity`.
  explicit bitmap(std::uint32_t capacity);
  /// Adds `i`, which must not be a member. Publishes the caller's earlier writes to the taker.
  void put(std::uint32_t i) noexcept;
  /// Removes and returns the lowest member; none when no member stayed in it during the call.
  std::uint32_t take_lowest() noexcept;
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
  static constexpr std::uint32_t top_words_max = sync::cache_line / sizeof(std::uint64_t);
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
  /// Takes the lowest bit of word `w` of level 0; none when it was or became empty.
  std::uint32_t take_in(std::uint32_t w) noexcept;
  /// Word `w` of `level` was seen empty: brings the levels above into line.
  void settle(std::uint32_t level, std::uint32_t w) noexcept;
  /// Word `w` of `level` is not empty: says so at all levels above.
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
    for (std::uint64_t left = level_[0][w].load_acquire(); left != 0; left &= left - 1)
      f(w * bits + lowest(left));
}

}  // namespace cairn::detail
