// One checkpoint record: its key, its state word, its place in the order of use. It knows no
// pool, no ops and no policy; the catalog makes every transition that is described here.
//
// The word. State, pins, restores and generation live in one 64-bit word, so that no decision
// is made on one of them while another changes:
//
//   pins        bare pins, optimistic pins of lookups, and the writer of a store
//   restores    pins of restores; a record without them is counted as evictable when READY
//   parked      an evictor met the record pinned and took it out of the order
//   state       vacant -> claimed -> copying -> ready -> (evicting ->) reclaiming -> vacant
//   generation  the tenancy; a handle names (index, generation)
//
//   from -> to               who                               condition
//   vacant -> claimed        the store that took the index      pins += 1 (the writer)
//   claimed -> copying       the same store, units in hand
//   claimed -> reclaiming    the same store, refused            it alone knows the record
//   copying -> ready         the last rank's completion         pins -= 1 in the same step
//   copying -> evicting      forget, or a failed completion     the CAS winner leaves the index
//   ready -> evicting        forget                             the CAS winner leaves the index
//   ready -> reclaiming      an evictor                         pins == 0 and restores == 0
//   evicting -> reclaiming   whoever finds both counts at 0     one CAS elects
//   reclaiming -> vacant     the elected                        units are back in the pool
//
// Every transition is a read-modify-write of the whole word, so it preserves pins that others
// add meanwhile. A pin is optimistic: fetch_add first, then judge the returned word (was it
// ready, is the key still ours?). A wrong pin is undone by subtraction, never by a store, and
// whoever brings both counts to 0 looks whether the record waits to be reclaimed or unparked.
// A pinned READY record cannot be reclaimed, since reclaiming needs a CAS from (ready, 0, 0),
// and an EVICTING one cannot, since the election needs (evicting, 0, 0).
//
// A forgetter holds a pin of its own from before it wins `-> evicting` until it has left the
// index; so the index node is never reused while somebody still removes it.
//
// Orders. Pins acquire: the tenant's key and units were written before its word said `ready`
// (release). Unpins release: what the holder read happens before the units are reused.
// Transitions are acq_rel, for they do both.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "runtime/index_node.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

enum class record_state : std::uint8_t { vacant, claimed, copying, ready, evicting, reclaiming };

/// The fields of a record's word.
struct record_word {
  std::uint32_t pins = 0;                     // 16 bits
  std::uint32_t restores = 0;                 // 16 bits
  std::uint32_t generation = 0;               // 28 bits
  record_state state = record_state::vacant;  // 3 bits
  bool parked = false;                        // 1 bit

  static constexpr std::uint64_t one_pin = 1;
  static constexpr std::uint64_t one_restore = std::uint64_t{1} << 16;
  static constexpr std::uint32_t max_count = (1U << 15) - 1;  // of pins, of restores
  static constexpr std::uint32_t generation_mask = (1U << 28) - 1;

  static constexpr record_word of(std::uint64_t bits) noexcept {
    record_word w;
    w.pins = static_cast<std::uint32_t>(bits & 0xffff);
    w.restores = static_cast<std::uint32_t>((bits >> 16) & 0xffff);
    w.state = static_cast<record_state>((bits >> 32) & 7);
    w.parked = ((bits >> 35) & 1) != 0;
    w.generation = static_cast<std::uint32_t>(bits >> 36);
    return w;
  }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept {
    return std::uint64_t{pins} | (std::uint64_t{restores} << 16) |
           (static_cast<std::uint64_t>(state) << 32) | (std::uint64_t{parked ? 1U : 0U} << 35) |
           (std::uint64_t{generation} << 36);
  }

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

/// One cache line. `hint` belongs to the tenant that set it; `used` and `born` order uses.
struct alignas(sync::cache_line) record {
  index_node node;
  sync::atomic<std::uint64_t> word;
  sync::atomic<std::uint64_t> used;
  sync::atomic<std::uint64_t> born;
  sync::atomic<std::uint8_t> hint;

  [[nodiscard]] checkpoint_key key() const noexcept {
    return {node.hi.load_relaxed(), node.lo.load_relaxed()};
  }
  [[nodiscard]] record_word load() const noexcept { return record_word::of(word.load_acquire()); }
};
static_assert(sizeof(record) == sync::cache_line);

}  // namespace cairn::detail
