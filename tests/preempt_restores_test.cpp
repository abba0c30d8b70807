// A call that needs room, held up at each of its atomic accesses while two other threads restore
// one record again and again: one begins, the other ends. See preempt_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <cairn/catalog.hpp>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>

#include "tests/held_up.hpp"

namespace cairn {
namespace {

checkpoint_key key(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL + 1, n};
}

/// Full: one unit each. The last one is what is restored.
struct cache {
  static constexpr std::uint32_t size = 4;
  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;

  cache() {
    pool = std::move(unit_pool::open({size, size, 1})).value();
    catalog_options opts;
    opts.shape = {64, 64, 64, "one"};
    opts.slots = 2;
    opts.max_ops = 16;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
    for (std::uint32_t n = 0; n < size; ++n) end(*records->begin_store(key(n), 0));
  }
  copy_op begin() const { return *records->begin_restore(key(size - 1), 1); }
  void end(const copy_op& op) const {
    completion done;
    done.op = op.header.op;
    done.epoch = op.header.epoch;
    EXPECT_TRUE(records->finish(done).ended);
  }
};

/// Two threads that live as long as it does.
class restorers {
 public:
  restorers() {
    for (std::size_t i = 0; i < 2; ++i) threads_[i] = std::thread([this, i] { serve(i); });
    for (each& one : each_) one.done.acquire();
  }
  ~restorers() {
    on_ = nullptr;
    for (each& one : each_) one.go.release();
    for (std::thread& one : threads_) one.join();
  }
  /// More restores than there are records, one after another.
  void restore(const cache& on) {
    on_ = &on;
    for (std::uint32_t i = 0; i < 2 * cache::size; ++i) {
      // What ends is counted in a part that is looked at before that of what begins.
      const std::size_t ender = each_[0].part < each_[1].part ? 0 : 1;
      for (const std::size_t which : {1 - ender, ender}) {
        begins_ = which != ender;
        each_[which].go.release();
        each_[which].done.acquire();
      }
    }
  }

 private:
  struct each {
    std::binary_semaphore go{0};
    std::binary_semaphore done{0};
    std::uint32_t part = 0;
  };
  void serve(std::size_t i) {
    each& mine = each_[i];
    mine.part = sync::thread_part();
    for (;;) {
      mine.done.release();
      mine.go.acquire();
      if (on_ == nullptr) return;
      if (begins_)
        op_ = on_->begin();
      else
        on_->end(op_);
    }
  }

  std::array<each, 2> each_;
  const cache* on_ = nullptr;
  bool begins_ = false;
  copy_op op_;
  std::array<std::thread, 2> threads_;
};

/// `call` is told yes wherever it is held up: three records are evictable all the time.
void never_refused(const std::function<bool(catalog&)>& call) {
  restorers others;
  bool came = true;
  for (std::uint64_t at = 1; came; ++at) {
    const cache full;
    bool told = false;
    came = tests::run_held_up(
        at, [&] { told = call(*full.records); }, [&] { others.restore(full); });
    ASSERT_TRUE(told) << "held up at access " << at;
  }
}

TEST(PreemptedByRestores, AStoreFindsTheOtherRecords) {
  never_refused([](catalog& on) { return on.begin_store(key(100), 0).ok(); });
}

TEST(PreemptedByRestores, UnitsAreAvailable) {
  never_refused([](catalog& on) { return on.has_available_units(cache::size - 1); });
}

TEST(PreemptedByRestores, NoMoreRecordsAreCountedThanThereAre) {
  never_refused([](catalog& on) {
    const std::uint32_t counted = on.evictable();
    return counted == cache::size - 1 || counted == cache::size;
  });
}

TEST(PreemptedByRestores, UnitsForLiveKvAreHad) {
  never_refused([](catalog& on) {
    std::array<unit_id, 2> units{};
    return on.allocate(units).ok() && on.ensure_free_units(1).ok();
  });
}

}  // namespace
}  // namespace cairn
