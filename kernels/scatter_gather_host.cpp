// CPU tile copies with non-temporal stores. A copied image is read next by another request or
// another thread, long after it would have left the caches; storing around them saves the read
// for ownership of each line, a third of the traffic. No checking tool sees such stores, so
// sanitizer builds use memcpy, which they do see.
#include "kernels/scatter_gather_host.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/checksum.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAIRN_VISIBLE_COPIES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
#define CAIRN_VISIBLE_COPIES 1
#endif
#endif

#if defined(__x86_64__) && !defined(CAIRN_VISIBLE_COPIES)
#define CAIRN_STREAMING_COPIES 1
#if defined(__GNUC__) && !defined(__clang__)
// GCC's own headers leave a masked instruction's old value undefined on purpose, and warn of it.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace cairn::kernels {
namespace {

/// Sums words one by one: short pieces, and ends.
std::uint64_t sum_plain(const std::byte* from, std::size_t bytes, std::uint64_t image_offset) {
  std::uint64_t sum = 0;
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::memcpy(&word, from + at, 8);
    sum += word_sum(word, image_offset + at);
  }
  if (at == bytes) return sum;
  word = 0;
  std::memcpy(&word, from + at, bytes - at);
  return sum + word_sum(word, image_offset + at);
}

/// Sums a piece, and copies it while it is still in the nearest cache.
std::uint64_t copy_and_sum_one(const placed_tile& tile) {
  constexpr std::size_t piece = 4096;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < tile.bytes; at += piece) {
    const std::size_t n = std::min(piece, tile.bytes - at);
    sum += sum_plain(tile.from + at, n, tile.image_offset + at);
    std::memcpy(tile.to + at, tile.from + at, n);
  }
  return sum;
}

template <bool Summing>
std::uint64_t copy_one(const placed_tile& tile) {
  if (Summing) return copy_and_sum_one(tile);
  std::memcpy(tile.to, tile.from, tile.bytes);
  return 0;
}

void copy_plain(std::span<const placed_tile> tiles) {
  for (const placed_tile& each : tiles) copy_one<false>(each);
}

std::uint64_t copy_and_sum_plain(std::span<const placed_tile> tiles) {
  std::uint64_t sum = 0;
  for (const placed_tile& each : tiles) sum += copy_one<true>(each);
  return sum;
}

#if defined(CAIRN_STREAMING_COPIES)

/// Below this an ordinary copy is as fast: a few lines do not fill the write-combining buffers.
constexpr std::size_t streaming_bytes_min = 1024;
constexpr std::size_t line = 64;

/// Bytes up to the first whole line of the destination.
std::size_t head_bytes(const std::byte* to) noexcept {
  return (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
}

// What the instruction sets differ in: `reg` holds reg_bytes, and each function is compiled for its
// set alone.
namespace avx512 {

#define CAIRN_TARGET __attribute__((target("avx512f")))
using reg = __m512i;
constexpr std::size_t reg_bytes = 64;

CAIRN_TARGET inline reg zero() {
  return _mm512_setzero_si512();
}
CAIRN_TARGET inline reg load(const std::byte* from) {
  return _mm512_loadu_si512(from);
}
CAIRN_TARGET inline void stream(std::byte* to, reg r) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), r);
}
CAIRN_TARGET inline reg plus(reg a, reg b) {
  return _mm512_add_epi64(a, b);
}
CAIRN_TARGET inline reg all(std::uint64_t value) {
  return _mm512_set1_epi64(static_cast<long long>(value));
}
/// Of each word of `words`, what it adds to the sum.
CAIRN_TARGET inline reg sums_of(reg words, reg keys) {
  const reg x = _mm512_xor_si512(words, keys);
  return _mm512_add_epi64(_mm512_mul_epu32(x, _mm512_srli_epi64(x, 32)), x);
}

#include "kernels/stream_tile.inc"
#undef CAIRN_TARGET

}  // namespace avx512

namespace avx2 {

#define CAIRN_TARGET __attribute__((target("avx2")))
using reg = __m256i;
constexpr std::size_t reg_bytes = 32;

CAIRN_TARGET inline reg zero() {
  return _mm256_setzero_si256();
}
CAIRN_TARGET inline reg load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
CAIRN_TARGET inline void stream(std::byte* to, reg r) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), r);
}
CAIRN_TARGET inline reg plus(reg a, reg b) {
  return _mm256_add_epi64(a, b);
}
CAIRN_TARGET inline reg all(std::uint64_t value) {
  return _mm256_set1_epi64x(static_cast<long long>(value));
}
CAIRN_TARGET inline reg sums_of(reg words, reg keys) {
  const reg x = _mm256_xor_si256(words, keys);
  return _mm256_add_epi64(_mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)), x);
}

#include "kernels/stream_tile.inc"
#undef CAIRN_TARGET

}  // namespace avx2

#endif

struct variants {
  tiles_copy_variant list[3] = {};
  std::size_t count = 0;
};

variants find_variants() noexcept {
  variants found;
#if defined(CAIRN_STREAMING_COPIES)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    found.list[found.count++] = {"avx512", avx512::copy, avx512::copy_and_sum};
  if (__builtin_cpu_supports("avx2"))
    found.list[found.count++] = {"avx2", avx2::copy, avx2::copy_and_sum};
#endif
  found.list[found.count++] = {"plain", copy_plain, copy_and_sum_plain};
  return found;
}

}  // namespace

std::span<const tiles_copy_variant> tile_copies() noexcept {
  static const variants found = find_variants();
  return {found.list, found.count};
}

void settle() noexcept {
#if defined(CAIRN_STREAMING_COPIES)
  _mm_sfence();
#endif
}

}  // namespace cairn::kernels
