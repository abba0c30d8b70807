// Which ops may run next: one lane per slot, in which ops run one after another in the order of
// their sequence numbers, and one line per direction of ops whose turn has come. The copy thread's
// alone: nothing here is atomic. Knows no streams and no statuses.
//
// A lane's head is *ready* when its number is the next one (or when it has none: such ops run in
// order of arrival). It stays at the head, and keeps the next one waiting, until `pass`: when it
// has been launched, or has ended without. So two ops on one slot are never ready together.
//
//   (queue)     --arrive-->      waiting in its lane; ready at once if it is the head in its turn
//   waiting     --pass, of the one before it-->  ready
//   ready       --take_ready-->  handed out: the head of its lane still, and in no line
//   handed out  --pass-->        gone; the next one wakes
//   waiting, ready  --drop, take_all-->          gone; drop leaves its number, to be skipped
//   (queue)     --skip-->        a number without an op: gone in its turn, when a reset is told of
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/copy_batch.hpp"
#include "runtime/op_arena.hpp"
#include "runtime/op_board.hpp"
#include "runtime/slot_health.hpp"
#include "runtime/submit_queue.hpp"

namespace cairn::detail {

class slot_lanes {
 public:
  /// `health` hears of resets when their turn comes, `board` of whose turn it is.
  slot_lanes(std::uint32_t slots, std::uint32_t rows, slot_health& health, slot_board& board);

  /// An op came. False when its number has passed or is waiting already: the op is not in the
  /// lane, and the caller ends it.
  bool arrive(const queue_entry& entry, copy_kind kind);
  /// A number came that no op will bring, or a reset of the slot (number 0: in order of arrival).
  /// Allocates when it came early and more such numbers are kept than ever before.
  void skip(slot_id slot, std::uint64_t sequence, bool reset);
  /// The turn of the op in `row` is over.
  void pass(std::uint32_t row);

  [[nodiscard]] bool any_ready(copy_kind kind) const noexcept { return line(kind).head != none; }
  /// Precondition: any_ready(kind). What take_ready would return.
  [[nodiscard]] std::uint32_t first_ready(copy_kind kind) const noexcept { return line(kind).head; }
  /// Precondition: any_ready(kind). The op keeps its lane until `pass`.
  std::uint32_t take_ready(copy_kind kind);
  /// Moves the first ready op out of the way, until take_back puts all of those in front again, in
  /// their order. Precondition: any_ready(kind). Only take_ready and pass come in between.
  void set_aside(copy_kind kind);
  void take_back(copy_kind kind);
  /// Removes every op that take_ready has not handed out and calls end(row) for each.
  template <class End>
  void take_all(End end);
  /// Removes every op that take_ready has not handed out and for which gone(row), and calls
  /// end(row) for each, before its lane goes on. Their turns pass when they come. May allocate, as
  /// skip does.
  template <class Gone, class End>
  void drop(Gone gone, End end);

  /// Whether the board has been told of a turn since this was asked last.
  [[nodiscard]] bool told() noexcept { return std::exchange(told_, false); }

  /// The last batch launched on the slot.
  [[nodiscard]] std::optional<batch_ref> last(slot_id slot) const { return lanes_[slot].last; }
  void set_last(slot_id slot, batch_ref batch) { lanes_[slot].last = batch; }

 private:
  static constexpr std::uint32_t none = op_arena::none;

  /// An op (index = row), or a number to skip (index >= rows).
  struct node {
    std::uint64_t sequence = 0;
    slot_id slot = no_slot;
    std::uint32_t behind = none;      ///< next in the lane
    std::uint32_t next_ready = none;  ///< next in the line
    copy_kind kind = copy_kind::store;
    bool taken = false;
    bool reset = false;
  };
  struct lane {
    std::uint64_t next = 1;     ///< the number whose turn it is
    std::uint64_t highest = 0;  ///< of the numbers that ever waited
    std::uint32_t head = none;
    std::uint32_t tail = none;
    std::optional<batch_ref> last;
  };
  struct ready_line {
    std::uint32_t head = none;
    std::uint32_t tail = none;
  };

  [[nodiscard]] bool is_skip(std::uint32_t n) const noexcept { return n >= rows_; }
  [[nodiscard]] ready_line& line(copy_kind k) noexcept { return ready_[static_cast<unsigned>(k)]; }
  [[nodiscard]] const ready_line& line(copy_kind k) const noexcept {
    return ready_[static_cast<unsigned>(k)];
  }
  /// The head has been woken, and waits in a line or has been handed out.
  [[nodiscard]] bool awake(const lane& in) const noexcept {
    const std::uint64_t sequence = nodes_[in.head].sequence;
    return sequence == 0 || sequence == in.next;
  }
  std::uint32_t take_skip(slot_id slot, std::uint64_t sequence);
  template <class Gone, class End>
  void drop_behind(lane& in, Gone& gone, End& end);
  bool insert(lane& in, std::uint32_t n);
  void remove_head(lane& in);
  void append(ready_line& to, std::uint32_t n);
  std::uint32_t take_first(ready_line& from);
  void wake_head(lane& in);

  slot_health& health_;
  slot_board& board_;
  bool told_ = false;
  std::uint32_t rows_;
  std::vector<lane> lanes_;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> free_skips_;
  ready_line ready_[2];
  ready_line aside_;  ///< of one direction at a time
};

template <class End>
void slot_lanes::take_all(End end) {
  for (ready_line& each : ready_) each = {};
  for (lane& in : lanes_) {
    std::uint32_t n = in.head;
    // An op that was handed out stays; only a head can be.
    const bool keep = n != none && nodes_[n].taken;
    if (keep) {
      n = nodes_[n].behind;
      nodes_[in.head].behind = none;
    }
    in.tail = keep ? in.head : none;
    in.head = in.tail;
    while (n != none) {
      const std::uint32_t after = nodes_[n].behind;
      if (is_skip(n))
        free_skips_.push_back(n);
      else
        end(n);
      n = after;
    }
  }
}

// Ops of a lane that are not awake. In the place of an op with a number stays a number to skip.
template <class Gone, class End>
void slot_lanes::drop_behind(lane& in, Gone& gone, End& end) {
  if (in.head == none) return;
  std::uint32_t before = awake(in) ? in.head : none;
  std::uint32_t n = before == none ? in.head : nodes_[in.head].behind;
  while (n != none) {
    const std::uint32_t after = nodes_[n].behind;
    if (is_skip(n) || !gone(n)) {
      before = n;
      n = after;
      continue;
    }
    std::uint32_t rest = after;
    if (nodes_[n].sequence != 0) {
      rest = take_skip(nodes_[n].slot, nodes_[n].sequence);
      nodes_[rest].behind = after;
    }
    (before == none ? in.head : nodes_[before].behind) = rest;
    if (in.tail == n) in.tail = rest == after ? before : rest;
    if (rest != after) before = rest;
    end(n);
    n = after;
  }
}

template <class Gone, class End>
void slot_lanes::drop(Gone gone, End end) {
  for (lane& in : lanes_) drop_behind(in, gone, end);
  // The ready ones last: who wakes now was looked at above.
  std::uint32_t dropped = none;
  for (ready_line& each : ready_) {
    std::uint32_t n = each.head;
    each = {};
    while (n != none) {
      const std::uint32_t after = nodes_[n].next_ready;
      if (gone(n)) {
        nodes_[n].next_ready = dropped;
        dropped = n;
      } else {
        append(each, n);
      }
      n = after;
    }
  }
  while (dropped != none) {
    const std::uint32_t n = dropped;
    dropped = nodes_[n].next_ready;
    end(n);
    pass(n);
  }
}

}  // namespace cairn::detail
