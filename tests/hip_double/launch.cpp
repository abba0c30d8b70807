// Kernels of the double: the registry, and launches.
#include "tests/hip_double/lane.hpp"
#include "tests/hip_double/state.hpp"

using namespace cairn::tests::hip;

namespace cairn::tests::hip {
namespace {

/// Threads of a group at most.
constexpr int threads_max = 1024;

std::atomic<std::uint32_t> latest_groups{0};

struct known_kernel {
  const void* address;
  kernel_binder bind;
  known_kernel* below = nullptr;
};

/// Never taken down: programs register as they start.
pile<known_kernel>& kernels() {
  static pile<known_kernel> all;
  return all;
}

const known_kernel* find(const void* address) {
  for (const known_kernel* each = kernels().top(); each != nullptr; each = each->below)
    if (each->address == address) return each;
  return nullptr;
}

/// hipSuccess, or what a device answers for which no kernel was compiled.
hipError_t code_for(int device) noexcept {
  return static_cast<hipError_t>(state().devices[device].no_code.load(std::memory_order_relaxed));
}

wave_plan waves() noexcept {
  return {state().wave_lanes.load(std::memory_order_relaxed),
          state().wave_crews.load(std::memory_order_relaxed)};
}

void run(const bound_kernel& kernel, const dim3& grid, const dim3& group, const wave_plan& how,
         int device) {
  if (!kernel.sound(device)) {
    complain(
        "a kernel was given memory that is not the device's any more, or never was, or is not as "
        "it "
        "must be");
    return lose(device, hipErrorIllegalAddress);
  }
  run_lanes(kernel, grid, group, how);
}

}  // namespace

std::uint32_t groups_launched() noexcept {
  return latest_groups.load(std::memory_order_relaxed);
}

void set_waves(const wave_plan& how) noexcept {
  state().wave_lanes.store(how.lanes, std::memory_order_relaxed);
  state().wave_crews.store(how.crews, std::memory_order_relaxed);
}

void register_kernel(const void* address, kernel_binder bind) {
  kernels().push(new known_kernel{address, std::move(bind)});
}

}  // namespace cairn::tests::hip

extern "C" {

hipError_t hipFuncGetAttributes(hipFuncAttributes* what, const void* kernel) {
  const int device = this_thread().device;
  return answer({call::hipFuncGetAttributes, device}, [&] {
    if (what == nullptr) return hipErrorInvalidValue;
    if (find(kernel) == nullptr) return hipErrorInvalidDeviceFunction;
    if (const hipError_t none = code_for(device); none != hipSuccess) return none;
    *what = {.maxThreadsPerBlock = threads_max};
    return hipSuccess;
  });
}

hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 group, void** arguments,
                           size_t shared_bytes, hipStream_t which) {
  hipStream_t const on = resolve(which);
  if (!alive(on)) {
    complain("hipLaunchKernel: the stream was destroyed");
    return refuse(call::hipLaunchKernel, hipErrorInvalidHandle);
  }
  return answer({call::hipLaunchKernel, on->device}, [&] {
    if (on->device != this_thread().device) return hipErrorInvalidHandle;
    const known_kernel* const found = find(kernel);
    if (found == nullptr) return hipErrorInvalidDeviceFunction;
    if (const hipError_t none = code_for(on->device); none != hipSuccess) return none;
    if (count(grid) == 0 || count(group) == 0 || count(group) > threads_max ||
        shared_bytes > 65'536)
      return hipErrorInvalidConfiguration;
    if (which == nullptr)
      if (const hipError_t code = disturb_implicitly(on->device); code != hipSuccess) return code;
    if (capture* const in = on->in.load(); in != nullptr) return capture_work(*in, *on);
    latest_groups.store(static_cast<std::uint32_t>(count(grid)), std::memory_order_relaxed);
    auto* const made = new work;
    if (const hipError_t fault = next_kernel_fault(); fault != hipSuccess) {
      made->run = [fault, device = on->device] { lose(device, fault); };
    } else {
      made->run = [bound = found->bind(arguments), grid, group, how = waves(),
                   device = on->device] { run(bound, grid, group, how, device); };
    }
    enqueue(on, made);
    return hipSuccess;
  });
}

}  // extern "C"
