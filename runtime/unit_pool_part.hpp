// What is noted of a reservation, at the units with which its parts begin. It knows nothing of how
// units are found or checked: see unit_pool_state.hpp.
#pragma once

#include <atomic>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <type_traits>

#include "runtime/sync.hpp"

namespace cairn::detail {

/// Whether a part of a reservation begins at a unit, and what of the reservation is left from here.
struct alignas(std::uint64_t) tenure {
  std::uint32_t generation = 0;  ///< counts the reservations that began here and were released
  std::uint32_t remaining = 0;   ///< units of the reservation from this one on; 0: none
  friend constexpr bool operator==(const tenure&, const tenure&) = default;
};
static_assert(std::has_unique_object_representations_v<tenure> &&
              std::atomic<tenure>::is_always_lock_free);

/// Units that one reservation took in one step: vacant ones of one word of the set, or one cached
/// unit. Noted at the lowest; they follow each other in the reservation, lowest first.
struct alignas(32) reservation_part {
  sync::atomic<tenure> held;
  sync::atomic<owner_id> owner;
  sync::atomic<std::uint64_t> bits;   ///< as in a bit_run
  sync::atomic<std::uint32_t> count;  ///< of the bits
  sync::atomic<std::uint32_t> head;   ///< the first unit of the reservation
};

}  // namespace cairn::detail
