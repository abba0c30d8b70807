// The sizes of one episode of a differential test: small, so that everything collides.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

#include "differential.hpp"
#include "differential_policies.hpp"

namespace differential {

struct catalog_shape {
  std::uint32_t units = 0;
  std::uint32_t max_units = 0;
  std::uint32_t per_image = 1;
  std::uint32_t keys = 1;
  std::uint32_t slots = 1;
  std::uint32_t ranks = 1;
  std::uint32_t max_ops = 4096;
  std::uint32_t max_pins = 1024;
  policy_kind policy = policy_kind::least_recently_used;

  static catalog_shape random(dice& random) {
    catalog_shape shape;
    shape.per_image = random.between(1, 5);
    shape.units = random.between(shape.per_image, random.one_in(3) ? 12 : 40);
    shape.max_units = shape.units + (random.one_in(3) ? random.below(8) : 0);
    shape.keys = random.between(2, 16);
    shape.slots = random.between(1, 5);
    shape.ranks = random.one_in(3) ? random.between(2, 3) : 1;
    shape.max_ops = random.one_in(4) ? random.between(1, 4) : 64;
    shape.max_pins = random.one_in(4) ? random.between(1, 2) : 16;
    if (random.one_in(3)) shape.policy = any_policy(random);
    return shape;
  }
  std::string describe() const {
    std::ostringstream text;
    text << units << " units, at most " << max_units << ", " << per_image << " per image, " << keys
         << " keys, " << slots << " slots, " << ranks << " ranks, max_ops " << max_ops
         << ", max_pins " << max_pins << ", policy " << name_of(policy);
    return text.str();
  }
};

}  // namespace differential
