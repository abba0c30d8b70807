// What the catalog's files share: its parts, and the record transitions that several calls need.
// The protocol itself is explained in record.hpp and op_table.hpp.
#pragma once

#include <cairn/catalog.hpp>
#include <cassert>
#include <memory>
#include <optional>
#include <span>

#include "runtime/bitmap.hpp"
#include "runtime/index.hpp"
#include "runtime/large_array.hpp"
#include "runtime/op_table.hpp"
#include "runtime/pin_table.hpp"
#include "runtime/record.hpp"
#include "runtime/record_homes.hpp"
#include "runtime/spread_sum.hpp"
#include "runtime/sync.hpp"
#include "runtime/wait_line.hpp"

namespace cairn {

struct catalog::state {
  static constexpr std::uint32_t none = detail::bitmap::none;

  struct node_of {
    detail::record* records;
    detail::index_node& operator()(std::uint32_t id) const noexcept { return records[id].node; }
  };

  state(catalog_options opts, unit_source& source, std::uint32_t live);

  // ---- parts ----------------------------------------------------------------------
  layout shape;
  std::uint64_t fingerprint;
  std::uint32_t per_image;  ///< units per checkpoint
  std::uint32_t slots;
  std::uint32_t ranks;
  unit_source& pool;
  std::unique_ptr<eviction_policy> policy;

  detail::record_homes homes;
  std::uint32_t record_count;  ///< more than can be in use at once: see record_homes.hpp
  detail::large_array<detail::record> records;
  std::unique_ptr<unit_id[]> unit_ids;  ///< record i owns [i * per_image, (i + 1) * per_image)
  detail::bitmap free_records;
  detail::index<node_of> by_key;
  detail::op_table ops;
  detail::pin_table pins;
  detail::wait_line waiting;

  // Read by every call, written hardly ever.
  sync::atomic<std::uint32_t> epoch;
  sync::atomic<bool> closed;

  // What every op changes lies in one line, which goes from thread to thread, and shares it with
  // nothing that is only read. Relaxed, all: stamps are numbers, which others pass on in order;
  // sums are exact at rest and advice while calls overlap.
  alignas(sync::cache_line) sync::atomic<std::uint64_t> uses;  ///< stamps of publications, restores
  sync::atomic<std::uint64_t> begun;                           ///< stamps of accepted ops
  sync::atomic<std::int64_t> held;  ///< evictable ones that are parked: bare pins hold them

  detail::spread_sum evictable;  ///< records whose word is `counted`

  /// Units that copies given up may still touch. Relaxed: a figure.
  alignas(sync::cache_line) sync::atomic<std::uint32_t> quarantined;

  /// Relaxed: figures.
  struct fates {
    sync::atomic<std::uint64_t> kept;
    sync::atomic<std::uint64_t> dropped[static_cast<std::size_t>(drop_reason::count)];
    sync::atomic<std::uint64_t> evicted;
    sync::atomic<std::uint64_t> orphaned;
    sync::atomic<std::uint64_t> failed;
    sync::atomic<std::uint64_t> cancelled;
  } fates;

  // ---- records (catalog_records.cpp) ----------------------------------------------
  [[nodiscard]] std::span<unit_id> units_of(std::uint32_t id) const noexcept {
    return {unit_ids.get() + std::size_t{id} * per_image, per_image};
  }
  [[nodiscard]] static owner_id owner_of(std::uint32_t id, std::uint32_t generation) noexcept {
    return (std::uint64_t{generation} << 32) | (id + 1);
  }
  /// `key` will be looked for: brings near what that reads first, without waiting.
  void foresee(const checkpoint_key& key) const noexcept { by_key.expect(detail::hash_of(key)); }
  /// Adds `one` (a pin or a restore) to a record under `key` whose state `wanted` accepts, and
  /// returns its index, or none. `found` is the word as the pin left it.
  template <class Wanted>
  std::uint32_t pin_key(const checkpoint_key& key, std::uint64_t one, Wanted&& wanted,
                        detail::record_word& found) const noexcept;
  /// Its second half: wherever the record lies, as the home says or the index.
  template <class Wanted>
  std::uint32_t pin_stray(const checkpoint_key& key, std::uint64_t one, Wanted wanted,
                          detail::record_word& found) const noexcept;
  /// Index and word of the record under `key` whose state `wanted` accepts, without a pin: true
  /// at some moment of the call, and only then. Writes nothing.
  template <class Wanted>
  std::uint32_t peek_key(const checkpoint_key& key, Wanted&& wanted,
                         detail::record_word& found) const noexcept;
  /// Its second half, when the bucket's head does not say that there is none.
  template <class Wanted>
  std::uint32_t peek_bucket(const checkpoint_key& key, Wanted wanted,
                            detail::record_word& found) const noexcept;
  /// One pin or restore on record `id` if it is of `key` and `wanted`.
  template <class Wanted>
  bool try_pin(std::uint32_t id, const checkpoint_key& key, std::uint64_t one, Wanted&& wanted,
               detail::record_word& found) const noexcept;
  /// Undoes one pin or restore; reclaims or unparks the record if that was the last.
  void unpin(std::uint32_t id, std::uint64_t one) noexcept;
  /// The same for a pin that turned out to be of something else.
  void undo_pin(std::uint32_t id, std::uint64_t one) noexcept;
  /// The rare part of unpin: the record is left without pins, with word `after`, and is not simply
  /// READY. Reclaims it if it waits for that, unparks it if it is parked; else does nothing.
  void last_unpinned(std::uint32_t id, detail::record_word after) noexcept;
  /// The RMW by which a record enters or leaves the count of evictable ones says so here.
  void moved(detail::record_word before, detail::record_word after) noexcept {
    // Sums of a function of each word: whoever changes a word adds the difference, so at rest the
    // sums are exact. Relaxed: they are advice while calls overlap.
    const int counted = int{after.counted()} - int{before.counted()};
    if (counted != 0) evictable.add(counted);
    const int holding =
        int{after.counted() && after.parked} - int{before.counted() && before.parked};
    if (holding != 0) held.fetch_add_relaxed(holding);
  }
  /// Makes the policy agree with the record's word.
  void sync_order(std::uint32_t id) noexcept;
  /// copying|ready -> evicting and out of the index; false when somebody else did it. The
  /// caller holds a pin on the record, and drops it afterwards.
  bool hide(std::uint32_t id, std::uint32_t generation) noexcept;
  /// forget(key) without counting.
  bool remove(const checkpoint_key& key) noexcept;
  /// reclaiming -> vacant, units given back (unless they were passed on) and index free.
  void reclaim(std::uint32_t id, bool release_units) noexcept;
  /// Takes a vacant record for `key`, at home if there is one; none when there is none at all.
  std::uint32_t take_vacant(const checkpoint_key& key) noexcept;
  /// vacant -> claimed for `key`; none when no index is free.
  std::uint32_t claim_record(const checkpoint_key& key, placement_hint hint) noexcept;
  /// claimed -> vacant for a refused store.
  void unclaim(std::uint32_t id, bool indexed) noexcept;
  /// copying -> ready unless the record was forgotten; the writer's pin falls.
  void publish(std::uint32_t id) noexcept;
  /// copying -> evicting after a failure or a cancel; the writer's pin falls unless `keep`.
  void unwind(record_handle which, bool keep) noexcept;
  /// A victim, out of the index and in state reclaiming, whose units the caller must pass on or
  /// release through reclaim; none when the policy names no evictable record.
  std::uint32_t take_victim() noexcept;
  /// Sets a READY record aside whose word is `bits` and pinned, until its last pin falls: no
  /// evictor meets it meanwhile. False when the word has changed.
  bool park(std::uint32_t id, std::uint64_t bits) noexcept;
  /// Parks every record that a bare pin holds, so that `held` tells how many there are.
  void park_pinned() noexcept;
  /// A victim whose units go back to the pool.
  bool evict_one() noexcept;

  std::uint32_t expire_pins(deadline now) noexcept;

  // ---- room (catalog_room.cpp) ----------------------------------------------------
  [[nodiscard]] bool could_have(std::uint64_t count, std::uint64_t withheld) const noexcept;
  /// Why nothing could be evicted, as a refusal.
  [[nodiscard]] error no_victim() const noexcept;
  /// How many records must go for `count` units beside `withheld`, or why they cannot be had.
  [[nodiscard]] result<std::uint64_t> victims_for(std::uint64_t count,
                                                  std::uint64_t withheld) noexcept;
  /// Calls take() -> result<void> until it gets `count` units, evicting at most the shortfall and
  /// leaving `withheld` units free.
  template <class Take>
  result<void> acquire(std::uint64_t count, std::uint64_t withheld, Take&& take) noexcept;
  /// What begin_store, allocate and admit must leave to the first of the waiters.
  [[nodiscard]] std::uint64_t demanded() noexcept;
  /// Units for a claimed record: free ones, else those of one victim.
  result<void> fill(std::uint32_t id, std::uint32_t generation) noexcept;

  // ---- ops (catalog_ops.cpp) ------------------------------------------------------
  /// The op that the entry was taken for, described and open.
  [[nodiscard]] result<copy_op> begin(std::uint32_t entry, const detail::op_facts& facts) noexcept;
  void mark_used(std::uint32_t id) noexcept;
  /// Publishes, unwinds or unpins.
  void settle(const detail::op_facts& facts, detail::op_table::verdict over) noexcept;
  /// The copies that settle kept something for are over: the units, or the pin, go.
  void release_kept(op_id op, const detail::op_facts& facts) noexcept;
  bool prove(op_id op, rank_id rank, std::uint32_t op_epoch) noexcept;
  bool cancel(op_id op) noexcept;
  std::uint32_t cancel_kind(slot_id slot, copy_kind kind) noexcept;
  [[nodiscard]] error refuse_slot(slot_id slot) const noexcept;
};

// ---- finding, holding and letting go ----------------------------------------------------
// Inline, the rare ends apart, so that a hit writes nothing but the record's word: what lies on the
// stack would have to reach the cache before each of the two locked instructions is done, and the
// fewer instructions a hit has, the sooner the processor reaches the cache misses of the next one.

template <class Wanted>
[[gnu::always_inline]] inline bool catalog::state::try_pin(
    std::uint32_t id, const checkpoint_key& key, std::uint64_t one, Wanted&& wanted,
    detail::record_word& found) const noexcept {
  detail::record& r = records[id];
  if (sync::mutated("pin after a check")) {
    if (!wanted(r.load()) || r.key() != key) return false;
    found = detail::record_word::of(r.word.fetch_add_acquire(one) + one);  // (5)
    return true;
  }
  // (5) acquire: pairs with (4), the transition that made the record what it is; the key and the
  // units of this tenant are visible once its state is.
  const std::uint64_t bits = r.word.fetch_add_acquire(one);
  const detail::record_word before = detail::record_word::of(bits);
  found = detail::record_word::of(bits + one);
  auto* self = const_cast<state*>(this);
  if (one != detail::record_word::one_pin) self->moved(before, found);  // a bare pin moves nothing
  // The pin holds from here on if the state is one that only an unpinned record leaves for
  // reuse; then the key cannot change under us, and one comparison settles it.
  if (wanted(before) && (r.has(key) || sync::mutated("pin without its key"))) return true;
  if (!sync::mutated("wrong pin kept")) self->undo_pin(id, one);
  return false;
}

[[gnu::always_inline]] inline void catalog::state::unpin(std::uint32_t id,
                                                         std::uint64_t one) noexcept {
  detail::record& r = records[id];
  // (6) acq_rel: pairs with (4), (6). What the holder read precedes the units' reuse; the elected
  // reclaimer comes after all other holders.
  const std::uint64_t bits = r.word.fetch_sub_acq_rel(one);
  const detail::record_word before = detail::record_word::of(bits);
  const detail::record_word after = detail::record_word::of(bits - one);
  assert(one == detail::record_word::one_pin ? before.pins > 0 : before.restores > 0);
  if (one != detail::record_word::one_pin) moved(before, after);  // a bare pin moves nothing
  if (!after.in_order() && after.unpinned()) last_unpinned(id, after);
}

template <class Wanted>
[[gnu::always_inline]] inline std::uint32_t catalog::state::peek_key(
    const checkpoint_key& key, Wanted&& wanted, detail::record_word& found) const noexcept {
  if (by_key.lacks(detail::hash_of(key))) return none;
  return peek_bucket(key, wanted, found);
}

template <class Wanted>
[[gnu::noinline]] std::uint32_t catalog::state::peek_bucket(
    const checkpoint_key& key, Wanted wanted, detail::record_word& found) const noexcept {
  return by_key.find(key, [&](std::uint32_t id) {
    const detail::record& r = records[id];
    // (1) acquire: pairs with (4); this tenant's key is visible.
    const detail::record_word before = r.load();
    if (!wanted(before)) return false;
    // (2) acquire: pairs with the release of claim_record (3); a later tenant's key would show
    // the record vacant below.
    const checkpoint_key seen{r.node.hi.load_acquire(), r.node.lo.load_acquire()};
    // Relaxed: behind (2).
    const detail::record_word after = detail::record_word::of(r.word.load_relaxed());
    if (seen != key || after.generation != before.generation || !wanted(after)) return false;
    found = after;
    return true;
  });
}

template <class Wanted>
[[gnu::always_inline]] inline std::uint32_t catalog::state::pin_key(
    const checkpoint_key& key, std::uint64_t one, Wanted&& wanted,
    detail::record_word& found) const noexcept {
  // At home first. Who is READY or COPYING there is in the index as well, or just leaving it, and
  // try_pin judges him as it judges those whom the index names. What is read before is a guess.
  const std::uint32_t home = homes.of(detail::hash_of(key));
  __builtin_prefetch(&records[homes.next_to(home)]);  // in case he is not there
  if (records[home].has(key) && try_pin(home, key, one, wanted, found)) return home;
  detail::record_word stray;
  const std::uint32_t at = pin_stray(key, one, wanted, stray);
  found = stray;
  return at;
}

template <class Wanted>
[[gnu::noinline]] std::uint32_t catalog::state::pin_stray(
    const checkpoint_key& key, std::uint64_t one, Wanted wanted,
    detail::record_word& found) const noexcept {
  const std::uint64_t hash = detail::hash_of(key);
  by_key.expect(hash);  // in case the home does not know either
  // Relaxed: a guess, judged like the one above.
  const auto guest = detail::guest_word::unpack(records[homes.of(hash)].guest.load_relaxed());
  if (guest.print == detail::print_of(hash) && records[guest.id].has(key) &&
      try_pin(guest.id, key, one, wanted, found))
    return guest.id;
  return by_key.find(key, [&](std::uint32_t id) { return try_pin(id, key, one, wanted, found); });
}

}  // namespace cairn
