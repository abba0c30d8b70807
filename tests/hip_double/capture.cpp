// Captures of the double: which calls a capture forbids to whom, and what they do to it.
#include "tests/hip_double/state.hpp"

using namespace cairn::tests::hip;

namespace cairn::tests::hip {
namespace {

bool any_capture() noexcept {
  return state().active_captures.load(std::memory_order_relaxed) != 0;
}

/// Whether a call of this thread may harm that capture.
bool harms(const capture& which) noexcept {
  const hipStreamCaptureMode mine = this_thread().mode;
  if (!which.active.load() || which.mode == hipStreamCaptureModeRelaxed ||
      mine == hipStreamCaptureModeRelaxed)
    return false;
  if (which.begun_by == std::this_thread::get_id()) return true;
  return which.mode == hipStreamCaptureModeGlobal && mine == hipStreamCaptureModeGlobal;
}

}  // namespace

hipError_t disturb(call which) noexcept {
  if (!any_capture()) return hipSuccess;
  hipError_t code = hipSuccess;
  if (which == call::hipEventQuery && state().older.load(std::memory_order_relaxed))
    code = hipErrorStreamCaptureUnsupported;
  for (capture* each = state().captures.top(); each != nullptr; each = each->below) {
    if (!harms(*each)) continue;
    each->invalid.store(true);
    code = hipErrorStreamCaptureUnsupported;
  }
  return code;
}

hipError_t disturb_implicitly(int device) noexcept {
  if (!any_capture()) return hipSuccess;
  for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below) {
    capture* const in = each->in.load();
    if (in == nullptr || each->device != device || (each->flags & hipStreamNonBlocking) != 0)
      continue;
    in->invalid.store(true);
    return hipErrorStreamCaptureImplicit;
  }
  return hipSuccess;
}

hipError_t capture_work(capture& in, ihipStream_t& on) noexcept {
  if (in.invalid.load()) return hipErrorStreamCaptureInvalidated;
  in.nodes.fetch_add(1, std::memory_order_relaxed);
  if (&on != in.origin) on.unjoined.store(true);
  return hipSuccess;
}

}  // namespace cairn::tests::hip

extern "C" {

hipError_t hipStreamBeginCapture(hipStream_t which, hipStreamCaptureMode mode) {
  if (which == nullptr)
    return refuse(call::hipStreamBeginCapture, hipErrorStreamCaptureUnsupported);
  if (!alive(which)) return refuse(call::hipStreamBeginCapture, hipErrorInvalidHandle);
  return answer({call::hipStreamBeginCapture, which->device}, [&] {
    if (which->in.load() != nullptr) return hipErrorIllegalState;
    auto* const made = new capture;
    made->mode = mode;
    made->begun_by = std::this_thread::get_id();
    made->origin = which;
    state().captures.push(made);
    state().active_captures.fetch_add(1, std::memory_order_relaxed);
    which->in.store(made);
    return hipSuccess;
  });
}

hipError_t hipStreamEndCapture(hipStream_t which, hipGraph_t* made) {
  if (which == nullptr || !alive(which))
    return refuse(call::hipStreamEndCapture, hipErrorInvalidHandle);
  return answer({call::hipStreamEndCapture, which->device}, [&]() -> hipError_t {
    if (made == nullptr) return hipErrorInvalidValue;
    *made = nullptr;
    capture* const in = which->in.load();
    if (in == nullptr) return hipErrorIllegalState;
    if (in->origin != which) return hipErrorStreamCaptureUnmatched;
    if (in->mode != hipStreamCaptureModeRelaxed && in->begun_by != std::this_thread::get_id())
      return hipErrorStreamCaptureWrongThread;
    bool joined = true;
    for (ihipStream_t* each = state().streams.top(); each != nullptr; each = each->below) {
      if (each->in.load() != in) continue;
      each->in.store(nullptr);
      if (each->unjoined.exchange(false)) joined = false;
    }
    in->active.store(false);
    state().active_captures.fetch_sub(1, std::memory_order_relaxed);
    if (in->invalid.load()) return hipErrorStreamCaptureInvalidated;
    if (!joined) return hipErrorStreamCaptureUnjoined;
    *made = new ihipGraph{in->nodes.load()};
    state().live_graphs.fetch_add(1, std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipGraphDestroy(hipGraph_t which) {
  return answer({call::hipGraphDestroy, no_device}, [&] {
    if (which == nullptr) return hipErrorInvalidValue;
    delete which;
    state().live_graphs.fetch_sub(1, std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipStreamIsCapturing(hipStream_t which, hipStreamCaptureStatus* status) {
  hipStream_t const on = resolve(which);
  if (!alive(on)) {
    complain("hipStreamIsCapturing: the stream was destroyed");
    return refuse(call::hipStreamIsCapturing, hipErrorInvalidHandle);
  }
  return answer({call::hipStreamIsCapturing, on->device}, [&] {
    if (status == nullptr) return hipErrorInvalidValue;
    if (which == nullptr)
      if (const hipError_t code = disturb_implicitly(on->device); code != hipSuccess) return code;
    const capture* const in = on->in.load();
    *status = in == nullptr        ? hipStreamCaptureStatusNone
              : in->invalid.load() ? hipStreamCaptureStatusInvalidated
                                   : hipStreamCaptureStatusActive;
    return hipSuccess;
  });
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return answer({call::hipThreadExchangeStreamCaptureMode, no_device}, [&] {
    if (mode == nullptr) return hipErrorInvalidValue;
    std::swap(*mode, this_thread().mode);
    return hipSuccess;
  });
}

}  // extern "C"
