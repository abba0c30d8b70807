// What a device can do for the copier: streams, events, memory, launch. Two factories exist,
// make_host_backend and make_hip_backend; engines may decorate a device (tests inject faults so).
// Nothing here knows keys, records or queues.
#pragma once

#include <atomic>
#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cairn {

struct copy_plan;  // runtime/copy_plan.hpp: spans and tiles of one layout

enum class stream_priority : std::uint8_t { normal, high };
enum class event_state : std::uint8_t { pending, fired, failed };

/// Work that runs in order. Destroying it waits for what was enqueued; in the host backend's
/// manual mode it drops what has not run, and the events recorded there fail.
class stream {
 public:
  virtual ~stream() = default;
  /// The native handle (hipStream_t), or null on the host backend.
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
};

/// A position in a stream. Recording again moves it, unless the recording is refused; a wait refers
/// to the recording that was latest when wait was called.
class event {
 public:
  virtual ~event() = default;
};

/// Memory that the device's kernels (or pinned: host and device) can reach.
class memory_block {
 public:
  virtual ~memory_block() = default;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 protected:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A plan together with one rank's addresses, resident on the device. Must outlive the batches that
/// were launched with it.
class device_plan {
 public:
  virtual ~device_plan() = default;
  /// Images that one launch should bring at most: a copier's batches stay below.
  [[nodiscard]] virtual std::uint32_t images_max() const noexcept { return ~std::uint32_t{0}; }
};

/// One image of a batch. `units` must stay readable until the batch's event has fired.
struct copy_task {
  slot_id slot = no_slot;
  const unit_id* units = nullptr;
};

/// When a batch ran, in nanoseconds of steady_clock; written by the backend before the batch's
/// event fires. A backend that cannot tell (HIP's events carry no times) leaves both 0: the copy
/// thread then takes what it sees itself, from the hand-over, or from the end of the stream's
/// previous batch when that came later, to the end. That may hold waits too, but never overlaps on
/// one stream. `failed` is set when the copy did not complete.
struct batch_report {
  std::atomic<std::int64_t> begin_ns{0};
  std::atomic<std::int64_t> end_ns{0};
  std::atomic<bool> failed{false};
  /// The caller's: where the checksum of each task's image goes (pinned memory, one word per task,
  /// there when the batch's event has fired); null: none is computed. Set before `launch`.
  std::uint64_t* checksums = nullptr;
};

/// Rung when something that a sleeper waits for may have happened. One per copy thread.
class doorbell {
 public:
  /// Lock-free; wakes the sleeper only if there is one.
  void ring() noexcept;
  /// What ring changes; read it before looking for work.
  [[nodiscard]] std::uint32_t seen() const noexcept;
  /// Sleeps until ring has been called since `seen` was read, or until `until`.
  void wait(std::uint32_t seen, deadline until) noexcept;

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

/// One device. Thread-safety: all functions may be called from any thread; one stream's
/// order is the order of calls that do not overlap. The caller's current device is the same
/// after each call. Errors are statuses: `device_lost` is sticky.
class device {
 public:
  virtual ~device() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  /// The call that showed that the device is lost, and what it answered, in words; empty while it
  /// is not lost, or when nobody knows.
  [[nodiscard]] virtual std::string why_lost() const { return {}; }
  virtual result<std::unique_ptr<stream>> create_stream(stream_priority priority) = 0;
  /// The engine's own stream, for its events and waits; not owned, and no copies are launched
  /// there. The host backend refuses (`unsupported`).
  virtual result<std::unique_ptr<stream>> wrap_stream(void* native) = 0;
  /// `bell`, when not null, is rung after each recording of the event has fired; it must outlive
  /// the event and whatever the event was recorded on.
  virtual result<std::unique_ptr<event>> create_event(doorbell* bell) = 0;
  virtual result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) = 0;
  virtual result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) = 0;

  /// The event fires when everything enqueued on `on` before this call is done. Not ok: the event
  /// stays where it was.
  virtual status record(event& what, stream& on) = 0;
  /// Work enqueued on `on` after this call waits for the latest recording of `what` (none:
  /// does not wait). `what` may be another device's; when that one is lost: failed. busy: nothing
  /// was done, come again later (a capture forbids it, or may have taken a recording).
  virtual status wait(stream& on, event& what) = 0;
  /// State of the latest recording; an event never recorded has fired. Wait-free.
  [[nodiscard]] virtual event_state query(const event& what) noexcept = 0;
  /// A stream that is capturing a graph takes no part in cairn's order.
  [[nodiscard]] virtual bool capturing(const stream& which) noexcept = 0;

  /// Makes the plan and the rank's addresses resident. The memory must outlive it.
  virtual result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                                    const rank_memory& memory) = 0;
  /// Enqueues one batch of copies in one direction, on a stream that create_stream made (a wrapped
  /// one: unsupported, since the engine may capture it at any time, and the copies would go into
  /// its graph). `tasks`, their units and `report` must stay until an event recorded after this
  /// call on the same stream has fired. Errors: queue_full (the stream, or what carries batches,
  /// holds all it can) and busy (a capture forbids it), when no copy was enqueued and the call may
  /// come again later; limit, when a batch is too large for good; after any other a part may have
  /// been enqueued.
  virtual status launch(stream& on, device_plan& plan, copy_kind kind,
                        std::span<const copy_task> tasks, batch_report* report) = 0;
  /// Enqueues a function of the engine's (compute, in tests and in cairn_replay). The host
  /// backend only.
  virtual status call(stream& on, void (*function)(void* context), void* context) = 0;

  /// The calling thread is a copy thread of this device: its current device may become this one and
  /// stay so, and its naps exact. Before the thread's other calls; a decorator passes it on.
  virtual void adopt_thread() noexcept {}
  /// True when a copy thread must poll events; false when their doorbell is enough.
  [[nodiscard]] virtual bool polls() const noexcept = 0;
};

/// A set of devices of one kind.
class backend {
 public:
  virtual ~backend() = default;
  [[nodiscard]] virtual std::uint32_t device_count() const noexcept = 0;
  /// Precondition: index < device_count(). Lives as long as the backend.
  [[nodiscard]] virtual device& at(std::uint32_t index) = 0;

  /// Manual mode of the host backend: runs one piece of enqueued work whose waits are
  /// satisfied, lowest stream first (creation order over all devices); false when there is
  /// none. Elsewhere: always false.
  virtual bool step() { return false; }
  /// Manual mode: the same, on one stream only.
  virtual bool step(stream& on) {
    (void)on;
    return false;
  }
};

struct host_options {
  std::uint32_t devices = 1;
  std::uint32_t copy_threads = 0;     ///< TBB threads for tiles, all devices; 0: one per core
  bool manual = false;                ///< work runs only inside backend::step
  std::uint32_t stream_depth = 4096;  ///< work items that one stream holds before `queue_full`
};

/// Copies on CPU threads. Streams run beside each other; events fire later.
result<std::unique_ptr<backend>> make_host_backend(const host_options& opts = {});

struct hip_options {
  std::vector<int> devices;  ///< ordinals; empty: all
  /// Work groups of one launch at most, so that a running forward keeps its compute units; 0: four
  /// per compute unit, of 256 threads each.
  std::uint32_t copy_groups = 0;
};

/// AMD (and NVIDIA) GPUs through HIP. `unsupported` in a build without HIP;
/// `device_lost` with "no HIP device: ..." where there is none.
result<std::unique_ptr<backend>> make_hip_backend(const hip_options& opts = {});

}  // namespace cairn
