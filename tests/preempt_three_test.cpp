// Three stores of one key, two of them held up at each of their atomic accesses: a call is told
// `duplicate` only on behalf of one that had the key. Real threads, one running at a time.
#include <gtest/gtest.h>

#include <cairn/catalog.hpp>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>

#include "runtime/sync.hpp"

#if !defined(CAIRN_SYNC_HOOK)
#error "this test needs the hook at atomic accesses"
#endif

namespace cairn {
namespace {

constexpr checkpoint_key key{1, 2};

/// A call in a thread of its own that stops before its n-th atomic access, until it may go on.
class held_call {
 public:
  held_call(catalog& in, std::uint32_t stop_at)
      : stop_at_(stop_at), thread_([this, &in] {
          self = this;
          answer_ = in.begin_store(key, 0).code();
          self = nullptr;
          if (!stopped_) news_.release();
        }) {
    news_.acquire();
  }
  ~held_call() {
    if (thread_.joinable()) (void)go_on();
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  status go_on() {
    if (stopped_) go_.release();
    thread_.join();
    return answer_;
  }

  static void hook() noexcept {
    if (self != nullptr && ++self->accesses_ == self->stop_at_) {
      self->stopped_ = true;
      self->news_.release();
      self->go_.acquire();
    }
  }

 private:
  static thread_local held_call* self;
  const std::uint32_t stop_at_;
  std::uint32_t accesses_ = 0;
  bool stopped_ = false;
  status answer_ = status::pending;
  std::binary_semaphore news_{0};
  std::binary_semaphore go_{0};
  std::thread thread_;
};

thread_local held_call* held_call::self = nullptr;

struct world {
  world() {
    pool = std::move(unit_pool::open({8, 8, 1})).value();
    catalog_options opts;
    opts.shape = {10, 40, 10, "tiny"};
    opts.slots = 1;
    records = std::move(catalog::open(std::move(opts), *pool)).value();
    first = records->begin_store(key, 0).value();
  }
  /// The store that has the key from the start comes to nothing.
  void fail_first() const {
    completion c;
    c.op = first.header.op;
    c.epoch = first.header.epoch;
    c.code = status::failed;
    ASSERT_TRUE(records->finish(c).ended);
  }

  std::unique_ptr<unit_pool> pool;
  std::unique_ptr<catalog> records;
  copy_op first;
};

/// What a store that stops at its access `at` answers when the first store fails meanwhile; nothing
/// when it makes fewer accesses.
std::optional<status> alone(std::uint32_t at) {
  const world w;
  held_call call(*w.records, at);
  if (!call.stopped()) return std::nullopt;
  w.fail_first();
  return call.go_on();
}

TEST(PreemptThree, ADuplicateIsToldOnlyForAStoreThatHadTheKey) {
  sync::schedule_hook = &held_call::hook;
  std::uint32_t met = 0;
  for (std::uint32_t a = 1;; ++a) {
    const std::optional<status> expected = alone(a);
    if (!expected) break;
    if (*expected != status::ok) continue;  // it had seen the first store already
    for (std::uint32_t b = 1;; ++b) {
      const world w;
      held_call one(*w.records, a);
      w.fail_first();
      held_call other(*w.records, b);
      const bool inside = other.stopped();
      const status said = one.go_on();
      const status last = w.records->begin_store(key, 0).code();
      const status other_said = other.go_on();
      EXPECT_EQ((said == status::ok) + (last == status::ok) + (other_said == status::ok), 1)
          << "held at " << a << " and " << b;
      if (said == status::duplicate) {
        EXPECT_EQ(other_said, status::ok) << "held at " << a << " and " << b;
      }
      ++met;
      if (!inside) break;
    }
  }
  sync::schedule_hook = nullptr;
  EXPECT_GT(met, 50U);
}

}  // namespace
}  // namespace cairn
