// The protocol is explained in bitmap.hpp.
#include "runtime/bitmap.hpp"

namespace cairn::detail {

bitmap::bitmap(std::uint32_t capacity) : capacity_(capacity) {
  std::uint32_t members = capacity == 0 ? 1 : capacity;
  for (levels_ = 0;;) {
    const std::uint32_t words = (members - 1) / bits + 1;
    words_[levels_] = words;
    level_[levels_] = std::make_unique<word[]>(words);
    ++levels_;
    if (words <= top_words_max) break;
    members = words;
  }
}

void bitmap::put(std::uint32_t i) noexcept {
  // (1) release: what the caller did to the member before, to the taker's (3) or (4).
  level_[0][i / bits].fetch_or_release(bit_of(i));
  raise(0, i / bits);
}

void bitmap::raise(std::uint32_t level, std::uint32_t w) noexcept {
  for (; level + 1 < levels_; ++level, w /= bits)
    // (2) release: the bits below, to a settler's (5) that comes later. A plain look ("it is set
    // already") would not do: the settler might miss the bit below and this thread the clearing.
    level_[level + 1][w / bits].fetch_or_release(bit_of(w));
}

bool bitmap::take(std::uint32_t i) noexcept {
  const std::uint64_t bit = bit_of(i);
  // (3) acq_rel: acquires (1), through whatever read-modify-writes lie between.
  const std::uint64_t old = level_[0][i / bits].fetch_and_acq_rel(~bit);
  if (old == bit) settle(0, i / bits);
  return (old & bit) != 0;
}

std::uint32_t bitmap::take_in(std::uint32_t w) noexcept {
  word& at = level_[0][w];
  std::uint64_t seen = at.load_relaxed();
  while (seen != 0) {
    const std::uint64_t bit = seen & (~seen + 1);
    // (4) acq_rel: acquires (1). Not a CAS: other bits may change without disturbing this one.
    const std::uint64_t old = at.fetch_and_acq_rel(~bit);
    if (old == bit) settle(0, w);
    if ((old & bit) != 0) return w * bits + lowest(bit);
    seen = old;
  }
  return none;
}

void bitmap::settle(std::uint32_t level, std::uint32_t w) noexcept {
  if (levels_ == 1) return;
  settlers_.fetch_add_relaxed(settler_enters);  // published by the release of (5)
  for (; level + 1 < levels_; ++level, w /= bits) {
    const std::uint64_t bit = bit_of(w);
    // (5) acq_rel: acquires (2), so that (6) sees the putter's bit; releases the entry above
    // to the acquire loads (8).
    const std::uint64_t old = level_[level + 1][w / bits].fetch_and_acq_rel(~bit);
    if (level_[level][w].load_acquire() != 0) {  // (6)
      raise(level, w);
      break;
    }
    if ((old & ~bit) != 0) break;
  }
  settlers_.fetch_sub_release(settler_leaves);  // (7) release: what was raised, to (9)
}

std::uint32_t bitmap::descend() noexcept {
  const std::uint32_t top = levels_ - 1;
  for (std::uint32_t root = 0; root < words_[top]; ++root) {
    // Goes down while words are not empty; an empty one below a set bit is settled, and the way
    // down begins anew at the root word, whose path has lost that bit or gained a member.
    for (;;) {
      std::uint32_t level = top;
      std::uint32_t w = root;
      std::uint64_t seen = level_[level][w].load_acquire();  // (8) acquire: pairs with (5)
      if (seen == 0) break;
      while (seen != 0 && level > 0) {
        w = w * bits + lowest(seen);
        --level;
        seen = level_[level][w].load_acquire();  // (8)
      }
      if (seen != 0) return w;
      settle(level, w);
    }
  }
  return none;
}

std::uint32_t bitmap::take_lowest() noexcept {
  for (;;) {
    const std::uint64_t before = settlers_.load_acquire();  // (9) acquire: pairs with (7)
    const std::uint32_t w = descend();
    if (w != none) {
      const std::uint32_t i = take_in(w);
      if (i != none) return i;
      continue;
    }
    // (10) relaxed: the acquire loads (8) stand before it, so it sees every settler whose
    // clearing they saw.
    if ((before & inside_mask) == 0 && settlers_.load_relaxed() == before) return none;
    // Somebody is, or was, between clearing and raising: ask the words themselves.
    for (std::uint32_t v = 0; v < words_[0]; ++v) {
      const std::uint32_t i = take_in(v);
      if (i != none) return i;
    }
    return none;
  }
}

bool bitmap::contains(std::uint32_t i) const noexcept {
  return (level_[0][i / bits].load_acquire() & bit_of(i)) != 0;
}

}  // namespace cairn::detail
