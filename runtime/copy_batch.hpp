// One launch: its ops, its staging, its event, and who may still look at the event. Knows no
// queue and no slot order.
//
// A batch is used again and again. Its event may be recorded anew only when the last use is over
// and no other thread is about to make a stream wait on it; `order_after` runs in the callers'
// threads, so it takes a hold first. The word:
//
//   holders : 16   callers between hold and drop
//   retired : 1    the event has fired; no new holds
//   live : 1       the event is recorded; holds may be taken
//   turn : 32      how often the batch was used before; what a batch_ref names
//
//   idle(turn)        --open, copy thread-->       live(turn)      after the event was recorded
//   live(turn)        --hold/drop, callers-->      live(turn)      holders +1 / -1
//   live(turn)        --retire, copy thread-->     retired(turn)   after the event has fired
//   retired(turn)     --drop, callers-->           retired(turn)   holders -1
//   retired(turn, 0)  --recycle, copy thread-->    idle(turn + 1)
//
// A hold that comes too late (retired, or another turn) finds nothing to order: the copies are
// over. References carry 20 bits of the turn; one that sleeps through 2^20 turns may hold a later
// use, and its stream then waits for copies that it did not ask for: order more than needed, never
// less, and never a deadlock, since whatever is live has been enqueued and waits only for what was
// enqueued before it.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/sync.hpp"

namespace cairn::detail {

/// Names one use of one batch; packs into 30 bits.
struct batch_ref {
  static constexpr std::uint32_t batch_bits = 10;
  static constexpr std::uint32_t turn_bits = 20;
  static constexpr std::uint32_t max_batches = std::uint32_t{1} << batch_bits;
  static constexpr std::uint32_t turn_mask = (std::uint32_t{1} << turn_bits) - 1;

  std::uint32_t batch = 0;
  std::uint32_t turn = 0;

  [[nodiscard]] std::uint32_t pack() const noexcept { return turn << batch_bits | batch; }
  static batch_ref unpack(std::uint32_t bits) noexcept {
    return {bits & (max_batches - 1), bits >> batch_bits & turn_mask};
  }
  friend bool operator==(const batch_ref&, const batch_ref&) = default;
};

class batch_word {
 public:
  /// The copy thread's: what the current use is called. Relaxed: it alone changes the turn.
  [[nodiscard]] std::uint32_t turn() const noexcept {
    return static_cast<std::uint32_t>(word_.load_relaxed() / one_turn) & batch_ref::turn_mask;
  }
  /// The copy thread's, once the event is recorded.
  void open() noexcept { word_.fetch_or_release(live_bit); }  // (1) release: pairs with (2)

  /// Any thread. True: the event stays as it is until drop. Lock-free.
  bool hold(std::uint32_t turn) noexcept {
    std::uint64_t seen = word_.load_acquire();  // (2) acquire: pairs with (1), (5), (7)
    for (;;) {
      const bool current =
          (static_cast<std::uint32_t>(seen / one_turn) & batch_ref::turn_mask) == turn;
      if (!current || (seen & live_bit) == 0 || (seen & retired_bit) != 0) return false;
      if (word_.cas_acquire(seen, seen + one_holder)) return true;  // (3) acquire: see (2)
    }
  }
  /// True when the copy thread waits for this drop and must be woken. Wait-free.
  bool drop() noexcept {
    // (4) release: pairs with (5), (6); the holder's use of the event comes before its reuse.
    const std::uint64_t before = word_.fetch_sub_release(one_holder);
    return (before & retired_bit) != 0 && (before & holder_mask) == one_holder;
  }

  /// The copy thread's, once the event has fired. True when nobody holds the batch.
  bool retire() noexcept {
    // (5) acq_rel: pairs with (4), (2)
    return (word_.fetch_or_acq_rel(retired_bit) & holder_mask) == 0;
  }
  /// The copy thread's, after retire: the last holder has gone.
  [[nodiscard]] bool unheld() const noexcept {
    return (word_.load_acquire() & holder_mask) == 0;  // (6) acquire: pairs with (4)
  }
  /// The copy thread's, when nobody holds the batch: its next use begins. Who is refused a hold
  /// because of the new turn concludes that the copies are over and may read what they wrote.
  void recycle() noexcept {
    const std::uint64_t next = word_.load_relaxed() / one_turn + 1;
    word_.store_release(next * one_turn);  // (7) release: pairs with (2)
  }

 private:
  static constexpr std::uint64_t one_holder = 1;
  static constexpr std::uint64_t holder_mask = 0xffff;
  static constexpr std::uint64_t retired_bit = std::uint64_t{1} << 16;
  static constexpr std::uint64_t live_bit = std::uint64_t{1} << 17;
  static constexpr std::uint64_t one_turn = std::uint64_t{1} << 32;

  sync::atomic<std::uint64_t> word_{0};
};

/// How far the current use of a batch has come. The copy thread's.
enum class batch_stage : std::uint8_t {
  idle,
  described,  ///< ops taken, tasks written; nothing that reads them is enqueued
  launched,   ///< the device has it (or may have a part of it); its event is not recorded
  flying,     ///< its event is recorded
  retired,    ///< over and reported; somebody still holds it
};

/// All but `word` and `done` belongs to the copy thread. Vectors are reserved at opening.
struct copy_batch {
  batch_word word;
  std::unique_ptr<event> done;
  batch_report report;
  copy_task* tasks = nullptr;       ///< staging: read by the device until `done` fires
  std::uint64_t* sums = nullptr;    ///< staging: checksums of the images, there when `done` fires
  std::vector<std::uint32_t> rows;  ///< of the arena, one per task
  std::vector<batch_ref> behind;    ///< earlier copies on the same slots
  fence_set fences;                 ///< of all its ops
  std::int64_t handed_ns = 0;       ///< just before it was launched
  std::uint32_t index = 0;
  batch_stage stage = batch_stage::idle;
  status code = status::ok;  ///< not ok: known to have failed, whatever the event says
  bool behind_all = false;   ///< described: the stream has been made to wait for what it needs
  bool late = false;         ///< waits for compute, or is behind one that does
  copy_kind kind = copy_kind::store;

  [[nodiscard]] batch_ref ref() const noexcept { return {index, word.turn()}; }
};

}  // namespace cairn::detail
