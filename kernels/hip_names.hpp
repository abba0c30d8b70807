// The names of the GPU runtime that cairn uses. On AMD they are HIP's own; on NVIDIA they stand
// for CUDA's, one to one, because HIP's headers for NVIDIA are tied to releases of CUDA. Knows
// nothing of cairn.
#pragma once

#if !defined(CAIRN_HIP_NVIDIA)

#include <hip/hip_runtime.h>

#define CAIRN_KERNEL_ARGUMENT const

#else

#include <cuda_runtime.h>

#include <cstddef>

// A parameter that is read where it lies, in constant memory: indexing one by value would copy it
// to each thread's own memory first.
#if defined(__CUDACC__)
#define CAIRN_KERNEL_ARGUMENT const __grid_constant__
#else
#define CAIRN_KERNEL_ARGUMENT const
#endif

// In cairn's namespace: an engine may use HIP's own headers beside this library.
namespace cairn {

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipDeviceAttribute_t = cudaDeviceAttr;
using hipMemcpyKind = cudaMemcpyKind;
using hipStreamCaptureMode = cudaStreamCaptureMode;
using hipStreamCaptureStatus = cudaStreamCaptureStatus;
using hipHostFn_t = cudaHostFn_t;
using hipFuncAttributes = cudaFuncAttributes;

inline constexpr hipError_t hipSuccess = cudaSuccess;
inline constexpr hipError_t hipErrorInvalidValue = cudaErrorInvalidValue;
inline constexpr hipError_t hipErrorOutOfMemory = cudaErrorMemoryAllocation;
inline constexpr hipError_t hipErrorInvalidConfiguration = cudaErrorInvalidConfiguration;
inline constexpr hipError_t hipErrorInvalidDeviceFunction = cudaErrorInvalidDeviceFunction;
inline constexpr hipError_t hipErrorNoDevice = cudaErrorNoDevice;
inline constexpr hipError_t hipErrorInvalidDevice = cudaErrorInvalidDevice;
inline constexpr hipError_t hipErrorOperatingSystem = cudaErrorOperatingSystem;
inline constexpr hipError_t hipErrorNoBinaryForGpu = cudaErrorNoKernelImageForDevice;
inline constexpr hipError_t hipErrorInvalidHandle = cudaErrorInvalidResourceHandle;
inline constexpr hipError_t hipErrorNotReady = cudaErrorNotReady;
inline constexpr hipError_t hipErrorIllegalAddress = cudaErrorIllegalAddress;
inline constexpr hipError_t hipErrorLaunchOutOfResources = cudaErrorLaunchOutOfResources;
inline constexpr hipError_t hipErrorContextIsDestroyed = cudaErrorContextIsDestroyed;
inline constexpr hipError_t hipErrorLaunchFailure = cudaErrorLaunchFailure;
inline constexpr hipError_t hipErrorNotSupported = cudaErrorNotSupported;
inline constexpr hipError_t hipErrorStreamCaptureUnsupported = cudaErrorStreamCaptureUnsupported;
inline constexpr hipError_t hipErrorCapturedEvent = cudaErrorCapturedEvent;
inline constexpr hipError_t hipErrorStreamCaptureWrongThread = cudaErrorStreamCaptureWrongThread;

inline constexpr unsigned hipStreamNonBlocking = cudaStreamNonBlocking;
inline constexpr unsigned hipEventDisableTiming = cudaEventDisableTiming;
inline constexpr unsigned hipHostMallocPortable = cudaHostAllocPortable;
inline constexpr unsigned hipHostMallocMapped = cudaHostAllocMapped;
inline constexpr hipMemcpyKind hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
inline constexpr hipMemcpyKind hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
inline constexpr hipMemcpyKind hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeMultiprocessorCount =
    cudaDevAttrMultiProcessorCount;
inline constexpr hipStreamCaptureMode hipStreamCaptureModeRelaxed = cudaStreamCaptureModeRelaxed;
inline constexpr hipStreamCaptureStatus hipStreamCaptureStatusNone = cudaStreamCaptureStatusNone;

// Errors
inline const char* hipGetErrorString(hipError_t code) {
  return cudaGetErrorString(code);
}
inline const char* hipGetErrorName(hipError_t code) {
  return cudaGetErrorName(code);
}
inline hipError_t hipGetLastError() {
  return cudaGetLastError();
}

inline hipError_t hipPeekAtLastError() {
  return cudaPeekAtLastError();
}

// Devices
inline hipError_t hipGetDeviceCount(int* count) {
  return cudaGetDeviceCount(count);
}
inline hipError_t hipGetDevice(int* ordinal) {
  return cudaGetDevice(ordinal);
}
inline hipError_t hipSetDevice(int ordinal) {
  return cudaSetDevice(ordinal);
}
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int ordinal) {
  return cudaDeviceGetAttribute(value, which, ordinal);
}
inline hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return cudaDeviceGetStreamPriorityRange(least, greatest);
}

// Memory
inline hipError_t hipMalloc(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes);
}
inline hipError_t hipFree(void* memory) {
  return cudaFree(memory);
}
inline hipError_t hipHostMalloc(void** memory, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(memory, bytes, flags);
}
inline hipError_t hipHostFree(void* memory) {
  return cudaFreeHost(memory);
}
inline hipError_t hipHostGetDevicePointer(void** seen, void* memory, unsigned flags) {
  return cudaHostGetDevicePointer(seen, memory, flags);
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 hipStream_t on) {
  return cudaMemcpyAsync(to, from, bytes, kind, on);
}

// Streams
inline hipError_t hipStreamCreateWithPriority(hipStream_t* made, unsigned flags, int priority) {
  return cudaStreamCreateWithPriority(made, flags, priority);
}
inline hipError_t hipStreamDestroy(hipStream_t which) {
  return cudaStreamDestroy(which);
}
inline hipError_t hipStreamSynchronize(hipStream_t which) {
  return cudaStreamSynchronize(which);
}
inline hipError_t hipStreamWaitEvent(hipStream_t on, hipEvent_t what, unsigned flags) {
  return cudaStreamWaitEvent(on, what, flags);
}
inline hipError_t hipStreamIsCapturing(hipStream_t which, hipStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(which, status);
}
inline hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return cudaThreadExchangeStreamCaptureMode(mode);
}
inline hipError_t hipLaunchHostFunc(hipStream_t on, hipHostFn_t function, void* context) {
  return cudaLaunchHostFunc(on, function, context);
}

// Events
inline hipError_t hipEventCreateWithFlags(hipEvent_t* made, unsigned flags) {
  return cudaEventCreateWithFlags(made, flags);
}
inline hipError_t hipEventDestroy(hipEvent_t which) {
  return cudaEventDestroy(which);
}
inline hipError_t hipEventRecord(hipEvent_t what, hipStream_t on) {
  return cudaEventRecord(what, on);
}
inline hipError_t hipEventQuery(hipEvent_t which) {
  return cudaEventQuery(which);
}
/// Between two events with timing, in milliseconds. The library's own have none.
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t from, hipEvent_t to) {
  return cudaEventElapsedTime(ms, from, to);
}

// Kernels
/// An error where the current device has no code of the kernel.
inline hipError_t hipFuncGetAttributes(hipFuncAttributes* what, const void* kernel) {
  return cudaFuncGetAttributes(what, kernel);
}
inline hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared_bytes, hipStream_t on) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, on);
}

}  // namespace cairn

#endif

namespace cairn {

/// CUDA's cudaErrorNotPermitted, for which HIP has no name.
inline constexpr auto error_not_permitted = static_cast<hipError_t>(800);

}  // namespace cairn
