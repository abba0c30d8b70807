// Which entry an op gets. The protocol is explained in op_table.hpp.
#include <algorithm>

#include "runtime/op_table.hpp"

namespace cairn::detail {

op_table::op_table(std::uint32_t capacity, std::uint32_t slots, std::uint32_t ranks, bool staged)
    : capacity_(capacity),
      own_(std::min(slots, capacity / 4)),
      ranks_(ranks),
      first_(staged ? op_phase::begun : op_phase::queued),
      entries_(std::make_unique<entry[]>(capacity)),
      shared_(capacity - own_) {}

bool op_table::claim(std::uint32_t index, std::uint32_t& generation) noexcept {
  sync::atomic<std::uint64_t>& state = entries_[index].state;
  std::uint64_t bits = state.load_acquire();  // (9) before the look at the stack, and the next
  for (;;) {
    const op_word old = op_word::of(bits);
    generation = old.generation;
    if (old.phase != op_phase::free) return false;
    op_word mine;
    mine.phase = op_phase::claimed;
    mine.generation = old.generation + (sync::mutated("op generation kept") ? 0U : 1U);
    if (state.cas_acquire(bits, mine.bits())) return true;  // (14)
  }
}

std::uint32_t op_table::claim_any(std::uint64_t& sum) noexcept {
  sum = 0;
  for (std::uint32_t index = 0; index < own_; ++index) {
    std::uint32_t generation = 0;
    if (claim(index, generation)) {
      strayed_.store_relaxed(true);  // before its begin
      return index;
    }
    sum += generation;
  }
  return none;
}

std::uint32_t op_table::claim_entry(slot_id slot) noexcept {
  std::uint32_t generation = 0;
  if (own_ != 0 && claim(slot % own_, generation)) return slot % own_;
  std::uint32_t index = shared_.take();
  for (std::uint64_t before = 0; index == none;) {
    if (const std::uint32_t other = claim_any(before); other != none) return other;
    index = shared_.take();
    if (index != none) break;
    if (sync::mutated("own entries looked at once")) return none;
    std::uint64_t after = 0;
    if (const std::uint32_t other = claim_any(after); other != none) return other;
    if (before == after) return none;
  }
  index += own_;
  claim(index, generation);  // nobody else does: it came from the stack
  return index;
}

std::uint32_t op_table::take_entry(slot_id slot) noexcept {
  const std::uint32_t index = claim_entry(slot);
  if (index == none) return none;
  // Raised before the entry is begun, so that a walk up to it meets every open op.
  std::uint32_t high = high_water_.load_relaxed();
  while (high <= index && !high_water_.cas_acq_rel(high, index + 1)) {  // (12)
  }
  return index;
}

void op_table::give_entry(std::uint32_t index) noexcept {
  sync::atomic<std::uint64_t>& state = entries_[index].state;
  op_word free;
  free.generation = op_word::of(state.load_relaxed()).generation;  // ours alone while claimed
  state.store_release(free.bits());                                // (8)
  release_entry(index);
}

void op_table::release_entry(std::uint32_t index) noexcept {
  if (index >= own_) shared_.put(index - own_);
}

}  // namespace cairn::detail
