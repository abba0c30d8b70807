// Admission to one copier: how many ops may come in, and whether any may. Knows nothing of what
// the ops are or where they wait.
//
// A room is the right to bring one op; it is taken before the op is enqueued and given back when
// the op has ended (or when the submitter thinks better of it). One word holds everything:
//
//   stores : 30    rooms taken for stores
//   restores : 30  rooms taken for restores
//   closed : 1     no more rooms, for ever
//   lost : 1       the same, because the device is gone
//
//   open(n)   --take, a submitter-->                                   open(n + its rooms)
//   any(n)    --give, the copy thread when an op has ended, or the     any(n - 1)
//               submitter who took the room and did not use it-->
//   open(n)   --close, who closes-->                                   closed(n), for good
//   any(n)    --lose, whoever a call of the device's has told so-->    lost(n), for good
//
// Taking is one compare-and-swap of the whole word, so there is no moment between "open" and
// "taken": once a closing thread has set the bit, every room that was ever taken is counted, and
// once the counts are zero no op can come any more. That is what lets the copy thread end.
//
// Orders: giving back releases, taking acquires, and every change is a read-modify-write, so a
// taker sees all that was done before any of the rooms came back (op_arena relies on it).
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class room_gate {
 public:
  static constexpr std::uint32_t max_depth = (std::uint32_t{1} << 30) - 1;

  room_gate(std::uint32_t store_depth, std::uint32_t restore_depth) noexcept
      : store_depth_(store_depth), restore_depth_(restore_depth) {}

  /// Rooms of both kinds, all or none: ok, queue_full, closed or device_lost. Lock-free.
  status take(std::uint32_t stores, std::uint32_t restores) noexcept {
    std::uint64_t seen = word_.load_relaxed();
    for (;;) {
      const fields now = fields::of(seen);
      if (now.lost) return status::device_lost;
      if (now.closed) return status::closed;
      if (stores > store_depth_ - now.stores || restores > restore_depth_ - now.restores)
        return status::queue_full;
      const std::uint64_t want = seen + stores * one_store + restores * one_restore;
      if (word_.cas_acquire(seen, want)) return status::ok;  // (1) acquire: pairs with (2)
    }
  }

  /// Precondition: that many rooms of this kind are taken. Wait-free.
  void give(copy_kind kind, std::uint32_t count) noexcept {
    const std::uint64_t one = kind == copy_kind::store ? one_store : one_restore;
    word_.fetch_sub_release(count * one);  // (2) release: pairs with (1) and (3)
  }

  void close() noexcept { word_.fetch_or_acq_rel(closed_bit); }
  void lose() noexcept { word_.fetch_or_acq_rel(lost_bit); }

  [[nodiscard]] bool lost() const noexcept { return now().lost; }
  /// No room can be taken any more and none is out: nothing more will come.
  [[nodiscard]] bool shut() const noexcept {
    const fields f = now();
    return (f.closed || f.lost) && f.stores == 0 && f.restores == 0;
  }

 private:
  static constexpr std::uint64_t one_store = 1;
  static constexpr std::uint64_t one_restore = std::uint64_t{1} << 30;
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 60;
  static constexpr std::uint64_t lost_bit = std::uint64_t{1} << 61;

  struct fields {
    std::uint32_t stores;
    std::uint32_t restores;
    bool closed;
    bool lost;
    static fields of(std::uint64_t word) noexcept {
      return {static_cast<std::uint32_t>(word & max_depth),
              static_cast<std::uint32_t>(word / one_restore & max_depth), (word & closed_bit) != 0,
              (word & lost_bit) != 0};
    }
  };
  // (3) acquire: pairs with (2), so that who sees the gate shut sees every op's end.
  [[nodiscard]] fields now() const noexcept { return fields::of(word_.load_acquire()); }

  const std::uint32_t store_depth_;
  const std::uint32_t restore_depth_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> word_{0};
};

}  // namespace cairn::detail
