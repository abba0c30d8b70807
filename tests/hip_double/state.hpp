// The double's own objects: streams with their threads, events with their recordings, blocks of
// memory, captures. Nothing is freed before the next reset, so a stale handle is recognised.
//
// What threads share is atomic, and what orders them is written here alone: a caller's enqueueing
// before the stream's work, a recording's firing before a query or a wait that sees it. Counters
// and lists order nothing (relaxed), and a stream never orders itself before a later enqueueing:
// a checking tool must see no order that a device would not give.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests::hip {

/// A number that threads sleep on. The sleep itself orders nothing: tools do not see it.
class word {
 public:
  explicit word(std::uint32_t value = 0) noexcept : value_(value) {}
  [[nodiscard]] std::uint32_t get() const noexcept {
    return value_.load(std::memory_order_acquire);
  }
  void set(std::uint32_t value) noexcept {
    value_.store(value, std::memory_order_release);
    wake();
  }
  void add_one() noexcept {
    value_.fetch_add(1, std::memory_order_relaxed);
    wake();
  }
  /// Returns when the value is another, or after a millisecond.
  void sleep_while(std::uint32_t value) noexcept;

 private:
  void wake() noexcept;
  std::atomic<std::uint32_t> value_;
};

/// A list that only grows until it is taken down.
template <class T>
class pile {
 public:
  void push(T* one) noexcept {
    one->below = top_.load(std::memory_order_relaxed);
    while (!top_.compare_exchange_weak(one->below, one, std::memory_order_release,
                                       std::memory_order_relaxed)) {
    }
  }
  [[nodiscard]] T* top() const noexcept { return top_.load(std::memory_order_acquire); }
  T* take() noexcept { return top_.exchange(nullptr, std::memory_order_acquire); }

 private:
  std::atomic<T*> top_{nullptr};
};

struct capture {
  hipStreamCaptureMode mode;
  std::thread::id begun_by;
  hipStream_t origin;
  std::atomic<bool> active{true};
  std::atomic<bool> invalid{false};
  std::atomic<std::uint64_t> nodes{0};
  capture* below = nullptr;
};

/// One recording of an event. Waits and queries refer to it, not to the event.
struct recording {
  enum fate : std::uint32_t { pending = 0, fired = 1 };
  word state{pending};
  std::atomic<bool> held{false};    ///< fires when released, not when the stream comes to it
  std::atomic<bool> passed{false};  ///< the stream has come to it
  std::atomic<std::int64_t> at_ns{0};
  capture* in = nullptr;  ///< part of a graph: will never fire
  hipStream_t on = nullptr;
  recording* below = nullptr;
};

struct work {
  std::function<void()> run;
  recording* awaits = nullptr;
  recording* fires = nullptr;
  bool last = false;
  std::atomic<work*> next{nullptr};
};

struct block {
  std::byte* base;
  std::size_t bytes;
  int device;  ///< no_device: pinned
  unsigned flags = 0;
  std::atomic<bool> alive{true};
  block* below = nullptr;
};
inline constexpr int no_device = -1;

inline constexpr std::uint32_t alive_mark = 0x600D;
inline constexpr std::uint32_t dead_mark = 0xDEAD;

/// One device of the double.
struct device_state {
  std::atomic<int> lost{0};          ///< the error that every call answers; 0: none
  std::atomic<bool> context{false};  ///< a call made the process a context there
  std::atomic<int> no_code{0};       ///< what asking for a kernel answers; 0: it has them all
  std::mutex legacy;                 ///< orders the null stream against blocking streams
  hipStream_t null_stream = nullptr;
  recording* null_latest = nullptr;
};

}  // namespace cairn::tests::hip

struct ihipStream_t {
  using word = cairn::tests::hip::word;
  using work = cairn::tests::hip::work;

  std::atomic<std::uint32_t> mark{cairn::tests::hip::alive_mark};
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint32_t number = 0;

  std::mutex producers;  ///< callers among themselves; never the stream's thread
  work* tail = nullptr;
  work* head = nullptr;  ///< the thread's: its last piece of work, already done
  word pushed;
  std::atomic<std::uint64_t> given{0};
  std::atomic<std::uint64_t> done{0};
  word held;
  std::atomic<cairn::tests::hip::capture*> in{nullptr};
  std::atomic<bool> unjoined{false};  ///< has captured work that its origin does not wait for
  ihipStream_t* below = nullptr;
};

struct ihipEvent_t {
  std::atomic<std::uint32_t> mark{cairn::tests::hip::alive_mark};
  int device = 0;
  unsigned flags = 0;
  std::atomic<cairn::tests::hip::recording*> latest{nullptr};
  ihipEvent_t* below = nullptr;
};

struct ihipGraph {
  std::uint64_t nodes = 0;
};

namespace cairn::tests::hip {

/// Everything of the process. One per process, as the runtime itself.
struct double_state {
  std::atomic<int> device_count{2};
  std::atomic<int> least_priority{1};
  std::atomic<int> greatest_priority{-1};
  std::atomic<int> compute_units{3};
  std::atomic<lost_selection> selection{lost_selection::answers};
  std::atomic<bool> pinned_elsewhere{false};
  std::atomic<bool> older{false};
  std::atomic<std::uint32_t> wave_lanes{1};
  std::atomic<std::uint32_t> wave_crews{1};
  device_state devices[max_devices];

  pile<ihipStream_t> streams;
  pile<ihipEvent_t> events;
  pile<recording> recordings;
  pile<block> blocks;
  pile<capture> captures;
  std::atomic<std::uint32_t> active_captures{0};
  std::atomic<std::uint32_t> stream_numbers{0};
  std::atomic<std::uint32_t> threads{0};  ///< of streams, running

  std::atomic<std::int64_t> live_streams{0};
  std::atomic<std::int64_t> live_events{0};
  std::atomic<std::int64_t> live_device_blocks{0};
  std::atomic<std::int64_t> live_pinned_blocks{0};
  std::atomic<std::int64_t> live_graphs{0};

  ~double_state();
};
[[nodiscard]] double_state& state();

/// What a thread has of its own.
struct thread_state {
  int device = 0;
  hipError_t last = hipSuccess;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  bool in_host_function = false;
};
[[nodiscard]] thread_state& this_thread() noexcept;

void complain(const std::string& what);
[[nodiscard]] bool alive(hipStream_t which) noexcept;  ///< not null
[[nodiscard]] bool alive(hipEvent_t which) noexcept;

// streams.cpp
/// The handle's stream; of null the current device's null stream.
[[nodiscard]] hipStream_t resolve(hipStream_t which);
hipStream_t make_stream(int device, unsigned flags, int priority);
/// As the legacy default stream demands, where it is concerned.
void enqueue(hipStream_t on, work* what);
recording* new_recording(hipStream_t on);
void fire(recording* what) noexcept;
void come_to(recording* what) noexcept;
/// Until fired, or until the device is lost.
void await(const recording* what, int device) noexcept;
/// All that the device's streams hold now is over, as far as it is not lost. False: never, for a
/// test holds it up.
[[nodiscard]] bool await_device(int device);
void end_streams();

// capture.cpp
/// hipSuccess, or why a call that may disturb captures is refused now. Spoils those it disturbs.
[[nodiscard]] hipError_t disturb(call which) noexcept;
/// What enqueueing on the null stream, or asking about it, does to captures of blocking streams.
[[nodiscard]] hipError_t disturb_implicitly(int device) noexcept;

/// Work on a capturing stream becomes a node of the graph and does not run.
[[nodiscard]] hipError_t capture_work(capture& in, ihipStream_t& on) noexcept;

// memory.cpp
void free_blocks();
/// Whether the kind of a copy is right for where its ends lie, as far as that is known.
[[nodiscard]] bool fits(hipMemcpyKind kind, const void* to, const void* from) noexcept;

// faults.cpp
struct planned {
  hipError_t code = hipSuccess;
  bool works = false;
  hipError_t loses = hipSuccess;
  int loses_device = no_device;  ///< the call's own
};
planned next_fault(call which);
[[nodiscard]] hipError_t next_kernel_fault() noexcept;
[[nodiscard]] bool next_event_held() noexcept;
void delay(std::uint64_t who, std::uint64_t when) noexcept;
void clear_faults() noexcept;

/// What every entry point does around its own work: counts, planned faults, lost devices, calls
/// refused during captures, the thread's last error. `device`: the one that the call is for.
struct entry {
  call which;
  int device;             ///< no_device: none
  bool disturbs = false;  ///< refused while others capture
  bool releases = false;  ///< does its work on a lost device too
};
planned begin_call(const entry& how);
void end_call(call which);
[[nodiscard]] hipError_t admit(const entry& how);
[[nodiscard]] hipError_t lost_code(int device) noexcept;  ///< hipSuccess: not lost
hipError_t remember(hipError_t code) noexcept;
template <class Work>
hipError_t answer(const entry& how, Work&& work) {
  const planned plan = begin_call(how);
  if (plan.code != hipSuccess && !plan.works) return remember(plan.code);
  hipError_t code = admit(how);
  const bool lost = code != hipSuccess && code == lost_code(how.device);
  if (code == hipSuccess || (lost && how.releases)) {
    const hipError_t done = work();
    if (code == hipSuccess) code = done;
  }
  end_call(how.which);
  return remember(plan.code != hipSuccess ? plan.code : code);
}
/// For handles that are none.
hipError_t refuse(call which, hipError_t code);

}  // namespace cairn::tests::hip
