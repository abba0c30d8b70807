// The units and slots of one rank, with guard bytes around every piece, and images in them. Pieces
// have odd sizes. Knows layouts and bytes, no runtime.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stress/world/image.hpp"

namespace cairn::stress {

struct space_shape {
  std::vector<std::uint64_t> region_bytes{601, 7, 416};
  std::vector<std::uint64_t> segment_bytes{1001, 17, 1500};
  std::uint32_t units = 72;
  std::uint32_t slots = 8;

  [[nodiscard]] layout shape() const {
    layout l;
    for (const std::uint64_t b : region_bytes) l.page_unit_bytes += b;
    for (const std::uint64_t b : segment_bytes) l.image_bytes += b;
    l.slot_bytes = l.image_bytes + 200;
    l.layout_id = "stress";
    return l;
  }
};

class rank_space {
 public:
  rank_space(const space_shape& of, rank_id rank)
      : unit_stream_(std::uint64_t{rank} * 2 + 1), slot_stream_(std::uint64_t{rank} * 2 + 2) {
    memory_.units = of.units;
    memory_.slots = of.slots;
    std::size_t bytes = guard;
    for (const std::uint64_t b : of.region_bytes) bytes += of.units * (b + guard);
    for (const std::uint64_t b : of.segment_bytes) bytes += of.slots * (b + guard);
    bytes_.assign(bytes, guard_byte);
    std::byte* at = bytes_.data() + guard;
    const auto lay = [&at](std::uint64_t piece, std::uint32_t count) {
      const auto stride = static_cast<std::int64_t>(piece + guard);
      const strided made{at, stride, piece};
      at += stride * count;
      return made;
    };
    for (const std::uint64_t b : of.region_bytes) memory_.regions.push_back(lay(b, of.units));
    for (const std::uint64_t b : of.segment_bytes) memory_.segments.push_back(lay(b, of.slots));
  }

  [[nodiscard]] const rank_memory& memory() const noexcept { return memory_; }

  void write_slot(slot_id slot, image_name name) {
    each(memory_.segments, slot, [&](std::byte* piece, std::uint64_t offset, std::uint64_t n) {
      slot_stream_.write(piece, offset, n, name);
    });
  }
  [[nodiscard]] image_stream::reading read_slot(slot_id slot) const {
    return read(memory_.segments, slot, slot_stream_);
  }
  void write_unit(unit_id unit, image_name name) {
    each(memory_.regions, unit, [&](std::byte* piece, std::uint64_t offset, std::uint64_t n) {
      unit_stream_.write(piece, offset, n, name);
    });
  }
  [[nodiscard]] image_stream::reading read_unit(unit_id unit) const {
    return read(memory_.regions, unit, unit_stream_);
  }
  void copy_unit(unit_id from, unit_id to) {
    for (const strided& r : memory_.regions)
      std::memcpy(at(r, to), at(r, from), static_cast<std::size_t>(r.bytes));
  }
  /// Changes one bit of the unit's first region, which every image fills.
  void flip_unit(unit_id unit, std::uint64_t where) {
    const strided& r = memory_.regions.front();
    at(r, unit)[where / 8 % r.bytes] ^= static_cast<std::byte>(1U << (where % 8));
  }

  /// Bytes between the pieces that somebody has written. Slow.
  [[nodiscard]] std::uint64_t broken_guards() const {
    std::uint64_t broken = 0;
    const auto look = [&](const std::vector<strided>& arrays, std::uint32_t count) {
      for (const strided& a : arrays)
        for (std::uint32_t i = 0; i < count; ++i)
          for (std::size_t g = 0; g < guard; ++g)
            if (at(a, i)[a.bytes + g] != guard_byte) ++broken;
    };
    look(memory_.regions, memory_.units);
    look(memory_.segments, memory_.slots);
    return broken;
  }

 private:
  static constexpr std::size_t guard = 24;
  static constexpr std::byte guard_byte{0xA7};

  static std::byte* at(const strided& s, std::uint32_t id) {
    return s.base + static_cast<std::int64_t>(id) * s.stride;
  }
  template <class F>
  static void each(const std::vector<strided>& arrays, std::uint32_t id, F&& f) {
    std::uint64_t offset = 0;
    for (const strided& a : arrays) {
      f(at(a, id), offset, a.bytes);
      offset += a.bytes;
    }
  }
  static image_stream::reading read(const std::vector<strided>& arrays, std::uint32_t id,
                                    const image_stream& as) {
    image_stream::reading seen;
    each(arrays, id, [&](const std::byte* piece, std::uint64_t offset, std::uint64_t n) {
      as.read(piece, offset, n, seen);
    });
    return seen;
  }

  image_stream unit_stream_;
  image_stream slot_stream_;
  std::vector<std::byte> bytes_;
  rank_memory memory_;
};

}  // namespace cairn::stress
