// How the pool keeps its units: one word each, a set of vacant ones, an order of cached ones, an
// index of keys, notes of reservations, and a count of free units. It must not know records, slots
// or devices.
//
// ---- Two truths: the set says what is vacant, the word all the rest -----------------------
//
// Storing and evicting move units between vacant and reserved, many at a time. So this one way is
// decided by the set of vacant units alone, 64 of them in one step; no unit's word is touched. The
// word of such a unit reads `spare`: it bears nothing. Its bit tells the two apart:
//
//   spare, bit set   vacant; whoever clears the bit has the unit
//   spare, bit clear reserved, or in the hand of a call that has cleared the bit or not set it yet
//
// Bits are exact: a bit is set only by the one who holds the unit, whose word reads spare by then;
// nobody changes phase, shares, key or generation of a spare word but who has the unit in hand.
// Every other way is a compare-and-swap of the unit's word (unit_pool_word.hpp) from the value that
// the thread has examined, and that CAS alone decides:
//
//   vacant --clear the bit--> in hand --> reserved | live | absent (retired)
//   cached --take: CAS------> spare in hand (reserved) | live | absent; the key is dropped, and
//                             orphaned if the index named it
//   cached --claim----------> live    live --free the last share--> cached (keyed)
//                                                               | spare in hand --> vacant
//   cached --clear_index----> cleared, which is taken as cached is
//   absent --extend---------> spare in hand --> vacant
//   reserved --release------> in hand --> vacant
//   live (one share) --begin_retire_top--> moving --finish_retire--> absent
//
// Any thread may make each of them, in the call that it names. *Take* and clearing a bit: reserve,
// replace, allocate, allocate_at, begin_retire_top. *Claim*: claim, claim_unit. *Free*: who holds
// the share. *Release*: the owner, by release or replace. extend and a retirement keep each other
// out, as two retirements do (unit_pool_resize.cpp). What a move goes to is taken as for allocate,
// and is live and `receiving` until finish_retire: freeing its last share leaves it live, and
// finish_retire then frees it.
//
// `in hand --> vacant` is setting the bit. allocate_at and begin_retire_top want one unit: word
// spare, they clear its bit and have it, or find it clear and are refused; cached, they take it by
// its word. The generation changes with every CAS out of and into spare, with every other arrow of
// a word but claim, and with every key that is given, so a CAS from an examined word also vouches
// for what was read beside it: key, naming stamp, cached stamp.
//
// ---- Credits: the promise -----------------------------------------------------------------
//
// `credits_` counts the free units not spoken for. Taking n is one CAS c -> c - n: all or
// nothing. Whoever frees a unit makes it findable first and returns its credit last, and whoever
// wants a free unit takes a credit first. So whoever holds a credit will find a unit: at every
// moment the findable units and those in some call's hand are together at least as many as the
// credits out or held, and no call has more in hand than credits of its own.
//
// Findable means: bit set in `vacant_`, or the word says cached or cleared. A credit holder takes
// the lowest bits, else the first of `by_age_`; when both come up empty because somebody is in the
// middle of an update, it walks the words themselves. It repeats only when another call has
// meanwhile taken or moved a unit, which makes the whole lock-free.
//
// A unit that clear_index makes vacant would be in its hand between the CAS of the word and the
// bit, without a credit; and with one, others would miss that credit. So such a unit is `cleared`:
// it counts as vacant, but stays where it was cached, in front of all that are cached and lowest id
// first, and is taken by its word until somebody has had it. `cleared_bit` beside the count tells
// takers to compare the lowest bit with the first in the order. It is set behind the leaves of
// cleared units. Who finds no cleared unit lowers it, and looks once more: setting and lowering are
// read-modify-writes of one word, so either the lowerer sees the leaf or the setter comes later.
//
// ---- Reservations: parts ------------------------------------------------------------------
//
// What one step took, bits of one word or one cached unit, is a *part*. It is noted at its lowest
// unit (unit_pool_part.hpp): owner, bits, the reservation's first unit, and how many units are left
// from here on. So the ids of a reservation, in order, are the parts' bits one after another, and
// a release is checked part by part: order, wholeness and distinctness at once, without a note per
// unit. `held` of the first part is written last, with release: who sees that a reservation begins
// here sees all its parts.
//
//   in hand --fields, then held = {g, n}--> held  --CAS {g, n} -> {g + 1, 0}--> closed --> vacant
//
// The CAS of the first part elects one of those who release at once, or twice; it also proves that
// the check still holds, for while the head's tenure stands no unit of the reservation has left:
// the elected one clears the other parts' `held` before the bits of their units come back, so
// that no later holder meets it and no later release matches it. Fields of parts that are not held
// are stale and mean nothing. A caller in error may read the fields of a tenancy while they change:
// then the head's tenure has changed too, or is not there yet, and it is refused.
//
// ---- The order of cached units ------------------------------------------------------------
//
// sync_leaf(u) reads the word, writes u's leaf accordingly, reads the word again,
// and repeats until it has not changed. Every change into or out of cached or cleared is followed
// by a sync_leaf of the same thread. Leaf writes are acq_rel read-modify-writes of one place, hence
// in one order: the last writer has seen every word whose writer wrote the leaf before it, and
// left the leaf right for a word at least as new; those that came after contradict "last". A
// leaf can be wrong only while a sync_leaf on it is under way.
//
// ---- The index: linked is not named -------------------------------------------------------
//
// The index answers with a unit only if its word says `named`; the node may stay in its chain
// long after. So dropping a key, by anybody, is one CAS of the word; nodes are moved only by the
// unit's next publisher, elected by the flag `publishing`, and no two threads ever touch one node.
// At most one node per unit means that the chains stay as short as in a full index.
//
// publish: (a) CAS: publishing on, old key dropped, generation + 1; (b) unlink the node if it is
// linked; (c) draw a naming stamp, write stamp and key; (d) CAS: keyed, named, linked on; (e)
// link the node at the head of its chain, meeting all other nodes of this key; (f) unname those
// met that are named under an older stamp, and this unit itself if one is newer; (g) publishing
// off. Of two concurrent publishers of a key, both have named (d) before linking (e), and
// linking is one CAS on the chain's head after a walk of all that hangs there: the one that
// links second meets the first. It unnames the older of the two. So at quiescence exactly the
// newest is named. (A bearer that a move has brought keeps its stamp, hence its rank.)
// If (d) finds another generation, the caller has published a unit that it does not hold:
// nothing is named, and the call is refused.
//
// ---- Orders -------------------------------------------------------------------------------
//
// Numbers in the code:
//  (1) word CAS acq_rel: pairs with (1) and (2). All changes of a word are RMWs, so each one
//      acquires all earlier tenancies: fences merged, fields written, node unlinked.
//  (2) word load acquire: pairs with (1).
//  (3) credits returned, release: pairs with (4). The bit, leaf and word behind a credit.
//  (4) credits taken, acquire: pairs with (3).
//  (5) key and stamps, store release: pairs with (6).
//  (6) key and stamps, load acquire: pairs with (5). The word is read again behind it, so that
//      a value from a later tenancy comes with that tenancy's word.
//  (7) reservation fields, relaxed: written while the unit is in hand, ordered by its bit between
//      tenancies and by (14) before whoever checks them.
//  (8) fence steps, relaxed: merged before the (1) that gives up the share, read after the (1)
//      or the bit that takes the unit. (A bit comes with release and goes with acquire.)
//  (9) size CAS acq_rel, load acquire: pairs with itself; whoever changes the size sees the last
//      change whole.
// (10) orphan hook, store release: pairs with (11). Its context, which is relaxed.
// (11) orphan hook, load acquire: pairs with (10).
// (12) destination of a move, store release: pairs with (13). The fences merged into it.
// (13) destination of a move, load acquire and CAS acq_rel: pairs with (12).
// (14) tenure, store release: pairs with (15). The part's fields; the head's: all other parts.
// (15) tenure, load acquire: pairs with (14), (16).
// (16) tenure CAS acq_rel: pairs with (15). A later tenure here comes behind it.
// (17) cleared bit, acq_rel: pairs with itself. The leaves of cleared units.
#pragma once

#include <cairn/types.hpp>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/bitmap.hpp"
#include "runtime/index.hpp"
#include "runtime/large_array.hpp"
#include "runtime/order.hpp"
#include "runtime/sync.hpp"
#include "runtime/unit_pool_part.hpp"
#include "runtime/unit_pool_word.hpp"

namespace cairn {
namespace detail {

/// One line per unit.
struct alignas(sync::cache_line) unit {
  sync::atomic<unit_word> word;
  index_node node;                        ///< also holds the key that the unit bears
  sync::atomic<std::uint64_t> cached_at;  ///< stamp in the cached order
  sync::atomic<std::uint64_t> named_at;   ///< stamp of the naming
};
static_assert(sizeof(unit) == sync::cache_line);

struct unit_nodes {
  unit* units;
  index_node& operator()(std::uint32_t id) const noexcept { return units[id].node; }
};

enum class size_stage : std::uint32_t { idle, moving, finishing };

/// How many units exist, and whether one is being given up.
struct alignas(std::uint64_t) pool_size {
  std::uint32_t count = 0;
  size_stage stage = size_stage::idle;
};
static_assert(std::has_unique_object_representations_v<pool_size>);

}  // namespace detail

struct unit_pool::state {
  using unit_word = detail::unit_word;
  using phase = detail::unit_phase;
  using flag = detail::unit_flag;

  explicit state(const options& opts);

  // ---- words ----------------------------------------------------------------------
  [[nodiscard]] unit_word look(unit_id id) const noexcept {
    return units_[id].word.load_acquire();  // (2)
  }
  /// On failure `seen` is what the word says now.
  bool swap(unit_id id, unit_word& seen, unit_word next) noexcept {
    return units_[id].word.cas_acq_rel(seen, next);  // (1)
  }
  /// Changes the word by `change(word)` however often it takes; returns what it was.
  template <class Change>
  unit_word edit(unit_id id, Change&& change) noexcept {
    unit_word seen = look(id);
    while (!swap(id, seen, change(seen))) {
    }
    return seen;
  }
  /// The key in the unit's node: meaningful with a word that is keyed, and read again after.
  [[nodiscard]] checkpoint_key key_of(unit_id id) const noexcept {
    const detail::index_node& node = units_[id].node;
    return {node.hi.load_acquire(), node.lo.load_acquire()};  // (6)
  }

  // ---- free units (unit_pool.cpp) -------------------------------------------------
  [[nodiscard]] bool take_credits(std::uint32_t count) noexcept {
    __builtin_prefetch(&credits_, 1);  // to be written: not first shared, then taken
    std::uint32_t seen = credits_.load_relaxed();
    while ((seen & credit_mask) >= count)
      if (credits_.cas_acquire(seen, seen - count)) return true;  // (4)
    return false;
  }
  void return_credits(std::uint32_t count) noexcept {
    if (count != 0) credits_.fetch_add_release(count);  // (3)
  }
  /// Units that come next in pool order, at most `most`: vacant ones of one word of the set, or one
  /// cached. They enter `to`, or stay spare if it is. The caller spends a credit on each.
  detail::bit_run take_next(std::uint32_t most, unit_word to) noexcept {
    for (;;) {
      // relaxed: the caller has just taken a credit, in the same word.
      const bool cleared = (credits_.load_relaxed() & cleared_bit) != 0;
      // Vacant first each time: what an orphaned checkpoint gives back in the middle of a call is
      // vacant for the rest of it.
      detail::bit_run got = vacant_.take_lowest(cleared ? 1 : most);
      const bool found = got.bits != 0;
      if (cleared)
        if (const unit_id id = take_cleared(got, to); id != no_unit) return detail::bit_run::of(id);
      if (got.bits != 0) {
        become(got, to);
        return got;
      }
      if (found) continue;  // it went back, and then somebody else took the cleared one
      if (const unit_id id = take_oldest(to); id != no_unit) return detail::bit_run::of(id);
    }
  }
  /// The lowest cleared unit into `to`, if it is lower than `vacant`, which goes back and is empty
  /// then; else no_unit.
  unit_id take_cleared(detail::bit_run& vacant, unit_word to) noexcept;
  /// The first unit in the order into `to`; no_unit when it has meanwhile gone.
  unit_id take_oldest(unit_word to) noexcept;
  /// The same until `out` is full.
  void collect(std::span<unit_id> out, unit_word to) noexcept;
  /// The unit that `seen` was read of is free. Advice.
  [[nodiscard]] bool is_free(unit_id id, unit_word seen) const noexcept {
    return seen.in_order() || (seen.phase == phase::spare && vacant_.contains(id));
  }
  /// Takes this unit, if it is free, into `to`, spending a credit of the caller's; else `seen` says
  /// what it was.
  bool take_at(unit_id id, unit_word& seen, unit_word to) noexcept;
  /// CAS from `seen`, which is cached or cleared, into `to`; on success brings the leaf into line
  /// and orphans the key.
  bool take_cached(unit_id id, unit_word& seen, unit_word to) noexcept;
  /// The caller's spare units enter `to`.
  void become(detail::bit_run units, unit_word to) noexcept {
    if (to.phase == phase::spare) return;
    for (; units.bits != 0; units.bits &= units.bits - 1)
      edit(units.first(), [to](unit_word w) { return w.taken(to); });
  }
  /// The unit, which the caller has made spare, is vacant from now on.
  void offer_vacant(unit_id id) noexcept { vacant_.put(id); }
  void sync_leaf(unit_id id) noexcept;

  // ---- reservations (unit_pool_reserve.cpp) ---------------------------------------
  void collect_for(std::span<unit_id> out, owner_id owner) noexcept;
  /// Checks everything, then elects the caller to release; changes nothing when it says no.
  bool close(std::span<const unit_id> ids, owner_id owner) noexcept;
  /// Whether they are one reservation of the owner's.
  [[nodiscard]] bool lists(std::span<const unit_id> ids, owner_id owner) const noexcept;
  struct holding {
    owner_id owner = 0;
    unit_id head = no_unit;
    std::uint32_t remaining = 0;  ///< units of the reservation from here on; 0: none
  };
  /// The reservation that the unit is in. Advice.
  [[nodiscard]] holding holder_of(unit_id id) const noexcept;
  /// Why the owner's release of these is refused.
  [[nodiscard]] error why_not(std::span<const unit_id> ids, owner_id owner) const noexcept;
  /// Makes the units of a closed reservation vacant; returns no credits.
  void vacate(std::span<const unit_id> ids) noexcept;

  // ---- shares and keys (unit_pool_live.cpp, unit_pool_index.cpp) ------------------
  enum class sharing : std::uint8_t { done, changed, no_credit, full };
  /// One more share, by CAS from `seen`, which is live or cached.
  sharing share(unit_id id, unit_word& seen) noexcept;
  void merge_fence(unit_id id, fence_token fence) noexcept;
  /// Makes a unit without shares free if it is `live`: cached or vacant, and returns its credit.
  [[nodiscard]] unit_word freed(unit_id id, unit_word seen) noexcept;
  void offer_freed(unit_id id, unit_word now) noexcept;
  /// The unit that the index means by `key`, with the word that says so; no_unit.
  unit_id find(const checkpoint_key& key, unit_word& seen) const noexcept;
  /// Steps (b) to (g). The caller has set `publishing` and left the word at `generation`. False
  /// when the unit changed hands: then it bears nothing.
  bool bear(unit_id id, std::uint32_t generation, const checkpoint_key& key, bool named,
            std::uint64_t named_at) noexcept;
  /// How another bearer's naming compares with `named_at`; changes nothing.
  enum class standing : std::uint8_t { unnamed, older, newer };
  standing compare(unit_id other, const checkpoint_key& key, std::uint64_t named_at,
                   unit_word& seen) const noexcept;
  void unname_older(unit_id other, const checkpoint_key& key, std::uint64_t named_at) noexcept;

  // ---- size (unit_pool_resize.cpp) ------------------------------------------------
  void set_size(detail::pool_size size) noexcept;
  void orphan(const checkpoint_key& key) const noexcept;

  /// Of `credits_`: the count, and whether units may be cleared. Set behind the last one's leaf.
  static constexpr std::uint32_t cleared_bit = std::uint32_t{1} << 31;
  static constexpr std::uint32_t credit_mask = cleared_bit - 1;

  const std::uint32_t max_units_;
  const std::uint32_t streams_;
  detail::large_array<detail::unit> units_;
  detail::large_array<detail::reservation_part> parts_;
  std::unique_ptr<sync::atomic<std::uint64_t>[]> fences_;  ///< unit-major: max_units * streams
  detail::bitmap vacant_;                                  ///< exactly the vacant units
  detail::order by_age_;                                   ///< cached units by the time freed
  detail::index<detail::unit_nodes> index_;
  sync::atomic<orphan_hook> hook_;
  sync::atomic<void*> hook_context_;
  sync::atomic<std::uint32_t> move_to_{no_unit};
  alignas(sync::cache_line) sync::atomic<detail::pool_size> size_;
  /// Relaxed where only the number is wanted: advice by the time it is used.
  alignas(sync::cache_line) sync::atomic<std::uint32_t> credits_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> namings_;
};

}  // namespace cairn
