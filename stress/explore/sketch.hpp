// How many different values were seen, in 16 KiB: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier
// 2007) with linear counting for few; about 1 % off. Two of them can be merged.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace cairn::explore {

class sketch {
 public:
  void add(std::uint64_t hash) noexcept {
    hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    hash ^= hash >> 33;
    std::uint8_t& r = registers_[hash >> (64 - index_bits)];
    const auto rank = static_cast<std::uint8_t>(std::countl_zero((hash << index_bits) | 1) + 1);
    r = std::max(r, rank);
  }
  void merge(const sketch& other) noexcept {
    for (std::size_t i = 0; i < size; ++i)
      registers_[i] = std::max(registers_[i], other.registers_[i]);
  }
  [[nodiscard]] std::uint64_t count() const noexcept {
    double sum = 0;
    std::size_t empty = 0;
    for (std::uint8_t r : registers_) {
      sum += std::ldexp(1.0, -r);
      if (r == 0) ++empty;
    }
    const auto m = static_cast<double>(size);
    const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    const double few = empty == 0 ? raw : m * std::log(m / static_cast<double>(empty));
    return static_cast<std::uint64_t>((raw <= 2.5 * m && empty != 0 ? few : raw) + 0.5);
  }

 private:
  static constexpr unsigned index_bits = 14;
  static constexpr std::size_t size = std::size_t{1} << index_bits;
  std::array<std::uint8_t, size> registers_{};
};

}  // namespace cairn::explore
