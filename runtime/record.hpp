// One checkpoint record: its key, its state word, its place in the order of use. It knows no
// pool, no ops and no policy; the catalog makes every transition that is described here.
//
// The word. State, pins, restores and generation live in one 64-bit word, so that no decision
// is made on one of them while another changes:
//
//   pins        bare pins, the writer of a store, and those of who looks, forgets or clears
//   restores    pins of restores; a record without them is counted as evictable when READY
//   parked      somebody looked for victims, met the record pinned and took it out of the order
//   state       vacant -> claimed -> copying -> ready -> (evicting ->) reclaiming -> vacant
//   generation  the tenancy; a handle names (index, generation)
//
//   from -> to               who                              condition
//   vacant -> claimed        the store that took the number    pins += 1 (the writer),
//                                                              generation += 1
//   claimed -> copying       the same store, units in hand
//   claimed -> vacant        the same store, refused           pins -= 1; it has left the index
//   copying -> ready         the last rank's completion        the writer's pin falls behind it
//   copying -> evicting      forget, orphan, clear; a store    the CAS winner leaves the index
//                            that failed or was cancelled
//   ready -> evicting        forget, orphan, clear; a restore  the CAS winner leaves the index
//                            that found wrong bytes
//   ready -> reclaiming      an evictor                        pins == 0 and restores == 0;
//                                                              the CAS winner leaves the index
//   evicting -> reclaiming   whoever finds both counts at 0    one CAS elects
//   reclaiming -> vacant     the elected, or the evictor       units are back in the pool, or
//                                                              the evictor's store has them
//   parked := true           whoever looks for victims         ready and pinned
//   parked := false          whoever finds both counts at 0    one CAS elects
//                            who hides or evicts the record    with the state
//
// `clear` is part of lose_rank and advance_epoch too. Beside these, the word changes by pins and
// restores that come and go.
//
// Every transition is a read-modify-write of the whole word, so it preserves pins that others
// add meanwhile. A pin is optimistic: fetch_add first, then judge the returned word (was it
// ready, is the key still ours?). A wrong pin is undone by subtraction, never by a store, and
// whoever brings both counts to 0 looks whether the record waits to be reclaimed or unparked.
// A pinned READY record cannot be reclaimed, since reclaiming needs a CAS from (ready, 0, 0),
// and an EVICTING one cannot, since the election needs (evicting, 0, 0).
//
// Whoever wins `-> evicting` holds a pin from before that until it has left the index: a forgetter
// one of its own, a store the writer's, a restore its own. So the index node is never reused while
// somebody still removes it. (The evictor and a refused store go on to `vacant` themselves.)
//
// A pin may be tried on any record at any time, found in the index or looked at because it is the
// home of the key, or its home's last guest (record_homes.hpp): it holds if the word then says
// READY (or COPYING, for a forgetter) and the key is the right one. Such a record has entered the
// index, as a store becomes COPYING after that.
//
// Orders. Pins acquire: the tenant's key and units were written before its word said `ready`
// (release). Unpins release: what the holder read happens before the units are reused.
// Transitions are acq_rel, for they do both. Numbers in the code, here and in catalog_*:
//  (1) word load acquire: pairs with (4). The tenant's key, units and stamps.
//  (2) key load acquire, (3) key store release: see peek_key and claim_record.
//  (4) transition, acq_rel: pairs with (1), (4), (5), (6). Releases what the tenancy is made of;
//      acquires what those did who are gone. The pins between two transitions are
//      read-modify-writes too, so they hand on what the earlier one released.
//  (5) pin, acquire: pairs with (4).
//  (6) unpin, acq_rel: pairs with (4), (6). The last one comes after all others, and who
//      reclaims comes after it.
//  (7) time of use, written with release: pairs with (8); `born` is there before it.
//  (8) time of use, load acquire: pairs with (7).
//  (9) epoch, acq_rel: pairs with (10). It is advanced before the records are visited by (4).
// (10) epoch, load acquire: pairs with (9); a store looks behind its (4), see begin_store.
// (11) closed, store release: pairs with (12); who is refused comes after the call of close.
// (12) closed, load acquire: pairs with (11).
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cstdint>

#include "runtime/bit_fields.hpp"
#include "runtime/index_node.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

enum class record_state : std::uint8_t { vacant, claimed, copying, ready, evicting, reclaiming };

/// The fields of a record's word, lowest bits first. Bit-fields, so that a decision is a mask and a
/// comparison of the word that was read; no compiler takes it apart into memory and back.
struct alignas(std::uint64_t) record_word {
  std::uint32_t pins : 16 = 0;
  std::uint32_t restores : 16 = 0;
  record_state state : 3 = record_state::vacant;
  bool parked : 1 = false;
  std::uint32_t generation : 28 = 0;

  static constexpr std::uint64_t one_pin = 1;
  static constexpr std::uint64_t one_restore = std::uint64_t{1} << 16;
  /// How many of each there may be: bare pins that the table holds, restores that ops hold. The
  /// other half of a field is for who looks or forgets, and for pins that turn out wrong.
  static constexpr std::uint32_t max_count = (1U << 15) - 1;
  static constexpr std::uint32_t generation_mask = (1U << 28) - 1;

  static record_word of(std::uint64_t bits) noexcept { return std::bit_cast<record_word>(bits); }
  [[nodiscard]] std::uint64_t bits() const noexcept { return std::bit_cast<std::uint64_t>(*this); }

  [[nodiscard]] constexpr bool unpinned() const noexcept { return pins == 0 && restores == 0; }
  /// The one statement of eligibility (the caller's protected key aside).
  [[nodiscard]] constexpr bool evictable() const noexcept {
    return state == record_state::ready && unpinned();
  }
  /// What has_available_units counts: bare pins do not move it.
  [[nodiscard]] constexpr bool counted() const noexcept {
    return state == record_state::ready && restores == 0;
  }
  /// Whether the policy may name the record.
  [[nodiscard]] constexpr bool in_order() const noexcept {
    return state == record_state::ready && !parked;
  }
  /// Whether the key is taken for stores: a claimed record blocks, though nobody else sees it.
  [[nodiscard]] constexpr bool blocks_store() const noexcept {
    return state == record_state::claimed || state == record_state::copying ||
           state == record_state::ready;
  }
};

static_assert(sizeof(record_word) == sizeof(std::uint64_t));

/// One cache line. `hint` belongs to the tenant that set it; `used` and `born` order uses; `guest`
/// belongs to no tenant: it is a guest_word (record_homes.hpp) of the keys whose home this is.
/// Relaxed: `hint`, published by the (4) that follows, `born`, published by (7), and `guest`, a
/// guess.
struct alignas(sync::cache_line) record {
  index_node node;
  sync::atomic<std::uint64_t> word;
  sync::atomic<std::uint64_t> used;
  sync::atomic<std::uint64_t> born;
  sync::atomic<std::uint32_t> guest;
  sync::atomic<std::uint8_t> hint;

  /// Relaxed: read behind a (1) or (5), whose tenant's key it is while that tenancy lasts.
  [[nodiscard]] checkpoint_key key() const noexcept {
    return {node.hi.load_relaxed(), node.lo.load_relaxed()};
  }
  /// As key() == other, without a branch between the halves.
  [[nodiscard]] bool has(const checkpoint_key& other) const noexcept {
    return ((node.hi.load_relaxed() ^ other.hi) | (node.lo.load_relaxed() ^ other.lo)) == 0;
  }
  [[nodiscard]] record_word load() const noexcept {
    return record_word::of(word.load_acquire());  // (1)
  }
};
static_assert(sizeof(record) == sync::cache_line);

}  // namespace cairn::detail
