// The table of geometries, and laying one out on a device.
#include "bench/replay/geometry.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "bench/replay/bad_input.hpp"

namespace cairn::replay {
namespace {

using sizes = std::vector<std::uint64_t>;

sizes repeated(std::size_t count, std::uint64_t bytes) {
  return sizes(count, bytes);
}

sizes joined(sizes first, const sizes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::uint64_t sum(const sizes& of) {
  return std::accumulate(of.begin(), of.end(), 0ULL);
}

/// Segments in order with equal gaps before, between and after them; what is left over goes to
/// the last gap.
geometry make(std::string name, sizes regions, std::uint64_t padding, const sizes& segments,
              std::uint64_t slot_bytes) {
  geometry made;
  made.name = std::move(name);
  made.regions = std::move(regions);
  made.region_padding = padding;
  made.slot_bytes = slot_bytes;
  const std::uint64_t gap = (slot_bytes - sum(segments)) / (segments.size() + 1);
  std::uint64_t at = 0;
  auto leave_gap = [&](std::uint64_t bytes) {
    if (bytes > 0) made.gaps.push_back({at, bytes});
    at += bytes;
  };
  for (std::uint64_t bytes : segments) {
    leave_gap(gap);
    made.segments.push_back({at, bytes});
    at += bytes;
  }
  leave_gap(slot_bytes - at);
  return made;
}

const std::vector<geometry>& all() {
  static const std::vector<geometry> table = {
      make("tiny", {10}, 0, {25}, 40),
      make("dsv4_flash", joined({1'441'792}, repeated(21, 8'448)), 0,
           {3'145'728, 1'048'576, 4'194'304, 671'744}, 21'168'128),
      make("gdn_36", repeated(24, 16'384), 0, joined(repeated(36, 1'048'576), repeated(36, 49'152)),
           39'518'208),
      make("ragged", {1'001, 7, 4'099}, 3, {4'001, 3'003, 2'999, 1'801, 541}, 16'391),
      make("replay", repeated(4, 4'096), 0, {16'384, 16'384, 8'192, 8'192, 6'000, 4'848}, 98'304),
  };
  return table;
}

}  // namespace

layout geometry::shape() const {
  layout made;
  made.page_unit_bytes = sum(regions);
  made.slot_bytes = slot_bytes;
  for (const stretch& each : segments) made.image_bytes += each.bytes;
  made.layout_id = "replay/" + name;
  return made;
}

std::uint64_t geometry::memory_bytes(std::uint64_t units, std::uint64_t slots) const {
  return units * (sum(regions) + region_padding * regions.size()) + slots * slot_bytes;
}

std::string geometry_names() {
  std::string names;
  for (const geometry& each : all()) names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

geometry find_geometry(const std::string& name) {
  auto named = [&](const geometry& each) { return each.name == name; };
  auto found = std::find_if(all().begin(), all().end(), named);
  if (found == all().end())
    throw bad_input("--geometry: expected one of " + geometry_names() + ", got " + name);
  return *found;
}

void clear_as_host(std::byte* from, std::uint64_t bytes) {
  std::memset(from, 0, bytes);
}

device_memory place_memory(const geometry& of, device& on, std::uint32_t units, std::uint32_t slots,
                           const memory_clearer& clear) {
  device_memory placed;
  auto take = [&](std::uint64_t bytes) {
    auto block = on.allocate(bytes);
    if (!block)
      throw bad_input("no memory for " + std::to_string(bytes) + " bytes on " + on.name() + ": " +
                      block.why().message());
    // Resident from the start, as an engine's pool is: no copy pays for the first touch.
    clear((*block)->data(), bytes);
    return std::move(block).value();
  };
  placed.units = take(of.memory_bytes(units, 0));
  placed.slots = take(of.memory_bytes(0, slots));
  std::byte* at = placed.units->data();
  for (std::uint64_t bytes : of.regions) {
    const std::uint64_t stride = bytes + of.region_padding;
    placed.addresses.regions.push_back({at, static_cast<std::int64_t>(stride), bytes});
    at += stride * units;
  }
  for (const stretch& each : of.segments)
    placed.addresses.segments.push_back(
        {placed.slots->data() + each.offset, static_cast<std::int64_t>(of.slot_bytes), each.bytes});
  placed.addresses.units = units;
  placed.addresses.slots = slots;
  return placed;
}

}  // namespace cairn::replay
