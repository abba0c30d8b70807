// One copier: the shared core, the copy thread's loop, and how callers wait for it.
#pragma once

#include <cairn/copier.hpp>
#include <thread>

#include "runtime/copy_core.hpp"
#include "runtime/copy_thread.hpp"

namespace cairn {

struct copier::state {
  state(const copier_options& opts, device& on) : core(opts, on), loop(core) {}

  detail::copy_core core;
  detail::copy_thread loop;
  std::thread thread;  ///< runs `loop`, unless the caller does

  /// Brings an op in. Precondition: a room is held for it, and its index, kind and slot are in
  /// range; the copy thread refuses it if the rest is wrong. Lock-free.
  void put(const copy_op& op, std::int64_t now_ns) noexcept {
    const std::uint32_t row = core.rows->take();
    const copy_op_header& header = core.rows->header(row) = op.header;
    core.rows->accepted_ns(row) = now_ns;
    detail::id_run ids = detail::id_run::wrong;  // a row holds units_per_op ids
    if (header.unit_count == core.units_per_op && op.units.size() == core.units_per_op)
      ids = detail::copy_ids(op.units, core.rows->units(row), core.opts.memory.units);
    core.ops.accept(header.op);
    core.slots.admit(header.slot, header.kind);
    core.accepted.fetch_add_release(1);  // (4)
    core.queue.put({row, header.slot, false, ids, header.slot_sequence});
  }

  /// Waits until done() or `until`; returns done(). Without a copy thread this is where its
  /// passes are made.
  template <class Done>
  bool await(Done done, deadline until) noexcept {
    // Without a thread, a refused call to the device must be repeated, and nobody rings for it.
    constexpr auto retry = std::chrono::milliseconds(1);
    doorbell& bell = core.opts.threaded ? core.progress : core.bell;
    for (;;) {
      const std::uint32_t seen = bell.seen();  // before looking: a ring after this ends the wait
      if (done()) return true;
      const deadline now = clock::now();
      if (now >= until) return false;
      if (core.opts.threaded)
        bell.wait(seen, until);
      else if (!loop.pass())
        bell.wait(seen, std::min(until, now + retry));
    }
  }
};

}  // namespace cairn
