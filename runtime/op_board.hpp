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
//
// And the number of the op whose turn it is, for submitters: an op that comes before its turn need
// not wake the copy thread, which looks into the queue again when it has let the one before pass.
//
// And whether the slot takes ops, in one word: how many restores and resets were admitted and are
// not decided, how many copies on it were given up and not proven over, and whether what it holds
// is unknown. It is for refusing early; what a store has read is judged in slot_health.
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
    // (4) release: pairs with (3); what the submitter did before.
    words_[op.index].store_release(make(op.generation, stage::accepted, {}));
  }
  /// The copy thread's. (1) release: pairs with (3).
  void launch(op_id op, batch_ref batch) noexcept { move(op, stage::launched, batch); }
  /// The copy thread's. (2) release: pairs with (3).
  void end(op_id op) noexcept { move(op, stage::ended, {}); }

  /// Wait-free. Precondition: op.index is below max_ops.
  [[nodiscard]] view look(op_id op) const noexcept {
    // (3) acquire: pairs with (1), (2), (4); of a launched op the batch's event is recorded.
    const std::uint64_t word = words_[op.index].load_acquire();
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
           !word.cas_release(seen, make(op.generation, to, batch))) {  // (1), (2)
    }
  }

  std::unique_ptr<sync::atomic<std::uint64_t>[]> words_;
};

class slot_board {
 public:
  explicit slot_board(std::uint32_t slots) : entries_(new entry[slots]) {}

  /// The submitter's, before it enqueues an op on the slot.
  void admit(slot_id slot, copy_kind kind) noexcept {
    entries_[slot].admitted.fetch_add_relaxed(1);
    if (kind == copy_kind::restore) admit_reset(slot);
  }
  /// The same for a reset of the slot. Relaxed, as all of this word but for the proofs: nothing is
  /// read on the strength of it, and who has been told of a failure comes after what the copy
  /// thread wrote before.
  void admit_reset(slot_id slot) noexcept { entries_[slot].fate.fetch_add_relaxed(one_undecided); }
  /// The copy thread's: one restore or reset is decided. Lock-free.
  void decide(slot_id slot, bool unknown) noexcept {
    sync::atomic<std::uint64_t>& fate = entries_[slot].fate;
    std::uint64_t seen = fate.load_relaxed();
    while (!fate.cas_relaxed(
        seen, ((seen - one_undecided) & ~unknown_bit) | (unknown ? unknown_bit : 0))) {
    }
  }
  /// The copy thread's: a copy that touches the slot was given up, or is over.
  void keep(slot_id slot) noexcept { entries_[slot].fate.fetch_add_relaxed(one_kept); }
  void prove(slot_id slot) noexcept {
    entries_[slot].fate.fetch_sub_release(one_kept);  // (8) release: pairs with (9); the copy
  }
  /// busy: a copy that was given up may still touch the slot. poisoned: nobody knows what it holds,
  /// and nothing is on its way that might change that. Else ok. Wait-free.
  [[nodiscard]] status look(slot_id slot) const noexcept {
    // (9) acquire: pairs with (8). Who finds the slot not busy may overwrite it.
    const std::uint64_t seen = entries_[slot].fate.load_acquire();
    if ((seen & kept_mask) != 0) return status::busy;
    const bool decided = (seen & undecided_mask) == 0;
    return decided && (seen & unknown_bit) != 0 ? status::poisoned : status::ok;
  }
  /// The copy thread's: one op on the slot runs in `batch`, whose event is recorded.
  void launch(slot_id slot, batch_ref batch) noexcept {
    entries_[slot].last.store_relaxed(present | batch.pack());  // published by (5)
    pass(slot);
  }
  /// The copy thread's: one op on the slot was launched or has ended.
  void pass(slot_id slot) noexcept {
    entries_[slot].passed.fetch_add_release(1);  // (5) release: pairs with (6)
  }

  /// The copy thread's: it is this number's turn now. Relaxed, here and in in_turn: what the two
  /// must agree on, copy_core's (13) and (14) see to.
  void tell_turn(slot_id slot, std::uint64_t sequence) noexcept {
    entries_[slot].turn.store_relaxed(sequence);
  }
  /// Whether the op of this number (0: of none) is not behind another one, which has not passed, as
  /// far as the copy thread has told. Wait-free.
  [[nodiscard]] bool in_turn(slot_id slot, std::uint64_t sequence) const noexcept {
    return sequence == 0 || sequence <= entries_[slot].turn.load_relaxed();
  }

  /// All ops admitted so far have been launched or have ended. Wait-free.
  [[nodiscard]] bool passed(slot_id slot) const noexcept {
    const entry& e = entries_[slot];
    const std::uint32_t done = e.passed.load_acquire();  // (6) acquire: pairs with (5)
    // (7) relaxed: what the caller submitted happens before this load, and so does all that (6)
    // counted, since the copy thread acquired it from the queue.
    return done == e.admitted.load_relaxed();
  }
  [[nodiscard]] std::optional<batch_ref> last(slot_id slot) const noexcept {
    const std::uint32_t bits = entries_[slot].last.load_relaxed();  // ordered behind (6)
    if ((bits & present) == 0) return std::nullopt;
    return batch_ref::unpack(bits & ~present);
  }

 private:
  static constexpr std::uint32_t present = std::uint32_t{1} << 31;
  // undecided : 32, kept : 31, unknown : 1
  static constexpr std::uint64_t one_undecided = 1;
  static constexpr std::uint64_t one_kept = std::uint64_t{1} << 32;
  static constexpr std::uint64_t unknown_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t undecided_mask = one_kept - 1;
  static constexpr std::uint64_t kept_mask = unknown_bit - one_kept;
  /// Relaxed, all but `passed` and the proofs, (8) and (9): `admitted` and `last` as (5) and (6)
  /// say, `fate` as admit_reset says, `turn` as tell_turn says.
  struct entry {
    sync::atomic<std::uint32_t> admitted{0};
    sync::atomic<std::uint32_t> passed{0};
    sync::atomic<std::uint32_t> last{0};
    sync::atomic<std::uint64_t> fate{0};
    sync::atomic<std::uint64_t> turn{1};
  };
  std::unique_ptr<entry[]> entries_;
};

}  // namespace cairn::detail
