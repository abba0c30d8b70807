// The fault plan: which call fails is decided by the entry point and the number of the call, never
// by time.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hip_double/state.hpp"

namespace cairn::tests::hip {
namespace {

struct call_plan {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> with_current[max_devices] = {};
  std::atomic<std::uint64_t> at{0};  ///< 0: none
  std::atomic<int> code{0};
  std::atomic<bool> works{false};
  std::atomic<bool> loses{false};
  std::atomic<int> loses_device{no_device};
  std::atomic<int> always{0};
  std::atomic<bool> random{false};
  std::atomic<std::uint64_t> random_from{0};
  std::atomic<std::thread::id> callers[32] = {};
  std::atomic<std::function<void()>*> before{nullptr};
  std::atomic<std::function<void()>*> after{nullptr};
};
call_plan plans[call_count];

std::atomic<std::uint64_t> seed{0};
std::atomic<int> random_code{0};
std::atomic<std::uint32_t> fail_one_in{0};
std::atomic<std::uint32_t> delay_one_in{0};
std::atomic<std::uint32_t> kernels_until_fault{0};
std::atomic<int> kernel_fault{0};
std::atomic<std::uint32_t> events_held{0};

call_plan& of(call which) noexcept {
  return plans[static_cast<std::uint32_t>(which)];
}

/// A number that looks random and depends on the three only.
std::uint64_t drawn(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b * 0xC2B2AE3D27D4EB4FU + c * 0x165667B19E3779F9U;
  for (int i = 0; i < 2; ++i) {
    x ^= x >> 31;
    x *= 0xBF58476D1CE4E5B9U;
  }
  return x ^ (x >> 29);
}

}  // namespace

const char* name_of(call which) noexcept {
  static constexpr const char* names[] = {
#define CAIRN_HIP_CALL(result, name, parameters) #name,
#include <hip/double_calls.inc>
  };
  return names[static_cast<std::uint32_t>(which)];
}

std::uint64_t calls(call which) noexcept {
  return of(which).calls.load(std::memory_order_relaxed);
}

std::uint64_t calls_with_current(int device, call which) noexcept {
  return of(which).with_current[device].load(std::memory_order_relaxed);
}

std::vector<std::thread::id> callers(call which) {
  std::vector<std::thread::id> found;
  for (const auto& each : of(which).callers) {
    const std::thread::id caller = each.load(std::memory_order_relaxed);
    if (caller != std::thread::id{}) found.push_back(caller);
  }
  return found;
}

void before_next(call which, std::function<void()> what) {
  delete of(which).before.exchange(new std::function<void()>(std::move(what)));
}

void after_next(call which, std::function<void()> what) {
  delete of(which).after.exchange(new std::function<void()>(std::move(what)));
}

namespace {

void note_caller(call_plan& plan) noexcept {
  const std::thread::id me = std::this_thread::get_id();
  for (auto& each : plan.callers) {
    std::thread::id seen{};
    if (each.compare_exchange_strong(seen, me, std::memory_order_relaxed) || seen == me) return;
  }
}

void run(std::atomic<std::function<void()>*>& hook) {
  if (hook.load(std::memory_order_relaxed) == nullptr) return;  // orders nothing
  const std::unique_ptr<std::function<void()>> what(hook.exchange(nullptr));
  if (what != nullptr) (*what)();
}

}  // namespace

void end_call(call which) {
  run(of(which).after);
}

planned next_fault(call which) {
  call_plan& plan = of(which);
  run(plan.before);
  note_caller(plan);
  plan.with_current[this_thread().device].fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t number = plan.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  delay(1'000 + static_cast<std::uint64_t>(which), number);
  planned next;
  if (const int code = plan.always.load(std::memory_order_relaxed); code != 0)
    next.code = static_cast<hipError_t>(code);
  if (plan.at.load(std::memory_order_relaxed) == number) {
    const auto code = static_cast<hipError_t>(plan.code.load(std::memory_order_relaxed));
    (plan.loses.load(std::memory_order_relaxed) ? next.loses : next.code) = code;
    next.loses_device = plan.loses_device.load(std::memory_order_relaxed);
    next.works = plan.works.load(std::memory_order_relaxed);
  }
  const std::uint32_t one_in = fail_one_in.load(std::memory_order_relaxed);
  if (one_in != 0 && plan.random.load(std::memory_order_relaxed) &&
      drawn(seed.load(std::memory_order_relaxed), static_cast<std::uint64_t>(which),
            number - plan.random_from.load(std::memory_order_relaxed)) %
              one_in ==
          0)
    next.code = static_cast<hipError_t>(random_code.load(std::memory_order_relaxed));
  return next;
}

namespace {

void arm(call which, std::uint32_t nth, hipError_t code, bool works, bool loses, int device) {
  call_plan& plan = of(which);
  plan.code.store(code);
  plan.works.store(works);
  plan.loses.store(loses);
  plan.loses_device.store(device);
  plan.at.store(nth == 0 ? 0 : plan.calls.load() + nth);
}

}  // namespace

void fail_at(call which, std::uint32_t nth, hipError_t code, bool works) {
  arm(which, nth, code, works, false, no_device);
}

void fail_always(call which, hipError_t code) {
  of(which).always.store(code);
}

void lose_at(call which, std::uint32_t nth, hipError_t code) {
  arm(which, nth, code, false, true, no_device);
}

void lose_before(call which, std::uint32_t nth, int device, hipError_t code) {
  arm(which, nth, code, false, true, device);
}

void fault_in_kernel(std::uint32_t nth, hipError_t code) {
  kernel_fault.store(code);
  kernels_until_fault.store(nth);
}

hipError_t next_kernel_fault() noexcept {
  std::uint32_t left = kernels_until_fault.load(std::memory_order_relaxed);
  while (left != 0 &&
         !kernels_until_fault.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left == 1 ? static_cast<hipError_t>(kernel_fault.load(std::memory_order_relaxed))
                   : hipSuccess;
}

void hold_events(std::uint32_t count) noexcept {
  events_held.store(count, std::memory_order_relaxed);
}

bool next_event_held() noexcept {
  std::uint32_t left = events_held.load(std::memory_order_relaxed);
  while (left != 0 &&
         !events_held.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left != 0;
}

void plan(const random_plan& with) {
  fail_one_in.store(0);
  for (call_plan& each : plans) each.random.store(false);
  for (const call which : with.which) {
    of(which).random_from.store(of(which).calls.load());
    of(which).random.store(true);
  }
  random_code.store(with.code);
  seed.store(with.seed);
  delay_one_in.store(with.delay_one_in);
  fail_one_in.store(with.fail_one_in);
}

void delay(std::uint64_t who, std::uint64_t when) noexcept {
  const std::uint32_t one_in = delay_one_in.load(std::memory_order_relaxed);
  if (one_in == 0) return;
  const std::uint64_t number = drawn(seed.load(std::memory_order_relaxed), who, when);
  if (number % one_in != 0) return;
  const std::uint64_t more = number / one_in;
  if (more % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(more % 97));
  else
    std::this_thread::yield();
}

void clear_faults() noexcept {
  fail_one_in.store(0);
  delay_one_in.store(0);
  kernels_until_fault.store(0);
  events_held.store(0);
  for (call_plan& each : plans) {
    each.calls.store(0);
    for (auto& with : each.with_current) with.store(0);
    each.at.store(0);
    each.always.store(0);
    each.random.store(false);
    for (auto& caller : each.callers) caller.store(std::thread::id{});
    delete each.before.exchange(nullptr);
    delete each.after.exchange(nullptr);
  }
}

}  // namespace cairn::tests::hip
