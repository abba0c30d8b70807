// Streams of the double: a thread for each, which takes its work in order. What is queued also runs
// when the stream has been destroyed.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "tests/hip_double/state.hpp"

using namespace cairn::tests::hip;

namespace cairn::tests::hip {
namespace {

bool lost(int device) noexcept {
  return lost_code(device) != hipSuccess;
}

void push(ihipStream_t& on, work* what) {
  const std::lock_guard lock(on.producers);
  on.given.fetch_add(1, std::memory_order_relaxed);
  on.tail->next.store(what, std::memory_order_release);
  on.tail = what;
  on.pushed.add_one();
}

work* pop(ihipStream_t& of) {
  for (;;) {
    const std::uint32_t seen = of.pushed.get();
    if (work* const next = of.head->next.load(std::memory_order_acquire); next != nullptr) {
      delete of.head;
      of.head = next;
      return next;
    }
    of.pushed.sleep_while(seen);
  }
}

// A lost device runs nothing: its recordings pass, and whoever asks is told that it is lost.
void run(ihipStream_t& on) {
  for (std::uint64_t turn = 0;; ++turn) {
    work& next = *pop(on);
    while (on.held.get() != 0 && !lost(on.device)) on.held.sleep_while(1);
    delay(on.number, turn);
    if (next.awaits != nullptr) await(next.awaits, on.device);
    if (next.run && !lost(on.device)) next.run();
    next.run = nullptr;
    if (next.fires != nullptr) come_to(next.fires);
    on.done.fetch_add(1, std::memory_order_release);  // pairs with await_device
    if (next.last) break;
  }
  delete on.head;
  on.head = nullptr;
  state().threads.fetch_sub(1, std::memory_order_release);  // pairs with end_streams
}

work* marker(recording* awaits, recording* fires) {
  auto* const made = new work;
  made->awaits = awaits;
  made->fires = fires;
  return made;
}

}  // namespace

bool alive(hipStream_t which) noexcept {
  return which->mark.load(std::memory_order_relaxed) == alive_mark;
}

hipStream_t make_stream(int device, unsigned flags, int priority) {
  double_state& all = state();
  auto* const made = new ihipStream_t;
  made->device = device;
  made->flags = flags;
  made->priority = priority;
  made->number = all.stream_numbers.fetch_add(1, std::memory_order_relaxed);
  made->head = made->tail = new work;
  all.threads.fetch_add(1, std::memory_order_relaxed);
  std::thread([made] {
    // Reports of tools name the device and the stream.
    const std::string name =
        "hip" + std::to_string(made->device) + "." + std::to_string(made->number);
    pthread_setname_np(pthread_self(), name.c_str());
    run(*made);
  }).detach();
  all.streams.push(made);
  return made;
}

hipStream_t resolve(hipStream_t which) {
  if (which != nullptr) return which;
  device_state& on = state().devices[this_thread().device];
  const std::lock_guard lock(on.legacy);
  if (on.null_stream == nullptr)
    on.null_stream = make_stream(this_thread().device, hipStreamDefault, 0);
  return on.null_stream;
}

// The null stream waits for all that blocking streams of its device hold, and they for it.
void enqueue(hipStream_t on, work* what) {
  if ((on->flags & hipStreamNonBlocking) != 0) return push(*on, what);
  device_state& device = state().devices[on->device];
  const std::lock_guard lock(device.legacy);
  if (on != device.null_stream) {
    if (device.null_latest != nullptr) push(*on, marker(device.null_latest, nullptr));
    return push(*on, what);
  }
  for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below) {
    if (each == on || each->device != on->device || (each->flags & hipStreamNonBlocking) != 0 ||
        !alive(each))
      continue;
    recording* const so_far = new_recording(each);
    push(*each, marker(nullptr, so_far));
    push(*on, marker(so_far, nullptr));
  }
  push(*on, what);
  device.null_latest = new_recording(on);
  push(*on, marker(nullptr, device.null_latest));
}

recording* new_recording(hipStream_t on) {
  auto* const made = new recording;
  made->on = on;
  state().recordings.push(made);
  return made;
}

void fire(recording* what) noexcept {
  what->at_ns.store(
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1),
      std::memory_order_relaxed);
  what->state.set(recording::fired);
}

// Sequentially consistent, as in release_events: the stream sees that the recording is not held any
// more, or whoever releases sees that the stream has passed; or both do.
void come_to(recording* what) noexcept {
  what->passed.store(true);
  if (!what->held.load()) fire(what);
}

void await(const recording* what, int device) noexcept {
  auto& state = const_cast<word&>(what->state);
  while (state.get() == recording::pending && !lost(device)) state.sleep_while(recording::pending);
}

void release_events() {
  for (recording* each = state().recordings.top(); each != nullptr; each = each->below) {
    if (!each->held.load()) continue;
    each->held.store(false);
    if (each->passed.load()) fire(each);
  }
}

void hold(hipStream_t which) noexcept {
  which->held.set(1);
}
void release(hipStream_t which) noexcept {
  which->held.set(0);
}

std::uint64_t queued(hipStream_t which) noexcept {
  return which->given.load(std::memory_order_relaxed) - which->done.load(std::memory_order_relaxed);
}

void drain(hipStream_t which) {
  recording* const end = new_recording(which);
  push(*which, marker(nullptr, end));
  while (end->state.get() == recording::pending) end->state.sleep_while(recording::pending);
}

namespace {

/// A test holds up a stream or an event: what waits for it waits for the test.
bool anything_held() noexcept {
  for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below)
    if (each->held.get() != 0) return true;
  for (recording* each = state().recordings.top(); each != nullptr; each = each->below)
    if (each->held.load() && each->state.get() == recording::pending) return true;
  return false;
}

}  // namespace

bool await_device(int device) {
  constexpr auto patience = std::chrono::seconds(5);  // with streams that wait for others
  for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below) {
    if (each->device != device) continue;
    const std::uint64_t given = each->given.load(std::memory_order_relaxed);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (each->done.load(std::memory_order_acquire) < given && !lost(device)) {
      if (each->held.get() != 0) return false;
      if (std::chrono::steady_clock::now() > until && anything_held()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

std::vector<stream_facts> streams() {
  std::vector<stream_facts> found;
  for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below)
    if (alive(each)) found.push_back({each, each->device, each->flags, each->priority});
  std::reverse(found.begin(), found.end());
  return found;
}

void end_streams() {
  double_state& all = state();
  for (ihipStream_t* each = all.streams.top(); each != nullptr; each = each->below) {
    each->held.set(0);
    if (each->mark.exchange(dead_mark, std::memory_order_relaxed) != alive_mark) continue;
    auto* const end = new work;
    end->last = true;
    push(*each, end);
  }
  do {
    release_events();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } while (all.threads.load(std::memory_order_acquire) != 0);
}

}  // namespace cairn::tests::hip

// ---------------------------------------------------------------------------------------
// Entry points

extern "C" {

hipError_t hipStreamCreateWithPriority(hipStream_t* made, unsigned flags, int priority) {
  const int device = this_thread().device;
  return answer({call::hipStreamCreateWithPriority, device}, [&] {
    if (made == nullptr || (flags & ~hipStreamNonBlocking) != 0) return hipErrorInvalidValue;
    double_state& all = state();
    const int kept = std::clamp(priority, all.greatest_priority.load(), all.least_priority.load());
    *made = make_stream(device, flags, kept);
    all.live_streams.fetch_add(1, std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipStreamDestroy(hipStream_t which) {
  if (which == nullptr) return refuse(call::hipStreamDestroy, hipErrorInvalidHandle);
  if (!alive(which)) {
    complain("hipStreamDestroy: the stream was destroyed already");
    return refuse(call::hipStreamDestroy, hipErrorInvalidHandle);
  }
  return answer({.which = call::hipStreamDestroy, .device = which->device, .releases = true}, [&] {
    auto* const end = new work;
    end->last = true;
    if ((which->flags & hipStreamNonBlocking) == 0) {
      device_state& device = state().devices[which->device];
      const std::lock_guard lock(device.legacy);
      recording* const rest = new_recording(which);
      push(*which, marker(device.null_latest, rest));
      if (device.null_stream != nullptr) push(*device.null_stream, marker(rest, nullptr));
    }
    which->mark.store(dead_mark, std::memory_order_relaxed);
    push(*which, end);
    state().live_streams.fetch_sub(1, std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t which) {
  hipStream_t const on = resolve(which);
  if (!alive(on)) {
    complain("hipStreamSynchronize: the stream was destroyed");
    return refuse(call::hipStreamSynchronize, hipErrorInvalidHandle);
  }
  const auto work = [&]() -> hipError_t {
    if (capture* const in = on->in.load(); in != nullptr) {
      in->invalid.store(true);
      return hipErrorStreamCaptureUnsupported;
    }
    recording* const end = new_recording(on);
    enqueue(on, marker(nullptr, end));
    await(end, on->device);
    return lost_code(on->device);
  };
  return answer({.which = call::hipStreamSynchronize, .device = on->device, .disturbs = true},
                work);
}

hipError_t hipLaunchHostFunc(hipStream_t which, hipHostFn_t function, void* context) {
  hipStream_t const on = resolve(which);
  if (!alive(on)) return refuse(call::hipLaunchHostFunc, hipErrorInvalidHandle);
  return answer({call::hipLaunchHostFunc, on->device}, [&] {
    if (function == nullptr) return hipErrorInvalidValue;
    if (which == nullptr)
      if (const hipError_t code = disturb_implicitly(on->device); code != hipSuccess) return code;
    if (capture* const in = on->in.load(); in != nullptr) return capture_work(*in, *on);
    auto* const made = new work;
    made->run = [function, context] {
      this_thread().in_host_function = true;
      function(context);
      this_thread().in_host_function = false;
    };
    enqueue(on, made);
    return hipSuccess;
  });
}

hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t which) {
  hipStream_t const on = resolve(which);
  if (!alive(on)) return refuse(call::hipMemcpyAsync, hipErrorInvalidHandle);
  return answer({call::hipMemcpyAsync, on->device}, [&] {
    if (on->device != this_thread().device) return hipErrorInvalidHandle;
    if (bytes == 0) return hipSuccess;
    if (to == nullptr || from == nullptr || !fits(kind, to, from)) return hipErrorInvalidValue;
    if (which == nullptr)
      if (const hipError_t code = disturb_implicitly(on->device); code != hipSuccess) return code;
    if (capture* const in = on->in.load(); in != nullptr) return capture_work(*in, *on);
    auto* const made = new work;
    made->run = [to, from, bytes, device = on->device] {
      // Both ends are the double's memory: a copy that is asynchronous reads pinned memory only.
      if (!reachable(device, to, bytes) || !reachable(device, from, bytes)) {
        complain("hipMemcpyAsync touches memory that is not the device's any more, or never was");
        lose(device, hipErrorIllegalAddress);
        return;
      }
      std::memcpy(to, from, bytes);
    };
    enqueue(on, made);
    return hipSuccess;
  });
}

}  // extern "C"
