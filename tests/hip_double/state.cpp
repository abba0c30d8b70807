// The double's state, and what every entry point has in common.
#include "tests/hip_double/state.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <mutex>

namespace cairn::tests::hip {
namespace {

std::mutex complaints_lock;
std::vector<std::string> complaint_list;

}  // namespace

void word::sleep_while(std::uint32_t value) noexcept {
  const timespec millisecond{0, 1'000'000};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), FUTEX_WAIT_PRIVATE, value,
          &millisecond, nullptr, 0);
}

void word::wake() noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), FUTEX_WAKE_PRIVATE, 1 << 30,
          nullptr, nullptr, 0);
}

double_state& state() {
  static double_state one;
  return one;
}

double_state::~double_state() {
  end_streams();
}

thread_state& this_thread() noexcept {
  thread_local thread_state one;
  return one;
}

void complain(const std::string& what) {
  const std::lock_guard lock(complaints_lock);
  complaint_list.push_back(what);
}

std::vector<std::string> complaints() {
  const std::lock_guard lock(complaints_lock);
  return complaint_list;
}

void clear_complaints() {
  const std::lock_guard lock(complaints_lock);
  complaint_list.clear();
}

int current_device() noexcept {
  return this_thread().device;
}
hipStreamCaptureMode capture_mode() noexcept {
  return this_thread().mode;
}

bool context_made(int device) noexcept {
  return state().devices[device].context.load(std::memory_order_relaxed);
}

namespace {

/// Whether the call does something on the thread's current device.
bool uses_device(call which) noexcept {
  switch (which) {
    case call::hipGetErrorString:
    case call::hipGetErrorName:
    case call::hipGetLastError:
    case call::hipPeekAtLastError:
    case call::hipGetDeviceCount:
    case call::hipGetDevice:
    case call::hipSetDevice:
    case call::hipDeviceGetAttribute:
    case call::hipThreadExchangeStreamCaptureMode:
      return false;
    default:
      return true;
  }
}

}  // namespace

planned begin_call(const entry& how) {
  if (uses_device(how.which))
    state().devices[this_thread().device].context.store(true, std::memory_order_relaxed);
  if (this_thread().in_host_function)
    complain(std::string(name_of(how.which)) + " was called by a host function of a stream");
  planned plan = next_fault(how.which);
  if (plan.loses != hipSuccess && plan.loses_device != no_device) {
    lose(plan.loses_device, plan.loses);
  } else if (plan.loses != hipSuccess && how.device != no_device) {
    lose(how.device, plan.loses);
    plan.code = plan.loses;
    plan.works = false;
  }
  return plan;
}

hipError_t admit(const entry& how) {
  double_state& all = state();
  const int count = all.device_count.load(std::memory_order_relaxed);
  if (count == 0 || (count < 0 && how.which != call::hipGetDeviceCount)) return hipErrorNoDevice;
  if (const hipError_t lost = lost_code(how.device); lost != hipSuccess) return lost;
  if (how.disturbs) return disturb(how.which);
  return hipSuccess;
}

hipError_t lost_code(int device) noexcept {
  if (device == no_device) return hipSuccess;
  return static_cast<hipError_t>(state().devices[device].lost.load(std::memory_order_relaxed));
}

hipError_t remember(hipError_t code) noexcept {
  if (code != hipSuccess) this_thread().last = code;
  return code;
}

hipError_t refuse(call which, hipError_t code) {
  static_cast<void>(next_fault(which));  // it counts
  return remember(code);
}

live_objects live() noexcept {
  const double_state& all = state();
  return {all.live_streams.load(), all.live_events.load(), all.live_device_blocks.load(),
          all.live_pinned_blocks.load(), all.live_graphs.load()};
}

void lose(int device, hipError_t code) {
  state().devices[device].lost.store(code, std::memory_order_relaxed);
}
void set_no_kernels(int device, hipError_t code) {
  state().devices[device].no_code.store(code, std::memory_order_relaxed);
}
void set_device_count(int count) {
  state().device_count.store(count, std::memory_order_relaxed);
}
void set_compute_units(int units) noexcept {
  state().compute_units.store(units, std::memory_order_relaxed);
}

void set_priority_range(int least, int greatest) {
  state().least_priority.store(least, std::memory_order_relaxed);
  state().greatest_priority.store(greatest, std::memory_order_relaxed);
}
void set_lost_selection(lost_selection how) noexcept {
  state().selection.store(how, std::memory_order_relaxed);
}
void set_pinned_elsewhere(bool elsewhere) noexcept {
  state().pinned_elsewhere.store(elsewhere, std::memory_order_relaxed);
}
void set_older_runtime(bool older) noexcept {
  state().older.store(older, std::memory_order_relaxed);
}

namespace {

template <class T>
void take_down(pile<T>& of) {
  for (T* each = of.take(); each != nullptr;) {
    T* const below = each->below;
    delete each;
    each = below;
  }
}

}  // namespace

void reset() {
  double_state& all = state();
  clear_faults();
  end_streams();
  take_down(all.streams);
  take_down(all.events);
  take_down(all.recordings);
  take_down(all.captures);
  free_blocks();
  for (device_state& each : all.devices) {
    each.lost.store(0);
    each.no_code.store(0);
    each.context.store(false);
    each.null_stream = nullptr;
    each.null_latest = nullptr;
  }
  all.device_count.store(2);
  all.least_priority.store(1);
  all.greatest_priority.store(-1);
  all.compute_units.store(3);
  all.selection.store(lost_selection::answers);
  all.pinned_elsewhere.store(false);
  all.older.store(false);
  set_waves({});
  all.active_captures.store(0);
  all.stream_numbers.store(0);
  all.live_streams.store(0);
  all.live_events.store(0);
  all.live_device_blocks.store(0);
  all.live_pinned_blocks.store(0);
  all.live_graphs.store(0);
  this_thread() = {};
  clear_complaints();
}

}  // namespace cairn::tests::hip
