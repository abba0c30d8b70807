// One geometry laid out on the device, and everything that is done to it: cairn's batches, launches
// of the kernel with other limits, copies by calls of the runtime. Batches go round through slots
// and units that together are larger than a device's cache, so that no contender finds in it what
// the one before has left. Knows no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/device/rig.hpp"
#include "bench/replay/geometry.hpp"
#include "runtime/copy_plan.hpp"

namespace cairn::bench {

using replay::geometry;

/// A table of pieces on the device, for launches around the backend.
class resident_pieces {
 public:
  resident_pieces(rig& on, const std::vector<copy_span>& pieces, std::uint32_t units_per_image,
                  const rank_memory& memory);
  [[nodiscard]] const copy_tables& tables() const noexcept { return tables_; }

 private:
  std::unique_ptr<memory_block> block_;
  copy_tables tables_;
};

/// One piece of a batch: both ends on the device.
struct span_copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
};

class workload {
 public:
  /// Throws broken_case, with the device's message where there is no memory.
  workload(rig& on, const geometry& of, std::uint32_t images_max);

  [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
  [[nodiscard]] const copy_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] std::uint64_t image_bytes() const noexcept { return plan_.image_bytes; }
  [[nodiscard]] std::uint64_t span_bytes_min() const noexcept;
  /// Does a batch travel inside the launch?
  [[nodiscard]] bool fits_inline(std::uint32_t images) const noexcept;
  /// As many as one sample may enqueue: enough bytes for the clock, little enough for the staging
  /// ring and the runtime's queues.
  [[nodiscard]] std::uint32_t repetitions(std::uint32_t images) const noexcept;
  /// Read and written, in GB/s.
  [[nodiscard]] double rate(std::uint32_t images, double us) const noexcept;

  /// The backend's launch and the recording behind it, as a copier makes them: with checksums,
  /// unless told otherwise. Takes the next images round.
  void copy(std::uint32_t stream, copy_kind kind, std::uint32_t images, bool checksums = true);
  /// The kernel alone, with its words on the device already. `mixed`: every other image the other
  /// way.
  void copy_with(const resident_pieces& pieces, std::uint32_t groups, std::uint32_t stream,
                 copy_kind kind, std::uint32_t images, bool mixed = false);
  /// As many bytes in one piece, between the same two blocks of memory.
  void copy_contiguous(std::uint32_t stream, copy_kind kind, std::uint32_t images);
  /// The next images' spans, for calls of the runtime.
  const std::vector<span_copy>& spans(copy_kind kind, std::uint32_t images);

  /// Fills slots and units with different bytes, runs a batch of each direction by `copy` (or by
  /// what is given) and compares the ends of every span; and, by `copy`, that a restore finds the
  /// checksums of the store. Throws broken_case.
  void verify(std::uint32_t images);
  void verify(std::uint32_t images, const std::function<void(copy_kind)>& enqueue);

  /// The plan's tiles, cut anew.
  [[nodiscard]] std::unique_ptr<resident_pieces> cut(std::uint64_t tile_bytes) const;

 private:
  /// First slot of the next `images`, which follow one another.
  std::uint32_t next(std::uint32_t images) noexcept;
  void fill(std::uint64_t seed);
  [[nodiscard]] std::vector<std::uint64_t> checksums(std::uint32_t images) const;
  std::uint64_t differing(std::uint32_t first, std::uint32_t images);

  rig& on_;
  geometry shape_;
  replay::device_memory memory_;
  copy_plan plan_;
  std::unique_ptr<device_plan> loaded_;
  std::unique_ptr<event> ended_[2];             // by stream
  batch_report reports_[2];                     // by stream; batches of one use it in turns
  std::unique_ptr<memory_block> checksums_[2];  // pinned, one word per image
  std::uint32_t slots_ = 0;
  std::uint32_t next_ = 0;
  std::vector<unit_id> units_;  // by slot, units_per_image each
  std::vector<copy_task> tasks_;
  std::vector<span_copy> spans_;
  // On the device, by slot: the words of a store, of a restore, of one and the other in turns.
  std::unique_ptr<memory_block> words_;
  std::unique_ptr<memory_block> counter_;
  std::unique_ptr<memory_block> counted_;
  std::unique_ptr<resident_pieces> whole_spans_;
};

/// Copies `bytes` from the host to new memory on the device.
std::unique_ptr<memory_block> upload(rig& on, const void* from, std::size_t bytes);

/// The geometries of the specification, and one whose spans are all of 8 KiB. `small`: shrunk to
/// some of their pieces, for a test.
std::vector<geometry> measured_geometries(bool small);
geometry spans_of_8_kib();

}  // namespace cairn::bench
