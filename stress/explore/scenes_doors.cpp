// Scenes on what lies between submitting threads and the copy thread: room, rows, rings of
// completions and of work.
#include <array>
#include <atomic>
#include <cairn/backend.hpp>

#include "runtime/completion_ring.hpp"
#include "runtime/op_arena.hpp"
#include "runtime/room_gate.hpp"
#include "runtime/work_ring.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

// ---- the gate ---------------------------------------------------------------------------------

/// Two submitters, one who closes: what was admitted is counted until it comes back, and once the
/// gate is shut everything that came in is visible.
struct gate_close {
  static constexpr std::uint32_t threads = 3;
  detail::room_gate door{2, 2};
  std::array<std::uint64_t, 2> done{};  // plain: read by who sees the gate shut
  std::array<quiet_word<bool>, 2> inside;

  void run(std::uint32_t t) {
    if (t == 2) {
      door.close();
      if (!door.shut()) return;
      for (std::uint32_t i = 0; i < 2; ++i) {
        require(!inside[i].get(), "the gate is shut and an op is inside");
        static_cast<void>(done[i]);
        if (volatile std::uint64_t seen = done[i]; seen > 1) fail("impossible");
      }
      require(door.take(1, 0) == status::closed, "a shut gate lets an op in");
      return;
    }
    if (door.take(1, 0) != status::ok) return;
    inside[t].set(true);
    done[t] = 1;
    inside[t].set(false);
    door.give(copy_kind::store, 1);
  }
  void judge() {
    require(door.shut(), "all rooms came back and the gate is not shut");
    require(door.take(1, 0) == status::closed, "a closed gate lets an op in");
  }
};
const bool gate_close_added = add_part<gate_close>("gate-close");

struct gate_full {
  static constexpr std::uint32_t threads = 3;
  detail::room_gate door{2, 1};
  quiet_word<std::uint32_t> inside;
  quiet_word<std::uint32_t> admitted;

  void run(std::uint32_t t) {
    if (t == 2) {
      door.lose();
      return;
    }
    for (int i = 0; i < 2; ++i) {
      const status got = door.take(2, 0);
      if (got != status::ok) continue;
      inside.add(1);
      require(inside.get() == 1, "more ops are inside than there are rooms");
      admitted.add(1);
      inside.add(~std::uint32_t{0});
      door.give(copy_kind::store, 2);
    }
  }
  void judge() {
    require(door.lost() && door.shut(), "the device is lost and the gate is not shut");
  }
};
const bool gate_full_added = add_part<gate_full>("gate-full");

// ---- rows -------------------------------------------------------------------------------------

struct rows {
  static constexpr std::uint32_t threads = 3;
  std::unique_ptr<backend> host = std::move(*make_host_backend({1, 1, true, 8}));
  std::unique_ptr<detail::op_arena> arena_of_rows =
      std::move(*detail::op_arena::open(host->at(0), 3, 2));
  std::array<std::uint64_t, 3> holder{};  // plain: a row is its taker's

  std::uint32_t take(std::uint32_t t) {
    const std::uint32_t row = arena_of_rows->take();
    require(row < 3, "no row, although a room was held");
    require(holder[row] == 0, "a row is two takers'");
    holder[row] = t + 1;
    return row;
  }
  void put(std::uint32_t row, std::uint32_t t) {
    require(holder[row] == t + 1, "a row was taken away");
    holder[row] = 0;
    arena_of_rows->put(row);
  }
  // Three rooms for two takers who hold one each, and the copy thread's puts.
  void run(std::uint32_t t) {
    if (t == 2) {
      put(take(2), 2);
      return;
    }
    const std::uint32_t row = take(t);
    put(row, t);
  }
  void judge() {
    for (std::uint32_t i = 0; i < 3; ++i) take(i);
  }
};
const bool rows_added = add_part<rows>("rows");

/// The stack's top leaves, others leave, and it comes back while a taker looks at it.
struct rows_aba {
  static constexpr std::uint32_t threads = 2;
  std::unique_ptr<backend> host = std::move(*make_host_backend({1, 1, true, 8}));
  std::unique_ptr<detail::op_arena> arena_of_rows =
      std::move(*detail::op_arena::open(host->at(0), 3, 2));
  std::array<std::uint64_t, 3> holder{};

  void run(std::uint32_t t) {
    if (t == 0) {
      const std::uint32_t row = arena_of_rows->take();
      require(holder[row] == 0, "a row is two takers'");
      holder[row] = 1;
      return;
    }
    const std::uint32_t a = arena_of_rows->take();
    const std::uint32_t b = arena_of_rows->take();
    holder[a] = holder[b] = 2;
    holder[a] = 0;
    arena_of_rows->put(a);
  }
  void judge() {
    const std::uint32_t row = arena_of_rows->take();
    require(row < 3 && holder[row] == 0, "a row is two takers', or was lost");
  }
};
const bool rows_aba_added = add_part<rows_aba>("rows-aba");

// ---- rings ------------------------------------------------------------------------------------

struct completions {
  static constexpr std::uint32_t threads = 3;
  detail::completion_ring ring{2};
  quiet_word<std::uint32_t> put;
  std::uint32_t taken = 0;
  std::uint64_t stamps = 0;

  void run(std::uint32_t t) {
    if (t < 2) {
      detail::completion_ring::item one;
      one.begin_stamp = t + 1;
      ring.put(one);
      return;
    }
    for (int i = 0; i < 3; ++i) take();
  }
  void take() {
    detail::completion_ring::item out;
    if (!ring.take(out)) return;
    ++taken;
    stamps += out.begin_stamp;
  }
  void judge() {
    for (int i = 0; i < 2; ++i) take();
    require(taken == 2 && stamps == 3, "a completion was lost, or came twice");
    // The cells go round.
    detail::completion_ring::item one;
    one.begin_stamp = 9;
    ring.put(one);
    take();
    require(taken == 3 && stamps == 12, "a cell cannot be used again");
  }
};
const bool completions_added = add_part<completions>("completions");

struct completions_wrap {
  static constexpr std::uint32_t threads = 2;
  detail::completion_ring ring{1};
  quiet_word<std::uint32_t> waiting;  ///< the owner bounds what waits
  std::uint64_t stamps = 0;
  std::uint64_t sent = 0;

  void run(std::uint32_t t) {
    for (std::uint32_t i = 1; i <= 3; ++i) {
      sync::point();
      if (t == 0) {
        if (waiting.get() != 0) continue;
        waiting.add(1);
        detail::completion_ring::item one;
        one.begin_stamp = i;
        sent += i;
        ring.put(one);
      } else {
        detail::completion_ring::item out;
        if (!ring.take(out)) continue;
        stamps += out.begin_stamp;
        waiting.add(~std::uint32_t{0});
      }
    }
  }
  void judge() {
    detail::completion_ring::item out;
    while (ring.take(out)) stamps += out.begin_stamp;
    require(stamps == sent, "a completion was lost, or came twice");
  }
};
const bool completions_wrap_added = add_part<completions_wrap>("completions-wrap");

struct work_items {
  static constexpr std::uint32_t threads = 3;
  detail::work_ring<std::uint64_t> ring{1};
  quiet_word<std::uint64_t> result;  ///< two items may write it while it is read
  quiet_word<std::uint32_t> pushed;
  std::uint32_t ran = 0;

  bool one() {
    std::uint64_t* item = ring.front();
    if (item == nullptr) return false;
    require(*item == 5 || *item == 6, "an item is not what was pushed");
    result.add(*item);
    *item = 0;
    ring.pop();
    ++ran;
    return true;
  }
  void run(std::uint32_t t) {
    if (t == 2) {
      for (int i = 0; i < 3; ++i) one();
      return;
    }
    const bool in = ring.push([t](std::uint64_t& item, std::uint64_t) { item = 5 + t; });
    if (in) pushed.add(1);
    if (ring.done() != 0) require(result.get() != 0, "an item is done without its effects");
  }
  void judge() {
    while (one()) {
    }
    require(ran == pushed.get(), "an item was lost, or ran twice");
    require(ring.drained(), "the ring is empty and says that it is not");
  }
};
const bool work_items_added = add_part<work_items>("work-items");

struct work_item_one {
  static constexpr std::uint32_t threads = 2;
  detail::work_ring<std::uint64_t> ring{1};
  std::uint64_t result = 0;

  void run(std::uint32_t t) {
    if (t == 1) {
      for (int i = 0; i < 4; ++i) {
        if (std::uint64_t* item = ring.front()) {
          if (*item < 5) fail("an item is not what was pushed");
          result = *item;
          *item = 0;
          ring.pop();
          if (result == 6) return;
        }
      }
      return;
    }
    if (!ring.push([](std::uint64_t& item, std::uint64_t) { item = 5; }))
      fail("an empty ring is full");
    if (ring.done() == 0) return;
    require(result == 5, "an item is done without its effects");
    require(ring.push([](std::uint64_t& item, std::uint64_t) { item = 6; }) || true, "");
  }
  void judge() {}
};
const bool work_item_one_added = add_part<work_item_one>("work-item-one");

}  // namespace

}  // namespace cairn::explore
