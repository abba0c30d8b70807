// Whether anybody knows what a slot holds. A restore that did not succeed leaves it unknown
// (*poisoned*); a restore that succeeds and a reset make it known again. And how many copies that
// were given up may still touch it (*kept*). The copy thread's alone; it tells slot_board, where
// other threads look. Knows no streams and no events.
//
// What a store has read depends on what came before it on its slot, which is not always what ended
// before it. So whatever comes to pass on a slot has a turn, and the turns are those of the
// slot's lane. Two sorts of things decide what the slot holds:
//
//   * a restore that was launched has its turn from then, and is decided when it has ended. Copies
//     of a slot end in their order (a batch is not looked at before those it ran behind), so
//     when a store is judged all restores before it have been decided and none after it. Only an op
//     that ran out of time may be decided earlier, as failed: that makes the slot unknown too early
//     at worst;
//   * a reset, and a restore that ended without being launched, are decided in their turn. An op
//     that is launched remembers the last of them.
//
// A store is clean when the later of the two says so.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

#include "runtime/op_board.hpp"

namespace cairn::detail {

class slot_health {
 public:
  slot_health(std::uint32_t slots, std::uint32_t rows, slot_board& board)
      : board_(board), slots_(slots), rows_(rows) {}

  /// The op in this row was launched: its turn is now.
  void launched(std::uint32_t row, slot_id slot) noexcept {
    rows_[row] = {++slots_[slot].turn, slots_[slot].in_turn};
  }
  /// A reset's turn is now.
  void reset(slot_id slot) noexcept { decide(slot, false); }
  /// A restore ended without being launched. Before its lane goes on.
  void spoiled(slot_id slot) noexcept { decide(slot, true); }
  /// A restore or a reset came to nothing: the slot holds what it held.
  void dropped(slot_id slot) noexcept { board_.decide(slot, unknown(slot)); }
  /// A restore that was launched has ended, or was given up.
  void restored(std::uint32_t row, slot_id slot, bool well) noexcept {
    entry& of = slots_[slot];
    if (rows_[row].turn > of.restored.turn) of.restored = {rows_[row].turn, !well};
    board_.decide(slot, unknown(slot));
  }
  /// Whether the slot was known when the store in this row, which was launched, read it.
  [[nodiscard]] bool clean(std::uint32_t row, slot_id slot) const noexcept {
    return !later(rows_[row].in_turn, slots_[slot].restored).bad;
  }

  /// A copy that touches the slot was given up.
  void keep(slot_id slot) noexcept {
    ++slots_[slot].kept;
    board_.keep(slot);
  }
  /// It is over.
  void prove(slot_id slot) noexcept {
    --slots_[slot].kept;
    board_.prove(slot);
  }
  [[nodiscard]] bool kept(slot_id slot) const noexcept { return slots_[slot].kept != 0; }

 private:
  /// What the slot held from this turn on.
  struct mark {
    std::uint64_t turn = 0;
    bool bad = false;
  };
  struct entry {
    std::uint64_t turn = 0;  ///< the last that was given out
    mark in_turn;
    mark restored;
    std::uint32_t kept = 0;
  };
  struct row_entry {
    std::uint64_t turn = 0;
    mark in_turn;  ///< the slot's when the op was launched
  };

  static const mark& later(const mark& a, const mark& b) noexcept {
    return a.turn > b.turn ? a : b;
  }
  void decide(slot_id slot, bool bad) noexcept {
    entry& of = slots_[slot];
    of.in_turn = {++of.turn, bad};
    board_.decide(slot, unknown(slot));
  }
  [[nodiscard]] bool unknown(slot_id slot) const noexcept {
    return later(slots_[slot].in_turn, slots_[slot].restored).bad;
  }

  slot_board& board_;
  std::vector<entry> slots_;
  std::vector<row_entry> rows_;
};

}  // namespace cairn::detail
