// CPU tile copies with non-temporal stores. A copied image is read next by another request or
// another thread, long after it would have left the caches; storing around them saves the read
// for ownership of each line, a third of the traffic. No checking tool sees such stores, so
// sanitizer builds use memcpy, which they do see, and ThreadSanitizer's plain words.
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
#if __has_feature(thread_sanitizer)
#define CAIRN_VISIBLE_WORDS 1
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

#if defined(CAIRN_VISIBLE_WORDS)
// As words and bytes, not as a call of memcpy: ThreadSanitizer sees those of all instrumented code,
// whatever it is told of other modules.
__attribute__((no_builtin("memcpy", "memmove"))) void copy_bytes(std::byte* to,
                                                                 const std::byte* from,
                                                                 std::size_t bytes) {
  using loose_word [[gnu::may_alias, gnu::aligned(1)]] = std::uint64_t;
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8)
    *reinterpret_cast<loose_word*>(to + at) = *reinterpret_cast<const loose_word*>(from + at);
  for (; at < bytes; ++at) to[at] = from[at];
}
#else
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

void copy_plain(std::span<const placed_tile> tiles) {
  for (const placed_tile& each : tiles) copy_bytes(each.to, each.from, each.bytes);
}

/// Sums a piece, and copies it while it is still in the nearest cache.
void copy_and_sum_plain(std::span<const placed_tile> tiles) {
  constexpr std::size_t piece = 4096;
  for (const placed_tile& each : tiles)
    for (std::size_t at = 0; at < each.bytes; at += piece) {
      const std::size_t n = std::min(piece, each.bytes - at);
      *each.sum += sum_plain(each.from + at, n, each.image_offset + at);
      copy_bytes(each.to + at, each.from + at, n);
    }
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

#define CAIRN_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,bmi2")))
using reg = __m512i;
constexpr std::size_t reg_bytes = 64;
constexpr std::size_t quarter_bytes = 16;
constexpr std::size_t summing_lanes = 8;

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
CAIRN_TARGET inline void store(std::byte* to, reg r) {
  _mm512_storeu_si512(to, r);
}
/// Sets a bit for each of `count` places.
CAIRN_TARGET inline std::uint64_t first(std::size_t count) {
  return _bzhi_u64(~std::uint64_t{0}, count);
}
/// Less than a register, the rest of which is zero. Masked accesses touch no byte behind the end,
/// and need no branch on how many there are: ends are of all lengths, such a branch goes wrong
/// every other time.
CAIRN_TARGET inline reg load_part(const std::byte* from, std::size_t bytes) {
  return _mm512_maskz_loadu_epi8(first(bytes), from);
}
CAIRN_TARGET inline void store_part(std::byte* to, reg r, std::size_t bytes) {
  // Not to have the line fetched too into which a whole register would reach, all of it masked.
  if (bytes <= quarter_bytes)
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>(first(bytes)), _mm512_castsi512_si128(r));
  else
    _mm512_mask_storeu_epi8(to, first(bytes), r);
}
/// The words that begin within `bytes`; zero for the others.
CAIRN_TARGET inline reg first_words(reg words, std::size_t bytes) {
  return _mm512_maskz_mov_epi64(static_cast<__mmask8>(first((bytes + 7) / 8)), words);
}

#include "kernels/stream_tile.inc"
#undef CAIRN_TARGET

}  // namespace avx512

namespace avx2 {

#define CAIRN_TARGET __attribute__((target("avx2")))
using reg = __m256i;
constexpr std::size_t reg_bytes = 32;
constexpr std::size_t summing_lanes = 4;  // more take more registers than there are

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
CAIRN_TARGET inline void store(std::byte* to, reg r) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), r);
}
CAIRN_TARGET inline reg load_part(const std::byte* from, std::size_t bytes) {
  std::byte filled[reg_bytes] = {};
  std::memcpy(filled, from, bytes);
  return load(filled);
}
CAIRN_TARGET inline void store_part(std::byte* to, reg r, std::size_t bytes) {
  std::memcpy(to, &r, bytes);
}
CAIRN_TARGET inline reg first_words(reg words, std::size_t bytes) {
  const reg begins = _mm256_set_epi64x(24, 16, 8, 0);
  return _mm256_and_si256(words, _mm256_cmpgt_epi64(all(bytes), begins));
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
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
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
