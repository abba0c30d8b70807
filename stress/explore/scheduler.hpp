// Logical threads of one schedule and who of them runs: every access of the explored library is a
// step at which the scheduler may go on with another thread; nothing else ever switches. Waiting is
// the scheduler's too, and so is time, which stands still while anybody can run. Knows nothing of
// the library; a strategy says who goes on.
#pragma once

#include <cstdint>
#include <string>

#include "stress/explore/strategy.hpp"

namespace cairn::explore {

/// What the threads do. Everything that a schedule changes lies in the arena.
class program {
 public:
  virtual ~program() = default;
  [[nodiscard]] virtual std::uint32_t threads() const = 0;
  virtual void run(std::uint32_t thread) = 0;
  /// Once all threads have ended, alone.
  virtual void judge() = 0;
};

struct outcome {
  bool failed = false;
  std::string why;
  std::uint64_t steps = 0;
  std::uint64_t trace = 0;  ///< of who ran when, and of what it did
  std::uint64_t order = 0;  ///< equal for schedules that differ only in independent accesses
  std::uint64_t state = 0;  ///< of the memory at the end
  std::uint64_t draws = 0;
};

struct limits {
  std::uint64_t steps = 200'000;               ///< a schedule that takes more does not progress
  std::int64_t nap_ns = 10 * 1'000'000'000LL;  ///< all sleep for longer: a wake-up was lost
  bool hash_state = true;
};

/// One schedule.
outcome run(program& what, strategy& by, const limits& within);
/// Runs `body` on a stack of its own, so that `fail` may leave it; empty, or why it failed.
std::string guarded(void (*body)(void*), void* context);

/// The schedule is over, and wrong. Does not return on a logical thread.
[[noreturn]] void fail(const std::string& why);
/// How something comes out that the scene leaves to the strategy, of so many ways (2 to ways_max);
/// 0 is the usual, and what comes outside a schedule. A step of nobody's.
std::uint32_t draw(std::uint32_t ways) noexcept;
/// The thread that runs; meaningful inside a schedule.
std::uint32_t current_thread() noexcept;
/// The calling thread runs no more. For the strategy: see strategy.hpp.
std::int64_t now_ns() noexcept;
/// Why a schedule failed in which the tool reported something.
inline constexpr const char* tool_reported = "the tool reported a race";
/// A race was reported by the tool since the schedule began.
void note_report() noexcept;

}  // namespace cairn::explore
