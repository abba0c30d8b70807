// Events of the double. A recording moves the event; waits and queries refer to the recording that
// is the latest when they are called.
#include "tests/hip_double/state.hpp"

using namespace cairn::tests::hip;

namespace cairn::tests::hip {

bool alive(hipEvent_t which) noexcept {
  return which->mark.load(std::memory_order_relaxed) == alive_mark;
}

std::int64_t timed_events() noexcept {
  std::int64_t found = 0;
  for (ihipEvent_t* each = state().events.top(); each != nullptr; each = each->below)
    if (alive(each) && (each->flags & hipEventDisableTiming) == 0) ++found;
  return found;
}

namespace {

bool usable(call which, hipEvent_t event) {
  if (event == nullptr) return false;
  if (alive(event)) return true;
  complain(std::string(name_of(which)) + ": the event was destroyed");
  return false;
}

}  // namespace
}  // namespace cairn::tests::hip

extern "C" {

hipError_t hipEventCreateWithFlags(hipEvent_t* made, unsigned flags) {
  const int device = this_thread().device;
  return answer({call::hipEventCreateWithFlags, device}, [&] {
    if (made == nullptr || (flags & ~hipEventDisableTiming) != 0) return hipErrorInvalidValue;
    auto* const one = new ihipEvent_t;
    one->device = device;
    one->flags = flags;
    state().events.push(one);
    state().live_events.fetch_add(1, std::memory_order_relaxed);
    *made = one;
    return hipSuccess;
  });
}

// What still waits for its recordings, waits for the recordings.
hipError_t hipEventDestroy(hipEvent_t which) {
  if (!usable(call::hipEventDestroy, which))
    return refuse(call::hipEventDestroy, hipErrorInvalidHandle);
  return answer({.which = call::hipEventDestroy, .device = which->device, .releases = true}, [&] {
    which->mark.store(dead_mark, std::memory_order_relaxed);
    state().live_events.fetch_sub(1, std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipEventRecord(hipEvent_t what, hipStream_t which) {
  hipStream_t const on = resolve(which);
  if (!usable(call::hipEventRecord, what) || !alive(on))
    return refuse(call::hipEventRecord, hipErrorInvalidHandle);
  return answer({call::hipEventRecord, on->device}, [&] {
    if (what->device != on->device || on->device != this_thread().device)
      return hipErrorInvalidHandle;
    if (which == nullptr)
      if (const hipError_t code = disturb_implicitly(on->device); code != hipSuccess) return code;
    recording* const made = new_recording(on);
    if (capture* const in = on->in.load(); in != nullptr) {
      if (in->invalid.load()) return hipErrorStreamCaptureInvalidated;
      made->in = in;
    } else {
      if (next_event_held()) made->held.store(true);
      auto* const mark = new work;
      mark->fires = made;
      enqueue(on, mark);
    }
    what->latest.store(made, std::memory_order_release);  // with what `made` says of itself
    return hipSuccess;
  });
}

hipError_t hipEventQuery(hipEvent_t which) {
  if (!usable(call::hipEventQuery, which))
    return refuse(call::hipEventQuery, hipErrorInvalidHandle);
  return answer({.which = call::hipEventQuery, .device = which->device, .disturbs = true}, [&] {
    const recording* const latest = which->latest.load(std::memory_order_acquire);
    if (latest == nullptr) return hipSuccess;
    // AMD's runtime looks at the recording's stream, in whatever mode the thread is: at a capture
    // that runs there now, whenever the recording was made.
    capture* const in = latest->in != nullptr ? latest->in : latest->on->in.load();
    if (in != nullptr) {
      in->invalid.store(true);
      return hipErrorCapturedEvent;
    }
    if (latest->state.get() != recording::fired) return hipErrorNotReady;
    // The kernel before it may have lost the device since this call began.
    return lost_code(latest->on->device);
  });
}

hipError_t hipEventElapsedTime(float* ms, hipEvent_t begin, hipEvent_t end) {
  if (!usable(call::hipEventElapsedTime, begin) || !usable(call::hipEventElapsedTime, end))
    return refuse(call::hipEventElapsedTime, hipErrorInvalidHandle);
  return answer({call::hipEventElapsedTime, begin->device}, [&] {
    if (ms == nullptr) return hipErrorInvalidValue;
    if (((begin->flags | end->flags) & hipEventDisableTiming) != 0) return hipErrorInvalidHandle;
    const recording* const from = begin->latest.load(std::memory_order_acquire);
    const recording* const to = end->latest.load(std::memory_order_acquire);
    if (from == nullptr || to == nullptr) return hipErrorInvalidHandle;
    if (from->state.get() == recording::pending || to->state.get() == recording::pending)
      return hipErrorNotReady;
    *ms = static_cast<float>(to->at_ns.load() - from->at_ns.load()) / 1e6F;
    return hipSuccess;
  });
}

hipError_t hipStreamWaitEvent(hipStream_t which, hipEvent_t what, unsigned flags) {
  hipStream_t const on = resolve(which);
  if (!usable(call::hipStreamWaitEvent, what) || !alive(on))
    return refuse(call::hipStreamWaitEvent, hipErrorInvalidHandle);
  return answer({call::hipStreamWaitEvent, on->device}, [&] {
    if (flags != 0) return hipErrorInvalidValue;
    if (on->device != this_thread().device) return hipErrorInvalidHandle;
    recording* const latest = what->latest.load(std::memory_order_acquire);
    capture* const in = on->in.load();
    if (in != nullptr) {
      if (in->invalid.load()) return hipErrorStreamCaptureInvalidated;
      if (latest == nullptr || latest->in != in) {  // from outside the graph
        in->invalid.store(true);
        return hipErrorStreamCaptureIsolation;
      }
      if (on == in->origin) latest->on->unjoined.store(false);
      return hipSuccess;
    }
    if (latest == nullptr) return hipSuccess;
    if (latest->in != nullptr) {
      if (!latest->in->active.load()) return hipErrorCapturedEvent;
      on->in.store(latest->in);  // the stream becomes part of the capture
      on->unjoined.store(true);
      return hipSuccess;
    }
    auto* const wait = new work;
    wait->awaits = latest;
    enqueue(on, wait);
    return hipSuccess;
  });
}

}  // extern "C"
