// Where accepted ops stay until they have ended: one row per op, header and unit ids, in memory
// that the device can read. Knows nothing of queues, order or batches.
//
// Rows belong to the copier, not to the op's index: the catalog may reuse an index as soon as an
// op is cancelled, while the cancelled op still waits here. The unit ids are copied in for the
// same reason, and the batch's tasks point straight at them: a row is the op's staging memory and
// comes back only when no copy can read it.
//
// Free rows form a stack. Any thread takes, once it holds a room (room_gate); the copy thread
// puts. A row is put before its room is given back, so who holds a room finds a row. The head
// carries a tag that each take and put changes: without it, a taker that read `next` of a row
// which others took and put back meanwhile would install a stale link.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "runtime/sync.hpp"

namespace cairn::detail {

class op_arena {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  static result<std::unique_ptr<op_arena>> open(device& on, std::uint32_t rows,
                                                std::uint32_t units_per_op) {
    const std::size_t stride = (units_per_op + row_multiple - 1) / row_multiple * row_multiple;
    auto memory = on.allocate_pinned(stride * rows * sizeof(unit_id));
    if (!memory) return memory.why();
    return std::unique_ptr<op_arena>(new op_arena(std::move(memory.value()), rows, stride));
  }

  /// Precondition: the caller holds a room that it has not used yet. Lock-free.
  std::uint32_t take() noexcept {
    std::uint64_t seen = head_.load_acquire();  // (1) acquire: pairs with (3)
    for (;;) {
      const std::uint32_t row = row_of(seen);
      assert(row != none);
      const std::uint32_t below = next_[row].load_relaxed();       // stale only if the CAS fails
      if (head_.cas_acquire(seen, make(below, seen))) return row;  // (2) acquire: pairs with (3)
    }
  }

  /// The copy thread's. Lock-free.
  void put(std::uint32_t row) noexcept {
    std::uint64_t seen = head_.load_relaxed();
    do {
      next_[row].store_relaxed(row_of(seen));
    } while (!head_.cas_release(seen, make(row, seen)));  // (3) release: pairs with (1), (2)
  }

  /// Written by the taker before it enqueues the row, read by the copy thread afterwards.
  [[nodiscard]] copy_op_header& header(std::uint32_t row) noexcept { return headers_[row]; }
  [[nodiscard]] unit_id* units(std::uint32_t row) noexcept { return units_ + row * stride_; }

 private:
  static constexpr std::size_t row_multiple = sync::cache_line / sizeof(unit_id);

  op_arena(std::unique_ptr<memory_block> memory, std::uint32_t rows, std::size_t stride)
      : memory_(std::move(memory)),
        units_(reinterpret_cast<unit_id*>(memory_->data())),
        stride_(stride),
        headers_(new copy_op_header[rows]),
        next_(new sync::atomic<std::uint32_t>[rows]),
        head_(0) {
    for (std::uint32_t row = 0; row < rows; ++row)
      next_[row].store_relaxed(row + 1 == rows ? none : row + 1);
  }

  // The head: row in the lower half, tag in the upper.
  static std::uint32_t row_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head);
  }
  static std::uint64_t make(std::uint32_t row, std::uint64_t before) noexcept {
    const std::uint64_t tag = (before >> 32) + 1;
    return tag << 32 | row;
  }

  std::unique_ptr<memory_block> memory_;
  unit_id* units_;
  std::size_t stride_;
  std::unique_ptr<copy_op_header[]> headers_;
  std::unique_ptr<sync::atomic<std::uint32_t>[]> next_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> head_;
};

}  // namespace cairn::detail
