// The runtime's own batched copy, where its version has one: a peer to measure, never what cairn
// copies with. Knows no plans.
#pragma once

#include <span>

#include "bench/device/workload.hpp"

namespace cairn::bench {

/// Null, or what the call is named.
[[nodiscard]] const char* batched_copy_name() noexcept;

/// The arguments of one call, kept apart from the call itself: making them is not timed.
class batched_copy {
 public:
  explicit batched_copy(std::span<const span_copy> pieces);
  /// Precondition: batched_copy_name() is not null. Throws broken_case where the device refuses.
  void enqueue(hipStream_t on);

 private:
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

}  // namespace cairn::bench
