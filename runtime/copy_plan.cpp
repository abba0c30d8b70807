// Cuts copy plans. Knows sizes only.
#include "runtime/copy_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

namespace cairn {
namespace {

/// One side of the copy, for the walk and for messages.
struct side {
  const std::vector<strided>& pieces;
  std::uint32_t count;  ///< how many units or slots
  std::uint64_t total;  ///< what the pieces must add up to
  const char* none;
  const char* empty;
  const char* overlap;
  const char* range;
  const char* sum;
};

std::uint64_t magnitude(std::int64_t value) noexcept {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

/// True when `count` pieces lie within a signed 63-bit distance of the base.
bool addressable(const strided& piece, std::uint32_t count) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (piece.bytes > most) return false;
  if (count < 2) return true;
  return magnitude(piece.stride) <= (most - piece.bytes) / (count - 1);
}

result<void> check_side(const side& s) {
  if (s.pieces.empty()) return error(status::invalid, s.none);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < s.pieces.size(); ++i) {
    const strided& piece = s.pieces[i];
    if (piece.bytes == 0) return error(status::invalid, s.empty, i, 1, 0);
    if (!addressable(piece, s.count))
      return error(status::invalid, s.range, i, s.count, magnitude(piece.stride));
    if (s.count > 1 && magnitude(piece.stride) < piece.bytes)
      return error(status::invalid, s.overlap, i, piece.bytes, magnitude(piece.stride));
    if (piece.bytes > s.total - sum)
      return error(status::invalid, s.sum, i, s.total - sum, piece.bytes);
    sum += piece.bytes;
  }
  if (sum != s.total) return error(status::invalid, s.sum, s.pieces.size(), s.total, sum);
  return {};
}

/// Walks both sides in step and calls f once per span, in image order; stops when f says so.
template <class F>
void walk(const copy_plan& plan, F&& f) {
  copy_span at;
  while (at.image_offset < plan.image_bytes) {
    const std::uint64_t segment_left = plan.segment_bytes[at.segment] - at.segment_offset;
    const std::uint64_t region_left = plan.region_bytes[at.region] - at.region_offset;
    at.bytes = std::min(segment_left, region_left);
    if (!f(at)) return;
    at.image_offset += at.bytes;
    at.segment_offset += at.bytes;
    at.region_offset += at.bytes;
    if (at.segment_offset == plan.segment_bytes[at.segment]) {
      ++at.segment;
      at.segment_offset = 0;
    }
    if (at.region_offset == plan.region_bytes[at.region]) {
      at.region_offset = 0;
      if (++at.region == plan.region_bytes.size()) {
        at.region = 0;
        ++at.unit;
      }
    }
  }
}

/// The bytes of a strided array, from its lowest address up.
struct extent {
  extent(const strided& array, std::uint32_t pieces) noexcept
      : low(reinterpret_cast<std::uintptr_t>(array.base)),
        step(std::max<std::uint64_t>(1, magnitude(array.stride))),
        bytes(array.bytes),
        count(pieces) {
    if (array.stride < 0) low -= (count - 1) * step;
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return low + (count - 1) * step + bytes; }
  /// Whether one of the pieces has a byte of [from, from + length).
  [[nodiscard]] bool meets(std::uint64_t from, std::uint64_t length) const noexcept {
    // The first piece that ends behind `from`.
    const std::uint64_t first = from < low + bytes ? 0 : (from - low - bytes) / step + 1;
    return first < count && low + first * step < from + length;
  }

  std::uint64_t low;
  std::uint64_t step;
  std::uint64_t bytes;
  std::uint64_t count;
};

bool share_bytes(const extent& a, const extent& b) noexcept {
  if (a.end() <= b.low || b.end() <= a.low) return false;
  // How two pieces lie to each other depends on the difference of their numbers alone.
  if (a.step == b.step) return b.meets(a.low, a.bytes) || a.meets(b.low, b.bytes);
  const extent& few = a.count <= b.count ? a : b;
  const extent& many = a.count <= b.count ? b : a;
  for (std::uint64_t i = 0; i < few.count; ++i)
    if (many.meets(few.low + i * few.step, few.bytes)) return true;
  return false;
}

}  // namespace

std::vector<copy_span> cut_tiles(const std::vector<copy_span>& spans, std::uint64_t most) {
  std::size_t count = 0;
  for (const copy_span& whole : spans)
    count += static_cast<std::size_t>((whole.bytes - 1) / most + 1);
  std::vector<copy_span> tiles;
  tiles.reserve(count);
  for (const copy_span& whole : spans) {
    for (std::uint64_t offset = 0; offset < whole.bytes; offset += most) {
      copy_span tile = whole;
      tile.image_offset += offset;
      tile.segment_offset += offset;
      tile.region_offset += offset;
      tile.bytes = std::min(most, whole.bytes - offset);
      tiles.push_back(tile);
    }
  }
  return tiles;
}

result<copy_plan> make_copy_plan(const layout& shape, const rank_memory& memory) {
  if (result<void> valid = shape.validate(); !valid) return valid.why();
  const side regions{memory.regions,
                     memory.units,
                     shape.page_unit_bytes,
                     "rank_memory has no regions",
                     "region has no bytes",
                     "region's stride is shorter than the region",
                     "region's addresses do not fit in 63 bits",
                     "regions do not add up to page_unit_bytes"};
  const side segments{memory.segments,
                      memory.slots,
                      shape.image_bytes,
                      "rank_memory has no segments",
                      "segment has no bytes",
                      "segment's stride is shorter than the segment",
                      "segment's addresses do not fit in 63 bits",
                      "segments do not add up to image_bytes"};
  if (result<void> ok = check_side(regions); !ok) return ok.why();
  if (result<void> ok = check_side(segments); !ok) return ok.why();

  copy_plan plan;
  plan.image_bytes = shape.image_bytes;
  plan.units = shape.units_per_checkpoint();
  for (const strided& region : memory.regions) plan.region_bytes.push_back(region.bytes);
  for (const strided& segment : memory.segments) plan.segment_bytes.push_back(segment.bytes);

  std::uint64_t spans = 0;
  std::uint64_t tiles = 0;
  walk(plan, [&](const copy_span& span) {
    ++spans;
    tiles += (span.bytes - 1) / copy_plan::tile_bytes + 1;
    return tiles <= copy_plan::max_pieces;
  });
  if (tiles > copy_plan::max_pieces)
    return error(status::limit, "image needs too many tiles", shape.image_bytes,
                 copy_plan::max_pieces, tiles);
  plan.spans.reserve(static_cast<std::size_t>(spans));
  walk(plan, [&](const copy_span& span) {
    plan.spans.push_back(span);
    return true;
  });
  plan.tiles = cut_tiles(plan.spans, copy_plan::tile_bytes);
  return plan;
}

result<void> check_plan_memory(const copy_plan& plan, const rank_memory& memory) {
  if (memory.regions.size() != plan.region_bytes.size())
    return error(status::invalid, "plan was cut for another number of regions", 0,
                 plan.region_bytes.size(), memory.regions.size());
  if (memory.segments.size() != plan.segment_bytes.size())
    return error(status::invalid, "plan was cut for another number of segments", 0,
                 plan.segment_bytes.size(), memory.segments.size());
  for (std::size_t i = 0; i < memory.regions.size(); ++i) {
    if (memory.regions[i].base == nullptr)
      return error(status::invalid, "region has a null base", i, 1, 0);
    if (memory.regions[i].bytes != plan.region_bytes[i])
      return error(status::invalid, "plan was cut for a region of another size", i,
                   plan.region_bytes[i], memory.regions[i].bytes);
  }
  for (std::size_t i = 0; i < memory.segments.size(); ++i) {
    if (memory.segments[i].base == nullptr)
      return error(status::invalid, "segment has a null base", i, 1, 0);
    if (memory.segments[i].bytes != plan.segment_bytes[i])
      return error(status::invalid, "plan was cut for a segment of another size", i,
                   plan.segment_bytes[i], memory.segments[i].bytes);
  }
  return {};
}

result<void> check_apart(const rank_memory& memory) {
  std::vector<extent> all;
  all.reserve(memory.regions.size() + memory.segments.size());
  for (const strided& region : memory.regions) all.emplace_back(region, memory.units);
  for (const strided& segment : memory.segments) all.emplace_back(segment, memory.slots);
  const auto piece = [regions = memory.regions.size()](std::size_t i) {
    return i < regions ? "region " + std::to_string(i) : "segment " + std::to_string(i - regions);
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (!share_bytes(all[j], all[i])) continue;
      return error(status::invalid, piece(i)
                                        .append(" shares bytes with ")
                                        .append(piece(j))
                                        .append(": expected units and slots that lie apart"));
    }
  return {};
}

}  // namespace cairn
