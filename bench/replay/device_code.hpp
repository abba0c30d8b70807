// What marks a function that the device's compiler translates too. Plain inline functions for every
// other compiler. Knows no runtime.
#pragma once

#if defined(__HIPCC__) || defined(__CUDACC__)
#define CAIRN_ON_DEVICE_TOO __host__ __device__
#else
#define CAIRN_ON_DEVICE_TOO
#endif
