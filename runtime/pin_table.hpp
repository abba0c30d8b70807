// Bare pins: who holds which record until when. It knows no keys; the catalog pins and unpins.
//
// One word per entry, a number that only grows:
//
//   free(4k)       --open, by CAS-->                       claimed(4k + 1)
//   claimed        --open, the entry's taker-->            active(4k + 2)
//   active         --shut, by CAS, its owner or whoever finds it expired-->  free(4k + 4)
//
// The caller that turns an active entry free owns the right to unpin, so a pin falls exactly once.
// How often an entry has been active is its pin's generation.
//
// Each part of the threads has an entry of its own, in a line of its own (entry_choice.hpp): a
// thread that holds one pin at a time takes no line from the others.
//
// A walk over all pins costs as many looks as there are pins, and who needs room asks for one again
// and again. So each sort of walk remembers how many pins had been opened when it began: none
// since, and it has met them all. The own entries say so themselves, those in the others are
// counted. The walk for deadlines remembers the first of these too, in the same word.
//
// Orders. Numbers in the code:
//  (1) word, store release: pairs with (2). The record and the deadline.
//  (2) word, load acquire: pairs with (1), (3).
//  (3) word, CAS release: pairs with (2), (4). Behind the look at the record, so that it is not
//      written anew before.
//  (4) word, CAS acquire: pairs with (3).
//  (5) pins opened in shared entries, fetch_add release: pairs with (6). Behind (1): a pin that is
//      counted is active.
//  (6) pins opened in shared entries, load acquire: pairs with (5).
//  (7) pins ended in shared entries, fetch_add release: pairs with (8). Behind (3).
//  (8) pins ended in shared entries, load acquire: pairs with (7). First: of a pin whose end is
//      seen the beginning is seen too, for it is counted before (1), and who ends it is behind (2).
//  (9) what a walk left, store release: pairs with (10). Behind its looks at the entries.
// (10) what a walk left, load acquire: pairs with (9). Before one's own looks at the same places,
//      which so see no less: equal sums are sums of the same numbers.
// The other fields are relaxed: read between (2) and (3), or for a figure.
#pragma once

#include <algorithm>
#include <bit>
#include <cairn/types.hpp>
#include <cstdint>
#include <limits>
#include <memory>

#include "runtime/coarse_clock.hpp"
#include "runtime/entry_choice.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class pin_table {
 public:
  explicit pin_table(std::uint32_t capacity)
      : capacity_(capacity),
        entries_(std::make_unique<entry[]>(capacity)),
        choice_(capacity, std::min(sync::thread_parts, capacity / 2)) {}

  /// Files a pin that the caller holds on `record`; false when the table is full.
  bool open(record_handle record, deadline until, std::uint32_t& index,
            std::uint32_t& generation) noexcept {
    index = choice_.take(sync::thread_part(),
                         [this](std::uint32_t i, std::uint64_t& word) { return claim(i, word); });
    if (index == entry_choice::none) return false;
    entry& e = entries_[index];
    e.record.store_relaxed((std::uint64_t{record.index} << 32) | record.generation);
    e.until_ns.store_relaxed(until.time_since_epoch().count());
    e.born_ns.store_relaxed(coarse_now_ns());
    if (index >= choice_.own()) shared_begun_.fetch_add_relaxed(1);  // before (1), see (8)
    const std::uint64_t word = e.word.load_relaxed() + 1;            // the taker's own
    generation = generation_of(word);
    e.word.store_release(word);                                       // (1)
    if (index >= choice_.own()) shared_opened_.fetch_add_release(1);  // (5)
    return true;
  }

  /// Ends the pin; true when this call did, and `record` is the caller's to unpin.
  bool shut(std::uint32_t index, std::uint32_t generation, record_handle& record) noexcept {
    if (index >= capacity_) return false;
    entry& e = entries_[index];
    std::uint64_t word = e.word.load_acquire();  // (2)
    if (!active(word) || generation_of(word) != generation) return false;
    record = e.whose();
    const std::uint64_t freed = sync::mutated("bare pin generation kept") ? word - 2 : word + 2;
    if (!e.word.cas_release(word, freed)) return false;              // (3)
    if (index >= choice_.own()) shared_ended_.fetch_add_release(1);  // (7)
    choice_.put(index);
    return true;
  }

  /// Ends each pin whose deadline is at or before `now` and calls f(record).
  template <class F>
  std::uint32_t expire(deadline now, F&& f) noexcept {
    const expiry last = expiry::of(expired_.load_acquire());  // (10)
    const std::uint64_t so_far = opened();
    const std::int64_t now_ns = now.time_since_epoch().count();
    if (last.opened == static_cast<std::uint32_t>(so_far) && tick_of(now_ns) < last.first_tick)
      return 0;
    std::uint32_t ended = 0;
    std::uint32_t first_tick = ~std::uint32_t{0};
    const std::uint32_t high = choice_.high_water();
    for (std::uint32_t i = 0; i < high; ++i) {
      const std::uint64_t word = entries_[i].word.load_acquire();  // (2)
      if (!active(word)) continue;
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
    expired_.store_release(expiry{static_cast<std::uint32_t>(so_far), first_tick}.bits());  // (9)
    return ended;
  }

  /// Calls f(record) for each pin that is held now, unless a walk before has met them all. The
  /// record may have changed hands by then.
  template <class F>
  void for_each_new(F&& f) noexcept {
    const std::uint64_t met = met_.load_acquire();  // (10)
    const std::uint64_t so_far = opened();
    if (met == so_far) return;
    const std::uint32_t high = choice_.high_water();
    for (std::uint32_t i = 0; i < high; ++i) {
      if (active(entries_[i].word.load_acquire())) f(entries_[i].whose());  // (2)
    }
    met_.store_release(so_far);  // (9); a walk that began earlier may overwrite it: one walk more
  }

  /// Never fewer than are held all the while; too many by those in shared entries that are opened
  /// or ended meanwhile.
  [[nodiscard]] std::uint32_t live() const noexcept {
    const std::uint64_t ended = shared_ended_.load_acquire();  // (8)
    const std::uint64_t begun = shared_begun_.load_relaxed();  // relaxed: behind (8)
    auto count = static_cast<std::uint32_t>(begun - ended);
    for (std::uint32_t i = 0; i < choice_.own(); ++i)
      if (active(entries_[i].word.load_acquire())) ++count;  // (2)
    return count;
  }
  /// To a few milliseconds, rather too old.
  [[nodiscard]] std::int64_t oldest_ns(deadline now) const noexcept {
    std::int64_t oldest = 0;
    const std::uint32_t high = choice_.high_water();
    for (std::uint32_t i = 0; i < high; ++i) {
      if (!active(entries_[i].word.load_acquire())) continue;  // (2)
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
  struct alignas(sync::cache_line) entry {
    sync::atomic<std::uint64_t> word;
    sync::atomic<std::uint64_t> record;
    sync::atomic<std::int64_t> until_ns;
    sync::atomic<std::int64_t> born_ns;

    [[nodiscard]] record_handle whose() const noexcept {
      const std::uint64_t packed = record.load_relaxed();
      return {static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
    }
  };
  static constexpr bool active(std::uint64_t word) noexcept { return word % 4 == 2; }
  /// How often the entry has been active.
  static constexpr std::uint64_t times_active(std::uint64_t word) noexcept {
    return (word + 2) / 4;
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(times_active(word));
  }
  /// free -> claimed; false: the entry is taken, and its word `word`.
  bool claim(std::uint32_t index, std::uint64_t& word) noexcept {
    sync::atomic<std::uint64_t>& at = entries_[index].word;
    word = at.load_acquire();  // (2) before the look at the stack, and the next
    while (word % 4 == 0)
      if (at.cas_acquire(word, word + 1)) return true;  // (4)
    return false;
  }
  /// How many have been opened since the beginning.
  [[nodiscard]] std::uint64_t opened() const noexcept {
    std::uint64_t count = shared_opened_.load_acquire();  // (6)
    for (std::uint32_t i = 0; i < choice_.own(); ++i)
      count += times_active(entries_[i].word.load_acquire());  // (2)
    return count;
  }

  std::uint32_t capacity_;
  std::unique_ptr<entry[]> entries_;
  entry_choice choice_;
  sync::atomic<std::uint64_t> shared_begun_;  ///< as shared_opened_, but before they are active
  sync::atomic<std::uint64_t> shared_opened_;
  sync::atomic<std::uint64_t> shared_ended_;
  sync::atomic<std::uint64_t> expired_;  ///< see expiry
  sync::atomic<std::uint64_t> met_;      ///< pins opened when the last for_each_new began
};

}  // namespace cairn::detail
