// What names one image of a batch to a GPU's copy kernel: words, one for slot and direction, then
// one per unit. Everything else lies on the device already. Knows no HIP.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "kernels/scatter_gather.hpp"

namespace cairn::kernels {

CAIRN_KERNEL_FN constexpr std::uint32_t words_per_image(std::uint32_t units) noexcept {
  return 1 + units;
}

/// Marks a store in an image's first word: slots must be below it.
inline constexpr std::uint32_t store_bit = std::uint32_t{1} << 31;
constexpr std::uint32_t slot_word(copy_kind kind, slot_id slot) noexcept {
  return kind == copy_kind::store ? slot | store_bit : slot;
}

/// What an image's words may name.
struct word_limits {
  std::uint32_t units_per_image = 0;
  std::uint32_t units = 0;
  std::uint32_t slots = 0;
};

/// Writes the words of one image; false when it names a slot or a unit that the rank does not have.
inline bool write_image_words(copy_kind kind, slot_id slot, const unit_id* units,
                              const word_limits& limits, std::uint32_t* words) noexcept {
  if (slot >= limits.slots || units == nullptr) return false;
  words[0] = slot_word(kind, slot);
  std::uint32_t outside = 0;
  for (std::uint32_t i = 0; i < limits.units_per_image; ++i) {
    words[1 + i] = units[i];
    outside |= static_cast<std::uint32_t>(units[i] >= limits.units);
  }
  return outside == 0;
}

}  // namespace cairn::kernels
