// The way from submitting threads to the copy thread: many producers, one consumer. The only
// file that knows moodycamel::ConcurrentQueue. Bounded elsewhere (room_gate).
//
// Producers are implicit (no tokens) and there is exactly one consumer: with tokens the queue is
// reported by ThreadSanitizer, with two consumers version 1.0.3 misses a memory order.
//
// A dequeue that finds nothing proves nothing. So each entry draws a ticket before it is
// enqueued, and the consumer counts what it has taken: the queue is empty when the two agree.
// The order in which entries come out says nothing about the order in which threads put them in.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>

#if __has_include(<concurrentqueue/moodycamel/concurrentqueue.h>)
#include <concurrentqueue/moodycamel/concurrentqueue.h>
#else
#include <concurrentqueue/concurrentqueue.h>
#endif

#include "runtime/id_run.hpp"
#include "runtime/op_arena.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// An op (its row in the arena), a reset of a slot, or a sequence number of a slot that no op will
/// bring.
struct queue_entry {
  std::uint32_t row = op_arena::none;
  slot_id slot = no_slot;
  bool reset = false;
  id_run ids = id_run::wrong;  ///< of an op's units, as the submitter found them
  std::uint64_t sequence = 0;
};

class submit_queue {
 public:
  explicit submit_queue(std::size_t depth) : queue_(depth, 0, expected_producers) {}

  /// Lock-free. A thread's first calls allocate; later ones do not, within `depth`.
  void put(const queue_entry& entry) noexcept {
    tickets_.fetch_add_relaxed(1);  // (1) before the entry can be seen: (2) never runs ahead
    queue_.enqueue(entry);
  }

  /// The consumer's. Returns how many entries were taken; 0 does not mean empty.
  std::size_t take(queue_entry* out, std::size_t most) noexcept {
    const std::size_t n = queue_.try_dequeue_bulk(out, most);
    taken_ += n;
    return n;
  }

  /// The consumer's. Exact once no producer is left (the caller has acquired their end).
  [[nodiscard]] bool empty() const noexcept { return tickets_.load_relaxed() == taken_; }  // (2)

 private:
  struct traits : moodycamel::ConcurrentQueueDefaultTraits {
    static const size_t BLOCK_SIZE = 64;
    static const size_t IMPLICIT_INITIAL_INDEX_SIZE = 256;  // 16 K entries of one thread
  };
  static constexpr std::size_t expected_producers = 64;

  moodycamel::ConcurrentQueue<queue_entry, traits> queue_;
  std::uint64_t taken_ = 0;
  alignas(sync::cache_line) sync::atomic<std::uint64_t> tickets_{0};
};

}  // namespace cairn::detail
