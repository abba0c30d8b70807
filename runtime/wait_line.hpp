// The line of callers who wait for units, first come first served. It knows no units: it says whose
// turn it is and how many units the first in line demands.
//
// A waiter takes a ticket and files {units, deadline} in the cell of that ticket. `serving` is the
// ticket whose turn it is; it moves by CAS, by the one served or, past a deadline, by anybody. So a
// waiter that died holds up nobody for longer than its deadline.
//
//   next(t)         --join, a waiter-->                     next(t + 1): ticket t is the waiter's
//   cell t, stale   --join, the same waiter-->              filed
//   cell t, filed   --leave, the same waiter-->             expired: deadline 0, in turn or not
//   serving(t)      --leave, its waiter-->                  serving(t + 1)
//   serving(t)      --skip, anybody, once t has expired-->  serving(t + 1)
//
// A cell is its ticket's until `serving` has passed it, and is not filed anew before, since join
// gives out no ticket that is `places` ahead.
//
// Orders. Numbers in the code:
//  (1) serving, load acquire: pairs with (2).
//  (2) serving, CAS acq_rel: pairs with (1), (2). Who reads serving(t) sees next beyond t - 1, and
//      comes after the filing of t - 1, whose cell it may be given: so did whoever moved it.
//  (3) next, load acquire: pairs with (4).
//  (4) next, CAS acq_rel: pairs with (3), (4).
//  (5) the cell's ticket, store release: pairs with (6). The demand and the deadline.
//  (6) the cell's ticket, load acquire: pairs with (5).
//  (7) bell, acq_rel: pairs with (8). What was given back before. One that joins while others look
//      whether anybody waits may be missed; sleeps are short for other reasons anyhow.
//  (8) bell, load acquire: pairs with (7).
// The fields of a cell are relaxed: (5) and (6) order them, and the deadline is compared in a CAS.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

class wait_line {
 public:
  static constexpr std::uint32_t places = 64;

  /// Takes a ticket; false when all places are taken.
  bool join(std::uint32_t units, deadline until, std::uint64_t& ticket) noexcept {
    for (;;) {
      // In this order, so that the difference is never negative.
      const std::uint64_t serving = serving_.load_acquire();  // (1)
      ticket = next_.load_acquire();                          // (3)
      if (ticket - serving >= places) {
        if (serving_.load_acquire() != serving) continue;  // (1)
        return false;
      }
      if (next_.cas_acq_rel(ticket, ticket + 1)) break;  // (4)
    }
    cell& c = cells_[ticket % places];
    c.units.store_relaxed(units);
    c.until_ns.store_relaxed(until.time_since_epoch().count());
    // (5) release: pairs with (6); whoever reads this ticket in the cell sees its demand.
    c.ticket.store_release(ticket + 1);
    return true;
  }

  /// Skips waiters whose deadline has passed, then says whether it is this ticket's turn.
  bool first(std::uint64_t ticket, deadline now) noexcept {
    skip_expired(now);
    return serving_.load_acquire() == ticket;  // (1)
  }

  /// Whether the ticket's place has been passed (its deadline was over).
  [[nodiscard]] bool passed(std::uint64_t ticket) const noexcept {
    return serving_.load_acquire() > ticket;  // (1)
  }

  /// Ends this ticket's turn, or its waiting: `until` is the deadline that it joined with.
  void leave(std::uint64_t ticket, deadline until) noexcept {
    // Out of turn: past its deadline from now on, so that others skip it. By CAS, for once others
    // have skipped it the cell may be a later ticket's (with this very deadline, it is over too).
    // Relaxed: nothing is read on its strength.
    std::int64_t mine = until.time_since_epoch().count();
    cells_[ticket % places].until_ns.cas_relaxed(mine, 0);
    std::uint64_t turn = ticket;
    serving_.cas_acq_rel(turn, ticket + 1);  // (2)
  }

  /// Units may have come free: lets sleepers look again.
  void ring() noexcept {
    if (empty()) return;
    bell_.fetch_add_acq_rel(1);  // (7)
    sync::wake_all(bell_.raw());
  }
  [[nodiscard]] std::uint32_t seen() const noexcept { return bell_.load_acquire(); }  // (8)
  /// Sleeps until ring or `until`. A ring that comes just before the sleep is not lost; units
  /// that come free without a ring are found at `until`, so keep that short.
  void sleep(std::uint32_t seen, deadline until) const noexcept {
    sync::sleep_until(bell_.raw(), seen, until);
  }

  /// Units that everybody else must leave: the demand of the first in line, 0 when none.
  [[nodiscard]] std::uint32_t demand(deadline now) noexcept {
    if (empty()) return 0;
    skip_expired(now);
    const std::uint64_t turn = serving_.load_acquire();  // (1)
    if (next_.load_acquire() == turn) return 0;          // (3)
    const cell& c = cells_[turn % places];
    return c.ticket.load_acquire() == turn + 1 ? c.units.load_relaxed() : 0;  // (6)
  }

  [[nodiscard]] bool empty() const noexcept {
    return next_.load_acquire() == serving_.load_acquire();  // (3), (1)
  }

 private:
  struct cell {
    sync::atomic<std::uint64_t> ticket;  // ticket + 1 of the waiter that filed here
    sync::atomic<std::uint32_t> units;
    sync::atomic<std::int64_t> until_ns;
  };

  void skip_expired(deadline now) noexcept {
    for (;;) {
      std::uint64_t turn = serving_.load_acquire();  // (1)
      if (next_.load_acquire() == turn) return;      // (3)
      cell& c = cells_[turn % places];
      if (c.ticket.load_acquire() != turn + 1) return;  // (6) joined, its demand not filed yet
      if (c.until_ns.load_relaxed() > now.time_since_epoch().count()) return;
      serving_.cas_acq_rel(turn, turn + 1);  // (2)
    }
  }

  cell cells_[places];
  sync::atomic<std::uint64_t> next_;
  sync::atomic<std::uint64_t> serving_;
  sync::atomic<std::uint32_t> bell_;
};

}  // namespace cairn::detail
