// Runs one batch of copies on CPU threads: the lane's own and, for large batches, oneTBB
// workers that help it. Knows no streams and no events; TBB stays in the source file.
#pragma once

#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/scatter_gather.hpp"
#include "kernels/scatter_gather_host.hpp"
#include "runtime/copy_plan.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// A plan with one rank's addresses. It must outlive the batches that were launched with it.
class host_plan final : public device_plan {
 public:
  /// `threads` may copy at one time. Precondition: check_plan_memory(plan, memory).
  host_plan(const void* owner, const copy_plan& plan, const rank_memory& memory,
            std::uint32_t threads);

  /// Which device loaded it; compared, never followed.
  [[nodiscard]] const void* owner() const noexcept { return owner_; }
  [[nodiscard]] std::size_t tiles() const noexcept { return tiles_.size(); }
  [[nodiscard]] std::uint64_t image_bytes() const noexcept { return image_bytes_; }
  /// A launch costs little here, and ops on one slot come one after another, in batches: while a
  /// batch holds all slots, no other can run beside it. So it has no more than one claim for each
  /// thread that may copy.
  [[nodiscard]] std::uint32_t images_max() const noexcept override { return images_max_; }
  /// Tiles that a worker claims at once.
  [[nodiscard]] std::size_t claim_tiles() const noexcept { return claim_tiles_; }
  /// False when the task names a slot or a unit that this rank does not have.
  [[nodiscard]] bool in_range(const copy_task& task) const noexcept;
  /// Tile `tile` of one image with its addresses. `sum`: what it adds to, or null.
  [[nodiscard]] kernels::placed_tile place(copy_kind kind, const copy_task& task, std::size_t tile,
                                           std::uint64_t* sum) const noexcept {
    const copy_span& at = tiles_[tile];
    const kernels::tile_ends ends =
        kernels::locate(at, kind, regions_.data(), segments_.data(), task.slot, task.units);
    return {ends.to, ends.from, static_cast<std::size_t>(at.bytes), at.image_offset, sum};
  }
  /// Copies what was placed.
  [[nodiscard]] const kernels::tiles_copy_variant& tile_copy() const noexcept { return tile_copy_; }

 private:
  const void* owner_;
  std::vector<copy_span> tiles_;
  std::vector<strided> regions_;
  std::vector<strided> segments_;
  std::uint64_t image_bytes_;
  std::uint32_t units_per_image_;
  std::uint32_t units_;
  std::uint32_t slots_;
  std::size_t claim_tiles_;
  std::uint32_t images_max_;
  kernels::tiles_copy_variant tile_copy_;
};

/// One launch. What it points to belongs to the caller and is read only when the batch runs.
struct host_batch {
  const host_plan* plan = nullptr;
  std::span<const copy_task> tasks;
  batch_report* report = nullptr;
  copy_kind kind = copy_kind::store;
};

/// How many helpers all devices of a backend may have at work at one time. Lock-free.
class helper_budget {
 public:
  explicit helper_budget(std::uint32_t helpers) noexcept : free_(helpers) {}
  /// Takes up to `most`, perhaps none.
  [[nodiscard]] std::uint32_t take(std::uint32_t most) noexcept;
  void give(std::uint32_t helpers) noexcept;

 private:
  sync::atomic<std::uint32_t> free_;
};

/// Runs batches, one at a time. Each lane has its own, so that a thread that waits for the
/// helpers of its batch is never handed tiles of another lane's.
class batch_runner {
 public:
  /// Without a budget everything is copied by the calling thread.
  explicit batch_runner(helper_budget* budget);
  ~batch_runner();
  batch_runner(const batch_runner&) = delete;
  batch_runner& operator=(const batch_runner&) = delete;

  /// Copies the batch and writes its report. All its bytes are visible to whoever
  /// synchronises with the calling thread afterwards.
  void run(const host_batch& batch) noexcept;

 private:
  struct helpers;
  helper_budget* budget_;
  std::unique_ptr<helpers> helpers_;
};

}  // namespace cairn::detail
