// Operations in flight: which record and slot each one concerns, which ranks have reported, how it
// ended, and what a copy that was given up may still touch. It knows neither keys nor units.
//
// Each entry has three words. `state` = {generation, phase, final status, observed, kept, awaited,
// how many ranks have reported}; `ranks` = {generation, mask of ranks that have reported}; `owed` =
// {generation, closed, mask of ranks whose copy was given up and is not proven over}. Phases:
//
//   free -> claimed       take_entry, by the CAS that also begins a generation
//   claimed -> queued     begin, by who claimed the entry; or -> free, give_entry
//   claimed -> begun -> queued   instead, in a staged table: begin, then submitted. A begun op
//                         cannot be cancelled, so its record and units stay while they are handed
//                         over
//   begun|queued -> taken   the first rank that hands the op to its device; or that reports it
//                         while others have not: who reports has had it, whether it called `take`
//                         or not
//   queued -> finishing   cancel: only if no rank took it, since it is the same word
//   begun|queued|taken -> finishing   the completion of the last rank that had not reported
//   finishing -> ended    the same thread, once the record has been published or unwound; so
//                         whoever sees `ended` also sees the record's new state
//   finishing -> free     instead, when nobody observes and nothing is kept
//   ended -> free         the last unobserve, unless something is kept; else unkeep
//
// Marks beside the phase: `observed`, by who holds a ticket for the op (observe, unobserve);
// `awaited`, by a waiter, taken off by who ends the op; `kept`, by who ends it, taken off by who
// releases what was kept.
//
// Which entry. A slot has one of its own, the others, at least three quarters, are shared
// (entry_choice.hpp): threads that serve different slots share nothing. A claimed entry is no op
// yet: its generation is that of the op to come, and whoever asks for it is told that it is stale.
// A generation only grows, and whoever claims an entry begins one.
//
// A completion takes three steps: its rank's bit in `ranks`, by a CAS that elects one of several
// equal completions (with one rank, the CAS of `state` does that); if the copy was given up, the
// rank's bit in `owed`; and one CAS of `state` that merges the failure and counts the rank. The one
// that counts the last rank changes the phase too. So a failure is never lost, nor that a rank owes
// a proof: both are there before the rank counts. A repeated completion finds its bit set and
// counts for nothing. A late one finds another generation.
//
// A proof takes its rank's bit out of `owed`, by a CAS that elects one of several. The thread that
// ends an op for which a rank owes a proof marks it `kept` as it ends it, and then closes `owed`.
// Who leaves the closed word without ranks, the closing thread or a later proof, releases what was
// kept and calls unkeep; until then the entry is not used again, for `kept` holds it. A proof that
// comes before its completion has been counted finds no bit and counts for nothing.
//
// Orders. Numbers in the code; (1) to (7) are explained where they stand:
//  (8) state, store release: pairs with (3), (9), (10), (12). The facts, the empty masks.
//  (9) state, load acquire: pairs with (8), (10) and (3).
// (10) state, CAS acq_rel, every transition but (3) and (12): pairs with (3), (8), (9), (10), (12).
//      Releases what the caller did for the op: a submitter's reads of its units, a record's new
//      state; acquires what those did who changed the phase before.
// (11) owed, load acquire: pairs with (4). No rank left: their copies are over.
// (12) state, CAS acquire: pairs with (8), (10). Whoever read the last tenant's facts to end its op
//      has done so before they are written anew.
//
// Who waits reads the bell, marks the state `awaited`, and sleeps unless the bell has changed; who
// ends an op that is awaited changes the bell behind that, and wakes. Both marks are of one word: a
// waiter either finds the op ended, or its mark is found.
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>

#include "runtime/bit_fields.hpp"
#include "runtime/entry_choice.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

enum class op_phase : std::uint8_t { free, begun, queued, taken, finishing, ended, claimed };

/// Bit-fields, lowest bits first: what is tested stays in the register that the word was read into.
struct alignas(std::uint64_t) op_word {
  op_phase phase : 8 = op_phase::free;
  status code : 8 = status::pending;
  bool observed : 1 = false;
  bool unproven : 1 = false;       ///< some rank gave its copy up before it was over
  bool corrupt : 1 = false;        ///< some rank found the image's bytes wrong
  bool kept : 1 = false;           ///< ended, and what a copy may touch is not released yet
  bool awaited : 1 = false;        ///< somebody sleeps until the op has ended
  std::uint32_t reported : 6 = 0;  ///< ranks
  std::uint32_t rest : 5 = 0;      ///< 0
  std::uint32_t generation = 0;

  static op_word of(std::uint64_t bits) noexcept { return std::bit_cast<op_word>(bits); }
  [[nodiscard]] std::uint64_t bits() const noexcept { return std::bit_cast<std::uint64_t>(*this); }
  /// Whether it is no op's, or not yet: marks that were set now would be lost.
  [[nodiscard]] constexpr bool vacant() const noexcept {
    return phase == op_phase::free || phase == op_phase::claimed;
  }
  /// Whether a rank may still report.
  [[nodiscard]] constexpr bool open() const noexcept {
    return phase == op_phase::begun || phase == op_phase::queued || phase == op_phase::taken;
  }
};

/// What an op is about; written by begin, constant until the entry is free again.
struct op_facts {
  record_handle record;
  slot_id slot = no_slot;
  std::uint32_t epoch = 0;
  copy_kind kind = copy_kind::store;
};

class op_table {
 public:
  static constexpr std::uint32_t none = entry_choice::none;

  /// Ops are of slots below `slots`. Precondition: neither is 0.
  op_table(std::uint32_t capacity, std::uint32_t slots, std::uint32_t ranks, bool staged = false);

  /// Takes an entry for an op of `slot`, or none when all were in use at some moment of the call.
  /// Lock-free; O(capacity) when more than three quarters are in use.
  std::uint32_t take_entry(slot_id slot) noexcept;
  /// Returns an entry that was taken and not begun.
  void give_entry(std::uint32_t index) noexcept;
  /// claimed -> queued, or begun in a staged table.
  op_id begin(std::uint32_t index, const op_facts& facts) noexcept;

  /// begun -> queued, unless a rank was faster.
  void submitted(op_id op) noexcept;
  /// begun|queued -> taken, or taken already.
  bool take(op_id op) noexcept;
  /// queued -> finishing with `cancelled`; the caller unwinds and calls end.
  bool start_cancel(op_id op, op_facts& facts) noexcept;

  enum class counted : std::uint8_t { no, yes, last };
  /// Counts a rank's completion. `last`: the phase is finishing, `over` says how it ended and the
  /// caller must publish or unwind, then call end; or end_kept when `over` says unproven: some rank
  /// owes a proof.
  struct verdict {
    status code = status::pending;
    bool unproven = false;
    bool corrupt = false;
  };
  counted count(const completion& what, op_facts& facts, verdict& over) noexcept;
  /// finishing -> ended or free; wakes waiters. `code` is what observers read.
  void end(op_id op, status code) noexcept;
  /// finishing -> ended and kept; wakes waiters. True: the proofs have come meanwhile, and the
  /// caller must release what it kept, then call unkeep.
  bool end_kept(op_id op, status code) noexcept;
  /// Counts the proof that a rank's copy is over. `last`: the op has ended, nothing else is owed,
  /// and the caller must release what was kept, then call unkeep.
  counted prove(op_id op, rank_id rank, std::uint32_t epoch, op_facts& facts) noexcept;
  /// Ended and kept -> ended, or free when nobody observes.
  void unkeep(op_id op) noexcept;

  void observe(op_id op) noexcept;
  void unobserve(op_id op) noexcept;
  [[nodiscard]] status code(op_id op) const noexcept;
  status wait(op_id op, deadline until) const noexcept;

  /// Entries below this have been used at some time.
  [[nodiscard]] std::uint32_t high_water() const noexcept { return choice_.high_water(); }
  /// Calls f(index) for each entry that may hold an op of `slot` which was begun before.
  template <class F>
  void for_slot(slot_id slot, F&& f) const;
  /// The op in entry `index` and what it is about; false when it is neither open nor kept. The
  /// answer may be out of date by the time it is used: every function above checks the generation.
  bool look(std::uint32_t index, op_id& op, op_facts& facts, op_phase& phase) const noexcept;
  [[nodiscard]] std::uint32_t in_use() const noexcept;

 private:
  struct alignas(sync::cache_line) entry {
    mutable sync::atomic<std::uint64_t> state;
    // Relaxed where `begin` empties them: (8) publishes that.
    sync::atomic<std::uint64_t> ranks;
    sync::atomic<std::uint64_t> owed;
    // Facts as relaxed atomics: `look` may read them while a later tenant writes.
    sync::atomic<std::uint64_t> record;
    sync::atomic<std::uint64_t> slot_epoch;
    sync::atomic<std::uint8_t> kind;
    mutable sync::atomic<std::uint32_t> bell;
  };
  static op_facts facts_of(const entry& e) noexcept;
  static status judge(op_id op, op_word w) noexcept;
  void finish_phase(op_id op, status code, bool keep) noexcept;
  /// free -> claimed; false: the entry is taken, of generation `generation`.
  bool claim(std::uint32_t index, std::uint64_t& generation) noexcept;

  std::uint32_t capacity_;
  std::uint32_t ranks_;
  op_phase first_;
  std::unique_ptr<entry[]> entries_;
  entry_choice choice_;
  sync::atomic<bool> strayed_;  ///< some slot has had another's own entry
};

template <class F>
void op_table::for_slot(slot_id slot, F&& f) const {
  const std::uint32_t high = high_water();
  std::uint32_t index = 0;
  // Relaxed: behind the begin of whatever op is looked for, if it has strayed.
  if (!strayed_.load_relaxed()) {
    if (choice_.own() != 0) f(choice_.own_of(slot));
    index = choice_.own();
  }
  for (; index < high; ++index) f(index);
}

}  // namespace cairn::detail
