#include "stress/explore/arena.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace cairn::explore {

namespace {

alignas(4096) std::byte block[arena::capacity];
std::byte* copy = nullptr;
std::size_t top = 0;
std::size_t kept = 0;
std::size_t most = 0;
bool active = false;

// Not memcpy: ThreadSanitizer would see the copy, and it is no access of the program's.
void copy_unseen(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t at = (top + alignment - 1) / alignment * alignment;
  if (at + bytes > arena::capacity) {
    std::fputs("explore: the scene needs more memory than the arena has\n", stderr);
    std::abort();
  }
  top = at + bytes;
  if (top > most) most = top;
  return block + at;
}

}  // namespace

void arena::open() noexcept {
  std::memset(block, 0, most);
  top = most = kept = 0;
  active = true;
}

void arena::keep() {
  active = false;
  std::free(copy);
  kept = top;
  copy = static_cast<std::byte*>(std::malloc(kept + 1));
  copy_unseen(copy, block, kept);
  active = true;
}

void arena::rewind() noexcept {
  copy_unseen(block, copy, kept);
  top = kept;
  active = true;
}

void arena::leave() noexcept {
  active = false;
}

void arena::enter() noexcept {
  active = true;
}

bool arena::holds(const void* at) noexcept {
  const auto* p = static_cast<const std::byte*>(at);
  return p >= block && p < block + capacity;
}

std::size_t arena::used() noexcept {
  return kept;
}

std::uint64_t arena::digest() noexcept {
  std::uint64_t h = 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i + 8 <= kept; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, block + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace cairn::explore

// ---- the program's allocation functions: see --wrap in CMakeLists.txt -----------------------
//
// Not by replacing them: ThreadSanitizer's runtime has replaced them already. What libstdc++
// allocates inside itself stays on the heap.

extern "C" {
void* __real_malloc(std::size_t bytes);
void __real_free(void* at);
void* __real__Znwm(std::size_t bytes);
void* __real__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment);
void __real__ZdlPv(void* at) noexcept;
void __real__ZdlPvSt11align_val_t(void* at, std::align_val_t alignment) noexcept;
}

namespace {

void* allocate(std::size_t bytes) {
  if (!cairn::explore::active) return __real__Znwm(bytes);
  return cairn::explore::take(bytes, alignof(std::max_align_t));
}
void* allocate(std::size_t bytes, std::align_val_t alignment) {
  if (!cairn::explore::active) return __real__ZnwmSt11align_val_t(bytes, alignment);
  return cairn::explore::take(bytes, static_cast<std::size_t>(alignment));
}
void release(void* at) noexcept {
  if (!cairn::explore::arena::holds(at)) __real__ZdlPv(at);
}
void release(void* at, std::align_val_t alignment) noexcept {
  if (!cairn::explore::arena::holds(at)) __real__ZdlPvSt11align_val_t(at, alignment);
}

}  // namespace

extern "C" {
void* __wrap_malloc(std::size_t bytes);
void __wrap_free(void* at);
void* __wrap_malloc(std::size_t bytes) {
  if (!cairn::explore::active) return __real_malloc(bytes);
  return cairn::explore::take(bytes, alignof(std::max_align_t));
}
void __wrap_free(void* at) {
  if (!cairn::explore::arena::holds(at)) __real_free(at);
}

void* __wrap__Znwm(std::size_t bytes);
void* __wrap__Znam(std::size_t bytes);
void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment);
void* __wrap__ZnamSt11align_val_t(std::size_t bytes, std::align_val_t alignment);
void __wrap__ZdlPv(void* at) noexcept;
void __wrap__ZdaPv(void* at) noexcept;
void __wrap__ZdlPvm(void* at, std::size_t) noexcept;
void __wrap__ZdaPvm(void* at, std::size_t) noexcept;
void __wrap__ZdlPvSt11align_val_t(void* at, std::align_val_t alignment) noexcept;
void __wrap__ZdaPvSt11align_val_t(void* at, std::align_val_t alignment) noexcept;
void __wrap__ZdlPvmSt11align_val_t(void* at, std::size_t, std::align_val_t alignment) noexcept;
void __wrap__ZdaPvmSt11align_val_t(void* at, std::size_t, std::align_val_t alignment) noexcept;

void* __wrap__Znwm(std::size_t bytes) {
  return allocate(bytes);
}
void* __wrap__Znam(std::size_t bytes) {
  return allocate(bytes);
}
void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, alignment);
}
void* __wrap__ZnamSt11align_val_t(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, alignment);
}
void __wrap__ZdlPv(void* at) noexcept {
  release(at);
}
void __wrap__ZdaPv(void* at) noexcept {
  release(at);
}
void __wrap__ZdlPvm(void* at, std::size_t) noexcept {
  release(at);
}
void __wrap__ZdaPvm(void* at, std::size_t) noexcept {
  release(at);
}
void __wrap__ZdlPvSt11align_val_t(void* at, std::align_val_t alignment) noexcept {
  release(at, alignment);
}
void __wrap__ZdaPvSt11align_val_t(void* at, std::align_val_t alignment) noexcept {
  release(at, alignment);
}
void __wrap__ZdlPvmSt11align_val_t(void* at, std::size_t, std::align_val_t alignment) noexcept {
  release(at, alignment);
}
void __wrap__ZdaPvmSt11align_val_t(void* at, std::size_t, std::align_val_t alignment) noexcept {
  release(at, alignment);
}
}
