// Some of 64 integers that lie side by side, as bits of one word. Whole runs of them, the usual
// case, are listed and compared many at a time. It knows nothing of atomics.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace cairn::detail {

/// Bit b stands for base + b; base is a multiple of 64.
struct bit_run {
  std::uint32_t base = 0;
  std::uint64_t bits = 0;

  static constexpr bit_run of(std::uint32_t i) noexcept {
    return {i - i % 64, std::uint64_t{1} << i % 64};
  }
  [[nodiscard]] constexpr std::uint32_t first() const noexcept {
    return base + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
};

/// The lowest `most` of the set bits of `from`, or all of them.
constexpr std::uint64_t lowest_bits(std::uint64_t from, std::uint32_t most) noexcept {
  if (most >= 64 || from == 0) return from;
  const int skipped = std::countr_zero(from);
  const std::uint64_t run = (std::uint64_t{1} << most) - 1;
  if ((from >> skipped & run) == run) return run << skipped;
  std::uint64_t left = from;
  for (std::uint32_t i = 0; i < most && left != 0; ++i) left &= left - 1;
  return from & ~left;
}

/// Writes them, lowest first, to the front of `out`, which has room; returns how many.
inline std::uint32_t list(bit_run from, std::span<std::uint32_t> out) noexcept {
  const int skipped = std::countr_zero(from.bits);
  const std::uint64_t run = from.bits >> skipped;
  std::uint32_t count = 0;
  if ((run & (run + 1)) == 0) {
    const std::uint32_t first = from.first();
    count = static_cast<std::uint32_t>(std::countr_one(run));
    for (std::uint32_t i = 0; i < count; ++i) out[i] = first + i;
    return count;
  }
  for (; from.bits != 0; from.bits &= from.bits - 1) out[count++] = from.first();
  return count;
}

/// Whether `ids` are they, all of them, lowest first.
inline bool equals(bit_run run, std::span<const std::uint32_t> ids) noexcept {
  if (ids.empty() || ids.size() > 64) return run.bits == 0 && ids.empty();
  const std::uint32_t first = ids.front();
  if (run.bits == (~std::uint64_t{0} >> (64 - ids.size()) << first % 64)) {
    std::uint32_t differences = first - first % 64 - run.base;
    for (std::uint32_t i = 0; i < ids.size(); ++i) differences |= ids[i] ^ (first + i);
    return differences == 0;
  }
  for (const std::uint32_t id : ids) {
    if (run.bits == 0 || id != run.first()) return false;
    run.bits &= run.bits - 1;
  }
  return run.bits == 0;
}

}  // namespace cairn::detail
