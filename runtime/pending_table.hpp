// At most one pending boundary per sequence: filed, replaced, taken, or dropped by key, by any
// thread. Knows sequences and keys; nothing of slots, records or what a boundary is for.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/bitmap.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

// The protocol
//
// Each sequence has one word: 0, or {filing stamp, entry}. The entry, from a fixed pool, holds
// what does not fit a word: the key and the hint.
//
// Any thread may make each of these, on any sequence:
//
//   put      takes an entry, fills it, exchanges its word in. What comes out is a boundary
//            that was superseded: whoever exchanges a word out owns its entry, alone.
//   take     exchanges 0 in, and owns what comes out.
//   drop     (by key) reads the word, then the entry's key, and CASes the word to 0. No two
//            filings share a stamp, so a CAS that succeeds proves that the word stood there
//            throughout, that its entry was not recycled, and that the key read is its key. A
//            CAS that fails means that somebody else took it or replaced it: a later filing.
//
// Two indexes make the usual cases cheap, and both err on the side of looking:
//   bits_     a bit per sequence, set after the word is in. A collector clears bits first and
//             takes the words afterwards, so a filing whose put has returned is seen either by
//             the collector that clears its bit or by the next one. A set bit over an empty
//             word means nothing.
//   buckets_  how many words there are per hash of the key: raised before a word is in,
//             lowered after it is out. Zero proves that no finished put has left the key.
//
// A thread holds one entry at most, so sequences + threads entries always suffice.
class pending_table {
 public:
  struct item {
    std::uint64_t age = 0;  ///< greater: filed earlier
    std::uint32_t sequence = 0;
    placement_hint hint = placement_hint::none;
    checkpoint_key key;
  };
  enum class put_outcome : std::uint8_t { filed, replaced, no_entry };

  pending_table(std::uint32_t sequences, std::uint32_t threads);

  /// Files; `no_entry` when more threads are inside than were announced. Lock-free.
  put_outcome put(std::uint32_t sequence, const checkpoint_key& key, placement_hint hint) noexcept;
  /// Takes the sequence's boundary away, into `out` if given; false when there is none.
  bool take(std::uint32_t sequence, item* out = nullptr) noexcept;
  /// Takes all boundaries, oldest first, into `out`, whose capacity holds all sequences.
  void collect(std::vector<item>& out) noexcept;
  /// Takes every boundary of `key` away; returns how many went. Constant time when there are
  /// none. Lock-free.
  std::uint32_t drop(const checkpoint_key& key) noexcept;

  [[nodiscard]] std::uint32_t sequences() const noexcept { return sequences_; }
  /// Boundaries pending; exact while no call is under way.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load_relaxed(); }

 private:
  /// {stamp: 40 bits, entry + 1: 24 bits}; all zero: none.
  struct word {
    static constexpr unsigned entry_bits = 24;
    static constexpr std::uint64_t stamp_mask = (std::uint64_t{1} << 40) - 1;
    std::uint64_t raw = 0;

    static word make(std::uint64_t stamp, std::uint32_t entry) noexcept {
      return {(stamp & stamp_mask) << entry_bits | (std::uint64_t{entry} + 1)};
    }
    [[nodiscard]] bool none() const noexcept { return raw == 0; }
    [[nodiscard]] std::uint64_t stamp() const noexcept { return raw >> entry_bits; }
    [[nodiscard]] std::uint32_t entry() const noexcept {
      return static_cast<std::uint32_t>(raw & ((std::uint64_t{1} << entry_bits) - 1)) - 1;
    }
  };
  /// Relaxed throughout: the word's accesses order them (see drop for a reader without
  /// ownership).
  struct entry {
    sync::atomic<std::uint64_t> hi;
    sync::atomic<std::uint64_t> lo;
    sync::atomic<placement_hint> hint;
  };
  struct alignas(sync::cache_line) sequence_word {
    sync::atomic<std::uint64_t> raw;
  };

  [[nodiscard]] std::uint32_t take_entry() noexcept;
  [[nodiscard]] checkpoint_key key_of(std::uint32_t at) const noexcept;
  [[nodiscard]] sync::atomic<std::uint32_t>& bucket(const checkpoint_key& key) noexcept;
  /// Ends the boundary whose word the caller has just exchanged out.
  void release(word out) noexcept;

  std::uint32_t sequences_;
  std::uint32_t bit_words_;
  std::uint32_t bucket_mask_;
  std::unique_ptr<sequence_word[]> words_;
  std::unique_ptr<entry[]> entries_;
  std::unique_ptr<sync::atomic<std::uint64_t>[]> bits_;
  std::unique_ptr<sync::atomic<std::uint32_t>[]> buckets_;
  bitmap free_;
  // Relaxed: numbers.
  alignas(sync::cache_line) sync::atomic<std::uint64_t> stamps_;
  sync::atomic<std::uint32_t> size_;
};

}  // namespace cairn::detail
