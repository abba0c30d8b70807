// Time for ages, to a few milliseconds. An exact look at the clock has the processor finish
// everything before it first, a miss in the cache included: whoever looks up many keys would wait
// for each of them.
#pragma once

#include <cstdint>
#include <ctime>

namespace cairn::detail {

/// Nanoseconds of `clock` at the last tick of the kernel's timer: never later than clock::now().
inline std::int64_t coarse_now_ns() noexcept {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
  return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

}  // namespace cairn::detail
