// Where accepted ops stay until they have ended: one row per op, header and unit ids, in memory
// that the device can read. Knows nothing of queues, order or batches.
//
// Rows belong to the copier, not to the op's index: the catalog may reuse an index as soon as an
// op is cancelled, while the cancelled op still waits here. The unit ids are copied in for the
// same reason, and the batch's tasks point straight at them: a row is the op's staging memory and
// comes back only when no copy can read it.
//
//   free      --take, a submitter that holds a room-->                  taken: its alone
//   taken     --enqueue, the same-->                                    enqueued: the copy thread's
//   enqueued  --launch, the copy thread-->                              read by the device too
//   either    --put, the copy thread, no copy can read it any more-->   free
//
// Any thread takes a free row, once it holds a room (room_gate); the copy thread puts it back. A
// row is put before its room is given back, so who holds a room finds a row.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "runtime/index_stack.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class op_arena {
 public:
  static constexpr std::uint32_t none = index_stack::none;

  static result<std::unique_ptr<op_arena>> open(device& on, std::uint32_t rows,
                                                std::uint32_t units_per_op) {
    const std::size_t stride = (units_per_op + row_multiple - 1) / row_multiple * row_multiple;
    auto memory = on.allocate_pinned(stride * rows * sizeof(unit_id));
    if (!memory) return memory.why();
    return std::unique_ptr<op_arena>(new op_arena(std::move(memory.value()), rows, stride));
  }

  /// Precondition: the caller holds a room that it has not used yet. Lock-free.
  std::uint32_t take() noexcept {
    const std::uint32_t row = free_.take();
    assert(row != none);
    return row;
  }
  /// The copy thread's. Lock-free.
  void put(std::uint32_t row) noexcept { free_.put(row); }

  /// Written by the taker before it enqueues the row, read by the copy thread afterwards.
  [[nodiscard]] copy_op_header& header(std::uint32_t row) noexcept { return heads_[row].header; }
  [[nodiscard]] std::int64_t& accepted_ns(std::uint32_t row) noexcept {
    return heads_[row].accepted_ns;
  }
  [[nodiscard]] unit_id* units(std::uint32_t row) noexcept { return units_ + row * stride_; }

 private:
  static constexpr std::size_t row_multiple = sync::cache_line / sizeof(unit_id);
  /// What goes from submitter to copy thread with a row, in lines of its own.
  struct alignas(sync::cache_line) head {
    copy_op_header header;
    std::int64_t accepted_ns = 0;
  };

  op_arena(std::unique_ptr<memory_block> memory, std::uint32_t rows, std::size_t stride)
      : memory_(std::move(memory)),
        units_(reinterpret_cast<unit_id*>(memory_->data())),
        stride_(stride),
        heads_(new head[rows]),
        free_(rows) {}

  std::unique_ptr<memory_block> memory_;
  unit_id* units_;
  std::size_t stride_;
  std::unique_ptr<head[]> heads_;
  index_stack free_;
};

}  // namespace cairn::detail
