// The control plane: keys, records, pins, units, eviction. It touches no device.
#pragma once

#include <cairn/metrics.hpp>
#include <cairn/types.hpp>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace cairn {

/// What a policy is told of a record when it enters the order or is used.
struct use_info {
  std::uint64_t stamp = 0;  ///< order of the last use (publication or restore), from 1
  std::uint64_t born = 0;   ///< order of the publication
  checkpoint_key key;
  placement_hint hint = placement_hint::none;
};

/// Which evictable record goes first: the one replaceable part. Eligibility is not policy:
/// the catalog checks that a named record is evictable and asks again when it is not.
///
/// Any thread may call any function at any time, also for one record at once; after a call
/// the catalog looks again and repeats it when the record has changed meanwhile, so that the
/// last place or drop of a record is the right one. Must not wait and not allocate.
class eviction_policy {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  virtual ~eviction_policy() = default;
  /// Called once, at catalog::open, before all others: record indices are below `records`.
  virtual void bind(std::uint32_t records) = 0;
  /// The record may be evicted; it was used as `use` says. Replaces an earlier place.
  virtual void place(std::uint32_t record, const use_info& use) noexcept = 0;
  /// The record must not be named (gone, or set aside while pinned).
  virtual void drop(std::uint32_t record) noexcept = 0;
  /// The record to evict next, or `none`: a policy may pass over all.
  virtual std::uint32_t next() noexcept = 0;
  /// Asked when next() named none although more records are evictable than are set aside: a last
  /// look, which may visit every record. A policy that passes over them keeps this one.
  virtual std::uint32_t search() noexcept { return next(); }
};

/// Exact least recently used (SPEC: "exact when calls do not overlap").
std::unique_ptr<eviction_policy> make_lru_policy();

struct catalog_options {
  layout shape;
  std::uint32_t ranks = 1;
  std::uint32_t slots = 0;         ///< slot ids are below this
  std::uint32_t max_ops = 4096;    ///< operations in flight, observed, or waiting for a proof
  std::uint32_t max_pins = 1024;   ///< bare pins at once
  std::uint32_t max_threads = 64;  ///< threads inside the catalog's calls at once
  bool staged = false;  ///< an op cannot be cancelled before `submitted` was called for it
  std::unique_ptr<eviction_policy> policy;  ///< null: make_lru_policy()
};

/// A bare pin on a record: holds it for a decision that takes time.
struct pin {
  record_handle record;
  std::uint32_t index = 0;       ///< of the pin itself; depends on the calling thread
  std::uint32_t generation = 0;  ///< of the pin itself
  std::uint32_t length = 0;      ///< pin_longest: how many keys it covers
};

/// What finish found.
struct finish_outcome {
  bool counted = false;           ///< false: unknown, stale or repeated; nothing changed
  bool ended = false;             ///< true: this was the last rank; the op is over
  status code = status::pending;  ///< when ended: ok, or the first failure (timed_out outranks it)
  copy_kind kind = copy_kind::store;
};

/// What admit holds on success. Nothing is held on failure.
struct admission {
  std::uint32_t resumed = 0;       ///< keys covered: units[0, resumed) are claimed, the rest fresh
  std::uint32_t kv_hit = 0;        ///< longest prefix whose KV was there (>= resumed)
  std::optional<copy_op> restore;  ///< present when resumed > 0
};

struct catalog_counts {
  std::uint32_t copying = 0;
  std::uint32_t ready = 0;
  std::uint32_t evicting = 0;          ///< forgotten, still pinned or being written
  std::uint32_t checkpoint_units = 0;  ///< held by all of these
  std::uint32_t quarantine_units = 0;  ///< held because a copy may still touch them
  std::uint32_t ops = 0;
  std::uint32_t pins = 0;
  std::int64_t oldest_pin_ns = 0;  ///< age of the oldest bare pin; up to 10 ms too high
};

/// Checkpoints by key.
///
/// Thread-safety: any thread, any function. Progress: `lookup` and `contains*` are
/// wait-free apart from a bounded probe; `begin_*`, `finish`, `forget`, `cancel*`, `take`,
/// `release_pin`, `allocate`, `ensure_free_units`, `admit` are lock-free; functions named
/// wait block, until their deadline at the latest. `clear`, `lose_rank`, `expire` and `counts`
/// visit every record, op or pin: they are lock-free, and for rare use. No function allocates.
///
/// Exact (equal to a sequential cache) when calls do not overlap. While calls overlap, each answer
/// is safe (no unit has two holders, no key two READY records, no failure looks like a success),
/// but refusals and has_available_units are advice: a call that is held up half-way may keep
/// units, a key or a limit to itself for that long, and another may be told no_room, duplicate or
/// limit for it.
class catalog {
 public:
  /// Refuses an invalid layout, ranks outside 1..max_ranks, no slots, limits of 0 or above
  /// max_index, an image that needs more units than the pool may ever have. The pool must
  /// outlive the catalog. The catalog sets the pool's orphan hook to its own `orphan`.
  static result<std::unique_ptr<catalog>> open(catalog_options opts, unit_source& pool);
  ~catalog();
  catalog(const catalog&) = delete;
  catalog& operator=(const catalog&) = delete;

  [[nodiscard]] const layout& shape() const noexcept;
  [[nodiscard]] std::uint32_t units_per_checkpoint() const noexcept;
  [[nodiscard]] unit_source& pool() const noexcept;

  // ---- looking up -----------------------------------------------------------------
  /// The READY record under `key`. Does not count as use.
  [[nodiscard]] std::optional<record_handle> lookup(const checkpoint_key& key) const noexcept;
  [[nodiscard]] bool contains(const checkpoint_key& key) const noexcept;
  /// READY or COPYING.
  [[nodiscard]] bool contains_or_copying(const checkpoint_key& key) const noexcept;
  /// The longest length <= hit whose last key is READY; 0 when there is none. With
  /// `assume_checkpointed`, `hit` (as if every key were READY). Precondition: hit <= keys.size().
  [[nodiscard]] std::uint32_t resumable_hit(std::span<const checkpoint_key> keys, std::uint32_t hit,
                                            bool assume_checkpointed = false) const noexcept;

  // ---- storing and restoring ------------------------------------------------------
  /// Starts a store of `slot` under `key`. Errors: duplicate; no_room (nothing was evicted);
  /// passed_over; limit; invalid slot; closed. A refused store costs no units and no identity.
  /// Counts as kept. The op must be reported by every rank through `finish`.
  result<copy_op> begin_store(const checkpoint_key& key, slot_id slot,
                              placement_hint hint = placement_hint::none);
  /// Starts a restore of `key` into `slot`; pins the record and marks it used. Errors:
  /// not_found; limit; invalid slot; closed.
  result<copy_op> begin_restore(const checkpoint_key& key, slot_id slot);
  /// Staged catalogs: the op is in every rank's queue, and may be cancelled from now on. Until
  /// then its units stay its own, so they can be read while the op is handed over.
  void submitted(op_id op) noexcept;
  /// The op is handed to a device from now on; false when it was cancelled or has ended.
  /// Any number of ranks may take one op.
  bool take(op_id op) noexcept;
  /// Ends an op that no rank has taken: a restore's pin falls, a store is unwound. False when
  /// it is too late. Ranks that meet the op later find `take` false and drop it.
  bool cancel(op_id op) noexcept;
  /// Cancels the queued restores into `slot`; returns how many.
  std::uint32_t cancel_restores(slot_id slot) noexcept;
  /// The same for queued stores from `slot` (abort, preemption).
  std::uint32_t cancel_stores(slot_id slot) noexcept;
  /// A rank is done with an op. Each rank counts once; the last one publishes the record,
  /// drops the pin or, after any failure, unwinds. A failed restore forgets nothing unless
  /// its status is `corrupt`. After an unproven completion the op's units, or its pin, are kept
  /// until every rank that gave its copy up has sent the proof that it is over, here too: that is
  /// `counted`, once. The op ends without waiting for proofs; its id is not used again before.
  finish_outcome finish(const completion& what) noexcept;

  // ---- observing ops (tickets) ----------------------------------------------------
  /// Keeps the op's final status readable until `unobserve`. Call it before the op can end:
  /// right after begin, before submitting.
  void observe(op_id op) noexcept;
  void unobserve(op_id op) noexcept;
  /// pending, or how it ended; stale when it is no longer observed.
  [[nodiscard]] status op_status(op_id op) const noexcept;
  /// Blocks until the op has ended or `until`; then as op_status.
  status wait(op_id op, deadline until) const noexcept;

  // ---- removing -------------------------------------------------------------------
  /// Removes a READY or COPYING record from view at once; its units return when the last pin
  /// has fallen and the writer has finished. False when there was none.
  bool forget(const checkpoint_key& key) noexcept;
  void clear() noexcept;
  /// What the pool's orphan hook calls: forget, counted as orphaned when anything went.
  bool orphan(const checkpoint_key& key) noexcept;
  /// Makes the pool's orphan hook this catalog's `orphan` again (a coordinator had its own).
  void install_orphan_hook() noexcept;

  // ---- room -----------------------------------------------------------------------
  /// Could `count` units be had, evicting if need be, but not `protect`? Constant time, plus
  /// one lookup for `protect`.
  [[nodiscard]] bool has_available_units(std::uint32_t count,
                                         const checkpoint_key* protect = nullptr) const noexcept;
  /// Evictable records as counted (bare pins are not).
  [[nodiscard]] std::uint32_t evictable() const noexcept;
  /// Raises the pool's free count to `count` by eviction, or spends nothing (no_room).
  result<void> ensure_free_units(std::uint32_t count) noexcept;
  /// Live KV units, evicting if need be; all or nothing.
  result<void> allocate(std::span<unit_id> out) noexcept;
  /// Fair reservation, first come first served. Until its deadline, stores, allocations and
  /// admissions of others through this catalog that begin later take only what exceeds the demand
  /// of the first waiter (two that overlap may each count on the same excess); calls on the pool
  /// itself are not held back. Errors: timed_out, limit (64 callers wait
  /// already), no_room (more than the pool can ever give), closed.
  result<void> wait_reserve(std::span<unit_id> out, owner_id owner, deadline until) noexcept;
  /// One step: claims the KV of the longest prefix of `keys` that ends at a READY boundary,
  /// starts the restore into `slot`, and allocates fresh units for the rest, so that `units`
  /// holds keys.size() + fresh ids. On error nothing is held (no_room, limit, invalid).
  /// Preconditions: units.size() == keys.size() + fresh; the keys differ, as prefix keys do.
  result<admission> admit(std::span<const checkpoint_key> keys, std::uint32_t fresh, slot_id slot,
                          std::span<unit_id> units) noexcept;

  // ---- bare pins ------------------------------------------------------------------
  /// Pins the longest READY boundary within keys[0, hit). Expires at `until`.
  result<pin> pin_longest(std::span<const checkpoint_key> keys, std::uint32_t hit,
                          deadline until) noexcept;
  /// False when it has expired or was released.
  bool release_pin(const pin& which) noexcept;
  /// Releases the bare pins whose deadline has passed; returns how many. Also called by a
  /// store that finds everything pinned.
  std::uint32_t expire(deadline now) noexcept;

  // ---- ranks and the end ----------------------------------------------------------
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  /// A shard of every record is lost: advances the epoch and forgets all. Ops in flight must
  /// still be reported by every rank.
  void advance_epoch() noexcept;
  /// The rank is gone and proven idle: its outstanding ops fail, what its copies kept is released,
  /// the epoch advances, and every record is forgotten, for a shard of it is lost. Returns how many
  /// ops it failed. Of what happens at the same time, the rank's share of an op that begins must be
  /// reported through finish; what an unproven completion keeps, a second call releases.
  std::uint32_t lose_rank(rank_id rank) noexcept;
  /// Stops admissions: begin_*, admit and allocate answer `closed`. Ops in flight may finish.
  void close() noexcept;

  [[nodiscard]] catalog_counts counts() const noexcept;
  [[nodiscard]] fate_counts fates() const noexcept;
  /// Adds to a fate that the catalog cannot see (a boundary dropped before begin_store).
  void count_drop(drop_reason why, std::uint64_t by = 1) noexcept;
  /// The same for a boundary orphaned before begin_store, without a checkpoint of its key.
  void count_orphan() noexcept;

 private:
  friend struct catalog_internals;  // of benchmarks and tests: the way of begin_restore to its pin
  struct state;
  explicit catalog(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace cairn
