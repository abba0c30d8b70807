// Putting a plan on a device: its tiles and the rank's addresses become one block of memory.
#include "runtime/hip_plan.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

namespace cairn::detail {
namespace {

/// Most bytes of a tile here. A work group moves 16 KiB at once: two rounds hide the time in which
/// it finds the next tile's addresses, and a single image still gives every compute unit work.
constexpr std::uint64_t tile_bytes = 32 * 1024;

template <class T>
std::size_t bytes_of(const std::vector<T>& values) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8 && sizeof(T) % 8 == 0);
  return values.size() * sizeof(T);
}

/// Copies and waits, on a stream of its own.
status copy_to_device(hip_context& on, const memory_block& to, const memory_block& from) noexcept {
  const hip_scope scope(on.ordinal, on.health);
  if (scope.entered() != status::ok) return scope.entered();
  hipStream_t stream = nullptr;
  status code = on.health.judge(
      "hipStreamCreateWithPriority",
      hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, on.lowest_priority));
  if (code != status::ok) return code;
  code = on.health.judge("hipMemcpyAsync", hipMemcpyAsync(to.data(), from.data(), from.size(),
                                                          hipMemcpyHostToDevice, stream));
  if (on.health.lost()) return status::device_lost;
  // Also after a refusal: nothing may still read `from` when it goes.
  const hipError_t waited = when_allowed([&] { return hipStreamSynchronize(stream); });
  const status ended = on.health.judge("hipStreamSynchronize", waited);
  if (ended != status::ok) {
    // It may still do so, and nothing may be freed.
    on.health.lose("hipStreamSynchronize", waited);
    return code != status::ok ? code : ended;
  }
  judge_when_allowed(on.health, "hipStreamDestroy", [&] { return hipStreamDestroy(stream); });
  return code;
}

}  // namespace

result<std::unique_ptr<device_plan>> load_hip_plan(device& owner, hip_context& on,
                                                   const copy_plan& plan,
                                                   const rank_memory& memory) {
  const std::vector<copy_span> tiles = cut_tiles(plan.spans, tile_bytes);
  const std::size_t regions_at = bytes_of(tiles);
  const std::size_t segments_at = regions_at + bytes_of(memory.regions);
  const std::size_t bytes = segments_at + bytes_of(memory.segments);

  auto resident = owner.allocate(bytes);
  if (!resident) return resident.why();
  auto staging = owner.allocate_pinned(bytes);
  if (!staging) return staging.why();
  std::byte* const from = staging.value()->data();
  std::memcpy(from, tiles.data(), bytes_of(tiles));
  std::memcpy(from + regions_at, memory.regions.data(), bytes_of(memory.regions));
  std::memcpy(from + segments_at, memory.segments.data(), bytes_of(memory.segments));
  if (const status code = copy_to_device(on, *resident.value(), *staging.value());
      code != status::ok) {
    // The copy may still run: a lost device keeps its memory, and of others the stream is over.
    return error(code, owner.name() + ": the plan could not be copied to the device");
  }

  const std::byte* const at = resident.value()->data();
  const kernels::copy_tables tables{reinterpret_cast<const copy_span*>(at),
                                    reinterpret_cast<const strided*>(at + regions_at),
                                    reinterpret_cast<const strided*>(at + segments_at),
                                    static_cast<std::uint32_t>(tiles.size()), plan.units};
  return std::unique_ptr<device_plan>(std::make_unique<hip_plan>(
      on, std::move(resident).value(), tables, memory.units, memory.slots));
}

}  // namespace cairn::detail
