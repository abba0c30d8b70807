// Which entry of a table a caller gets: its own one, or a shared one. It knows nothing of what the
// entries hold; the table says whose they are, claims them and frees them.
//
// The first entries are somebody's own, say a slot's or a part's of the threads (several have one
// together where there are more of these than own entries), and who comes for it and finds it free
// claims it: callers for different ones share nothing, and who comes again finds the line in the
// cache. If it is taken, one comes from the stack of the other, shared entries, and goes back there
// when it is free. When the stack is empty too, the own entries of others are looked at.
//
// That none is free at all is said if every own entry was found taken, then the stack empty, then
// every own entry taken again and equal sums of their numbers. A number never falls, and is another
// one when an entry that was free is taken again; so each was taken from the first look at it to
// the last, all of them when the stack was empty.
//
// The same calls in the same order take the same entries.
//
// Orders. Numbers in the code:
//  (1) high water, CAS acq_rel: pairs with (2). Raised before the taker fills the entry, so that a
//      walk up to it meets all that were filled before.
//  (2) high water, load acquire: pairs with (1).
//
// Progress: lock-free; O(own entries) when the own one is taken and no shared one is free.
#pragma once

#include <cstdint>

#include "runtime/index_stack.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class entry_choice {
 public:
  static constexpr std::uint32_t none = index_stack::none;

  /// Of `count` entries those below `own` have somebody. Precondition: own <= count.
  entry_choice(std::uint32_t count, std::uint32_t own) : own_(own), shared_(count - own) {}

  /// An entry that `claim` has claimed; none when all were taken at some moment of the call.
  /// claim(index, number) claims a free entry and returns true, or returns false and the number of
  /// the taken one, by acquire.
  template <class Claim>
  std::uint32_t take(std::uint32_t whose, Claim&& claim) noexcept {
    const std::uint32_t index = choose(whose, claim);
    if (index == none) return none;
    std::uint32_t high = high_water_.load_relaxed();
    while (high <= index && !high_water_.cas_acq_rel(high, index + 1)) {  // (1)
    }
    return index;
  }
  /// The entry has become free, by a write that its next claimer acquires.
  void put(std::uint32_t index) noexcept {
    if (index >= own_) shared_.put(index - own_);
  }

  [[nodiscard]] std::uint32_t own() const noexcept { return own_; }
  /// Whose entry is `whose`'s own. Precondition: own() is not 0.
  [[nodiscard]] std::uint32_t own_of(std::uint32_t whose) const noexcept {
    return whose < own_ ? whose : whose % own_;
  }
  /// Entries below this have been taken at some time.
  [[nodiscard]] std::uint32_t high_water() const noexcept {
    return high_water_.load_acquire();  // (2)
  }

 private:
  template <class Claim>
  std::uint32_t choose(std::uint32_t whose, Claim&& claim) noexcept {
    std::uint64_t number = 0;
    if (own_ != 0 && claim(own_of(whose), number)) return own_of(whose);
    std::uint32_t index = shared_.take();
    for (std::uint64_t before = 0; index == none;) {
      if (const std::uint32_t other = choose_own(claim, before); other != none) return other;
      index = shared_.take();
      if (index != none) break;
      if (sync::mutated("own entries looked at once")) return none;
      std::uint64_t after = 0;
      if (const std::uint32_t other = choose_own(claim, after); other != none) return other;
      if (before == after) return none;
    }
    index += own_;
    claim(index, number);  // nobody else does: it came from the stack
    return index;
  }
  /// One of the own entries, or none, and then the sum of their numbers.
  template <class Claim>
  std::uint32_t choose_own(Claim&& claim, std::uint64_t& sum) noexcept {
    sum = 0;
    for (std::uint32_t index = 0; index < own_; ++index) {
      std::uint64_t number = 0;
      if (claim(index, number)) return index;
      sum += number;
    }
    return none;
  }

  std::uint32_t own_;
  sync::atomic<std::uint32_t> high_water_;
  index_stack shared_;  ///< of index - own_
};

}  // namespace cairn::detail
