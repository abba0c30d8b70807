// The named geometries and the memory of a device laid out by one. Knows sizes and addresses,
// not what is kept there.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cairn::replay {

/// A stretch of a slot.
struct stretch {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct geometry {
  std::string name;
  std::vector<std::uint64_t> regions;  ///< bytes of each region of a unit
  std::uint64_t region_padding = 0;    ///< between pieces of neighbouring units
  std::vector<stretch> segments;       ///< the image, in order
  std::vector<stretch> gaps;           ///< the rest of a slot
  std::uint64_t slot_bytes = 0;

  [[nodiscard]] layout shape() const;
  /// Bytes that `units` and `slots` take on one device.
  [[nodiscard]] std::uint64_t memory_bytes(std::uint64_t units, std::uint64_t slots) const;
};

/// All names, for messages and help: "tiny, dsv4_flash, ...".
std::string geometry_names();
/// Throws bad_input for an unknown name.
geometry find_geometry(const std::string& name);

/// One device's units and slots. The backend must outlive it.
struct device_memory {
  std::unique_ptr<memory_block> units;
  std::unique_ptr<memory_block> slots;
  rank_memory addresses;
};
/// Sets bytes of the device's memory to zero, before anybody uses them.
using memory_clearer = std::function<void(std::byte* from, std::uint64_t bytes)>;
/// Where the host reaches the device's memory.
void clear_as_host(std::byte* from, std::uint64_t bytes);
/// Throws bad_input when the device has no room.
device_memory place_memory(const geometry& of, device& on, std::uint32_t units, std::uint32_t slots,
                           const memory_clearer& clear = clear_as_host);

}  // namespace cairn::replay
