// What one pass over the unit ids of an op tells: are they in range, and do they rise? Knows no op
// and no unit.
//
// A pool hands out its lowest units without a key first, so the ids of an op mostly rise, and what
// rises is distinct. Whether others are distinct is for copy_thread to find out.
//
// Both questions are answered by the highest bits of differences, without a branch, so that a
// compiler does several ids at once. An id is at least 2^31, or beyond `units` and then units - 1 -
// id has that bit; below 2^31 a difference has it where the ids rise.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::detail {

enum class id_run : std::uint8_t {
  wrong,   ///< out of range
  mixed,   ///< in range; may be distinct
  rising,  ///< in range and distinct
};

/// Bit 31: an id is not below `units`, which is at most 2^31.
inline std::uint32_t out_of_range(std::uint32_t id, std::uint32_t units) noexcept {
  return id | (units - 1 - id);
}

/// Whether all of `ids` are below `units`.
inline bool in_range(std::span<const unit_id> ids, std::uint32_t units) noexcept {
  std::uint32_t out = 0;
  for (const unit_id id : ids) out |= out_of_range(id, units);
  return out >> 31 == 0;
}

/// Copies `ids`, of which there is at least one, to `to`, and judges what it has copied: an
/// engine's ids may lie where another process writes.
inline id_run copy_ids(std::span<const unit_id> ids, unit_id* to, std::uint32_t units) noexcept {
  std::memcpy(to, ids.data(), ids.size_bytes());
  std::uint32_t rises = ~std::uint32_t{0};
  std::uint32_t out = out_of_range(to[0], units);
  for (std::size_t i = 1; i < ids.size(); ++i) {
    rises &= to[i - 1] - to[i];
    out |= out_of_range(to[i], units);
  }
  if (out >> 31 != 0) return id_run::wrong;
  return rises >> 31 != 0 ? id_run::rising : id_run::mixed;
}

}  // namespace cairn::detail
