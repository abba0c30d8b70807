// What tests of a backend need: a factory, an event with its doorbell, a gate that holds up a
// stream. No test waits for time to pass; deadlines are reached only by failing tests.
#pragma once

#include <cairn/backend.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <semaphore>
#include <thread>
#include <utility>

#include "runtime/sync.hpp"

namespace cairn::tests {

/// Enqueues a function that runs on the host: the host backend's own, or a test's way around a
/// backend that has none.
using stream_call = status (*)(device& on, stream& in, void (*function)(void* context),
                               void* context);
inline status call_of_device(device& on, stream& in, void (*function)(void* context),
                             void* context) {
  return on.call(in, function, context);
}

/// What copies read and write in a test: pinned memory, which the test reaches as it is, or memory
/// of the device, which a function of the test's copies to and from pinned memory.
struct tested_memory {
  using copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes, bool to_device);
  copy across = nullptr;  ///< null: pinned
};

struct backend_factory {
  const char* name;
  result<std::unique_ptr<backend>> (*make)();
  stream_call call = &call_of_device;
  tested_memory memory = {};
  friend std::ostream& operator<<(std::ostream& out, const backend_factory& f) {
    return out << f.name;
  }
};

/// How long a test waits for what must come. Reached only by a failing test.
inline deadline soon() {
  return clock::now() + std::chrono::seconds(30);
}

/// An event and its doorbell.
class awaited_event {
 public:
  explicit awaited_event(device& on)
      : on_(on), event_(std::move(on.create_event(&bell_)).value()) {}
  [[nodiscard]] event& get() { return *event_; }
  [[nodiscard]] event_state state() const { return on_.query(*event_); }
  /// Sleeps on the doorbell, or polls where the backend has none; false after a long time.
  [[nodiscard]] bool fires() {
    const deadline until = soon();
    while (clock::now() < until) {
      const std::uint32_t seen = bell_.seen();
      if (state() != event_state::pending) return state() == event_state::fired;
      if (on_.polls()) {
        std::this_thread::yield();
      } else {
        bell_.wait(seen, until);
      }
    }
    return false;
  }
  [[nodiscard]] doorbell& bell() { return bell_; }

 private:
  device& on_;
  doorbell bell_;  // outlives the event
  std::unique_ptr<event> event_;
};

/// Yields at every third access of a protocol word while it lives, in builds with the hook of
/// runtime/sync.hpp: narrow windows open wide enough to be hit. Other threads are at rest when it
/// comes and goes.
class hasty_threads {
 public:
#if defined(CAIRN_SYNC_HOOK)
  hasty_threads() {
    sync::schedule_hook = []() noexcept {
      thread_local unsigned accesses = 0;
      if (++accesses % 3 == 0) std::this_thread::yield();
    };
  }
  ~hasty_threads() {
    sync::schedule_hook = nullptr;
  }
#else
  hasty_threads() noexcept {}
  ~hasty_threads() noexcept {}
#endif
  hasty_threads(const hasty_threads&) = delete;
  hasty_threads& operator=(const hasty_threads&) = delete;
};

/// Holds up a stream until opened.
class gate {
 public:
  status close(device& d, stream& on, stream_call call = &call_of_device) {
    return call(
        d, on, [](void* self) { static_cast<gate*>(self)->pass(); }, this);
  }
  void open() { open_.release(); }
  /// True once the stream has come to the gate.
  [[nodiscard]] bool reached() { return reached_.try_acquire_until(soon()); }

 private:
  void pass() {
    reached_.release();
    static_cast<void>(open_.try_acquire_until(soon()));
  }
  std::counting_semaphore<> reached_{0};
  std::counting_semaphore<> open_{0};
};

}  // namespace cairn::tests
