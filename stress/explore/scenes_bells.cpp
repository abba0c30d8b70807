// Scenes on who wakes whom: doorbells, events that ring them, and quiet.
#include <array>
#include <atomic>
#include <cairn/backend.hpp>
#include <chrono>
#include <memory>

#include "runtime/host_event.hpp"
#include "runtime/quiescence.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

// ---- bells ------------------------------------------------------------------------------------

/// Work is filed before the ring; the sleeper looks for work after it has read the bell.
template <std::uint32_t Ringers, std::uint32_t Sleepers>
struct bell {
  static constexpr std::uint32_t threads = Ringers + Sleepers;
  doorbell door;
  quiet_word<std::uint32_t> work;

  void run(std::uint32_t t) {
    if (t < Ringers) {
      sync::point();
      work.add(1);
      door.ring();
      return;
    }
    for (;;) {
      const std::uint32_t seen = door.seen();
      sync::point();
      if (work.get() == Ringers) return;
      door.wait(seen, deadline(std::chrono::hours(100)));
    }
  }
  void judge() {}
};
const bool bell_added = add_part<bell<2, 1>>("bell", true);
const bool bell_two_added = add_part<bell<1, 2>>("bell-two-sleepers", true);
const bool bell_four_added = add_part<bell<2, 2>>("bell-two-of-each", true);

/// An event goes away while a stream's thread rings for it.
struct event_close {
  static constexpr std::uint32_t threads = 3;
  std::unique_ptr<doorbell> bell = std::make_unique<doorbell>();
  detail::event_core* core = new detail::event_core(bell.get());
  quiet_word<bool> gone;

  event_close() {
    core->add_reference();
    core->add_reference();
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      core->close();
      gone.set(true);
      core->drop_reference();
      return;
    }
    core->ring();
    core->drop_reference();
  }
  void judge() {}
};
const bool event_close_added = add_part<event_close>("event-close", true);

// ---- quiet ------------------------------------------------------------------------------------

/// Callers ask for quiet; the copy thread uses the device while nobody does. Each side reads what
/// the other wrote.
struct hush {
  static constexpr std::uint32_t threads = 3;
  detail::quiescence word;
  std::uint64_t copied = 0;              // plain: the copy thread's, callers read it in quiet
  std::array<std::uint64_t, 3> given{};  // plain: a caller's in quiet, the copy thread reads it
  quiet_word<std::uint32_t> quiet;

  void copy() {
    if (quiet.get() != 0) fail("a quiet copy thread calls the device");
    copied += 1 + given[1] + given[2];
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      for (int pass = 0; pass < 4; ++pass) {
        if (word.asked())
          static_cast<void>(word.settle());
        else
          copy();
      }
      return;
    }
    word.join();
    for (int i = 0; i < 3; ++i) {
      if (word.look() != detail::quiescence::view::quiet) continue;
      quiet.add(1);
      given[t] = copied;
      quiet.add(~std::uint32_t{0});
      break;
    }
    word.leave();
  }
  void judge() {
    require(word.look() == detail::quiescence::view::running, "quiet lasts, and nobody wants it");
    require(!word.settle() && !word.asked(), "a copy thread is quiet that nobody asked");
  }
};
const bool hush_added = add_part<hush>("hush");

/// Closing ends the quiet for good.
struct hush_close {
  static constexpr std::uint32_t threads = 3;
  detail::quiescence word;

  void run(std::uint32_t t) {
    if (t == 0) {
      for (int pass = 0; pass < 2; ++pass)
        if (word.asked()) static_cast<void>(word.settle());
    } else if (t == 1) {
      word.join();
      static_cast<void>(word.look());
      word.leave();
      word.join();
    } else {
      word.finish();
      require(word.look() == detail::quiescence::view::over && !word.asked(),
              "quiet goes on after the end");
    }
  }
  void judge() {
    require(word.look() == detail::quiescence::view::over, "the end is forgotten");
    word.leave();
    require(!word.settle(), "there is quiet after the end");
  }
};
const bool hush_close_added = add_part<hush_close>("hush-close");

}  // namespace

}  // namespace cairn::explore
