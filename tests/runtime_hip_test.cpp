// The runtime over the HIP backend on the double: compute on streams beside copies on two devices,
// ordered by what the library offers and by nothing else, with delays and failing calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/hip_rig.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

using hip::call;

constexpr std::uint32_t ranks = 2;
constexpr std::uint32_t threads = 4;

runtime_rig make_rig() {
  return runtime_rig(
      {.ranks = ranks, .units = 16, .compute_streams = threads, .manual = false, .over = [] {
         return make_hip_backend().value();
       }});
}

/// A step of compute on one rank: writes the image of n into a slot, or looks whether it is there.
struct compute_step {
  tiny_memory* memory;
  slot_id slot;
  std::uint64_t n;
  bool looks;
  bool ran = false;  ///< not on a device that was lost before
  bool right = false;
  static void run(void* self) {
    auto& step = *static_cast<compute_step*>(self);
    step.ran = true;
    if (step.looks)
      step.right = step.memory->holds(step.slot, step.n);
    else
      step.memory->write(step.slot, step.n);
  }
};

/// One thread of the engine with a slot and a compute stream of its own. It never waits for its
/// compute.
class engine_thread {
 public:
  engine_thread(runtime_rig& rig, std::uint32_t index) : rig_(rig), me_(index), dice_(index + 11) {}

  /// Rounds in which nothing is accepted (every key is being copied, or a device is lost) are free,
  /// but not without end: where copies are slow, an engine would otherwise be through with all its
  /// rounds before the first copy is.
  void run(int rounds) {
    for (int attempts = 100 * rounds; rounds > 0 && attempts > 0; --attempts) {
      if (round())
        --rounds;
      else
        std::this_thread::yield();
    }
  }

  /// After the end of all: what was restored with success was right. Returns how many.
  [[nodiscard]] std::uint64_t right_restores() const {
    std::uint64_t found = 0;
    for (const look_note& each : looks_) {
      if (each.code != status::ok) continue;
      ++found;
      for (const compute_step* step : each.steps)
        EXPECT_TRUE(step->right || !step->ran) << "thread " << me_ << ", key " << step->n;
    }
    return found;
  }

 private:
  bool round() {
    const std::uint64_t n = 1 + dice_.below(12);
    if (auto op = rig_.rt->restore(key_of(n), me_, me_); op) {
      if (behind(*op)) look(n, *op);
      return true;
    }
    compute(n, false);
    auto op = rig_.rt->store(key_of(n), me_, me_);
    if (op) static_cast<void>(behind(*op));
    compute(200 + me_, false);
    share_of_live_units();
    return op.ok();
  }

  struct look_note {
    status code;
    std::array<const compute_step*, ranks> steps;
  };

  // Compute that comes is behind the op: by order on the device, or, where that was refused,
  // because the op has ended. Half the time also waits.
  bool behind(const ticket& op) {
    const bool ordered = rig_.rt->order_after(me_, op, runtime_rig::soon()) == status::ok;
    if (!ordered || dice_.below(2) == 0) static_cast<void>(op.wait(runtime_rig::soon()));
    return ordered;
  }
  void look(std::uint64_t n, const ticket& op) {
    const auto steps = compute(n, true);
    static_cast<void>(op.wait(runtime_rig::soon()));
    looks_.push_back({op.code(), steps});
  }
  std::array<const compute_step*, ranks> compute(std::uint64_t n, bool looks) {
    std::array<const compute_step*, ranks> made{};
    for (std::uint32_t r = 0; r < ranks; ++r) {
      steps_.push_back({rig_.memory[r].get(), me_, n + 1000 * r, looks});
      made[r] = &steps_.back();
      const hipError_t code =
          hipLaunchHostFunc(native(rig_.compute(r, me_)), &compute_step::run, &steps_.back());
      if (code != hipSuccess) static_cast<void>(hipGetLastError());  // the device is lost
    }
    return made;
  }
  void share_of_live_units() {
    if (dice_.below(8) != 0) return;
    std::array<unit_id, 3> kv{};
    if (!rig_.rt->records().allocate(kv).ok()) return;
    for (const unit_id u : kv) EXPECT_TRUE(rig_.rt->own_pool()->free(u).ok());
  }

  runtime_rig& rig_;
  std::uint32_t me_;
  test::dice dice_;
  std::deque<compute_step> steps_;
  std::deque<look_note> looks_;
};

/// Threads, then the end of everything; `meanwhile` runs in the calling thread's stead once the
/// engine is under way. Returns how many restores succeeded.
template <class F>
std::uint64_t churn(runtime_rig& rig, int rounds, F&& meanwhile) {
  std::deque<engine_thread> engine;
  for (std::uint32_t t = 0; t < threads; ++t) engine.emplace_back(rig, t);
  test::together(threads + 1, [&](std::uint32_t t) {
    if (t == threads)
      meanwhile();
    else
      engine[t].run(rounds);
  });
  EXPECT_EQ(rig.rt->drain(runtime_rig::soon()), status::ok);
  for (const auto& each : rig.computes) hip::drain(native(*each));
  std::uint64_t right = 0;
  for (const engine_thread& each : engine) right += each.right_restores();
  return right;
}

void nothing() {}

/// Copiers do not wait for a lost device. Their memory may go once nothing runs any more.
void end_with_lost_device(runtime_rig& rig) {
  rig.rt.reset();
  for (const hip::stream_facts& each : hip::streams()) hip::drain(each.handle);
}

class RuntimeOverHip : public testing::Test {
 protected:
  void TearDown() override { hip::reset(); }
};

TEST_F(RuntimeOverHip, BytesAreRightUnderEviction) {
  const test::yields yields;
  {
    runtime_rig rig = make_rig();
    EXPECT_GT(churn(rig, 150, nothing), 0U);
    const fate_counts fates = rig.rt->records().fates();
    EXPECT_GT(fates.evicted, 0U);
    EXPECT_EQ(fates.kept, fates.evicted + rig.rt->records().counts().ready);
    rig.expect_ledger(0);
  }
  expect_clean_double();
}

TEST_F(RuntimeOverHip, BytesAreRightWhateverTheDelays) {
  const test::yields yields;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    {
      runtime_rig rig = make_rig();
      hip::plan({.seed = seed, .which = {}, .delay_one_in = 3});
      EXPECT_GT(churn(rig, 60, nothing), 0U);
      rig.expect_ledger(0);
    }
    expect_clean_double();
    hip::reset();
  }
}

// Callers order and never poll: a query costs the runtime's lock, and may spoil their captures.
TEST_F(RuntimeOverHip, EventsArePolledByTheCopyThreadsOnly) {
  {
    runtime_rig rig = make_rig();
    EXPECT_GT(churn(rig, 60, nothing), 0U);
    // What the engine's threads above do not call, and what waits for the end.
    runtime& rt = *rig.rt;
    const deadline until = runtime_rig::soon();
    const auto op = rt.store(key_of(100), 5, 0);
    ASSERT_TRUE(op.ok()) << op.why().message();
    EXPECT_EQ(rt.order_after_slot(1, 5, until), status::ok);
    EXPECT_TRUE(rt.finish_slot(5, 0).ok());
    EXPECT_TRUE(rt.release_slot(5, 1).ok());
    EXPECT_EQ(rt.reset_slot(6), status::ok);
    EXPECT_TRUE(rt.mark(2).ok());
    EXPECT_EQ(rt.drain_boundaries(0), 0U);
    EXPECT_EQ(op->wait(until), status::ok);
    EXPECT_EQ(rt.quiesce(until), status::ok);
    rt.resume();
    EXPECT_EQ(rt.close(until), status::ok);
    const auto pollers = hip::callers(call::hipEventQuery);
    EXPECT_EQ(pollers.size(), ranks);  // each rank has one
    EXPECT_THAT(pollers, testing::UnorderedElementsAreArray(hip::callers(call::hipLaunchKernel)));
    EXPECT_THAT(pollers, testing::Not(testing::Contains(std::this_thread::get_id())));
    for (const call marks : {call::hipEventRecord, call::hipStreamWaitEvent})
      EXPECT_GT(hip::callers(marks).size(), ranks) << hip::name_of(marks);
  }
  expect_clean_double();
}

// Two streams of each rank for stores, and one above them and above the engine's for restores.
TEST_F(RuntimeOverHip, RestoresHaveAStreamOfTheHighestPriority) {
  hip::set_priority_range(0, -5);
  {
    runtime_rig rig = make_rig();
    hipStream_t high[ranks] = {};
    for (std::uint32_t r = 0; r < ranks; ++r) {
      std::vector<int> priorities;
      for (const hip::stream_facts& each : hip::streams()) {
        EXPECT_EQ(each.flags, hipStreamNonBlocking);
        if (each.device != static_cast<int>(r)) continue;
        priorities.push_back(each.priority);
        if (each.priority < 0) high[r] = each.handle;
      }
      priorities.erase(priorities.begin(), priorities.begin() + threads);  // the engine's
      EXPECT_THAT(priorities, testing::ElementsAre(0, 0, -5));
      hip::hold(high[r]);
    }
    const auto stored = rig.rt->store(key_of(1), 0, 0);
    ASSERT_TRUE(stored.ok()) << stored.why().message();
    EXPECT_EQ(stored->wait(runtime_rig::soon()), status::ok);
    const auto restored = rig.rt->restore(key_of(1), 1, 1);
    ASSERT_TRUE(restored.ok()) << restored.why().message();
    EXPECT_EQ(rig.rt->order_after(1, *restored, runtime_rig::soon()), status::ok);
    EXPECT_EQ(restored->code(), status::pending);
    for (hipStream_t each : high) hip::release(each);
    EXPECT_EQ(restored->wait(runtime_rig::soon()), status::ok);
  }
  expect_clean_double();
}

// Streams, events and memory are made when the runtime opens: ops use them again and again.
TEST_F(RuntimeOverHip, OpsMakeAndFreeNothing) {
  constexpr call makers[] = {call::hipStreamCreateWithPriority,
                             call::hipEventCreateWithFlags,
                             call::hipMalloc,
                             call::hipHostMalloc,
                             call::hipStreamDestroy,
                             call::hipEventDestroy,
                             call::hipFree,
                             call::hipHostFree};
  {
    runtime_rig rig = make_rig();
    const auto made = [&] {
      std::vector<std::uint64_t> sums;
      for (const call each : makers) sums.push_back(hip::calls(each));
      return sums;
    };
    const auto before = made();
    EXPECT_GT(churn(rig, 150, nothing), 0U);
    EXPECT_EQ(made(), before);
    EXPECT_EQ(hip::timed_events(), 0);
  }
  expect_clean_double();
}

// Refused launches, recordings and waits fail their ops, and nobody takes them for successes.
TEST_F(RuntimeOverHip, RefusedCallsFailTheirOpsOnly) {
  const test::yields yields;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    {
      runtime_rig rig = make_rig();
      hip::plan({.seed = seed,
                 .which = {call::hipLaunchKernel, call::hipEventRecord, call::hipStreamWaitEvent,
                           call::hipMemcpyAsync},
                 .code = hipErrorInvalidValue,
                 .fail_one_in = 12,
                 .delay_one_in = 7});
      static_cast<void>(churn(rig, 60, nothing));
      EXPECT_EQ(rig.rt->records().counts().copying, 0U);
      EXPECT_EQ(rig.rt->records().counts().pins, 0U);
      rig.expect_ledger(0);
      hip::plan({});
    }
    expect_clean_double();
    hip::reset();
  }
}

// One of the two devices goes: its ops fail, every op ends, and what was right stays right.
TEST_F(RuntimeOverHip, ALostDeviceEndsItsOps) {
  const test::yields yields;
  for (const hipError_t code : {hipErrorIllegalAddress, hipErrorLaunchFailure}) {
    SCOPED_TRACE(hipGetErrorName(code));
    {
      runtime_rig rig = make_rig();
      static_cast<void>(churn(rig, 60, [&] {
        while (hip::calls(call::hipLaunchKernel) < 60) std::this_thread::yield();
        hip::lose(1, code);
      }));
      EXPECT_EQ(rig.rt->store(key_of(77), 0, 0).code(), status::device_lost);
      EXPECT_EQ(rig.rt->records().counts().ready, 0U);
      end_with_lost_device(rig);
    }
    EXPECT_TRUE(hip::complaints().empty());
    hip::reset();
  }
}

// A kernel's own fault, seen only by a later query.
TEST_F(RuntimeOverHip, AFaultingKernelIsNeverASuccess) {
  for (std::uint32_t nth = 1; nth <= 40; nth += 13) {
    SCOPED_TRACE("kernel " + std::to_string(nth));
    {
      runtime_rig rig = make_rig();
      hip::fault_in_kernel(nth, hipErrorIllegalAddress);
      static_cast<void>(churn(rig, 40, nothing));
      EXPECT_EQ(rig.rt->store(key_of(77), 0, 0).code(), status::device_lost);
      end_with_lost_device(rig);
    }
    EXPECT_TRUE(hip::complaints().empty());
    hip::reset();
  }
}

}  // namespace
}  // namespace cairn::tests
