// Keys of everything that the replay writes: KV blocks, checkpoints, and states that nobody may
// ever resume. Each domain has its own tag, and both halves of a key are hashed independently.
// Knows no trace and no library state.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "bench/replay/device_code.hpp"

namespace cairn::replay {

/// What a key stands for. A tag separates the domains, so that no two can spell the same key.
enum class key_domain : std::uint64_t {
  block = 0x626c6f636b000001,       ///< a whole block of a prompt, and the state at its end
  private_kv = 0x6b76000000000002,  ///< a unit of one run that nobody else can name
  state = 0x7374617465000003,       ///< a slot's state between boundaries
};

/// A bijection of 64-bit words (the finaliser of SplitMix64).
CAIRN_ON_DEVICE_TOO constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Another one, with other constants (the finaliser of MurmurHash3).
constexpr std::uint64_t mixed_again(std::uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

constexpr checkpoint_key key_of(key_domain domain, std::uint64_t first,
                                std::uint64_t second = 0) noexcept {
  const auto tag = static_cast<std::uint64_t>(domain);
  return {mixed(mixed(mixed(tag) ^ first) ^ second),
          mixed_again(mixed_again(mixed_again(tag) + first) + second)};
}

}  // namespace cairn::replay
