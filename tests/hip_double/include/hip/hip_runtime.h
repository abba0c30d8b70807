// The HIP runtime as its double in tests/ has it: the names that cairn uses, with HIP's values and
// signatures, for sources compiled as plain C++. Put before HIP's own header in the search path.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)

struct dim3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
  constexpr dim3(uint32_t in_x = 1, uint32_t in_y = 1, uint32_t in_z = 1)  // as HIP's: implicit
      : x(in_x), y(in_y), z(in_z) {}
};

// Where a kernel is: set by the thread that is a lane.
extern constinit thread_local dim3 gridDim;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 blockIdx;
extern constinit thread_local dim3 threadIdx;

enum [[nodiscard]] hipError_t{
#define CAIRN_HIP_ERROR(name, value) name = (value),
#include <hip/double_values.inc>
    hipErrorInvalidResourceHandle = hipErrorInvalidHandle,
};
enum hipMemcpyKind {
#define CAIRN_HIP_COPY_KIND(name, value) name = (value),
#include <hip/double_values.inc>
};
enum hipStreamCaptureMode {
#define CAIRN_HIP_CAPTURE_MODE(name, value) name = (value),
#include <hip/double_values.inc>
};
enum hipStreamCaptureStatus {
#define CAIRN_HIP_CAPTURE_STATUS(name, value) name = (value),
#include <hip/double_values.inc>
};
enum hipDeviceAttribute_t {
#define CAIRN_HIP_ATTRIBUTE(name, value) name = (value),
#include <hip/double_values.inc>
};
#define CAIRN_HIP_FLAG(name, value) inline constexpr unsigned name = value;
#include <hip/double_values.inc>

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipGraph* hipGraph_t;
typedef void (*hipHostFn_t)(void* context);

/// Of a kernel on the current device. The double knows of the threads only.
struct hipFuncAttributes {
  int maxThreadsPerBlock;
};

extern "C" {
#define CAIRN_HIP_CALL(result, name, parameters) result name parameters;
#include <hip/double_calls.inc>
}

#include <hip/double_device.hpp>
