// The pool's peers: all hand out `n` units or none to an owner, and check on release that every
// unit is that owner's. The units of each owner are noted in an array of one word per unit, as
// cairn notes them in its units; who releases what is not his is refused there, too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#if __has_include(<concurrentqueue/moodycamel/concurrentqueue.h>)
#include <concurrentqueue/moodycamel/concurrentqueue.h>
#else
#include <concurrentqueue/concurrentqueue.h>
#endif

namespace cairn::bench {

/// Who holds each unit. Relaxed: the queue or the mutex orders one tenancy after another.
class owners {
 public:
  explicit owners(std::uint32_t units)
      : of_(std::make_unique<std::atomic<std::uint64_t>[]>(units)) {}
  void take(std::span<const unit_id> ids, owner_id owner) {
    for (const unit_id id : ids) of_[id].store(owner, std::memory_order_relaxed);
  }
  bool give(std::span<const unit_id> ids, owner_id owner) {
    for (const unit_id id : ids)
      if (of_[id].load(std::memory_order_relaxed) != owner) return false;
    for (const unit_id id : ids) of_[id].store(0, std::memory_order_relaxed);
    return true;
  }

 private:
  std::unique_ptr<std::atomic<std::uint64_t>[]> of_;
};

/// moodycamel's queue, whose bulk calls are its fast way, with a token per thread as it advises.
/// All or nothing: what a dequeue brings short goes back.
class queue_pool {
 public:
  queue_pool(std::uint32_t units, std::uint32_t threads)
      : free_(units, threads + 1, 0), owners_(units) {
    std::vector<unit_id> all(units);
    for (unit_id id = 0; id < units; ++id) all[id] = id;
    for (std::uint32_t t = 0; t < threads; ++t) tokens_.push_back(std::make_unique<tokens>(free_));
    // Each thread's share comes from its own producer, as it will be from now on.
    for (std::uint32_t t = 0; t < threads; ++t) {
      const std::size_t begin = std::size_t{units} * t / threads;
      const std::size_t end = std::size_t{units} * (t + 1) / threads;
      free_.enqueue_bulk(tokens_[t]->producer, all.begin() + static_cast<std::ptrdiff_t>(begin),
                         end - begin);
    }
  }
  bool reserve(std::uint32_t thread, std::span<unit_id> out, owner_id owner) {
    tokens& mine = *tokens_[thread];
    // One call takes from one producer's units: what is short comes from the next.
    std::size_t got = 0;
    while (got < out.size()) {
      const auto rest = out.subspan(got);
      const std::size_t more = free_.try_dequeue_bulk(mine.consumer, rest.begin(), rest.size());
      if (more == 0) {
        free_.enqueue_bulk(mine.producer, out.begin(), got);
        return false;
      }
      got += more;
    }
    owners_.take(out, owner);
    return true;
  }
  bool release(std::uint32_t thread, std::span<const unit_id> ids, owner_id owner) {
    if (!owners_.give(ids, owner)) return false;
    free_.enqueue_bulk(tokens_[thread]->producer, ids.begin(), ids.size());
    return true;
  }

 private:
  using queue = moodycamel::ConcurrentQueue<unit_id>;
  struct tokens {
    moodycamel::ProducerToken producer;
    moodycamel::ConsumerToken consumer;
    explicit tokens(queue& of) : producer(of), consumer(of) {}
  };
  queue free_;
  owners owners_;
  std::vector<std::unique_ptr<tokens>> tokens_;
};

/// A mutex and a vector of free units, the last freed first. Owners are checked under the mutex
/// too: of two threads that release the same units at once one must be refused. Who has taken units
/// notes their owner when nobody waits for him any more.
class vector_pool {
 public:
  explicit vector_pool(std::uint32_t units) : owners_(units) {
    free_.reserve(units);
    for (unit_id id = units; id > 0; --id) free_.push_back(id - 1);
  }
  bool reserve(std::uint32_t, std::span<unit_id> out, owner_id owner) {
    if (!take(out)) return false;
    owners_.take(out, owner);
    return true;
  }
  bool release(std::uint32_t, std::span<const unit_id> ids, owner_id owner) {
    const std::lock_guard lock(mutex_);
    if (!owners_.give(ids, owner)) return false;
    free_.insert(free_.end(), ids.begin(), ids.end());
    return true;
  }

 private:
  bool take(std::span<unit_id> out) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < out.size()) return false;
    const auto first = free_.end() - static_cast<std::ptrdiff_t>(out.size());
    std::copy(first, free_.end(), out.begin());
    free_.erase(first, free_.end());
    return true;
  }

  std::mutex mutex_;
  std::vector<unit_id> free_;
  owners owners_;
};

/// cairn's pool, behind the same calls.
class cairn_pool {
 public:
  explicit cairn_pool(std::uint32_t units) {
    unit_pool::options options;
    options.units = units;
    pool_ = std::move(unit_pool::open(options)).value();
  }
  bool reserve(std::uint32_t, std::span<unit_id> out, owner_id owner) {
    return pool_->reserve(out, owner).ok();
  }
  bool release(std::uint32_t, std::span<const unit_id> ids, owner_id owner) {
    return pool_->release(ids, owner).ok();
  }

 private:
  std::unique_ptr<unit_pool> pool_;
};

}  // namespace cairn::bench
