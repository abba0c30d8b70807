// One call for many copies. CUDA has it from 13 on in this form. HIP's form has changed between
// releases: whatever the headers declare is called as it wants to be called.
#include "bench/device/batched_copy.hpp"

#include <type_traits>

#if defined(CAIRN_HIP_NVIDIA)
#if CUDART_VERSION >= 13000
#define CAIRN_BATCHED_COPY 1
#endif
#elif defined(HIP_VERSION)
#if HIP_VERSION >= 70200000
#define CAIRN_BATCHED_COPY 1
#endif
#endif

namespace cairn::bench {

batched_copy::batched_copy(std::span<const span_copy> pieces) {
  for (const span_copy& each : pieces) {
    to_.push_back(each.to);
    from_.push_back(each.from);
    bytes_.push_back(each.bytes);
  }
}

#if !defined(CAIRN_BATCHED_COPY)

const char* batched_copy_name() noexcept {
  return nullptr;
}
void batched_copy::enqueue(hipStream_t) {
  throw broken_case("this runtime has no batched copy");
}

#elif defined(CAIRN_HIP_NVIDIA)

const char* batched_copy_name() noexcept {
  return "cudaMemcpyBatchAsync";
}

void batched_copy::enqueue(hipStream_t on) {
  cudaMemcpyAttributes how = {};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  check(cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &how, &first,
                             1, on),
        "cudaMemcpyBatchAsync");
}

#else

const char* batched_copy_name() noexcept {
  return "hipMemcpyBatchAsync";
}

namespace {

template <class Call>
hipError_t call(Call* batch, void** to, void** from, std::size_t* bytes, std::size_t count,
                hipStream_t on) {
  std::size_t failed = 0;
  if constexpr (std::is_invocable_v<Call*, void**, void**, std::size_t*, std::size_t,
                                    std::nullptr_t, std::size_t*, std::size_t, std::size_t*,
                                    hipStream_t>)
    return batch(to, from, bytes, count, nullptr, nullptr, 0, &failed, on);
  else
    return batch(to, from, bytes, count, nullptr, nullptr, 0, on);
}

}  // namespace

void batched_copy::enqueue(hipStream_t on) {
  check(call(&hipMemcpyBatchAsync, to_.data(), const_cast<void**>(from_.data()), bytes_.data(),
             bytes_.size(), on),
        "hipMemcpyBatchAsync");
}

#endif

}  // namespace cairn::bench
