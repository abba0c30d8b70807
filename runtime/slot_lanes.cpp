// The moves of slot_lanes: arriving, passing, becoming ready.
#include "runtime/slot_lanes.hpp"

#include <algorithm>

namespace cairn::detail {

slot_lanes::slot_lanes(std::uint32_t slots, std::uint32_t rows, slot_health& health,
                       slot_board& board)
    : health_(health), board_(board), rows_(rows), lanes_(slots), nodes_(rows + slots) {
  free_skips_.reserve(slots);
  for (std::uint32_t n = rows; n < nodes_.size(); ++n) free_skips_.push_back(n);
}

bool slot_lanes::arrive(const queue_entry& entry, copy_kind kind) {
  node& arrived = nodes_[entry.row];
  arrived = {};
  arrived.sequence = entry.sequence;
  arrived.slot = entry.slot;
  arrived.kind = kind;
  lane& in = lanes_[entry.slot];
  if (!insert(in, entry.row)) return false;
  if (in.head == entry.row) wake_head(in);
  return true;
}

void slot_lanes::skip(slot_id slot, std::uint64_t sequence, bool reset) {
  lane& in = lanes_[slot];
  const bool ordered = sequence >= in.next || (reset && sequence == 0);
  const std::uint32_t n = ordered ? take_skip(slot, sequence) : none;
  if (n != none) nodes_[n].reset = reset;
  if (n == none || !insert(in, n)) {
    if (n != none) free_skips_.push_back(n);
    if (reset) health_.dropped(slot);
  } else if (in.head == n) {
    wake_head(in);
  }
}

std::uint32_t slot_lanes::take_skip(slot_id slot, std::uint64_t sequence) {
  if (free_skips_.empty()) {
    nodes_.emplace_back();
    free_skips_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
  }
  const std::uint32_t n = free_skips_.back();
  free_skips_.pop_back();
  nodes_[n] = {};
  nodes_[n].sequence = sequence;
  nodes_[n].slot = slot;
  return n;
}

void slot_lanes::pass(std::uint32_t row) {
  lane& in = lanes_[nodes_[row].slot];
  remove_head(in);
  wake_head(in);
}

std::uint32_t slot_lanes::take_ready(copy_kind kind) {
  const std::uint32_t n = take_first(line(kind));
  nodes_[n].taken = true;
  return n;
}

void slot_lanes::set_aside(copy_kind kind) {
  append(aside_, take_first(line(kind)));
}

void slot_lanes::take_back(copy_kind kind) {
  if (aside_.head == none) return;
  ready_line& to = line(kind);
  nodes_[aside_.tail].next_ready = to.head;
  to.head = aside_.head;
  if (to.tail == none) to.tail = aside_.tail;
  aside_ = {};
}

// Numbers come nearly in order, so the end of the lane is the usual place. An op without a number
// goes to the end; a number that came late goes before the first higher one.
bool slot_lanes::insert(lane& in, std::uint32_t n) {
  const std::uint64_t sequence = nodes_[n].sequence;
  if (sequence != 0 && sequence < in.next) return false;
  std::uint32_t before = in.tail;
  if (sequence != 0 && sequence <= in.highest) {
    before = none;
    std::uint32_t at = in.head;
    while (at != none && nodes_[at].sequence < sequence) {
      before = at;
      at = nodes_[at].behind;
    }
    if (at != none && nodes_[at].sequence == sequence) return false;
  }
  in.highest = std::max(in.highest, sequence);
  std::uint32_t& link = before == none ? in.head : nodes_[before].behind;
  nodes_[n].behind = link;
  link = n;
  if (nodes_[n].behind == none) in.tail = n;
  return true;
}

void slot_lanes::remove_head(lane& in) {
  const std::uint32_t n = in.head;
  if (nodes_[n].sequence != 0) {
    in.next = nodes_[n].sequence + 1;
    board_.tell_turn(nodes_[n].slot, in.next);
    told_ = true;
  }
  in.head = nodes_[n].behind;
  if (in.head == none) in.tail = none;
}

// Called once for each head: when it arrives at the head, or when its predecessor has passed.
void slot_lanes::wake_head(lane& in) {
  while (in.head != none) {
    node& first = nodes_[in.head];
    if (first.sequence != 0 && first.sequence != in.next) return;
    if (!is_skip(in.head)) break;
    if (first.reset) health_.reset(first.slot);
    free_skips_.push_back(in.head);
    remove_head(in);
  }
  if (in.head != none) append(line(nodes_[in.head].kind), in.head);
}

std::uint32_t slot_lanes::take_first(ready_line& from) {
  const std::uint32_t n = from.head;
  from.head = nodes_[n].next_ready;
  if (from.head == none) from.tail = none;
  return n;
}

void slot_lanes::append(ready_line& to, std::uint32_t n) {
  nodes_[n].next_ready = none;
  if (to.tail == none)
    to.head = n;
  else
    nodes_[to.tail].next_ready = n;
  to.tail = n;
}

}  // namespace cairn::detail
