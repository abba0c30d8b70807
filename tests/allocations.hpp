// Counts the allocations that the calling thread makes. It replaces functions of the whole
// program: include it in one source file of a test program only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace cairn::tests {

inline std::uint64_t& allocations_of_this_thread() noexcept {
  static thread_local std::uint64_t count = 0;
  return count;
}

}  // namespace cairn::tests

// A sanitizer owns malloc; there only operator new is counted. Elsewhere malloc is replaced too,
// since not everybody allocates with new.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAIRN_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CAIRN_TEST_SANITIZED 1
#endif
#endif

#if defined(CAIRN_TEST_SANITIZED) || !defined(__GLIBC__)
void* operator new(std::size_t bytes) {
  ++cairn::tests::allocations_of_this_thread();
  if (void* made = std::malloc(bytes != 0 ? bytes : 1)) return made;
  throw std::bad_alloc();
}
void operator delete(void* what) noexcept {
  std::free(what);
}
void operator delete(void* what, std::size_t) noexcept {
  std::free(what);
}
#else
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* malloc(std::size_t bytes) noexcept {
  ++cairn::tests::allocations_of_this_thread();
  return __libc_malloc(bytes);
}
}
#endif
