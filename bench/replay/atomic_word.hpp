// Atomic changes to words in a device's memory, by kernels; and by plain C++ where the kernels run
// on CPU threads. Orders nothing but the word itself: the end of the kernel orders the rest.
#pragma once

#include "kernels/hip_names.hpp"

namespace cairn::replay {

__device__ inline void add_to(unsigned long long* word, unsigned long long value) {
#if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__)
  atomicAdd(word, value);
#else
  __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
#endif
}

__device__ inline void lower_to(unsigned long long* word, unsigned long long value) {
#if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__)
  atomicMin(word, value);
#else
  unsigned long long seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(word, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
#endif
}

}  // namespace cairn::replay
