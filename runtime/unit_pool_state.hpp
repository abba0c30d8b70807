// How the pool keeps its units: one word each, a bitmap of vacant ones, an order of cached ones,
// an index of keys, and a count of free units. It must not know records, slots or devices.
//
// ---- The word is the truth; everything else is a hint or a promise ------------------------
//
// Each unit has one 64-bit word (unit_pool_word.hpp). Every change of it is a compare-and-swap from
// the value that the thread has examined, and that CAS alone decides who did what:
//
//   absent --extend--> vacant --take--> reserved | live | absent (retired)
//   cached --take----> the same; its key is dropped, and orphaned if the index named it
//   cached --claim---> live           live --free the last share--> cached (keyed) | vacant
//   cached --clear_index--> vacant    reserved --release--> [closing] --> vacant
//   live (one share) --begin_retire_top--> moving --finish_retire--> absent
//
// *Take* is one function for allocation, reservation, retirement and a move's destination. The
// generation changes with every arrow but claim, and with every change of key, so a CAS from an
// examined word also vouches for what was read beside it: key, naming stamp, cached stamp.
//
// ---- Credits: the promise -----------------------------------------------------------------
//
// `credits_` counts the free units not spoken for. Taking n is one CAS c -> c - n: all or
// nothing. A free makes the unit findable first and returns its credit last, and whoever wants
// a free unit takes a credit first. So whoever holds a credit will find a unit: at every moment
// there are at least as many findable units as credits out or held.
//
// Findable means: bit set in `vacant_`, or the word says cached. A credit holder takes the
// lowest bit, else the first of `by_age_`; when both come up empty because somebody is in the
// middle of an update, it walks the words themselves. It repeats only when another call has
// meanwhile taken or moved a unit, which makes the whole lock-free.
//
// ---- Hints --------------------------------------------------------------------------------
//
// Bits. A vacant unit has a bit before its credit is out. A bit may be *stale*: its unit has been
// taken by id, or clear_index lost a race. Who takes a bit goes by the word: vacant, CAS it;
// cached, clear_index may be between setting the bit and making the unit vacant, so the bit's
// taker touches the word (generation + 1): clear_index then fails and sets the bit again. In
// every other phase the bit may be thrown away: whoever makes the unit vacant later, sets it
// later. The taker's acquire of the bit covers every word that was written before it was set.
//
// Cached order. sync_leaf(u) reads the word, writes u's leaf accordingly, reads the word again,
// and repeats until it has not changed. Every change into or out of cached is followed by a
// sync_leaf of the same thread. Leaf writes are acq_rel read-modify-writes of one place, hence
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
//  (7) reservation fields, relaxed: ordered by (1) between tenancies. A caller in error may
//      read them at any time; it sees 0, or an owner that releases by the head's word.
//  (8) fence steps, relaxed: merged before the (1) that gives up the share, read after the (1)
//      that takes the unit.
//  (9) size CAS acq_rel: pairs with itself; whoever changes the size sees the last change whole.
#pragma once

#include <cairn/types.hpp>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/bitmap.hpp"
#include "runtime/index.hpp"
#include "runtime/order.hpp"
#include "runtime/sync.hpp"
#include "runtime/unit_pool_word.hpp"

namespace cairn {
namespace detail {

/// One line per unit.
struct alignas(sync::cache_line) unit {
  sync::atomic<unit_word> word;
  index_node node;                        ///< also holds the key that the unit bears
  sync::atomic<std::uint64_t> owner;      ///< of a reservation; 0 unless reserved
  sync::atomic<std::uint32_t> head;       ///< the first unit of that reservation
  sync::atomic<std::uint32_t> remaining;  ///< units of the reservation from this one on
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
  [[nodiscard]] bool take_credits(std::uint32_t count) noexcept;
  void return_credits(std::uint32_t count) noexcept;
  /// Takes the next unit in pool order into `to`. The caller spends a credit on it.
  unit_id collect(unit_word to) noexcept;
  /// CAS from `seen`, which is free, into `to`; on success brings the leaf into line and
  /// orphans the key. The bit of a vacant unit is the caller's, or goes stale.
  bool take(unit_id id, unit_word& seen, unit_word to) noexcept;
  /// The unit, whose word the caller has just made vacant, can be found from now on.
  void offer_vacant(unit_id id) noexcept { vacant_.put(id); }
  void sync_leaf(unit_id id) noexcept;

  // ---- reservations (unit_pool_reserve.cpp) ---------------------------------------
  void collect_for(std::span<unit_id> out, owner_id owner) noexcept;
  /// Checks everything, then elects the caller to release; changes nothing on refusal.
  result<void> close(std::span<const unit_id> ids, owner_id owner) noexcept;
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

  const std::uint32_t max_units_;
  const std::uint32_t streams_;
  std::unique_ptr<detail::unit[]> units_;
  std::unique_ptr<sync::atomic<std::uint64_t>[]> fences_;  ///< unit-major: max_units * streams
  detail::bitmap vacant_;
  detail::order by_age_;  ///< cached units by the time freed
  detail::index<detail::unit_nodes> index_;
  sync::atomic<orphan_hook> hook_;
  sync::atomic<void*> hook_context_;
  sync::atomic<std::uint32_t> move_to_{no_unit};
  alignas(sync::cache_line) sync::atomic<detail::pool_size> size_;
  alignas(sync::cache_line) sync::atomic<std::uint32_t> credits_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> namings_;
};

}  // namespace cairn
