// Memory of the double. To free some waits for all that the device has under way, as it does on
// a device, whoever gave it. A freed block is poisoned: under a sanitizer it is freed indeed,
// elsewhere it is kept until the next reset, which looks whether anybody wrote to it.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/hip_double/state.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAIRN_FREES_AT_ONCE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CAIRN_FREES_AT_ONCE 1
#endif
#endif

using namespace cairn::tests::hip;

namespace cairn::tests::hip {
namespace {

#if defined(CAIRN_FREES_AT_ONCE)
constexpr bool frees_at_once = true;
#else
constexpr bool frees_at_once = false;
#endif
constexpr std::byte unwritten{0xCD};
constexpr std::byte poison{0xDD};
constexpr std::size_t alignment = 256;
/// Larger blocks are not kept: the system takes them back, and who touches them falls.
constexpr std::size_t kept_bytes_max = std::size_t{1} << 20;

const std::byte* bytes_at(const void* memory) noexcept {
  return static_cast<const std::byte*>(memory);
}

hipError_t take(void** memory, std::size_t bytes, int device, unsigned flags = 0) {
  *memory = nullptr;
  if (bytes == 0) return hipSuccess;
  void* made = nullptr;
  if (posix_memalign(&made, alignment, bytes) != 0) return hipErrorOutOfMemory;
  std::memset(made, static_cast<int>(unwritten), bytes);
  auto* const one = new block;
  one->base = static_cast<std::byte*>(made);
  one->bytes = bytes;
  one->device = device;
  one->flags = flags;
  state().blocks.push(one);
  (device == no_device ? state().live_pinned_blocks : state().live_device_blocks)
      .fetch_add(1, std::memory_order_relaxed);
  *memory = made;
  return hipSuccess;
}

block* find(const void* memory) noexcept {
  for (block* each = state().blocks.top(); each != nullptr; each = each->below)
    if (each->base == memory && each->alive.load(std::memory_order_relaxed)) return each;
  return nullptr;
}

/// After it has been freed.
bool kept(const block& one) noexcept {
  return !frees_at_once && one.bytes <= kept_bytes_max;
}

void give(block& one) {
  if (!one.alive.exchange(false, std::memory_order_relaxed)) return;
  if (kept(one))
    std::memset(one.base, static_cast<int>(poison), one.bytes);
  else
    std::free(one.base);
  (one.device == no_device ? state().live_pinned_blocks : state().live_device_blocks)
      .fetch_sub(1, std::memory_order_relaxed);
}

hipError_t give_back(call which, void* memory, bool pinned) {
  if (memory == nullptr) return answer({which, no_device}, [] { return hipSuccess; });
  block* const found = find(memory);
  if (found == nullptr || (found->device == no_device) != pinned) {
    complain(std::string(name_of(which)) + ": not a block that was given out, or not any more");
    return refuse(which, hipErrorInvalidValue);
  }
  const int device = pinned ? this_thread().device : found->device;
  return answer({which, device, true, true}, [&] {
    if (!await_device(device))
      complain(std::string(name_of(which)) + " waits for ever: a stream of the device is held up");
    give(*found);
    return hipSuccess;
  });
}

}  // namespace

bool reachable(int device, const void* memory, std::size_t bytes) noexcept {
  const std::byte* const from = bytes_at(memory);
  for (const block* each = state().blocks.top(); each != nullptr; each = each->below) {
    if (!each->alive.load(std::memory_order_relaxed)) continue;
    if (each->device != no_device && each->device != device) continue;
    if (from >= each->base && from + bytes <= each->base + each->bytes) return true;
  }
  return false;
}

bool fits(hipMemcpyKind kind, const void* to, const void* from) noexcept {
  const auto pinned = [](const void* memory) { return reachable(on_host, memory, 1); };
  switch (kind) {
    case hipMemcpyHostToHost:
      return pinned(to) && pinned(from);
    case hipMemcpyHostToDevice:
      return !pinned(to) && pinned(from);
    case hipMemcpyDeviceToHost:
      return pinned(to) && !pinned(from);
    case hipMemcpyDeviceToDevice:
    case hipMemcpyDefault:
      return true;
  }
  return false;
}

std::vector<block_facts> blocks() {
  std::vector<block_facts> found;
  for (const block* each = state().blocks.top(); each != nullptr; each = each->below)
    if (each->alive.load(std::memory_order_relaxed))
      found.push_back({each->bytes, each->device, each->flags});
  std::reverse(found.begin(), found.end());
  return found;
}

void free_blocks() {
  for (block* each = state().blocks.take(); each != nullptr;) {
    block* const below = each->below;
    if (each->alive.load(std::memory_order_relaxed) || kept(*each)) std::free(each->base);
    delete each;
    each = below;
  }
}

void check_freed_blocks() {
  for (const block* each = state().blocks.top(); each != nullptr; each = each->below)
    if (!each->alive.load(std::memory_order_relaxed) && kept(*each) &&
        !std::all_of(each->base, each->base + each->bytes, [](std::byte b) { return b == poison; }))
      complain("memory was written after it had been freed");
}

}  // namespace cairn::tests::hip

extern "C" {

hipError_t hipMalloc(void** memory, size_t bytes) {
  const int device = this_thread().device;
  return answer({.which = call::hipMalloc, .device = device, .disturbs = true}, [&] {
    return memory == nullptr ? hipErrorInvalidValue : take(memory, bytes, device);
  });
}

hipError_t hipFree(void* memory) {
  return give_back(call::hipFree, memory, false);
}

hipError_t hipHostMalloc(void** memory, size_t bytes, unsigned flags) {
  const int device = this_thread().device;
  return answer({.which = call::hipHostMalloc, .device = device, .disturbs = true}, [&] {
    if (memory == nullptr || (flags & ~(hipHostMallocPortable | hipHostMallocMapped)) != 0)
      return hipErrorInvalidValue;
    return take(memory, bytes, no_device, flags);
  });
}

hipError_t hipHostFree(void* memory) {
  return give_back(call::hipHostFree, memory, true);
}

hipError_t hipHostGetDevicePointer(void** seen, void* memory, unsigned flags) {
  return answer({call::hipHostGetDevicePointer, this_thread().device}, [&] {
    if (seen == nullptr || flags != 0) return hipErrorInvalidValue;
    const block* const found = find(memory);
    if (found == nullptr || found->device != no_device) return hipErrorInvalidValue;
    const bool elsewhere = state().pinned_elsewhere.load(std::memory_order_relaxed);
    *seen = found->base + (elsewhere ? alignment : 0);
    return hipSuccess;
  });
}

}  // extern "C"
