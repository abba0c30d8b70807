// CPU tile copies with non-temporal stores. A copied image is read next by another request or
// another thread, long after it would have left the caches; storing around them saves the read
// for ownership of each line, a third of the traffic. No checking tool sees such stores, so
// sanitizer builds use memcpy, which they do see.
#include "kernels/scatter_gather_host.hpp"

#include <cstdint>
#include <cstring>

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
#include <immintrin.h>
#endif

namespace cairn::kernels {
namespace {

void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#if defined(CAIRN_STREAMING_COPIES)

/// Below this an ordinary copy is as fast: a few lines do not fill the write-combining buffers.
constexpr std::size_t streaming_bytes_min = 1024;
constexpr std::size_t line = 64;

/// Bytes up to the first whole line of the destination.
std::size_t head_bytes(const std::byte* to) noexcept {
  return (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
}

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from,
                                                    std::size_t bytes) {
  if (bytes < streaming_bytes_min) return copy_plain(to, from, bytes);
  const std::size_t head = head_bytes(to);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= 4 * line; bytes -= 4 * line, to += 4 * line, from += 4 * line) {
    const __m512i a = _mm512_loadu_si512(from);
    const __m512i b = _mm512_loadu_si512(from + line);
    const __m512i c = _mm512_loadu_si512(from + 2 * line);
    const __m512i d = _mm512_loadu_si512(from + 3 * line);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + line), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 2 * line), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 3 * line), d);
  }
  for (; bytes >= line; bytes -= line, to += line, from += line)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  std::memcpy(to, from, bytes);
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t bytes) {
  if (bytes < streaming_bytes_min) return copy_plain(to, from, bytes);
  const std::size_t head = head_bytes(to);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  constexpr std::size_t half = line / 2;
  for (; bytes >= 2 * line; bytes -= 2 * line, to += 2 * line, from += 2 * line) {
    const auto* source = reinterpret_cast<const __m256i*>(from);
    const __m256i a = _mm256_loadu_si256(source);
    const __m256i b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2);
    const __m256i d = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + half), b);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + line), c);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + line + half), d);
  }
  std::memcpy(to, from, bytes);
}

#endif

struct variants {
  tile_copy_variant list[3] = {};
  std::size_t count = 0;
};

variants find_variants() noexcept {
  variants found;
#if defined(CAIRN_STREAMING_COPIES)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) found.list[found.count++] = {"avx512", copy_avx512};
  if (__builtin_cpu_supports("avx2")) found.list[found.count++] = {"avx2", copy_avx2};
#endif
  found.list[found.count++] = {"plain", copy_plain};
  return found;
}

}  // namespace

std::span<const tile_copy_variant> tile_copies() noexcept {
  static const variants found = find_variants();
  return {found.list, found.count};
}

void settle() noexcept {
#if defined(CAIRN_STREAMING_COPIES)
  _mm_sfence();
#endif
}

}  // namespace cairn::kernels
