// Drawing keys.
#include "bench/harness/keys.hpp"

#include <algorithm>
#include <cmath>

namespace cairn::bench {

checkpoint_key key_of(std::uint64_t i) {
  random_bits bits(i * 2 + 1);
  const std::uint64_t hi = bits();
  return {hi, bits()};
}

std::vector<std::uint32_t> draw(std::uint64_t keys, std::size_t count, double theta,
                                std::uint64_t seed) {
  random_bits random(seed);
  std::vector<std::uint32_t> drawn(count);
  if (theta <= 0) {
    for (auto& each : drawn) each = static_cast<std::uint32_t>(random.below(keys));
    return drawn;
  }
  double zeta = 0;
  for (std::uint64_t r = 1; r <= keys; ++r) zeta += std::pow(static_cast<double>(r), -theta);
  const double n = static_cast<double>(keys);
  const double zeta_2 = 1 + std::pow(0.5, theta);
  const double eta = (1 - std::pow(2 / n, 1 - theta)) / (1 - zeta_2 / zeta);
  std::vector<std::uint32_t> places(keys);
  for (std::uint64_t i = 0; i < keys; ++i) places[i] = static_cast<std::uint32_t>(i);
  for (std::uint64_t i = keys - 1; i > 0; --i) std::swap(places[i], places[random.below(i + 1)]);
  for (auto& each : drawn) {
    const double u = random.unit();
    const double uz = u * zeta;
    double rank = 0;
    if (uz >= 1) rank = uz < zeta_2 ? 1 : n * std::pow(eta * u - eta + 1, 1 / (1 - theta));
    each = places[std::min(static_cast<std::uint64_t>(rank), keys - 1)];
  }
  return drawn;
}

std::vector<checkpoint_key> keys_of(const std::vector<std::uint32_t>& numbers) {
  std::vector<checkpoint_key> made;
  made.reserve(numbers.size());
  for (const std::uint32_t each : numbers) made.push_back(key_of(each));
  return made;
}

}  // namespace cairn::bench
