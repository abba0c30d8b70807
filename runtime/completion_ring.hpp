// Completions that wait to be applied: many copy threads put, one thread at a time takes. A
// bounded ring whose cells say whose turn it is. Knows nothing of what a completion means.
//
// A cell's turn is p while it waits for the put number p, p + 1 while it holds that put's
// value, and p + capacity after it was taken.
//
//   p      --put, the copy thread that drew p from `tail_`-->        p + 1
//   p + 1  --take, who alone applies now (runtime_settle.cpp)-->     p + capacity
//
// A putter owns the cell of its number until it passes the turn on; the taker owns it from then
// on. The capacity bounds what can be waiting (the owner sees to that), so a putter's turn has come
// when it draws: it never waits.
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cassert>
#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class completion_ring {
 public:
  struct item {
    completion what;
    std::uint64_t begin_stamp = 0;
    std::int64_t begin_ns = 0;
  };

  /// `most`: completions that can wait at once.
  explicit completion_ring(std::uint64_t most)
      : mask_(std::bit_ceil(most) - 1), cells_(std::make_unique<cell[]>(mask_ + 1)) {
    // Relaxed: before any thread knows the ring.
    for (std::uint64_t i = 0; i <= mask_; ++i) cells_[i].turn.store_relaxed(i);
  }

  /// Wait-free.
  void put(const item& value) noexcept {
    const std::uint64_t at = tail_.fetch_add_relaxed(1);  // a number: the cell's turn orders
    cell& c = cells_[at & mask_];
    // (1) acquire: pairs with (4), the cell's last taker
    [[maybe_unused]] const std::uint64_t turn = c.turn.load_acquire();
    assert(turn == at);
    c.value = value;
    c.turn.store_release(at + 1);  // (2) release: pairs with (3)
  }

  /// One taker at a time; the takers order themselves. False when the next put is not complete.
  bool take(item& out) noexcept {
    cell& c = cells_[head_ & mask_];
    if (c.turn.load_acquire() != head_ + 1) return false;  // (3) acquire: pairs with (2)
    out = c.value;
    c.turn.store_release(head_ + mask_ + 1);  // (4) release: pairs with (1)
    ++head_;
    return true;
  }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return mask_ + 1; }

 private:
  struct cell {
    sync::atomic<std::uint64_t> turn;
    item value;
  };

  const std::uint64_t mask_;
  std::unique_ptr<cell[]> cells_;
  std::uint64_t head_ = 0;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> tail_{0};
};

}  // namespace cairn::detail
