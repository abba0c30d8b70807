// Units shared by live KV blocks and checkpoints: who holds each one, and which comes next.
// It knows nothing of records, slots, copies or devices.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <span>

namespace cairn {

/// Names the holder of a reservation. Any value but 0.
using owner_id = std::uint64_t;

/// What the catalog needs of a pool. An engine that keeps its own pool implements this and
/// hands it to catalog::open; `unit_pool` is the one that cairn ships. Every function may be
/// called by any thread at any time and must not wait for another caller.
class unit_source {
 public:
  /// Told when a cached unit is taken for other content while the index named it for `key`:
  /// the key's KV is gone, so its checkpoint is useless. Called by the taking thread, within
  /// the call that took the unit; it may release units to the same pool.
  using orphan_hook = void (*)(void* context, const checkpoint_key& key);

  virtual ~unit_source() = default;

  /// Ids are below this, for ever.
  [[nodiscard]] virtual std::uint32_t max_units() const noexcept = 0;
  /// Units that reserve and allocate could hand out now: vacant and cached.
  [[nodiscard]] virtual std::uint32_t free_units() const noexcept = 0;
  /// Replace one hook by another only while no call is under way; null takes it away.
  virtual void set_orphan_hook(orphan_hook hook, void* context) noexcept = 0;

  /// Fills `out` with units held by `owner`, or changes nothing (no_room). No units, or owner 0,
  /// are `invalid`.
  virtual result<void> reserve(std::span<unit_id> out, owner_id owner) = 0;
  /// Gives back one whole reservation, in its order, once. Anything else is `invalid` and
  /// changes nothing.
  virtual result<void> release(std::span<const unit_id> ids, owner_id owner) = 0;
  /// Releases `given` and reserves `out` for `owner`, in one step: another thread cannot
  /// come between and leave this one short. Needs out.size() <= given.size(). Units come in
  /// pool order, as if release and reserve were called one after the other.
  virtual result<void> replace(std::span<const unit_id> given, owner_id giver,
                               std::span<unit_id> out, owner_id owner) = 0;
  /// Adds to `set`, for each of `ids`, the compute that must have passed before its bytes
  /// may be overwritten: the fences of all shares freed so far. A store asks for itself
  /// (catalog::begin_store). For units that `allocate` gave it the engine asks, unless all its
  /// compute is on one stream, which orders itself.
  virtual void collect_fences(std::span<const unit_id> ids, fence_set& set) const noexcept = 0;

  /// Live KV: fills `out` with units of one share each, or changes nothing (no_room). Compute on
  /// another stream may still read them: see collect_fences.
  virtual result<void> allocate(std::span<unit_id> out) = 0;
  /// The unit that the index names for `key`, live or cached; nothing is claimed.
  [[nodiscard]] virtual unit_id lookup(const checkpoint_key& key) const noexcept = 0;
  /// Whether a claim of this unit would take it from the free units. Advice; a pool that does
  /// not know may answer false, which only makes `catalog::admit` refuse later.
  [[nodiscard]] virtual bool is_cached(unit_id id) const noexcept {
    (void)id;
    return false;
  }
  /// One more share of the unit that the index names for `key`; no_unit when there is none,
  /// or when every free unit is spoken for.
  [[nodiscard]] virtual unit_id claim(const checkpoint_key& key) noexcept = 0;
  /// One share less. `fence` is the last compute that used this share: what overwrites the unit
  /// runs behind it (see collect_fences). None: no compute that may still run used it.
  /// A step that was never marked is not noticed here: until it or a later one is, stores that get
  /// the unit end as `invalid`.
  virtual result<void> free(unit_id id, fence_token fence = {}) = 0;
};

/// A consistent count of units by place; exact while no call is under way.
struct pool_counts {
  std::uint32_t total = 0;     ///< units that exist now
  std::uint32_t vacant = 0;    ///< free, bearing no key
  std::uint32_t cached = 0;    ///< free, bearing a key
  std::uint32_t live = 0;      ///< held by shares of live KV
  std::uint32_t reserved = 0;  ///< held by owners (checkpoints)
};

enum class unit_place : std::uint8_t { absent, vacant, cached, live, reserved };

struct unit_info {
  unit_place place = unit_place::absent;
  std::uint32_t shares = 0;  ///< of live KV
  owner_id owner = 0;        ///< of a reservation
  bool has_key = false;
  checkpoint_key key;
};

/// What begin_retire_top decided. `to` is no_unit when nothing has to move.
struct retirement {
  unit_id from = no_unit;
  unit_id to = no_unit;
};

/// The pool that cairn ships.
///
/// Order: vacant units before cached ones; vacant lowest id first; cached least recently
/// freed first. Exact while calls do not overlap; with k overlapping calls, one of the k+1
/// that come next. Only a call that is held up in the middle of a change may hide further
/// cached units from the order until it goes on.
///
/// Thread-safety: every function may be called by any thread. Progress: lock-free, all of
/// them; claim and lookup touch no other unit. No allocation after open. extend,
/// retire and clear_index are lock-free too, but meant for rare use (clear_index visits
/// every unit).
class unit_pool final : public unit_source {
 public:
  struct options {
    std::uint32_t units = 0;            ///< units that exist at the start
    std::uint32_t max_units = 0;        ///< extend grows up to here; 0 means `units`
    std::uint32_t compute_streams = 1;  ///< fence tokens name streams below this
  };

  /// Refuses units > max_units, max_units of 0 or above max_index, compute_streams of 0 or
  /// above max_compute_streams.
  static result<std::unique_ptr<unit_pool>> open(const options& opts);
  ~unit_pool() override;

  [[nodiscard]] std::uint32_t max_units() const noexcept override;
  [[nodiscard]] std::uint32_t free_units() const noexcept override;
  void set_orphan_hook(orphan_hook hook, void* context) noexcept override;

  result<void> reserve(std::span<unit_id> out, owner_id owner) override;
  result<void> release(std::span<const unit_id> ids, owner_id owner) override;
  result<void> replace(std::span<const unit_id> given, owner_id giver, std::span<unit_id> out,
                       owner_id owner) override;
  void collect_fences(std::span<const unit_id> ids, fence_set& set) const noexcept override;

  result<void> allocate(std::span<unit_id> out) override;
  /// This unit for fresh content: one share; drops its key as any taking does. `busy` when
  /// it is live or reserved, or another call is just giving it back.
  result<void> allocate_at(unit_id id);
  [[nodiscard]] unit_id lookup(const checkpoint_key& key) const noexcept override;
  [[nodiscard]] bool is_cached(unit_id id) const noexcept override;
  [[nodiscard]] unit_id claim(const checkpoint_key& key) noexcept override;
  /// One more share of what the unit holds; it must be live or cached.
  result<void> claim_unit(unit_id id);
  result<void> free(unit_id id, fence_token fence = {}) override;

  /// The live unit bears content `key` from now on and the index names it. Another unit that
  /// bore the key stays where it is, unnamed. A key that this unit bore before is dropped. From
  /// here on any request may claim the unit, and no fence tells it who wrote: publish when the
  /// compute that writes the unit is ordered before all that a claimer may enqueue (one compute
  /// stream: when it is enqueued). Live units only; `busy` while another call publishes it.
  result<void> publish(unit_id id, const checkpoint_key& key);
  /// Drops every key; cached units become vacant, live ones stay. No hook is called.
  void clear_index() noexcept;

  /// Adds up to `count` units, as far as max_units; returns how many were added: none
  /// while a retirement is under way.
  std::uint32_t extend(std::uint32_t count) noexcept;
  /// Starts to give up the highest unit. A free one is gone at once (`to` is no_unit). A
  /// live one with a single share moves: `to` is reserved for it and bears the share from
  /// now on, `from` can no longer be claimed; copy the bytes, update the block tables, then
  /// call finish_retire; `to` stays live until then even if its share is freed. A call that gives a
  /// share (allocate, allocate_at, claim, claim_unit) and overlaps this one may still return
  /// `from`, though the share is `to`'s already: its caller reads `to` for it. Refused (`busy`):
  /// several shares, reserved, or a move under way; `no_room`: no unit to move to.
  result<retirement> begin_retire_top();
  /// Ends a move: `from` is gone, and `to` bears its key.
  result<void> finish_retire(const retirement& move);

  [[nodiscard]] pool_counts counts() const noexcept;
  [[nodiscard]] unit_info inspect(unit_id id) const noexcept;
  [[nodiscard]] std::uint32_t indexed() const noexcept;  ///< keys in the index

 private:
  struct state;
  explicit unit_pool(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace cairn
