// What tests ask of the HIP runtime's double: which calls fail and how, when streams run and events
// fire, what is left over. A call's answers repeat from the same plan; nothing here knows cairn.
//
// The double runs each stream on a CPU thread and takes no short cuts that a device would not: a
// copy reads its source when the stream comes to it, a freed block is poisoned, and threads are
// ordered by streams and events only, so that ThreadSanitizer sees a missing fence as a race.
#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace cairn::tests::hip {

/// The entry points, by their names.
enum class call : std::uint32_t {
#define CAIRN_HIP_CALL(result, name, parameters) name,
#include <hip/double_calls.inc>
};
inline constexpr std::uint32_t call_count = 0
#define CAIRN_HIP_CALL(result, name, parameters) +1
#include <hip/double_calls.inc>
    ;
[[nodiscard]] const char* name_of(call which) noexcept;
/// Calls since the last reset.
[[nodiscard]] std::uint64_t calls(call which) noexcept;
/// Those of threads whose current device was this one.
[[nodiscard]] std::uint64_t calls_with_current(int device, call which) noexcept;

/// The threads that made them, each once; of very many, some.
[[nodiscard]] std::vector<std::thread::id> callers(call which);
/// What the next call of this kind does first, in the thread that makes it.
void before_next(call which, std::function<void()> what);
/// And what it does last, when its answer is decided.
void after_next(call which, std::function<void()> what);

/// Everything as at the start: two devices, no faults, nothing held. Runs what is still queued to
/// its end, destroys what was not, and makes device 0 the calling thread's. No other thread may be
/// in a call.
void reset();

// ---------------------------------------------------------------------------------------
// Devices

inline constexpr int max_devices = 40;  // more than a runtime has ranks
/// As of now; 0: none. Negative: none, and hipGetDeviceCount counts to 0 without an error.
void set_device_count(int count);
void set_priority_range(int least, int greatest);
/// Of each device; as at the start: 3.
void set_compute_units(int units) noexcept;
/// From now on every call of the device answers `code`; nothing that is queued runs.
void lose(int device, hipError_t code);
/// No kernel was compiled for what this device is: launching one and asking for one answer `code`
/// from now on, such as hipErrorNoBinaryForGpu. hipSuccess: all are there.
void set_no_kernels(int device, hipError_t code);
/// What hipSetDevice does with a lost device.
enum class lost_selection {
  selects,  ///< as with any other
  answers,  ///< answers the device's error, and makes it current nevertheless
  refuses,  ///< answers the device's error and changes nothing
};
void set_lost_selection(lost_selection how) noexcept;
/// hipHostGetDevicePointer gives another address than the host's.
void set_pinned_elsewhere(bool elsewhere) noexcept;
/// Queries of events are refused during any capture, whatever the thread's mode.
void set_older_runtime(bool older) noexcept;

// ---------------------------------------------------------------------------------------
// Planned faults. A call that fails does nothing, unless `works`.

/// The nth call from now (1: the next) answers `code`.
void fail_at(call which, std::uint32_t nth, hipError_t code, bool works = false);
/// Every call from now on; hipSuccess: none.
void fail_always(call which, hipError_t code);
/// The nth call from now makes its device lost, and is the first to answer so.
void lose_at(call which, std::uint32_t nth, hipError_t code);
/// When this call is made for the nth time from now, whatever device it is for, this device is lost
/// before it is done.
void lose_before(call which, std::uint32_t nth, int device, hipError_t code);
/// The nth kernel launched from now faults when the stream comes to it: the launch is a success,
/// and the device is lost afterwards.
void fault_in_kernel(std::uint32_t nth, hipError_t code);

struct random_plan {
  std::uint64_t seed = 1;
  std::vector<call> which;  ///< that fail
  hipError_t code = hipErrorInvalidValue;
  std::uint32_t fail_one_in = 0;   ///< of these calls; 0: none
  std::uint32_t delay_one_in = 0;  ///< of work and of calls: yield, or sleep a little
};
/// Which call fails depends on the seed, the entry point and the number of the call only.
void plan(const random_plan& with);

// ---------------------------------------------------------------------------------------
// When streams run and events fire

/// The stream runs nothing more until released; what runs already ends.
void hold(hipStream_t which) noexcept;
void release(hipStream_t which) noexcept;
/// The next `count` recordings fire only when released, and not when the stream comes to them.
/// What waits for them waits; the stream itself goes on.
void hold_events(std::uint32_t count) noexcept;
void release_events();
/// Work that the stream has not come to the end of.
[[nodiscard]] std::uint64_t queued(hipStream_t which) noexcept;
/// Until the stream has run what it holds.
void drain(hipStream_t which);

/// Groups of the latest launch.
[[nodiscard]] std::uint32_t groups_launched() noexcept;

struct stream_facts {
  hipStream_t handle;
  int device;
  unsigned flags;
  int priority;
};
/// Streams that have not been destroyed, in the order of their creation.
[[nodiscard]] std::vector<stream_facts> streams();

// ---------------------------------------------------------------------------------------
// What is left, and what was done wrong

struct live_objects {
  std::int64_t streams = 0;
  std::int64_t events = 0;
  std::int64_t device_blocks = 0;
  std::int64_t pinned_blocks = 0;
  std::int64_t graphs = 0;
  friend bool operator==(const live_objects&, const live_objects&) = default;
};
[[nodiscard]] live_objects live() noexcept;
/// Live events that were made to tell times.
[[nodiscard]] std::int64_t timed_events() noexcept;
struct block_facts {
  std::size_t bytes;
  int device;  ///< -1: pinned
  unsigned flags;
};
/// Live blocks of memory, in the order in which they were given out.
[[nodiscard]] std::vector<block_facts> blocks();
/// Whether a call was made while the device was the thread's current one: it costs a context there.
[[nodiscard]] bool context_made(int device) noexcept;
/// The calling thread's, without a call.
[[nodiscard]] int current_device() noexcept;
[[nodiscard]] hipStreamCaptureMode capture_mode() noexcept;

/// Uses of destroyed handles, frees of memory that was not given out, copies and kernels that
/// touched freed or foreign memory, writes to memory after its end: one line each.
[[nodiscard]] std::vector<std::string> complaints();
void clear_complaints();
/// Complains of freed memory that was written since.
void check_freed_blocks();

/// For `reachable`: pinned memory only.
inline constexpr int on_host = -1;
/// Whether the device may touch these bytes: its own memory, or pinned memory, all alive.
[[nodiscard]] bool reachable(int device, const void* memory, std::size_t bytes) noexcept;

// ---------------------------------------------------------------------------------------
// Kernels. How their lanes run

/// lane.hpp says what lanes do to memory and to each other.
struct wave_plan {
  std::uint32_t lanes = 1;  ///< of a wave
  std::uint32_t crews = 1;  ///< waves that run at once, each on as many threads as it has lanes
};
/// For launches from now on. With one lane and one crew a kernel runs on its stream's thread.
void set_waves(const wave_plan& how) noexcept;

// ---------------------------------------------------------------------------------------
// Kernels. The real runtime finds them in the program's image; here a test's file registers them.

/// One launch with its arguments, which were copied at the call.
struct bound_kernel {
  std::function<void()> lane;             ///< runs one lane
  std::function<bool(int device)> sound;  ///< a look at the pointers, before the first lane
};
using kernel_binder = std::function<bound_kernel(void** arguments)>;
void register_kernel(const void* address, kernel_binder bind);

/// `sound(device, arguments...)` says whether the kernel may run there.
template <class... A, class Sound>
void register_kernel(void (*kernel)(A...), Sound sound) {
  register_kernel(
      reinterpret_cast<const void*>(kernel), [kernel, sound](void** arguments) -> bound_kernel {
        const auto held = [&]<std::size_t... I>(std::index_sequence<I...>) {
          return std::make_shared<const std::tuple<A...>>(*static_cast<A*>(arguments[I])...);
        }
        (std::index_sequence_for<A...>{});
        return {[kernel, held] { std::apply(kernel, *held); },
                [sound, held](int device) {
                  return std::apply([&](const A&... each) { return sound(device, each...); },
                                    *held);
                }};
      });
}

}  // namespace cairn::tests::hip
