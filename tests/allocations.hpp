// Counts the allocations that the calling thread makes. It replaces malloc for the whole program:
// include it in one source file of a test program only.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAIRN_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CAIRN_TEST_SANITIZED 1
#endif
#endif

namespace cairn::tests {

inline std::uint64_t& allocations_of_this_thread() noexcept {
  static thread_local std::uint64_t count = 0;
  return count;
}

/// False where a sanitizer owns malloc: nothing is counted there.
#if defined(CAIRN_TEST_SANITIZED) || !defined(__GLIBC__)
inline constexpr bool allocations_are_counted = false;
#else
inline constexpr bool allocations_are_counted = true;
#endif

}  // namespace cairn::tests

#if !defined(CAIRN_TEST_SANITIZED) && defined(__GLIBC__)
// operator new ends here too.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* malloc(std::size_t bytes) noexcept {
  ++cairn::tests::allocations_of_this_thread();
  return __libc_malloc(bytes);
}
}
#endif
