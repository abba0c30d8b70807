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
  put(bit_run::of(i));
}

void bitmap::put(bit_run members) noexcept {
  const std::uint32_t w = members.base / bits;
  // (1) acq_rel: pairs with (3), (4), (6), (11). Releases what the caller did to the members
  // before; acquires what a settler whose (6) is earlier has cleared above.
  level_[0][w].fetch_or_acq_rel(members.bits);
  raise(0, w);
}

void bitmap::raise(std::uint32_t level, std::uint32_t w) noexcept {
  for (; level + 1 < levels_; ++level, w /= bits) {
    word& above = level_[level + 1][w / bits];
    // (12) acquire: pairs with (2), by which a bit that is set was set.
    if ((above.load_acquire() & bit_of(w)) != 0) continue;
    // (2) acq_rel: pairs with (5), (6), (8), (12). Releases the bits below; acquires what a settler
    // whose (6) is earlier has cleared above.
    above.fetch_or_acq_rel(bit_of(w));
  }
}

bool bitmap::take(std::uint32_t i) noexcept {
  const std::uint64_t bit = bit_of(i);
  // (3) acq_rel: pairs with (1), through whatever read-modify-writes lie between.
  return (level_[0][i / bits].fetch_and_acq_rel(~bit) & bit) != 0;
}

bit_run bitmap::take_in(std::uint32_t w, std::uint32_t most) noexcept {
  word& at = level_[0][w];
  std::uint64_t seen = at.load_relaxed();  // relaxed: a guess, which (4) judges
  while (seen != 0) {
    const std::uint64_t wanted = lowest_bits(seen, most);
    // (4) acq_rel: pairs with (1). Not a CAS: other bits may change without disturbing these.
    seen = at.fetch_and_acq_rel(~wanted);
    if ((seen & wanted) != 0) return {w * bits, seen & wanted};
  }
  return {};
}

void bitmap::settle(std::uint32_t level, std::uint32_t w) noexcept {
  if (levels_ == 1) return;
  settlers_.fetch_add_relaxed(settler_enters);  // published by the release of (5)
  for (; level + 1 < levels_; ++level, w /= bits) {
    const std::uint64_t bit = bit_of(w);
    // (5) acq_rel: pairs with (2), (8). Acquires the raise; releases the entry above.
    const std::uint64_t old = level_[level + 1][w / bits].fetch_and_acq_rel(~bit);
    // (6) acq_rel: pairs with (1), (2). It writes nothing new, and yet it is a write: whoever sets
    // a bit after it knows of (5).
    word& below = level_[level][w];
    const std::uint64_t again = sync::mutated("set: settler only reads")
                                    ? below.load_acquire()  // (6)
                                    : below.fetch_or_acq_rel(0);
    if (again != 0 && !sync::mutated("set: no second look at the word")) {
      raise(level, w);
      break;
    }
    if ((old & ~bit) != 0) break;
  }
  settlers_.fetch_sub_release(settler_leaves);  // (7) release: what was raised, to (9)
}

std::uint32_t bitmap::first_below(std::uint32_t begin, std::uint64_t seen) const noexcept {
  const word* words = level_[0].get() + begin;
  std::uint32_t passed = 0;
  __builtin_prefetch(&words[lowest(seen)], 1);  // to be written: not first shared, then taken
  do {
    const std::uint32_t w = lowest(seen);
    if (words[w].load_acquire() != 0) return begin + w;  // (8)
    seen &= seen - 1;
  } while (seen != 0 && ++passed <= passes_max);
  return none;
}

void bitmap::settle_below(std::uint32_t begin, std::uint64_t seen) noexcept {
  for (std::uint32_t passed = 0; seen != 0 && passed <= passes_max; ++passed, seen &= seen - 1) {
    const std::uint32_t w = begin + lowest(seen);
    if (level_[0][w].load_acquire() == 0) settle(0, w);  // (8)
  }
}

std::uint32_t bitmap::descend() noexcept {
  const std::uint32_t top = levels_ - 1;
  for (std::uint32_t root = 0; root < words_[top]; ++root) {
    // Goes down while words are not empty; an empty one below a set bit is settled, and the way
    // down begins anew at the root word, whose path has lost that bit or gained a member.
    for (;;) {
      std::uint32_t level = top;
      std::uint32_t w = root;
      std::uint64_t seen = level_[level][w].load_acquire();  // (8) acquire: pairs with (2), (5)
      if (seen == 0) break;
      for (; seen != 0 && level > 1; --level) {
        w = w * bits + lowest(seen);
        seen = level_[level - 1][w].load_acquire();  // (8)
      }
      if (seen != 0 && level == 0) return w;
      if (seen != 0) {
        const std::uint32_t found = first_below(w * bits, seen);
        if (found != none) return found;
        settle_below(w * bits, seen);
      } else {
        settle(level, w);
      }
    }
  }
  return none;
}

std::uint32_t bitmap::take_lowest() noexcept {
  const bit_run one = take_lowest(1);
  return one.bits == 0 ? none : one.first();
}

bit_run bitmap::take_lowest(std::uint32_t most) noexcept {
  if (most == 0) return {};
  for (;;) {
    const std::uint64_t before = settlers_.load_acquire();  // (9) acquire: pairs with (7)
    const std::uint32_t w = descend();
    if (w != none) {
      if (const bit_run taken = take_in(w, most); taken.bits != 0) return taken;
      continue;
    }
    // (10) relaxed: the acquire loads (8) stand before it, so it sees every settler whose
    // clearing they saw.
    if ((before & inside_mask) == 0 && settlers_.load_relaxed() == before) return {};
    while (sync::mutated("wait for settlers") && (settlers_.load_relaxed() & inside_mask) != 0) {
    }
    // Somebody is, or was, between clearing and raising: ask the words themselves.
    for (std::uint32_t v = 0; v < words_[0]; ++v)
      if (const bit_run taken = take_in(v, most); taken.bits != 0) return taken;
    return {};
  }
}

bool bitmap::contains(std::uint32_t i) const noexcept {
  return (level_[0][i / bits].load_acquire() & bit_of(i)) != 0;  // (11)
}

}  // namespace cairn::detail
