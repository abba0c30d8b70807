// Stacks that can be switched between: Boost.Context, and beside it ThreadSanitizer's fibers, so
// that to the tool each is a thread. Knows no schedule.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace cairn::explore {

/// A place to run. The default one is the caller's own stack.
class fiber {
 public:
  using entry = void (*)();

  fiber() = default;
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Makes the caller's stack a fiber.
  void adopt();
  /// A new stack, if there is none, that begins `run` when it is switched to. What was on it is
  /// given up without unwinding.
  void begin(entry run);
  /// Suspends `from`, which is running, and goes on with this one. Orders nothing.
  void resume(fiber& from) noexcept;
  /// Brings the order of what was given up on this stack to the caller, `from`.
  void give_up(fiber& from) noexcept;

 private:
  boost::context::detail::fcontext_t context_ = nullptr;
  std::byte* stack_ = nullptr;
  [[maybe_unused]] void* tool_ = nullptr;
};

/// What happened before a release happens after the next acquire, in the eyes of the tool.
void tool_release(void* token) noexcept;
void tool_acquire(void* token) noexcept;

}  // namespace cairn::explore
