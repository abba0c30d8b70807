// The HIP backend: devices whose streams are the GPU runtime's. Checks what it is given and passes
// it on; what a call needs around it is in hip_call.hpp, what a copy is in the kernels.
//
// It enqueues no host functions, uses neither the runtime's batched copies nor the legacy default
// stream, and asks for no timing of events.
#include "runtime/backend_hip.hpp"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/copy_plan.hpp"

namespace cairn::detail {
namespace {

// By default a launch takes at most this many of a compute unit's work groups.
constexpr std::uint32_t groups_per_unit = 4;
/// How late a nap of a copy thread may end: its usual 50 us are more than the nap.
constexpr unsigned long nap_slack_ns = 1000;

}  // namespace

// With what lost the device, which may be another call than this one.
error hip_device::refused(const char* what, status code) const {
  std::string why = name() + ": " + what;
  if (code == status::device_lost) why += ": " + why_lost();
  return {code, std::move(why)};
}

std::string hip_device::name() const {
  return "hip:" + std::to_string(on_->ordinal);
}

std::string hip_device::why_lost() const {
  return on_->health.cause();
}

result<void> hip_device::open(std::uint32_t copy_groups) {
  hip_health& health = on_->health;
  const hip_scope scope(on_->ordinal, health);
  if (scope.entered() != status::ok) return refused("cannot be made current", scope.entered());
  int units = 0;
  if (const status code = health.judge(
          "hipDeviceGetAttribute",
          hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, on_->ordinal));
      code != status::ok)
    return refused("does not tell how many compute units it has", code);
  on_->groups = copy_groups != 0 ? copy_groups
                                 : groups_per_unit * static_cast<std::uint32_t>(std::max(units, 1));
  if (const status code = health.judge(
          "hipDeviceGetStreamPriorityRange",
          hipDeviceGetStreamPriorityRange(&on_->lowest_priority, &on_->highest_priority));
      code != status::ok)
    return refused("does not tell which priorities streams have", code);
  if (result<void> found = find_kernels(); !found) return found;
  auto staging = hip_staging::open(health);
  if (!staging) return staging.why();
  on_->staging = std::move(staging).value();
  return {};
}

// Runtimes have many words for a device that no code was compiled for. The device has answered just
// before, so it is not lost.
result<void> hip_device::find_kernels() const {
  const hipError_t code = kernels::find_kernels();
  const status what = status_of(code);
  if (what == status::ok) return {};
  if (what == status::busy || what == status::limit) return refused("kernels not loaded", what);
  return error(status::unsupported, name() + ": no kernel for this device: " + describe(code));
}

result<std::unique_ptr<stream>> hip_device::create_stream(stream_priority priority) {
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return refused("no stream", scope.entered());
  hipStream_t made = nullptr;
  // Numerically, the highest priority is the least. 0 is what the engine's own streams have, and on
  // some devices lies above the lowest.
  const int wanted = priority == stream_priority::high
                         ? on_->highest_priority
                         : std::clamp(0, on_->highest_priority, on_->lowest_priority);
  void* sums = nullptr;
  if (const status code = on_->health.judge("hipMalloc", hipMalloc(&sums, kernels::board_bytes));
      code != status::ok)
    return refused("no memory for a stream", code);
  auto board = std::make_unique<hip_memory>(on_, sums, kernels::board_bytes, false);
  if (const status code =
          on_->health.judge("hipStreamCreateWithPriority",
                            hipStreamCreateWithPriority(&made, hipStreamNonBlocking, wanted));
      code != status::ok)
    return refused("no stream", code);
  auto owner = std::make_unique<hip_stream>(on_, made, std::move(board));
  if (const status code = on_->health.judge(
          "hipMemcpyAsync", hipMemcpyAsync(sums, on_->staging->zeros(), kernels::board_bytes,
                                           hipMemcpyHostToDevice, made));
      code != status::ok)
    return refused("memory of a stream could not be cleared", code);
  return std::unique_ptr<stream>(std::move(owner));
}

result<std::unique_ptr<stream>> hip_device::wrap_stream(void* native) {
  // Null and 1 name the legacy default stream, 2 another stream in each thread that says it.
  if (reinterpret_cast<std::uintptr_t>(native) <= 2)
    return refused("expected a stream of the engine's own, got a default stream", status::invalid);
  return std::unique_ptr<stream>(
      std::make_unique<hip_stream>(on_, static_cast<hipStream_t>(native), nullptr));
}

result<std::unique_ptr<event>> hip_device::create_event(doorbell*) {
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return refused("no event", scope.entered());
  hipEvent_t made[2] = {};
  for (hipEvent_t& each : made) {
    const status code = on_->health.judge("hipEventCreateWithFlags",
                                          hipEventCreateWithFlags(&each, hipEventDisableTiming));
    if (code == status::ok) continue;
    if (made[0] != nullptr)
      judge_when_allowed(on_->health, "hipEventDestroy", [&] { return hipEventDestroy(made[0]); });
    return refused("no event", code);
  }
  return std::unique_ptr<event>(std::make_unique<hip_event>(on_, made[0], made[1]));
}

result<std::unique_ptr<memory_block>> hip_device::allocate(std::size_t bytes) {
  if (bytes == 0) return refused("memory block has no bytes", status::invalid);
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return refused("no memory", scope.entered());
  void* made = nullptr;
  if (const status code = on_->health.judge("hipMalloc", hipMalloc(&made, bytes));
      code != status::ok)
    return refused(("no memory for " + std::to_string(bytes) + " bytes").c_str(), code);
  return std::unique_ptr<memory_block>(std::make_unique<hip_memory>(on_, made, bytes, false));
}

result<std::unique_ptr<memory_block>> hip_device::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return refused("memory block has no bytes", status::invalid);
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return refused("no pinned memory", scope.entered());
  void* made = nullptr;
  if (const status code = on_->health.judge(
          "hipHostMalloc",
          hipHostMalloc(&made, bytes, hipHostMallocPortable | hipHostMallocMapped));
      code != status::ok)
    return refused(("no pinned memory for " + std::to_string(bytes) + " bytes").c_str(), code);
  auto block = std::make_unique<hip_memory>(on_, made, bytes, true);
  // The contract promises one address for host and device.
  void* seen = nullptr;
  if (const status code =
          on_->health.judge("hipHostGetDevicePointer", hipHostGetDevicePointer(&seen, made, 0));
      code != status::ok)
    return refused("pinned memory is not mapped", code);
  if (seen != made)
    return refused("pinned memory has another address on the device", status::unsupported);
  return std::unique_ptr<memory_block>(std::move(block));
}

status hip_device::record(event& what, stream& on) {
  auto* const recorded = dynamic_cast<hip_event*>(&what);
  hip_stream* const behind = ours(on);
  if (recorded == nullptr || behind == nullptr || &recorded->on() != on_.get())
    return status::invalid;
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return scope.entered();
  if (const status code = takes_work(*behind); code != status::ok) return code;
  status code = behind->judge("hipEventRecord",
                              hipEventRecord(recorded->begin(!behind->owned()), behind->handle()));
  // A capture that began meanwhile took the recording for its graph.
  if (code == status::ok) code = takes_work(*behind);
  recorded->end(code == status::ok);
  return code;
}

// An error may be the event's device's or this one's; where these differ, neither is lost for what
// the other may have said: the next call on the lost one shows it.
status hip_device::wait(stream& on, event& what) {
  const auto* const awaited = dynamic_cast<const hip_event*>(&what);
  hip_stream* const waiting = ours(on);
  if (awaited == nullptr || waiting == nullptr) return status::invalid;
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return scope.entered();
  const hip_event::latest position = awaited->look();
  if (!position.recorded) return status::ok;
  const bool here = &awaited->on() == on_.get();
  if (!here && awaited->on().health.lost()) return status::failed;
  if (position.what == nullptr) return status::busy;
  if (const status code = takes_work(*waiting); code != status::ok) return code;
  const hipError_t answer = hipStreamWaitEvent(waiting->handle(), position.what, 0);
  if (!here && status_of(answer) == status::device_lost) return status::failed;
  return waiting->judge("hipStreamWaitEvent", answer);
}

event_state hip_device::query(const event& what) noexcept {
  const auto* const asked = dynamic_cast<const hip_event*>(&what);
  if (asked == nullptr) return event_state::failed;
  const hip_event::latest position = asked->look();
  if (!position.recorded) return event_state::fired;
  hip_context& its = asked->on();
  const hip_scope scope(its.ordinal, its.health);
  if (scope.entered() == status::ok && position.what != nullptr)
    return state_of(position.what, its.health);
  return its.health.lost() ? event_state::failed : event_state::pending;
}

bool hip_device::capturing(const stream& which) noexcept {
  const auto* const known = dynamic_cast<const hip_stream*>(&which);
  if (known == nullptr) return false;
  const hip_scope scope(on_->ordinal, on_->health);
  return scope.entered() == status::ok && takes_work(*known) == status::busy;
}

// What a capturing stream takes becomes part of a graph.
status hip_device::takes_work(const hip_stream& which) noexcept {
  if (which.owned()) return status::ok;
  hipStreamCaptureStatus state = hipStreamCaptureStatusNone;
  const status code =
      which.judge("hipStreamIsCapturing", hipStreamIsCapturing(which.handle(), &state));
  if (code != status::ok) return code;
  return state == hipStreamCaptureStatusNone ? status::ok : status::busy;
}

result<std::unique_ptr<device_plan>> hip_device::load(const copy_plan& plan,
                                                      const rank_memory& memory) {
  if (result<void> fits = check_plan_memory(plan, memory); !fits) return fits.why();
  if (memory.slots >= kernels::store_bit)
    return error(status::limit, "too many slots for the device's batches", 0,
                 kernels::store_bit - 1, memory.slots);
  if (kernels::words_per_image(plan.units) > hip_staging::place_words)
    return error(status::limit, "image has too many units for the device's batches", 0,
                 hip_staging::place_words - 1, plan.units);
  return load_hip_plan(*this, *on_, plan, memory);
}

status hip_device::launch(stream& on, device_plan& plan, copy_kind kind,
                          std::span<const copy_task> tasks, batch_report* report) {
  hip_stream* const to = ours(on);
  const auto* const loaded = dynamic_cast<const hip_plan*>(&plan);
  if (to == nullptr || loaded == nullptr || loaded->on() != on_.get()) return status::invalid;
  if (!to->owned()) return status::unsupported;
  if (tasks.empty()) return on_->health.lost() ? status::device_lost : status::ok;
  const hip_scope scope(on_->ordinal, on_->health);
  if (scope.entered() != status::ok) return scope.entered();
  std::uint64_t* const checksums = report != nullptr ? report->checksums : nullptr;
  return tasks.size() * loaded->words_per_image() <= kernels::inline_words
             ? launch_inline(*to, *loaded, kind, tasks, checksums)
             : launch_staged(*to, *loaded, kind, tasks, checksums);
}

status hip_device::launch_inline(hip_stream& to, const hip_plan& plan, copy_kind kind,
                                 std::span<const copy_task> tasks,
                                 std::uint64_t* checksums) noexcept {
  kernels::inline_batch batch;  // its words beyond the images are never read
  batch.tables = plan.tables();
  if (checksums != nullptr) batch.board = to.board();
  batch.checksums = checksums;
  batch.images = static_cast<std::uint32_t>(tasks.size());
  std::uint32_t* words = batch.words;
  for (const copy_task& each : tasks) {
    if (!plan.describe(kind, each, words)) return status::invalid;
    words += plan.words_per_image();
  }
  return on_->health.judge("hipLaunchKernel",
                           kernels::launch_copy(batch, on_->groups, to.handle()));
}

// A batch that fills several places becomes as many launches, all or none of which find a place.
status hip_device::launch_staged(hip_stream& to, const hip_plan& plan, copy_kind kind,
                                 std::span<const copy_task> tasks,
                                 std::uint64_t* checksums) noexcept {
  hip_staging& staging = *on_->staging;
  const std::size_t images_each = plan.images_of_place();
  const std::size_t count = (tasks.size() + images_each - 1) / images_each;
  if (count > hip_staging::places_for(kind)) return status::limit;
  staging.settle(to.debts(), to.handle());
  std::array<std::uint32_t, hip_staging::places> taken{};
  if (const status code = staging.claim(kind, static_cast<std::uint32_t>(count), taken);
      code != status::ok)
    return code;

  status code = status::ok;
  for (std::size_t i = 0; i < tasks.size() && code == status::ok; ++i) {
    std::uint32_t* const words =
        staging.words(taken[i / images_each]) + i % images_each * plan.words_per_image();
    if (!plan.describe(kind, tasks[i], words)) code = status::invalid;
  }
  std::size_t launched = 0;
  for (std::size_t p = 0; p < count; ++p) {
    if (code != status::ok) {
      staging.give(taken[p]);
      continue;
    }
    const std::size_t images = std::min(images_each, tasks.size() - p * images_each);
    code = staging.send(taken[p], images * plan.words_per_image(), to.handle());
    if (code == status::busy) {
      staging.give(taken[p]);
      continue;
    }
    if (code == status::ok)
      code = on_->health.judge(
          "hipLaunchKernel",
          kernels::launch_copy(
              kernels::staged_batch{plan.tables(),
                                    checksums != nullptr ? to.board() : kernels::sum_board{},
                                    checksums != nullptr ? checksums + p * images_each : nullptr,
                                    static_cast<std::uint32_t>(images), staging.resident(taken[p])},
              on_->groups, to.handle()));
    if (code == status::ok) ++launched;
    // Whatever came of it: a part may have been enqueued, and only the event proves it over.
    staging.fly(taken[p], to.handle(), to.debts());
  }
  if (on_->health.lost()) return status::device_lost;
  // Later, and too large, mean that nothing copies now.
  const bool says_nothing = code == status::busy || code == status::limit;
  return says_nothing && launched != 0 ? status::failed : code;
}

// A thread begins with device 0, and a call there would make the process a context on that device.
// A refusal shows in the thread's next call.
void hip_device::adopt_thread() noexcept {
#if defined(__linux__)
  static_cast<void>(prctl(PR_SET_TIMERSLACK, nap_slack_ns, 0UL, 0UL, 0UL));
#endif
  const hip_last_error last_error;
  if (!on_->health.lost())
    static_cast<void>(on_->health.judge("hipSetDevice", hipSetDevice(on_->ordinal)));
}

hip_stream* hip_device::ours(stream& which) const noexcept {
  hip_stream* const known = dynamic_cast<hip_stream*>(&which);
  return known != nullptr && &known->on() == on_.get() ? known : nullptr;
}

}  // namespace cairn::detail
