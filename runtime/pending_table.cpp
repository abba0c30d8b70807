// The protocol's steps; the essay is in pending_table.hpp. Knows no catalog.
#include "runtime/pending_table.hpp"

#include <algorithm>
#include <bit>

namespace cairn::detail {
namespace {

constexpr std::uint32_t bits_per_word = 64;
constexpr std::uint32_t most_buckets = 1U << 16;

std::uint32_t bucket_count(std::uint32_t sequences) noexcept {
  return std::min(most_buckets, std::bit_ceil(std::min(sequences, most_buckets) * 4U));
}

}  // namespace

pending_table::pending_table(std::uint32_t sequences, std::uint32_t threads)
    : sequences_(sequences),
      bit_words_((sequences + bits_per_word - 1) / bits_per_word),
      bucket_mask_(bucket_count(sequences) - 1),
      words_(std::make_unique<sequence_word[]>(sequences)),
      entries_(std::make_unique<entry[]>(sequences + threads)),
      bits_(std::make_unique<sync::atomic<std::uint64_t>[]>(bit_words_)),
      buckets_(std::make_unique<sync::atomic<std::uint32_t>[]>(bucket_mask_ + 1)),
      free_(sequences + threads) {
  for (std::uint32_t i = 0; i < sequences + threads; ++i) free_.put(i);
}

// A pass over the free set can miss an entry only when another thread has taken or returned one
// meanwhile, which is progress; as many misses in a row as this mean too many threads.
std::uint32_t pending_table::take_entry() noexcept {
  constexpr int passes = 64;
  for (int pass = 0; pass < passes; ++pass)
    if (const std::uint32_t got = free_.take_lowest(); got != bitmap::none) return got;
  return bitmap::none;
}

checkpoint_key pending_table::key_of(std::uint32_t at) const noexcept {
  return {entries_[at].hi.load_relaxed(), entries_[at].lo.load_relaxed()};
}

sync::atomic<std::uint32_t>& pending_table::bucket(const checkpoint_key& key) noexcept {
  const std::uint64_t mixed = (key.hi ^ std::rotl(key.lo, 32)) * 0x9E3779B97F4A7C15U;
  return buckets_[static_cast<std::uint32_t>(mixed >> 32) & bucket_mask_];
}

void pending_table::release(word out) noexcept {
  // (4) release: the word went out before; pairs with (3), so that whoever reads the lowered
  // count also finds the word gone.
  bucket(key_of(out.entry())).fetch_sub_release(1);
  free_.put(out.entry());
  size_.fetch_sub_relaxed(1);
}

pending_table::put_outcome pending_table::put(std::uint32_t sequence, const checkpoint_key& key,
                                              placement_hint hint) noexcept {
  const std::uint32_t mine = take_entry();
  if (mine == bitmap::none) return put_outcome::no_entry;
  entries_[mine].hi.store_relaxed(key.hi);
  entries_[mine].lo.store_relaxed(key.lo);
  entries_[mine].hint.store_relaxed(hint);
  bucket(key).fetch_add_relaxed(1);  // published by (1)
  size_.fetch_add_relaxed(1);
  const word in = word::make(stamps_.fetch_add_relaxed(1), mine);
  // (1) acq_rel: publishes the entry to (1), (2), (5) and (6); owns the entry of what it replaces.
  const word out{words_[sequence].raw.exchange_acq_rel(in.raw)};
  // (7) release: the word is in before its bit; pairs with (8) and (9). Set even if it seems
  // set: a collector may have cleared it and not taken the word yet.
  bits_[sequence / bits_per_word].fetch_or_release(std::uint64_t{1} << sequence % bits_per_word);
  if (out.none()) return put_outcome::filed;
  release(out);
  return put_outcome::replaced;
}

bool pending_table::take(std::uint32_t sequence, item* out) noexcept {
  // (2) acq_rel: pairs with (1), to read the entry's key and to hand the entry on.
  const word taken{words_[sequence].raw.exchange_acq_rel(0)};
  if (taken.none()) return false;
  const std::uint32_t e = taken.entry();
  if (out != nullptr) *out = {taken.stamp(), sequence, entries_[e].hint.load_relaxed(), key_of(e)};
  release(taken);
  return true;
}

void pending_table::collect(std::vector<item>& out) noexcept {
  out.clear();
  for (std::uint32_t w = 0; w < bit_words_; ++w) {
    // (8) acq_rel: pairs with (7): each bit's word is in.
    for (std::uint64_t set = bits_[w].exchange_acq_rel(0); set != 0; set &= set - 1) {
      const std::uint32_t sequence =
          w * bits_per_word + static_cast<std::uint32_t>(std::countr_zero(set));
      item taken;
      if (take(sequence, &taken)) out.push_back(taken);
    }
  }
  // Ages, not stamps: the 40 bits wrap one day.
  const std::uint64_t now = stamps_.load_relaxed();
  for (item& i : out) i.age = (now - i.age) & word::stamp_mask;
  std::sort(out.begin(), out.end(), [](const item& a, const item& b) { return a.age > b.age; });
}

std::uint32_t pending_table::drop(const checkpoint_key& key) noexcept {
  // (3) acquire: pairs with (4).
  if (bucket(key).load_acquire() == 0) return 0;
  std::uint32_t dropped = 0;
  for (std::uint32_t w = 0; w < bit_words_; ++w) {
    // (9) acquire: pairs with (7).
    for (std::uint64_t set = bits_[w].load_acquire(); set != 0; set &= set - 1) {
      auto& raw = words_[w * bits_per_word + static_cast<std::uint32_t>(std::countr_zero(set))].raw;
      // (5) acquire: pairs with (1), so that the key read below is no older than the word.
      const word seen{raw.load_acquire()};
      if (seen.none() || key_of(seen.entry()) != key) continue;
      std::uint64_t expected = seen.raw;
      // (6) acq_rel: success owns the entry; release keeps the reads of the key above it.
      if (!raw.cas_acq_rel(expected, 0)) continue;
      release(seen);
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace cairn::detail
