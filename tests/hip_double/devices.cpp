// Devices of the double, and what its errors are called.
#include <algorithm>

#include "tests/hip_double/state.hpp"

using namespace cairn::tests::hip;

namespace {

bool exists(int ordinal) noexcept {
  return ordinal >= 0 && ordinal < state().device_count.load(std::memory_order_relaxed);
}

}  // namespace

extern "C" {

const char* hipGetErrorName(hipError_t code) {
  switch (code) {
#define CAIRN_HIP_ERROR(name, value) \
  case name:                         \
    return #name;
#include <hip/double_values.inc>
  }
  return "hipErrorUnknown";
}

const char* hipGetErrorString(hipError_t code) {
  return code == hipErrorNoDevice ? "no ROCm-capable device is detected"
                                  : hipGetErrorName(code) + 3;
}

hipError_t hipGetLastError(void) {
  static_cast<void>(next_fault(call::hipGetLastError));
  return std::exchange(this_thread().last, hipSuccess);
}

hipError_t hipPeekAtLastError(void) {
  return this_thread().last;
}

hipError_t hipGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return answer({call::hipGetDeviceCount, no_device}, [&] {
    if (count == nullptr) return hipErrorInvalidValue;
    *count = std::max(0, state().device_count.load(std::memory_order_relaxed));
    return hipSuccess;
  });
}

hipError_t hipGetDevice(int* ordinal) {
  return answer({call::hipGetDevice, no_device}, [&] {
    if (ordinal == nullptr) return hipErrorInvalidValue;
    *ordinal = this_thread().device;
    return hipSuccess;
  });
}

hipError_t hipSetDevice(int ordinal) {
  return answer({call::hipSetDevice, no_device}, [&]() -> hipError_t {
    if (!exists(ordinal)) return hipErrorInvalidDevice;
    const hipError_t lost = lost_code(ordinal);
    const lost_selection how = state().selection.load(std::memory_order_relaxed);
    if (lost != hipSuccess && how == lost_selection::refuses) return lost;
    this_thread().device = ordinal;
    return how == lost_selection::selects ? hipSuccess : lost;
  });
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int ordinal) {
  if (!exists(ordinal)) return refuse(call::hipDeviceGetAttribute, hipErrorInvalidDevice);
  return answer({call::hipDeviceGetAttribute, ordinal}, [&] {
    if (value == nullptr || which != hipDeviceAttributeMultiprocessorCount)
      return hipErrorInvalidValue;
    *value = state().compute_units.load(std::memory_order_relaxed);
    return hipSuccess;
  });
}

hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return answer({call::hipDeviceGetStreamPriorityRange, this_thread().device}, [&] {
    if (least != nullptr) *least = state().least_priority.load(std::memory_order_relaxed);
    if (greatest != nullptr) *greatest = state().greatest_priority.load(std::memory_order_relaxed);
    return hipSuccess;
  });
}

}  // extern "C"
