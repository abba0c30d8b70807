// Compiled against HIP's own headers where they are present: what the double declares is what HIP
// declares. Has no code.
#include <hip/hip_runtime.h>

#include <type_traits>

#define CAIRN_HIP_ERROR(name, value) static_assert(static_cast<int>(name) == (value));
#define CAIRN_HIP_COPY_KIND(name, value) static_assert(static_cast<int>(name) == (value));
#define CAIRN_HIP_CAPTURE_MODE(name, value) static_assert(static_cast<int>(name) == (value));
#define CAIRN_HIP_CAPTURE_STATUS(name, value) static_assert(static_cast<int>(name) == (value));
#if HIP_VERSION_MAJOR == 5  // attributes are numbered anew by later releases
#define CAIRN_HIP_ATTRIBUTE(name, value) static_assert(static_cast<int>(name) == (value));
#endif
#define CAIRN_HIP_FLAG(name, value) static_assert((name) == (value));
#include "tests/hip_double/include/hip/double_values.inc"

static_assert(hipErrorInvalidResourceHandle == hipErrorInvalidHandle);

// The cast chooses among overloads and fails where HIP has none of this signature.
#define CAIRN_HIP_CALL(result, name, parameters) \
  static_assert(static_cast<result(*) parameters>(&::name) != nullptr);
#include "tests/hip_double/include/hip/double_calls.inc"

static_assert(std::is_same_v<hipStream_t, struct ihipStream_t*>);
static_assert(std::is_same_v<hipEvent_t, struct ihipEvent_t*>);
static_assert(sizeof(dim3) == 3 * sizeof(uint32_t));
static_assert(std::is_same_v<decltype(hipFuncAttributes::maxThreadsPerBlock), int>);
