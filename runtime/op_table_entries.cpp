// Which entry an op gets. The protocol is explained in op_table.hpp.
#include <algorithm>

#include "runtime/op_table.hpp"

namespace cairn::detail {

op_table::op_table(std::uint32_t capacity, std::uint32_t slots, std::uint32_t ranks, bool staged)
    : capacity_(capacity),
      ranks_(ranks),
      first_(staged ? op_phase::begun : op_phase::queued),
      entries_(std::make_unique<entry[]>(capacity)),
      choice_(capacity, std::min(slots, capacity / 4)) {}

bool op_table::claim(std::uint32_t index, std::uint64_t& generation) noexcept {
  sync::atomic<std::uint64_t>& state = entries_[index].state;
  std::uint64_t bits = state.load_acquire();  // (9) before the look at the stack, and the next
  for (;;) {
    const op_word old = op_word::of(bits);
    generation = old.generation;
    if (old.phase != op_phase::free) return false;
    op_word mine;
    mine.phase = op_phase::claimed;
    mine.generation = old.generation + (sync::mutated("op generation kept") ? 0U : 1U);
    if (state.cas_acquire(bits, mine.bits())) return true;  // (12)
  }
}

std::uint32_t op_table::take_entry(slot_id slot) noexcept {
  const std::uint32_t index =
      choice_.take(slot, [this](std::uint32_t i, std::uint64_t& g) { return claim(i, g); });
  // Relaxed: before its begin.
  if (index < choice_.own() && index != choice_.own_of(slot)) strayed_.store_relaxed(true);
  return index;
}

void op_table::give_entry(std::uint32_t index) noexcept {
  sync::atomic<std::uint64_t>& state = entries_[index].state;
  op_word free;
  free.generation = op_word::of(state.load_relaxed()).generation;  // ours alone while claimed
  state.store_release(free.bits());                                // (8)
  choice_.put(index);
}

}  // namespace cairn::detail
