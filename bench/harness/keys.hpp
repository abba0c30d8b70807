// Keys, and the order in which a benchmark asks for them. Knows nothing of who answers.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

namespace cairn::bench {

/// A small generator of 64 random bits (SplitMix64; Steele, Lea, Flood 2014).
class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform below `bound`, which has at most 32 bits.
  std::uint64_t below(std::uint64_t bound) { return ((*this)() >> 32) * bound >> 32; }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// The i-th key: 128 bits that look random, as a hash of tokens does.
checkpoint_key key_of(std::uint64_t i);

/// `count` numbers below `keys`, uniform, or (theta > 0) by Zipf's law: rank r with a weight of
/// r^-theta, ranks scattered over the numbers. By the method of Gray et al., "Quickly generating
/// billion-record synthetic databases", 1994.
std::vector<std::uint32_t> draw(std::uint64_t keys, std::size_t count, double theta,
                                std::uint64_t seed);

/// The keys of `numbers`.
std::vector<checkpoint_key> keys_of(const std::vector<std::uint32_t>& numbers);

}  // namespace cairn::bench
