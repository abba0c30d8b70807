// A device between a scene's runtime and the host backend: it fails when told to, knows when it
// must not be called, and may leave it to the schedule what comes of each call. Knows streams and
// events, no ops; remembers which launches went wrong, for such a batch must not end well.
#pragma once

#include <array>
#include <atomic>
#include <cairn/backend.hpp>
#include <cairn/metrics.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "runtime/sync.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

/// What may come of a call of a device.
enum class trouble : std::uint8_t {
  none,
  full,         ///< launch, record, wait: later
  fails,        ///< launch, record, wait: nothing was enqueued
  fails_late,   ///< launch: all was enqueued, and runs
  copy_fails,   ///< launch: the device says so when it is over
  stalled,      ///< launch: the stream sleeps for long, then copies
  copy_short,   ///< launch: an image is left out, and nothing is said
  bit_flip,     ///< launch of a store: a byte of the image changes once it is in its units
  event_late,   ///< record: the stream sleeps before the event
  event_lost,   ///< record: it fires, and is not seen before `release`
  event_fails,  ///< record: instead of firing
  lost,         ///< the device, for ever
  count
};

/// Which of them a scene leaves to the schedule.
class trouble_set {
 public:
  constexpr trouble_set() noexcept = default;
  constexpr trouble_set(std::initializer_list<trouble> list) noexcept {
    for (const trouble t : list) bits_ |= bit(t);
  }
  static constexpr trouble_set all() noexcept {
    trouble_set s;
    s.bits_ = bit(trouble::count) - 2;
    return s;
  }
  [[nodiscard]] constexpr trouble_set without(trouble t) const noexcept {
    trouble_set s = *this;
    s.bits_ &= ~bit(t);
    return s;
  }
  [[nodiscard]] constexpr bool has(trouble t) const noexcept { return (bits_ & bit(t)) != 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }

 private:
  static constexpr std::uint32_t bit(trouble t) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(t);
  }
  std::uint32_t bits_ = 0;
};

class watched_device final : public device {
 public:
  watched_device(device& inner, std::uint32_t scene_threads)
      : inner_(inner), scene_threads_(scene_threads) {}

  quiet_word<std::uint32_t> quiet;    ///< callers for whom the copy thread keeps quiet
  quiet_word<bool> closing;           ///< which ends it
  quiet_word<std::uint32_t> failing;  ///< launches of restores that will fail
  quiet_word<bool> gone;              ///< every launch finds the device lost

  // ---- what is left to the schedule ----
  trouble_set drawn;               ///< while the scene is built
  std::byte* unit_area = nullptr;  ///< for bit flips
  std::size_t unit_bytes = 0;      ///
  quiet_word<bool> calm;           ///< nothing new comes to pass
  quiet_word<bool> dead;           ///< a draw has lost the device
  quiet_word<bool> flipped;        ///< a draw has changed a byte
  quiet_word<std::uint32_t> met;   ///< troubles that came to pass
  std::int64_t late_ns = 0;        ///< how late an event comes; a stalled copy is twice as late

  /// Events that were lost are seen from now on.
  void release() {
    for (watched_event& each : events_)
      if (each.what != nullptr && each.lost.get()) {
        each.lost.set(false);
        each.bell->ring();
      }
  }
  /// By whoever is told of a batch, in the order of a stream's launches.
  void judge(const batch_span& span) {
    copy_stream& on = streams_.at(span.stream);
    const bool wrong = on.wrong.at(on.judged++ % on.wrong.size());
    if (dead.get()) return;
    if (wrong && span.code == status::ok) fail("a batch that went wrong is reported as well done");
    if (!wrong && span.code != status::ok) fail("a batch that went well is reported as failed");
  }

  std::string name() const override { return inner_.name(); }
  result<std::unique_ptr<stream>> create_stream(stream_priority priority) override {
    auto made = inner_.create_stream(priority);
    if (made) streams_.push_back({made->get(), {}, 0, 0});
    return made;
  }
  result<std::unique_ptr<stream>> wrap_stream(void* native) override {
    return inner_.wrap_stream(native);
  }
  result<std::unique_ptr<cairn::event>> create_event(doorbell* bell) override {
    auto made = inner_.create_event(bell);
    if (made && bell != nullptr) {
      events_.emplace_back();
      events_.back().what = made->get();
      events_.back().bell = bell;
    }
    return made;
  }
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override {
    return inner_.allocate(bytes);
  }
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override {
    return inner_.allocate_pinned(bytes);
  }
  status record(cairn::event& what, stream& on) override;
  status wait(stream& on, cairn::event& what) override;
  event_state query(const cairn::event& what) noexcept override;
  bool capturing(const stream& which) noexcept override { return inner_.capturing(which); }
  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override {
    return inner_.load(plan, memory);
  }
  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override;
  status call(stream& on, void (*function)(void*), void* context) override {
    return inner_.call(on, function, context);
  }
  bool polls() const noexcept override { return inner_.polls(); }

 private:
  struct copy_stream {
    const stream* which = nullptr;
    std::array<bool, 32> wrong{};  ///< by launch; a stream has far fewer that are not judged
    std::uint32_t launched = 0;
    std::uint32_t judged = 0;
  };
  struct watched_event {
    const cairn::event* what = nullptr;
    doorbell* bell = nullptr;
    quiet_word<bool> lost;
    bool fails = false;  ///< the copy thread's
    watched_event() = default;
    watched_event(const watched_event& other) : what(other.what), bell(other.bell) {}
  };

  /// By the copy thread? Streams' threads call no device.
  void called() const {
    if (quiet.get() != 0 && !closing.get() && current_thread() >= scene_threads_)
      fail("a quiet copy thread calls the device");
  }
  [[nodiscard]] bool lost() const { return gone.get() || dead.get(); }
  copy_stream* of(const stream& which) {
    for (copy_stream& each : streams_)
      if (each.which == &which) return &each;
    return nullptr;
  }
  watched_event* of(const cairn::event& which) {
    for (watched_event& each : events_)
      if (each.what == &which) return &each;
    return nullptr;
  }
  /// One of these, or none, as the schedule says.
  trouble draw_of(std::initializer_list<trouble> these) {
    if (drawn.empty() || calm.get()) return trouble::none;
    std::array<trouble, static_cast<std::size_t>(trouble::count)> ways{};
    std::uint32_t count = 1;
    for (const trouble t : these)
      if (drawn.has(t)) ways[count++] = t;
    if (count == 1) return trouble::none;
    const trouble got = ways[draw(count)];
    if (got != trouble::none) met.add(1);
    if (got == trouble::lost) dead.set(true);
    return got;
  }

  static void sleep_job(void* late_ns) {
    static const std::atomic<std::uint32_t> nobody_rings{0};
    const std::int64_t until_ns = now_ns() + *static_cast<std::int64_t*>(late_ns);
    sync::sleep_until(nobody_rings, 0, deadline(std::chrono::nanoseconds(until_ns)));
  }
  static void flip_job(void* byte) { *static_cast<std::byte*>(byte) ^= std::byte{1}; }

  device& inner_;
  std::uint32_t scene_threads_;
  std::vector<copy_stream> streams_;   ///< that carry copies, in the copier's order
  std::vector<watched_event> events_;  ///< that end batches
};

inline status watched_device::record(cairn::event& what, stream& on) {
  called();
  if (dead.get()) return status::device_lost;
  copy_stream* const copies = of(on);
  if (copies == nullptr) {
    // The engine's own.
    const trouble t = draw_of({trouble::full, trouble::fails});
    if (t == trouble::full) return status::queue_full;
    return t == trouble::fails ? status::failed : inner_.record(what, on);
  }
  watched_event& its = *of(what);
  if (its.fails) {  // asked again, to see whether the device answers
    its.fails = false;
    return inner_.record(what, on);
  }
  const trouble t = draw_of({trouble::full, trouble::fails, trouble::event_late,
                             trouble::event_lost, trouble::event_fails, trouble::lost});
  bool& wrong = copies->wrong[(copies->launched - 1) % copies->wrong.size()];
  switch (t) {
    case trouble::lost:
      return status::device_lost;
    case trouble::full:
      return status::queue_full;
    case trouble::fails:
      wrong = true;
      return status::failed;
    case trouble::event_late:
      if (inner_.call(on, sleep_job, &late_ns) != status::ok) return status::queue_full;
      break;
    case trouble::event_lost:
      its.lost.set(true);  // before it can fire
      break;
    case trouble::event_fails:
      its.fails = true;
      wrong = true;
      break;
    default:
      break;
  }
  return inner_.record(what, on);
}

inline status watched_device::wait(stream& on, cairn::event& what) {
  called();
  if (dead.get()) return status::device_lost;
  const trouble t = draw_of({trouble::full, trouble::fails});
  if (t == trouble::full) return status::queue_full;
  return t == trouble::fails ? status::failed : inner_.wait(on, what);
}

inline event_state watched_device::query(const cairn::event& what) noexcept {
  called();
  if (dead.get()) return event_state::failed;
  const event_state real = inner_.query(what);
  if (real != event_state::fired) return real;
  const watched_event* const its = of(what);
  if (its == nullptr) return real;
  if (its->lost.get()) return event_state::pending;
  return its->fails ? event_state::failed : real;
}

inline status watched_device::launch(stream& on, device_plan& plan, copy_kind kind,
                                     std::span<const copy_task> tasks, batch_report* report) {
  called();
  if (lost()) return status::device_lost;
  if (kind == copy_kind::restore && failing.get() != 0) {
    failing.add(~std::uint32_t{0});
    static_cast<void>(inner_.launch(on, plan, kind, tasks, report));  // all of it ran, who knows
    return status::failed;
  }
  const trouble t =
      draw_of({trouble::full, trouble::fails, trouble::fails_late, trouble::copy_fails,
               trouble::stalled, trouble::copy_short, trouble::lost,
               kind == copy_kind::store ? trouble::bit_flip : trouble::none});
  if (t == trouble::lost) return status::device_lost;
  if (t == trouble::full) return status::queue_full;
  copy_stream& copies = *of(on);
  bool& wrong = copies.wrong[copies.launched % copies.wrong.size()];
  wrong = false;
  if (t == trouble::fails) {
    ++copies.launched;
    wrong = true;
    return status::failed;
  }
  if (t == trouble::stalled)
    for (int i = 0; i < 2; ++i) static_cast<void>(inner_.call(on, sleep_job, &late_ns));
  const status code = inner_.launch(
      on, plan, kind, tasks.first(tasks.size() - (t == trouble::copy_short ? 1 : 0)), report);
  if (code == status::queue_full || code == status::busy) return code;
  ++copies.launched;
  wrong = code != status::ok;
  if (t == trouble::copy_fails) {
    report->failed.store(true);
    wrong = true;
  }
  if (t == trouble::bit_flip) {
    flipped.set(true);
    static_cast<void>(inner_.call(on, flip_job, unit_area + tasks[0].units[0] * unit_bytes));
  }
  if (t != trouble::fails_late) return code;
  wrong = true;
  return status::failed;
}

class watched_backend final : public backend {
 public:
  watched_device& add(device& inner, std::uint32_t scene_threads) {
    devices_.push_back(std::make_unique<watched_device>(inner, scene_threads));
    return *devices_.back();
  }
  std::uint32_t device_count() const noexcept override {
    return static_cast<std::uint32_t>(devices_.size());
  }
  watched_device& at(std::uint32_t index) override { return *devices_[index]; }

 private:
  std::vector<std::unique_ptr<watched_device>> devices_;
};

}  // namespace cairn::explore
