// The geometries of the specification, and memory laid out for them with guard bytes around
// every segment and region, beside an independent model of what copies should do to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cairn/backend.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tests/backend_tools.hpp"

namespace cairn::tests {

struct geometry {
  const char* name;
  std::vector<std::uint64_t> region_bytes;
  std::vector<std::uint64_t> segment_bytes;
  std::uint64_t slot_bytes;
  std::uint32_t units_per_image;
  std::uint64_t odd;  ///< extra bytes between pieces: odd values misalign everything

  [[nodiscard]] layout shape() const {
    layout l;
    for (const std::uint64_t bytes : region_bytes) l.page_unit_bytes += bytes;
    for (const std::uint64_t bytes : segment_bytes) l.image_bytes += bytes;
    l.slot_bytes = slot_bytes;
    l.layout_id = name;
    return l;
  }
  friend std::ostream& operator<<(std::ostream& out, const geometry& g) { return out << g.name; }
};

inline std::vector<std::uint64_t> repeat(std::size_t count, std::uint64_t bytes) {
  return std::vector<std::uint64_t>(count, bytes);
}

inline std::vector<std::uint64_t> join(std::vector<std::uint64_t> head,
                                       const std::vector<std::uint64_t>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

inline const std::vector<geometry>& geometries() {
  static const std::vector<geometry> all = {
      {"tiny", {10}, {25}, 32, 3, 0},
      {"dsv4_flash",
       join({1'441'792}, repeat(21, 8'448)),
       {3'145'728, 1'048'576, 4'194'304, 671'744},
       21'168'128,
       6,
       0},
      {"gdn_36", repeat(24, 16'384), join(repeat(36, 1'048'576), repeat(36, 49'152)), 39'518'208,
       101, 0},
      {"ragged", {1'001, 7, 4'099}, {3'001, 17, 5'003, 1, 4'323}, 13'001, 3, 13},
      {"replay", repeat(4, 4'096), repeat(6, 10'000), 96 * 1024, 4, 0},
  };
  return all;
}

inline const geometry& geometry_named(const std::string& name) {
  return *std::find_if(geometries().begin(), geometries().end(),
                       [&](const geometry& g) { return name == g.name; });
}

/// A block of memory that copies may touch, and what it should hold.
class modelled_block {
 public:
  modelled_block(device& on, std::size_t bytes, std::uint64_t seed, tested_memory how)
      : how_(how),
        block_(std::move(how.across == nullptr ? on.allocate_pinned(bytes) : on.allocate(bytes))
                   .value()),
        model_(std::move(on.allocate_pinned(bytes)).value()) {
    if (how.across != nullptr) seen_ = std::move(on.allocate_pinned(bytes)).value();
    std::uint64_t state = seed;
    for (std::size_t i = 0; i < bytes; i += sizeof(state)) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t mixed = state ^ (state >> 29);
      std::memcpy(model_->data() + i, &mixed, std::min(sizeof(mixed), bytes - i));
    }
    move(block_->data(), model_->data(), bytes, true);
  }
  [[nodiscard]] std::byte* data() const { return block_->data(); }
  /// The model's byte at the same place as `real`.
  [[nodiscard]] std::byte* model(const std::byte* real) {
    return model_->data() + (real - block_->data());
  }
  /// Changes a byte range in memory and model alike.
  void scribble(std::byte* real, std::size_t bytes, std::uint8_t salt) {
    std::byte* const its_model = model(real);
    for (std::size_t i = 0; i < bytes; ++i)
      its_model[i] ^= static_cast<std::byte>(salt + static_cast<std::uint8_t>(i % 251));
    move(real, its_model, bytes, true);
  }
  [[nodiscard]] testing::AssertionResult matches(const char* what) const {
    const std::byte* const begin = model_->data();
    const std::byte* const end = begin + model_->size();
    if (seen_ != nullptr) move(seen_->data(), block_->data(), seen_->size(), false);
    const std::byte* const held = seen_ != nullptr ? seen_->data() : block_->data();
    if (std::memcmp(held, begin, model_->size()) == 0) return testing::AssertionSuccess();
    const std::byte* const at = std::mismatch(begin, end, held).first;
    return testing::AssertionFailure()
           << what << ": first wrong byte at offset " << (at - begin) << " of " << model_->size();
  }

 private:
  void move(std::byte* to, const std::byte* from, std::size_t bytes, bool to_device) const {
    if (how_.across != nullptr)
      how_.across(to, from, bytes, to_device);
    else
      std::memcpy(to, from, bytes);
  }

  tested_memory how_;
  std::unique_ptr<memory_block> block_;
  std::unique_ptr<memory_block> model_;
  std::unique_ptr<memory_block> seen_;  ///< what memory of a device held
};

/// Units and slots of one rank. Regions are arrays of their own; the segments of a slot lie
/// side by side, slot after slot. Every piece has guard bytes before and behind it.
class modelled_rank {
 public:
  modelled_rank(device& on, const geometry& g, std::uint32_t units, std::uint32_t slots,
                bool negative, tested_memory how = {})
      : unit_block_(on, unit_block_bytes(g, units), 11, how),
        slot_block_(on, slots * slot_stride(g) + guard, 12, how) {
    memory_.units = units;
    memory_.slots = slots;
    std::byte* at = unit_block_.data();
    for (const std::uint64_t bytes : g.region_bytes) {
      const std::uint64_t stride = bytes + guard + g.odd;
      memory_.regions.push_back(
          array(at + guard + g.odd, static_cast<std::int64_t>(stride), bytes, units, negative));
      at += units * stride;
    }
    at = slot_block_.data();
    for (const std::uint64_t bytes : g.segment_bytes) {
      memory_.segments.push_back(array(
          at + guard + g.odd, static_cast<std::int64_t>(slot_stride(g)), bytes, slots, negative));
      at += bytes + guard + g.odd;
    }
  }

  [[nodiscard]] const rank_memory& memory() const { return memory_; }

  /// What a store of `slot` into `units` should do, through one contiguous image.
  void model_store(slot_id slot, std::span<const unit_id> units) {
    const std::vector<std::byte> image = model_image(slot);
    for_each_region(units, image.size(), [&](std::byte* region, std::size_t at, std::size_t n) {
      std::memcpy(region, image.data() + at, n);
    });
  }
  void model_restore(slot_id slot, std::span<const unit_id> units) {
    std::vector<std::byte> image = model_image(slot);
    for_each_region(units, image.size(),
                    [&](const std::byte* region, std::size_t at, std::size_t n) {
                      std::memcpy(image.data() + at, region, n);
                    });
    std::size_t at = 0;
    for (const strided& s : memory_.segments) {
      std::memcpy(slot_block_.model(piece(s, slot)), image.data() + at, s.bytes);
      at += s.bytes;
    }
  }
  /// New content for a slot, everywhere in its image.
  void scribble(slot_id slot, std::uint8_t salt) {
    for (const strided& s : memory_.segments) slot_block_.scribble(piece(s, slot), s.bytes, salt++);
  }
  [[nodiscard]] std::vector<std::byte> model_image(slot_id slot) {
    std::vector<std::byte> image;
    for (const strided& s : memory_.segments) {
      const std::byte* from = slot_block_.model(piece(s, slot));
      image.insert(image.end(), from, from + s.bytes);
    }
    return image;
  }
  [[nodiscard]] testing::AssertionResult matches() const {
    if (const auto units = unit_block_.matches("units"); !units) return units;
    return slot_block_.matches("slots");
  }

 private:
  static constexpr std::uint64_t guard = 64;

  static std::size_t unit_block_bytes(const geometry& g, std::uint32_t units) {
    std::uint64_t bytes = guard + g.odd;
    for (const std::uint64_t b : g.region_bytes) bytes += units * (b + guard + g.odd);
    return bytes;
  }
  static std::uint64_t slot_stride(const geometry& g) {
    return g.slot_bytes + (g.segment_bytes.size() + 1) * (guard + g.odd);
  }
  static strided array(std::byte* first, std::int64_t stride, std::uint64_t bytes,
                       std::uint32_t count, bool negative) {
    if (!negative) return {first, stride, bytes};
    return {first + static_cast<std::int64_t>(count - 1) * stride, -stride, bytes};
  }
  static std::byte* piece(const strided& s, std::uint32_t id) {
    return s.base + static_cast<std::int64_t>(id) * s.stride;
  }
  template <class F>
  void for_each_region(std::span<const unit_id> units, std::size_t image, F&& f) {
    std::size_t at = 0;
    for (const unit_id unit : units) {
      for (const strided& r : memory_.regions) {
        const std::size_t n = std::min<std::size_t>(r.bytes, image - at);
        f(unit_block_.model(piece(r, unit)), at, n);
        at += n;
      }
    }
  }

  modelled_block unit_block_;
  modelled_block slot_block_;
  rank_memory memory_;
};

/// `images` lists of distinct units, scattered: neither sorted nor adjacent.
inline std::vector<std::vector<unit_id>> scattered_units(std::uint32_t pool,
                                                         std::uint32_t per_image,
                                                         std::uint32_t images) {
  std::vector<unit_id> ids(pool);
  for (std::uint32_t i = 0; i < pool; ++i) ids[i] = i;
  std::uint64_t state = 99;
  for (std::uint32_t i = pool - 1; i > 0; --i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::swap(ids[i], ids[(state >> 33) % (i + 1)]);
  }
  std::vector<std::vector<unit_id>> lists;
  for (std::uint32_t i = 0; i < images; ++i)
    lists.emplace_back(ids.begin() + i * per_image, ids.begin() + (i + 1) * per_image);
  return lists;
}

}  // namespace cairn::tests
