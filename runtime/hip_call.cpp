// What errors mean, and how a thread enters and leaves a device.
#include "runtime/hip_call.hpp"

namespace cairn::detail {

status status_of(hipError_t code) noexcept {
  if (code >= hipErrorStreamCaptureUnsupported && code <= hipErrorStreamCaptureWrongThread)
    return status::busy;
  if (code == error_not_permitted) return status::failed;
  switch (code) {
    case hipSuccess:
      return status::ok;
    case hipErrorOutOfMemory:
      return status::limit;
    case hipErrorNotSupported:
      return status::unsupported;
    case hipErrorInvalidValue:
    case hipErrorInvalidConfiguration:
    case hipErrorInvalidDeviceFunction:
    case hipErrorInvalidDevice:
    case hipErrorNoBinaryForGpu:
    case hipErrorInvalidHandle:
    case hipErrorLaunchOutOfResources:
    case hipErrorOperatingSystem:
      return status::failed;
    default:
      return status::device_lost;
  }
}

std::string describe(hipError_t code) {
  const std::string name = hipGetErrorName(code);
  const std::string text = hipGetErrorString(code);
  return name == text ? name : name + ": " + text;
}

std::string hip_health::cause() const {
  if (stage_.load_acquire() != gone) return {};  // (2) acquire: pairs with (1)
  return std::string(call_) + " answered " + describe(code_);
}

event_state state_of(hipEvent_t what, hip_health& health) noexcept {
  const hipError_t code = hipEventQuery(what);
  if (code == hipSuccess) return event_state::fired;
  if (code == hipErrorNotReady || status_of(code) == status::busy) return event_state::pending;
  health.lose("hipEventQuery", code);
  return event_state::failed;
}

hip_scope::hip_scope(int ordinal, hip_health& health) noexcept
    : health_(health), entered_(enter(ordinal)) {}

status hip_scope::enter(int ordinal) noexcept {
  if (health_.lost()) return status::device_lost;
  if (const status code = judge("hipGetDevice", hipGetDevice(&before_)); code != status::ok)
    return code;
  if (before_ != ordinal) {
    changed_ = true;  // a runtime may make a device current and answer that device's error
    if (const status code = judge("hipSetDevice", hipSetDevice(ordinal)); code != status::ok)
      return code;
  }
  const status code =
      judge("hipThreadExchangeStreamCaptureMode", hipThreadExchangeStreamCaptureMode(&mode_));
  relaxed_ = code == status::ok;
  return code;
}

// What the caller's own device answers says nothing about this one.
hip_scope::~hip_scope() {
  if (relaxed_)
    static_cast<void>(health_.judge("hipThreadExchangeStreamCaptureMode",
                                    hipThreadExchangeStreamCaptureMode(&mode_)));
  if (changed_) static_cast<void>(hipSetDevice(before_));
}

}  // namespace cairn::detail
