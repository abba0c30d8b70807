// A plan that lies on a device, with one rank's addresses. Knows what the words of a batch say, not
// where they are staged.
#pragma once

#include <algorithm>
#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/scatter_gather_hip.hpp"
#include "runtime/copy_plan.hpp"
#include "runtime/hip_objects.hpp"

namespace cairn::detail {

/// The tables lie in one block of device memory.
class hip_plan final : public device_plan {
 public:
  hip_plan(const hip_context& on, std::unique_ptr<memory_block> memory,
           const kernels::copy_tables& tables, std::uint32_t units, std::uint32_t slots) noexcept
      : on_(&on), memory_(std::move(memory)), tables_(tables), units_(units), slots_(slots) {}

  [[nodiscard]] std::uint32_t images_max() const noexcept override {
    return hip_staging::places_of_batch * images_of_place();
  }
  /// Of one launch, which reads one place of the staging ring.
  [[nodiscard]] std::uint32_t images_of_place() const noexcept {
    return std::min(hip_staging::place_words / words_per_image(), kernels::board_images);
  }

  /// Compared, never followed.
  [[nodiscard]] const hip_context* on() const noexcept { return on_; }
  [[nodiscard]] const kernels::copy_tables& tables() const noexcept { return tables_; }
  [[nodiscard]] std::uint32_t words_per_image() const noexcept {
    return kernels::words_per_image(tables_.units_per_image);
  }

  /// Writes the words of one image; false when it names a slot or a unit that the rank does not
  /// have.
  bool describe(copy_kind kind, const copy_task& task, std::uint32_t* words) const noexcept {
    return kernels::write_image_words(kind, task.slot, task.units,
                                      {tables_.units_per_image, units_, slots_}, words);
  }

 private:
  const hip_context* on_;
  std::unique_ptr<memory_block> memory_;
  kernels::copy_tables tables_;
  std::uint32_t units_;
  std::uint32_t slots_;
};

/// Puts the tables on the device. Blocks until they are there. `owner` is the device of `on`.
result<std::unique_ptr<device_plan>> load_hip_plan(device& owner, hip_context& on,
                                                   const copy_plan& plan,
                                                   const rank_memory& memory);

}  // namespace cairn::detail
