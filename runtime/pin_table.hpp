// Bare pins: who holds which record until when. It knows no keys; the catalog pins and unpins.
//
// One word per entry, {generation, active}. The caller that turns an active entry inactive by CAS
// (its owner, or an expiry) owns the right to unpin, so a pin falls exactly once.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
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
    while (high <= index && !high_water_.cas_acq_rel(high, index + 1)) {
    }
    entry& e = entries_[index];
    generation = generation_of(e.word.load_relaxed()) + 1;
    e.record.store_relaxed((std::uint64_t{record.index} << 32) | record.generation);
    e.until_ns.store_relaxed(until.time_since_epoch().count());
    e.born_ns.store_relaxed(clock::now().time_since_epoch().count());
    e.word.store_release(word_of(generation, true));
    live_.fetch_add_relaxed(1);
    return true;
  }

  /// Ends the pin; true when this call did, and `record` is the caller's to unpin.
  bool shut(std::uint32_t index, std::uint32_t generation, record_handle& record) noexcept {
    if (index >= capacity_) return false;
    entry& e = entries_[index];
    std::uint64_t expected = word_of(generation, true);
    if (!e.word.cas_acq_rel(expected, word_of(generation, false))) return false;
    const std::uint64_t packed = e.record.load_relaxed();
    record = {static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
    live_.fetch_sub_relaxed(1);
    free_.put(index);
    return true;
  }

  /// Ends each pin whose deadline is at or before `now` and calls f(record).
  template <class F>
  std::uint32_t expire(deadline now, F&& f) noexcept {
    std::uint32_t ended = 0;
    const std::uint32_t high = high_water_.load_acquire();
    for (std::uint32_t i = 0; i < high; ++i) {
      const std::uint64_t word = entries_[i].word.load_acquire();
      if ((word & 1) == 0) continue;
      if (entries_[i].until_ns.load_relaxed() > now.time_since_epoch().count()) continue;
      // The deadline may be a later tenant's: then the generation has moved and shut refuses.
      record_handle record;
      if (!shut(i, generation_of(word), record)) continue;
      f(record);
      ++ended;
    }
    return ended;
  }

  /// Calls f(record) for each pin that is held now. The record may have changed hands by then.
  template <class F>
  void for_each(F&& f) const noexcept {
    const std::uint32_t high = high_water_.load_acquire();
    for (std::uint32_t i = 0; i < high; ++i) {
      if ((entries_[i].word.load_acquire() & 1) == 0) continue;
      const std::uint64_t packed = entries_[i].record.load_relaxed();
      f(record_handle{static_cast<std::uint32_t>(packed >> 32),
                      static_cast<std::uint32_t>(packed)});
    }
  }

  [[nodiscard]] std::uint32_t live() const noexcept { return live_.load_relaxed(); }
  [[nodiscard]] std::int64_t oldest_ns(deadline now) const noexcept {
    std::int64_t oldest = 0;
    const std::uint32_t high = high_water_.load_acquire();
    for (std::uint32_t i = 0; i < high; ++i) {
      if ((entries_[i].word.load_acquire() & 1) == 0) continue;
      const std::int64_t age = now.time_since_epoch().count() - entries_[i].born_ns.load_relaxed();
      if (age > oldest) oldest = age;
    }
    return oldest;
  }

 private:
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
  sync::atomic<std::uint32_t> live_;
};

}  // namespace cairn::detail
