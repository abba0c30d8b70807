// What other threads may ask about an op while it is on its way: has it been launched, in which
// batch, or has it ended? And the same for all ops that touch a slot. Knows no queue and no
// streams; it carries what the copy thread publishes for `order_after`.
//
// One word per op index: the generation, a stage and a batch_ref.
//
//   (older generation) --accept, submitter-->  accepted
//   accepted --launch, copy thread--> launched   after the batch's event was recorded
//   accepted or launched --end, copy thread--> ended
//
// The catalog ends a cancelled op at once and may reuse its index while the cancelled op still
// waits in the queue. So accept simply overwrites, and the copy thread changes a word only by a
// compare-and-swap from its own generation: it never touches a successor's. A reader that finds a
// later generation knows that the op has ended; an earlier one, that it has not arrived.
//
// Per slot: how many ops were admitted, how many of them have been launched or have ended, and the
// last batch that was launched on the slot. Ops on a slot run in a chain, so who runs behind the
// last batch runs behind all. A reader looks at `passed` first and at `admitted` second: when they
// agree, all ops admitted before the second look had passed at the first.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/copy_batch.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class op_board {
 public:
  enum class stage : std::uint8_t { absent, accepted, launched, ended };
  struct view {
    stage at = stage::absent;
    batch_ref batch;  ///< when launched
  };

  explicit op_board(std::uint32_t max_ops) : words_(new sync::atomic<std::uint64_t>[max_ops]) {}

  /// The submitter's, before it enqueues the op.
  void accept(op_id op) noexcept {
    words_[op.index].store_release(make(op.generation, stage::accepted, {}));
  }
  /// The copy thread's. (1) release: pairs with (3).
  void launch(op_id op, batch_ref batch) noexcept { move(op, stage::launched, batch); }
  /// The copy thread's. (2) release: pairs with (3).
  void end(op_id op) noexcept { move(op, stage::ended, {}); }

  /// Wait-free. Precondition: op.index is below max_ops.
  [[nodiscard]] view look(op_id op) const noexcept {
    const std::uint64_t word = words_[op.index].load_acquire();  // (3) acquire: pairs with (1), (2)
    const stage at = stage_of(word);
    if (at == stage::absent) return {};
    // Generations wrap; the nearer direction decides.
    const auto ahead = static_cast<std::int32_t>(generation_of(word) - op.generation);
    if (ahead > 0) return {stage::ended, {}};
    if (ahead < 0) return {};
    return {at, batch_ref::unpack(static_cast<std::uint32_t>(word) & ref_mask)};
  }

 private:
  // generation : 32, stage : 2, batch_ref : 30
  static constexpr std::uint32_t ref_mask = (std::uint32_t{1} << 30) - 1;
  static std::uint64_t make(std::uint32_t generation, stage at, batch_ref batch) noexcept {
    return std::uint64_t{generation} << 32 | std::uint64_t{static_cast<std::uint8_t>(at)} << 30 |
           batch.pack();
  }
  static std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 32);
  }
  static stage stage_of(std::uint64_t word) noexcept { return static_cast<stage>(word >> 30 & 3); }

  void move(op_id op, stage to, batch_ref batch) noexcept {
    sync::atomic<std::uint64_t>& word = words_[op.index];
    std::uint64_t seen = word.load_relaxed();
    while (generation_of(seen) == op.generation &&
           !word.cas_release(seen, make(op.generation, to, batch))) {
    }
  }

  std::unique_ptr<sync::atomic<std::uint64_t>[]> words_;
};

class slot_board {
 public:
  explicit slot_board(std::uint32_t slots) : entries_(new entry[slots]) {}

  /// The submitter's, before it enqueues an op on the slot.
  void admit(slot_id slot) noexcept { entries_[slot].admitted.fetch_add_relaxed(1); }
  /// The copy thread's: one op on the slot runs in `batch`, whose event is recorded.
  void launch(slot_id slot, batch_ref batch) noexcept {
    entries_[slot].last.store_relaxed(present | batch.pack());  // published by pass
    pass(slot);
  }
  /// The copy thread's: one op on the slot was launched or has ended.
  void pass(slot_id slot) noexcept { entries_[slot].passed.fetch_add_release(1); }  // (1) with (2)

  /// All ops admitted so far have been launched or have ended. Wait-free.
  [[nodiscard]] bool passed(slot_id slot) const noexcept {
    const entry& e = entries_[slot];
    const std::uint32_t done = e.passed.load_acquire();  // (2) acquire: pairs with (1)
    // (3) relaxed: what the caller submitted happens before this load, and so does all that (2)
    // counted, since the copy thread acquired it from the queue.
    return done == e.admitted.load_relaxed();
  }
  [[nodiscard]] std::optional<batch_ref> last(slot_id slot) const noexcept {
    const std::uint32_t bits = entries_[slot].last.load_relaxed();  // ordered behind (2)
    if ((bits & present) == 0) return std::nullopt;
    return batch_ref::unpack(bits & ~present);
  }

 private:
  static constexpr std::uint32_t present = std::uint32_t{1} << 31;
  struct entry {
    sync::atomic<std::uint32_t> admitted{0};
    sync::atomic<std::uint32_t> passed{0};
    sync::atomic<std::uint32_t> last{0};
  };
  std::unique_ptr<entry[]> entries_;
};

}  // namespace cairn::detail
