// What the calling threads and the copy thread of one copier share. Holds the parts and says
// which side may do what; the moves are in copier.cpp (callers) and copy_thread.cpp.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/copier.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/copy_plan.hpp"
#include "runtime/copy_streams.hpp"
#include "runtime/fence_ring.hpp"
#include "runtime/op_arena.hpp"
#include "runtime/op_board.hpp"
#include "runtime/room_gate.hpp"
#include "runtime/submit_queue.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

struct copy_core {
  copy_core(const copier_options& options, device& device_used)
      : opts(options),
        on(device_used),
        fingerprint(options.shape.fingerprint()),
        units_per_op(options.shape.units_per_checkpoint()),
        gate(options.store_depth, options.restore_depth),
        queue(std::size_t{options.store_depth} + options.restore_depth),
        ops(options.max_ops),
        slots(options.memory.slots),
        fences(std::make_unique<fence_ring[]>(options.compute_streams)) {}

  const copier_options opts;
  device& on;
  const std::uint64_t fingerprint;
  const std::uint32_t units_per_op;
  copy_plan plan;

  doorbell bell;      ///< rung for the copy thread
  doorbell progress;  ///< rung by the copy thread when ops were launched or ended

  room_gate gate;
  submit_queue queue;
  op_board ops;
  slot_board slots;
  std::unique_ptr<fence_ring[]> fences;

  /// Ops enqueued and ops ended (reported or dropped). Callers add to the first, the copy thread
  /// to the second: read `ended` first, and equal means that all had ended at that moment.
  alignas(sync::cache_line) sync::atomic<std::uint64_t> accepted{0};
  alignas(sync::cache_line) sync::atomic<std::uint64_t> ended{0};
  /// Batches that may still touch memory. The copy thread writes it.
  sync::atomic<std::uint32_t> unproven{0};
  sync::atomic<bool> abandon{false};  ///< closing ran out of time: report the rest
  /// Cancelled ops may wait. Release when set, acquire in the copy thread's exchange: it then finds
  /// the cancellations and the tickets of all ops that were enqueued before.
  sync::atomic<bool> sweep{false};
  sync::atomic<bool> stop{false};  ///< leave the loop, whatever is in flight

  // Destroyed from the bottom up: streams wait for copies that read rows and the plan.
  std::unique_ptr<op_arena> rows;
  std::unique_ptr<device_plan> resident;
  std::unique_ptr<copy_streams> streams;

  [[nodiscard]] std::uint64_t outstanding() const noexcept {
    const std::uint64_t done = ended.load_acquire();  // (1) acquire: pairs with the copy thread's
    return accepted.load_acquire() - done;            // (2) acquire: after (1)
  }
  /// The device is gone: nothing more comes in, the copy thread fails what is here.
  void lose() noexcept {
    gate.lose();
    bell.ring();
  }
};

}  // namespace cairn::detail
