// Operations in flight: which record and slot each one concerns, which ranks have reported, how it
// ended. It knows neither keys nor units.
//
// Each entry has two words. `ranks` = {generation, mask of ranks that have reported}. `state` =
// {generation, phase, final status, observed}. Phases:
//
//   free -> queued        begin (the entry's taker)
//   free -> begun -> queued   instead, in a staged table: begin, then submitted. A begun op cannot
//                         be cancelled, so its record and units stay while they are handed over
//   begun|queued -> taken   the first rank that hands the op to its device
//   queued -> finishing   cancel: only if no rank took it, since it is the same word
//   queued|taken -> finishing   the completion that fills the mask
//   finishing -> ended    the same thread, once the record has been published or unwound; so
//                         whoever sees `ended` also sees the record's new state
//   finishing -> free     instead, when nobody observes
//   ended -> free         the last unobserve
//
// A failing rank writes its status before its bit (1 before 2), and the completion that fills the
// mask reads the status after it (2 before 3): a failure is never lost, nor that a copy is
// unproven. A repeated completion finds its bit set and counts for nothing. A late one finds
// another generation.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <memory>

#include "runtime/bitmap.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

enum class op_phase : std::uint8_t { free, begun, queued, taken, finishing, ended };

struct op_word {
  std::uint32_t generation = 0;
  op_phase phase = op_phase::free;
  status code = status::pending;
  bool observed = false;
  bool unproven = false;  ///< some rank's copy may still touch memory
  bool corrupt = false;   ///< some rank found the image's bytes wrong

  static constexpr op_word of(std::uint64_t bits) noexcept {
    op_word w;
    w.generation = static_cast<std::uint32_t>(bits >> 32);
    w.phase = static_cast<op_phase>(bits & 0xff);
    w.code = static_cast<status>((bits >> 8) & 0xff);
    w.observed = ((bits >> 16) & 1) != 0;
    w.unproven = ((bits >> 17) & 1) != 0;
    w.corrupt = ((bits >> 18) & 1) != 0;
    return w;
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return (std::uint64_t{generation} << 32) | static_cast<std::uint64_t>(phase) |
           (static_cast<std::uint64_t>(code) << 8) | (std::uint64_t{observed ? 1U : 0U} << 16) |
           (std::uint64_t{unproven ? 1U : 0U} << 17) | (std::uint64_t{corrupt ? 1U : 0U} << 18);
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
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  op_table(std::uint32_t capacity, std::uint32_t ranks, bool staged = false);

  /// Takes an entry, or none when all are in use.
  std::uint32_t take_entry() noexcept;
  /// Returns an entry that was taken and not begun.
  void give_entry(std::uint32_t index) noexcept;
  /// free -> queued, or begun in a staged table.
  op_id begin(std::uint32_t index, const op_facts& facts) noexcept;

  /// begun -> queued, unless a rank was faster.
  void submitted(op_id op) noexcept;
  /// begun|queued -> taken, or taken already.
  bool take(op_id op) noexcept;
  /// queued -> finishing with `cancelled`; the caller unwinds and calls end.
  bool start_cancel(op_id op, op_facts& facts) noexcept;

  enum class counted : std::uint8_t { no, yes, last };
  /// Counts a rank's completion. `last`: the phase is finishing, `over` says how it ended and the
  /// caller must publish or unwind, then call end.
  struct verdict {
    status code = status::pending;
    bool unproven = false;
    bool corrupt = false;
  };
  counted count(const completion& what, op_facts& facts, verdict& over) noexcept;
  /// finishing -> ended or free; wakes waiters. `code` is what observers read.
  void end(op_id op, status code) noexcept;

  void observe(op_id op) noexcept;
  void unobserve(op_id op) noexcept;
  [[nodiscard]] status code(op_id op) const noexcept;
  status wait(op_id op, deadline until) const noexcept;

  /// Entries below this have been used at some time.
  [[nodiscard]] std::uint32_t high_water() const noexcept { return high_water_.load_acquire(); }
  /// The op in entry `index` and what it is about; false when it is not open. The answer may be
  /// out of date by the time it is used: every function above checks the generation.
  bool look(std::uint32_t index, op_id& op, op_facts& facts, op_phase& phase) const noexcept;
  [[nodiscard]] std::uint32_t in_use() const noexcept;

 private:
  struct alignas(sync::cache_line) entry {
    sync::atomic<std::uint64_t> state;
    sync::atomic<std::uint64_t> ranks;
    // Facts as relaxed atomics: `look` may read them while a later tenant writes.
    sync::atomic<std::uint64_t> record;
    sync::atomic<std::uint64_t> slot_epoch;
    sync::atomic<std::uint8_t> kind;
    mutable sync::atomic<std::uint32_t> bell;
    mutable sync::atomic<std::uint32_t> waiters;
  };
  static op_facts facts_of(const entry& e) noexcept;
  void release_entry(std::uint32_t index) noexcept;

  std::uint32_t capacity_;
  std::uint32_t full_mask_;
  op_phase first_;
  std::unique_ptr<entry[]> entries_;
  bitmap free_;
  sync::atomic<std::uint32_t> high_water_;
};

}  // namespace cairn::detail
