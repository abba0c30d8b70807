// Bare pins: who holds which record until when. It knows no keys; the catalog pins and unpins.
//
// One word per entry, {generation, active}:
//
//   inactive(g)    --open, the entry's taker-->                          active(g + 1)
//   active(g)      --shut, by CAS, its owner or whoever finds it expired-->  inactive(g)
//
// The caller that turns an active entry inactive owns the right to unpin, so a pin falls exactly
// once. It alone puts the entry back into the free set, which hands it to the next taker.
//
// A walk over all pins costs as many looks as there are pins, and who needs room asks for one again
// and again. So each sort of walk remembers how many pins had been opened when it began: none
// since, and it has met them all. The walk for deadlines remembers the first of these too, in the
// same word.
//
// Orders. Numbers in the code:
//  (1) word, store release: pairs with (2), (3). The record and the deadline.
//  (2) word, load acquire: pairs with (1).
//  (3) word, CAS acquire: pairs with (1). What its winner does afterwards comes to the next taker
//      by the free set.
//  (4) high water, CAS acq_rel: pairs with (5). Raised before the entry is active, so that a walk
//      that begins after `open` has returned meets it.
//  (5) high water, load acquire: pairs with (4).
//  (6) pins opened, fetch_add release: pairs with (7). Behind (1): a pin that is counted is active.
//  (7) pins opened, load acquire: pairs with (6).
//  (8) pins ended, fetch_add release: pairs with (9). Behind (3).
//  (9) pins ended, load acquire: pairs with (8). First, so that of a pin that was counted before it
//      was ended the beginning is seen too.
// The other fields are relaxed: read between (2) or (3) and a look at the generation.
#pragma once

#include <algorithm>
#include <bit>
#include <cairn/types.hpp>
#include <cstdint>
#include <limits>
#include <memory>

#include "runtime/bitmap.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class pin_table {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  explicit pin_table(std::uint32_t capacity)
      : capacity_(capacity), entries_(std::make_unique<entry[]>(capacity)), free_(capacity) {
    for (std::uint32_t i = 0; i < capacity; ++i) free_.put(i);
  }

  /// Files a pin that the caller holds on `record`; false when the table is full.
  bool open(record_handle record, deadline until, std::uint32_t& index,
            std::uint32_t& generation) noexcept {
    index = free_.take_lowest();
    if (index == bitmap::none) return false;
    std::uint32_t high = high_water_.load_relaxed();
    while (high <= index && !high_water_.cas_acq_rel(high, index + 1)) {  // (4)
    }
    entry& e = entries_[index];
    generation = generation_of(e.word.load_relaxed());  // the taker's own
    if (!sync::mutated("bare pin generation kept")) ++generation;
    e.record.store_relaxed((std::uint64_t{record.index} << 32) | record.generation);
    e.until_ns.store_relaxed(until.time_since_epoch().count());
    e.born_ns.store_relaxed(clock::now().time_since_epoch().count());
    e.word.store_release(word_of(generation, true));  // (1)
    opened_.fetch_add_release(1);                     // (6)
    return true;
  }

  /// Ends the pin; true when this call did, and `record` is the caller's to unpin.
  bool shut(std::uint32_t index, std::uint32_t generation, record_handle& record) noexcept {
    if (index >= capacity_) return false;
    entry& e = entries_[index];
    std::uint64_t expected = word_of(generation, true);
    if (!e.word.cas_acquire(expected, word_of(generation, false))) return false;  // (3)
    const std::uint64_t packed = e.record.load_relaxed();
    record = {static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
    shut_.fetch_add_release(1);  // (8)
    free_.put(index);
    return true;
  }

  /// Ends each pin whose deadline is at or before `now` and calls f(record).
  template <class F>
  std::uint32_t expire(deadline now, F&& f) noexcept {
    const std::uint64_t opened = opened_.load_acquire();  // (7)
    const std::int64_t now_ns = now.time_since_epoch().count();
    const expiry last = expiry::of(expired_.load_relaxed());
    if (last.opened == static_cast<std::uint32_t>(opened) && tick_of(now_ns) < last.first_tick)
      return 0;
    std::uint32_t ended = 0;
    std::uint32_t first_tick = ~std::uint32_t{0};
    const std::uint32_t high = high_water_.load_acquire();  // (5)
    for (std::uint32_t i = 0; i < high; ++i) {
      const std::uint64_t word = entries_[i].word.load_acquire();  // (2)
      if ((word & 1) == 0) continue;
      const std::int64_t until_ns = entries_[i].until_ns.load_relaxed();
      if (until_ns > now_ns) {
        first_tick = std::min(first_tick, tick_of(until_ns));
        continue;
      }
      // The deadline may be a later tenant's: then the generation has moved and shut refuses.
      record_handle record;
      if (!shut(i, generation_of(word), record)) continue;
      f(record);
      ++ended;
    }
    expired_.store_relaxed(expiry{static_cast<std::uint32_t>(opened), first_tick}.bits());
    return ended;
  }

  /// Calls f(record) for each pin that is held now, unless a walk before has met them all. The
  /// record may have changed hands by then.
  template <class F>
  void for_each_new(F&& f) noexcept {
    const std::uint64_t opened = opened_.load_acquire();  // (7)
    if (met_.load_relaxed() == opened) return;
    const std::uint32_t high = high_water_.load_acquire();  // (5)
    for (std::uint32_t i = 0; i < high; ++i) {
      if ((entries_[i].word.load_acquire() & 1) == 0) continue;  // (2)
      const std::uint64_t packed = entries_[i].record.load_relaxed();
      f(record_handle{static_cast<std::uint32_t>(packed >> 32),
                      static_cast<std::uint32_t>(packed)});
    }
    met_.store_relaxed(opened);  // a walk that began earlier may overwrite it: one walk more
  }

  /// A figure: one too few for each pin that ends while its `open` has not counted it yet.
  [[nodiscard]] std::uint32_t live() const noexcept {
    const std::uint64_t ended = shut_.load_acquire();    // (9)
    const std::uint64_t begun = opened_.load_relaxed();  // relaxed: behind (9)
    return begun > ended ? static_cast<std::uint32_t>(begun - ended) : 0;
  }
  [[nodiscard]] std::int64_t oldest_ns(deadline now) const noexcept {
    std::int64_t oldest = 0;
    const std::uint32_t high = high_water_.load_acquire();  // (5)
    for (std::uint32_t i = 0; i < high; ++i) {
      if ((entries_[i].word.load_acquire() & 1) == 0) continue;  // (2)
      const std::int64_t age = now.time_since_epoch().count() - entries_[i].born_ns.load_relaxed();
      if (age > oldest) oldest = age;
    }
    return oldest;
  }

 private:
  /// Time in steps of 67 ms, rounded down, so that it errs on the side of a walk. The field ends
  /// after 9 years of the clock; what is farther off is as good as never.
  static std::uint32_t tick_of(std::int64_t ns) noexcept {
    const std::int64_t tick = ns >> 26;
    return tick < 0 ? 0
                    : static_cast<std::uint32_t>(
                          std::min<std::int64_t>(tick, std::numeric_limits<std::uint32_t>::max()));
  }
  /// What a walk for deadlines left.
  struct expiry {
    std::uint32_t opened = 0;      ///< pins when it began, the low bits
    std::uint32_t first_tick = 0;  ///< no deadline of these is earlier
    static expiry of(std::uint64_t bits) noexcept { return std::bit_cast<expiry>(bits); }
    [[nodiscard]] std::uint64_t bits() const noexcept {
      return std::bit_cast<std::uint64_t>(*this);
    }
  };
  /// Relaxed, all but the word: see above.
  struct entry {
    sync::atomic<std::uint64_t> word;
    sync::atomic<std::uint64_t> record;
    sync::atomic<std::int64_t> until_ns;
    sync::atomic<std::int64_t> born_ns;
  };
  static constexpr std::uint64_t word_of(std::uint32_t generation, bool active) noexcept {
    return (std::uint64_t{generation} << 1) | (active ? 1U : 0U);
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 1);
  }

  std::uint32_t capacity_;
  std::unique_ptr<entry[]> entries_;
  bitmap free_;
  sync::atomic<std::uint32_t> high_water_;
  sync::atomic<std::uint64_t> opened_;
  sync::atomic<std::uint64_t> shut_;
  // Relaxed: hints.
  sync::atomic<std::uint64_t> expired_;  ///< see expiry
  sync::atomic<std::uint64_t> met_;      ///< pins opened when the last for_each_new began
};

}  // namespace cairn::detail
