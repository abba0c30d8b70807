// What the calling threads and the copy thread of one copier share. Holds the parts and says
// which side may do what; the moves are in copier.cpp (callers) and copy_thread.cpp.
//
// Orders. Numbers in the code, here and in copier*, copy_thread, copy_end and copy_launch:
//  (1) ended, load acquire: pairs with (3). Read before (2).
//  (2) accepted, load acquire: pairs with (4).
//  (3) ended, add release: pairs with (1). The op's report, and what (5) counted before.
//  (4) accepted, add release: pairs with (2). Before the op is enqueued, and the copy thread has it
//      from the queue: so who reads at (1) that it has ended reads here that it was accepted.
//  (5) unproven, subtracted with release: pairs with (6). The copies of the batch, their proofs.
//      Only the copy thread changes it; its additions are relaxed, for (3) publishes them.
//  (6) unproven, load acquire: pairs with (5).
//  (7) abandon, store release: pairs with (8); what the closing thread did before.
//  (8) abandon, load acquire: pairs with (7).
//  (9) stop, store release: pairs with (10); the same.
// (10) stop, load acquire: pairs with (9).
// (11) sweep, store release: pairs with (12). The cancellations, and the tickets of the ops.
// (12) sweep, exchange acq_rel: pairs with (11).
// (13) hungry, add nothing acq_rel: pairs with (14). After the op was put into the queue, before
//      the look at whose turn it is.
// (14) hungry, exchange acq_rel: pairs with (13). After turns were told, before the last look into
//      the queue. Of two read-modify-writes of one word one is later: either the copy thread's, and
//      it sees the op, or the submitter's, and it sees what the copy thread wants and whose turn it
//      is.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/copier.hpp>
#include <cairn/types.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/copy_plan.hpp"
#include "runtime/copy_streams.hpp"
#include "runtime/fence_ring.hpp"
#include "runtime/op_arena.hpp"
#include "runtime/op_board.hpp"
#include "runtime/quiescence.hpp"
#include "runtime/room_gate.hpp"
#include "runtime/submit_queue.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// steady_clock in nanoseconds.
inline std::int64_t steady_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

/// Kinds of ops as bits.
constexpr std::uint32_t bit_of(copy_kind kind) noexcept {
  return 1U << static_cast<unsigned>(kind);
}
inline constexpr std::uint32_t all_kinds = bit_of(copy_kind::store) | bit_of(copy_kind::restore);
/// Beside kinds: also ops whose turn has not come.
inline constexpr std::uint32_t out_of_turn = 1U << 2;
inline constexpr std::uint32_t every_op = all_kinds | out_of_turn;

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
  std::uint32_t batch_max = 0;  ///< images of one launch

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
  /// For which ops a sleeping copy thread wants to be woken: the kinds, as bits, and whether also
  /// before their turn. Of the others it hears with the event that frees a place for them, or with
  /// the one before them. In the line that every submit changes and the copy thread reads before it
  /// sleeps.
  sync::atomic<std::uint32_t> hungry{every_op};
  alignas(sync::cache_line) sync::atomic<std::uint64_t> ended{0};
  /// Batches that may still touch memory. The copy thread writes it, so its own looks are relaxed.
  sync::atomic<std::uint32_t> unproven{0};
  sync::atomic<bool> abandon{false};  ///< closing ran out of time: report the rest
  /// Cancelled ops may wait. Who takes the flag (12) finds the cancellations and the tickets of all
  /// ops that were enqueued before it was set (11).
  sync::atomic<bool> sweep{false};
  quiescence hush;                 ///< whether the copy thread may call the device
  sync::atomic<bool> stop{false};  ///< leave the loop, whatever is in flight

  // Destroyed from the bottom up: streams wait for copies that read rows and the plan.
  std::unique_ptr<op_arena> rows;
  std::unique_ptr<device_plan> resident;
  std::unique_ptr<copy_streams> streams;

  /// When an op is accepted, if anybody wants to know.
  [[nodiscard]] std::int64_t stamp_ns() const noexcept {
    return opts.op_timeout.count() != 0 ? steady_ns() : 0;
  }
  [[nodiscard]] std::uint64_t outstanding() const noexcept {
    const std::uint64_t done = ended.load_acquire();  // (1)
    return accepted.load_acquire() - done;            // (2)
  }
  /// These ops were put into the queue.
  void came(std::span<const copy_op> those) noexcept {
    const std::uint32_t wanted = hungry.fetch_add_acq_rel(0);  // (13)
    for (const copy_op& op : those) {
      if ((wanted & bit_of(op.header.kind)) == 0) continue;
      if ((wanted & out_of_turn) == 0 && !slots.in_turn(op.header.slot, op.header.slot_sequence))
        continue;
      bell.ring();
      return;
    }
  }
  /// The device is gone: nothing more comes in, the copy thread fails what is here.
  void lose() noexcept {
    gate.lose();
    bell.ring();
  }
};

}  // namespace cairn::detail
