// A bounded queue of work items for one consumer, in which the order of calls holds across
// threads. Knows nothing of what the items mean.
//
// Why not a queue that keeps order per producer only: a stream promises that work enqueued
// after other work runs after it, also when two threads made the two calls and only
// happens-before joins them.
//
// States. Item number t ("ticket", from 0, never reused) lives in cell t % capacity, in lap
// t / capacity. A cell's `turn` says what may happen to it in which lap l:
//
//   2l       free for ticket t    -- a producer draws t ----> (filling, still 2l)
//   2l       filling              -- that producer ---------> 2l + 1
//   2l + 1   full                 -- the consumer ----------> 2(l + 1): free for the next lap
//
// Drawing a ticket is a CAS on `tail_`, and the only point at which producers meet. A push that
// happens before another draws the lower ticket, because a later read of one atomic word never
// sees an older value: relaxed is enough there. The contents travel with `turn`. The consumer
// takes tickets strictly in order, so a producer that is preempted while filling delays the
// consumer, never another producer. `done_` counts the items that are over; who reads n from it
// has the effects of the first n items.
//
// Progress: push is lock-free (a failed CAS means that another push drew a ticket); front, pop
// and done are wait-free. An item counts against the capacity until pop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

template <class Item>
class work_ring {
 public:
  /// Precondition: capacity > 0.
  explicit work_ring(std::uint32_t capacity)
      : cells_(std::make_unique<cell[]>(capacity)), capacity_(capacity) {}

  /// Draws a ticket, calls fill(item, ticket), then shows the item to the consumer. Whatever
  /// fill does happens before the item runs. False when all cells are taken.
  template <class Fill>
  [[nodiscard]] bool push(Fill&& fill) noexcept {
    std::uint64_t ticket = tail_.load_relaxed();
    for (;;) {
      cell& place = cells_[ticket % capacity_];
      const std::uint64_t free_turn = 2 * (ticket / capacity_);
      const std::uint64_t turn = place.turn.load_acquire();  // (1) acquire: pairs with (3)
      if (turn == free_turn) {
        if (tail_.cas_relaxed(ticket, ticket + 1)) {
          fill(place.item, ticket);
          place.turn.store_release(free_turn + 1);  // (2) release: pairs with (4)
          return true;
        }
      } else if (turn < free_turn) {
        return false;
      } else {
        ticket = tail_.load_relaxed();
      }
    }
  }

  /// The oldest item that is not over, or null when the next one has not been shown yet.
  /// Consumer only; stays valid until pop.
  [[nodiscard]] Item* front() noexcept {
    cell& place = cells_[head_ % capacity_];
    const std::uint64_t full_turn = 2 * (head_ / capacity_) + 1;
    return place.turn.load_acquire() == full_turn  // (4) acquire: pairs with (2)
               ? &place.item
               : nullptr;
  }

  /// The front item is over. Consumer only.
  void pop() noexcept {
    cell& place = cells_[head_ % capacity_];
    const std::uint64_t next_free = 2 * (head_ / capacity_ + 1);
    ++head_;
    done_.store_release(head_);           // (5) release: pairs with (6)
    place.turn.store_release(next_free);  // (3) release: pairs with (1)
  }

  /// Drops the front item without counting it, nor any later one, as over. Consumer only; the
  /// ring takes no more items.
  void skip() noexcept { ++head_; }

  /// How many items are over: tickets below this.
  [[nodiscard]] std::uint64_t done() const noexcept {
    return done_.load_acquire();  // (6) acquire: pairs with (5)
  }

  /// Whether all items are over whose push happened before this call; `next` is a ticket beyond
  /// theirs. Who reads true has their effects. Wait-free.
  [[nodiscard]] bool idle(std::uint64_t& next) const noexcept {
    // Relaxed: never an older value than the push that happened before drew its ticket from.
    next = tail_.load_relaxed();
    return done() >= next;
  }

  /// True when no ticket is outstanding. Consumer only, and only once pushes have stopped.
  [[nodiscard]] bool drained() const noexcept { return head_ == tail_.load_relaxed(); }

 private:
  struct cell {
    sync::atomic<std::uint64_t> turn{0};
    Item item{};
  };

  std::unique_ptr<cell[]> cells_;
  std::uint64_t capacity_;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> tail_{0};
  alignas(sync::cache_line) std::uint64_t head_ = 0;
  sync::atomic<std::uint64_t> done_{0};
};

}  // namespace cairn::detail
