// The kernels of compute. Every piece is cut into parts, which the work groups take in turns; lanes
// share nothing but verdicts. Compiled by the platform's device compiler, and as plain C++ for the
// test double of the runtime.
#include "bench/replay/compute_hip_kernels.hpp"

#include "bench/replay/atomic_word.hpp"
#include "bench/replay/pattern.hpp"

namespace cairn::replay {
namespace {

constexpr std::uint32_t group_threads = 256;
/// Parts that one piece is cut into at most.
constexpr std::uint32_t parts = 16;
/// Words that a part has at least: two for each lane of its group.
constexpr std::uint64_t part_words_min = 2 * group_threads;

/// A piece with the bytes that it should hold.
struct patterned {
  std::byte* at;
  std::uint64_t bytes;
  std::uint64_t seed;
};

__device__ inline patterned piece_of(const strided& array, std::uint32_t id,
                                     const checkpoint_key& key, rank_id rank, piece_kind kind,
                                     std::uint32_t index) {
  return {array.base + array.stride * static_cast<std::int64_t>(id), array.bytes,
          pattern_seed(key, rank, kind, index)};
}

/// Words [first, last) of a piece are part `part` of it.
struct word_range {
  std::uint64_t first;
  std::uint64_t last;
};
__device__ inline word_range part_of(std::uint64_t bytes, std::uint32_t part) {
  const std::uint64_t words = (bytes + 7) / 8;
  std::uint64_t each = (words + parts - 1) / parts;
  if (each < part_words_min) each = part_words_min;
  const std::uint64_t first = part * each;
  const std::uint64_t last = first + each;
  return {first, last < words ? last : words};
}

__device__ inline void verify_part(const patterned& piece, std::uint32_t part, std::uint32_t index,
                                   verdict* found) {
  const word_range range = part_of(piece.bytes, part);
  for (std::uint64_t i = range.first + threadIdx.x; i < range.last; i += blockDim.x) {
    const std::uint64_t wrong = check_pattern_word(piece.at, piece.bytes, piece.seed, i);
    if (wrong == piece.bytes) continue;
    lower_to(found, verdict{index} << verdict_byte_bits | wrong);
    return;  // this lane's later words lie higher
  }
}

__device__ inline void write_part(const patterned& piece, std::uint32_t part) {
  const word_range range = part_of(piece.bytes, part);
  for (std::uint64_t i = range.first + threadIdx.x; i < range.last; i += blockDim.x)
    write_pattern_word(piece.at, piece.bytes, piece.seed, i);
}

template <class Work>
hipError_t launch_any(void (*kernel)(Work), const Work& work, std::uint32_t groups,
                      std::uint32_t threads, hipStream_t on) {
  void* arguments[] = {const_cast<Work*>(&work)};  // read, and copied by the launch
  return hipLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(groups), dim3(threads),
                         arguments, 0, on);
}

std::uint32_t groups_for(std::uint64_t pieces) {
  constexpr std::uint64_t groups_max = 1024;
  return static_cast<std::uint32_t>(pieces * parts < groups_max ? pieces * parts : groups_max);
}

}  // namespace

__global__ void verify_step(verify_work work) {
  const step_tables& of = work.tables;
  const std::uint64_t image_pieces = work.continues != 0 ? of.segment_count : 0;
  const std::uint64_t pieces = image_pieces + std::uint64_t{work.claimed_count} * of.region_count;
  for (std::uint64_t i = blockIdx.x; i < pieces * parts; i += gridDim.x) {
    const std::uint64_t piece = i / parts;
    const auto part = static_cast<std::uint32_t>(i % parts);
    if (piece < image_pieces) {
      const auto index = static_cast<std::uint32_t>(piece);
      verify_part(
          piece_of(of.segments[index], work.slot, work.from, of.rank, piece_kind::segment, index),
          part, index, work.verdicts);
    } else {
      const std::uint64_t unit = (piece - image_pieces) / of.region_count;
      const auto index = static_cast<std::uint32_t>((piece - image_pieces) % of.region_count);
      const kv_content& content = work.claimed[unit];
      verify_part(piece_of(of.regions[index], content.unit, content.key, of.rank,
                           piece_kind::region, index),
                  part, index, work.verdicts + 1 + unit);
    }
  }
}

__global__ void write_step(write_work work) {
  const step_tables& of = work.tables;
  const std::uint64_t unit_pieces = std::uint64_t{work.computed_count} * of.region_count;
  const std::uint64_t image_pieces = unit_pieces + of.segment_count;
  const std::uint64_t pieces = image_pieces + of.gap_count;
  for (std::uint64_t i = blockIdx.x; i < pieces * parts; i += gridDim.x) {
    const std::uint64_t piece = i / parts;
    const auto part = static_cast<std::uint32_t>(i % parts);
    if (piece < unit_pieces) {
      const auto index = static_cast<std::uint32_t>(piece % of.region_count);
      const kv_content& content = work.computed[piece / of.region_count];
      write_part(piece_of(of.regions[index], content.unit, content.key, of.rank, piece_kind::region,
                          index),
                 part);
    } else if (piece < image_pieces) {
      const auto index = static_cast<std::uint32_t>(piece - unit_pieces);
      write_part(
          piece_of(of.segments[index], work.slot, work.to, of.rank, piece_kind::segment, index),
          part);
    } else {
      // Nobody may rely on these bytes, and no copy may touch or need them.
      const stretch& gap = of.gaps[piece - image_pieces];
      std::byte* const at = of.slots + of.slot_bytes * work.slot + gap.offset;
      const word_range range = part_of(gap.bytes, part);
      for (std::uint64_t word = range.first + threadIdx.x; word < range.last; word += blockDim.x)
        for (std::uint64_t byte = 8 * word; byte < 8 * word + 8 && byte < gap.bytes; ++byte)
          at[byte] = static_cast<std::byte>(work.to.lo & 0xff);
    }
  }
}

__global__ void set_bytes(set_work work) {
  const std::uint64_t lanes = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < work.bytes;
       i += lanes)
    work.to[i] = static_cast<std::byte>(work.value);
}

__global__ void spoil_byte(spoil_work work) {
  *work.at = static_cast<std::byte>(static_cast<unsigned>(*work.at) ^ 1U);
}

hipError_t launch(const verify_work& work, hipStream_t on) {
  const std::uint64_t pieces = (work.continues != 0 ? work.tables.segment_count : 0) +
                               std::uint64_t{work.claimed_count} * work.tables.region_count;
  return launch_any(&verify_step, work, groups_for(pieces), group_threads, on);
}
hipError_t launch(const write_work& work, hipStream_t on) {
  const std::uint64_t pieces = std::uint64_t{work.computed_count} * work.tables.region_count +
                               work.tables.segment_count + work.tables.gap_count;
  return launch_any(&write_step, work, groups_for(pieces), group_threads, on);
}
hipError_t launch(const set_work& work, hipStream_t on) {
  return launch_any(&set_bytes, work, 256, group_threads, on);
}
hipError_t launch(const spoil_work& work, hipStream_t on) {
  return launch_any(&spoil_byte, work, 1, 1, on);
}

}  // namespace cairn::replay
