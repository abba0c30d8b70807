// Calls of the GPU runtime: the device that a call needs is current, captures of other threads are
// not harmed, the calling thread is left as it was, and every error becomes a status. Knows no
// streams, events or copies.
#pragma once

#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "kernels/hip_names.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// What an error says about the device. Refusals of the one call leave the device as it was: limit
/// (no memory), busy (a capture forbids it for now), unsupported, failed. Whatever is not known to
/// be one counts as device_lost: after it, nothing proves what the device has done.
[[nodiscard]] status status_of(hipError_t code) noexcept;

/// The error's name, and what the runtime says about it where that is more.
[[nodiscard]] std::string describe(hipError_t code);

/// Whether a device can still be called, and what ended that. A lost one is called no more, not
/// even to free something: it may still use what it was given.
///
///   alive   --lose, who finds it first-->      losing   the cause is being written down
///   losing  --lose, the same thread (1)-->     lost     the cause is there, for good
///
/// Who looks only whether to call (relaxed: a hint that saves calls) takes losing for lost; who
/// wants the cause acquires it (2).
class hip_health {
 public:
  [[nodiscard]] bool lost() const noexcept {
    return stage_.load_relaxed() != alive;  // relaxed: a hint that saves calls
  }
  /// The first cause stays.
  void lose(const char* call, hipError_t code) noexcept {
    std::uint32_t seen = alive;
    if (!stage_.cas_relaxed(seen, losing)) return;  // relaxed: carries nothing, elects the writer
    call_ = call;
    code_ = code;
    stage_.store_release(gone);  // (1) release: pairs with (2)
  }
  /// The call that showed the loss and what it answered; empty while there is none.
  [[nodiscard]] std::string cause() const;

  /// Every result of a call goes through here, except a query's "not ready".
  status judge(const char* call, hipError_t code) noexcept {
    if (code == hipSuccess) return status::ok;
    const status what = status_of(code);
    if (what == status::device_lost) lose(call, code);
    return what;
  }

 private:
  static constexpr std::uint32_t alive = 0;
  static constexpr std::uint32_t losing = 1;
  static constexpr std::uint32_t gone = 2;

  sync::atomic<std::uint32_t> stage_{alive};
  const char* call_ = "";
  hipError_t code_ = hipSuccess;
};

/// Whether an event has fired. Refused because somebody captures means not yet. Anything else
/// proves nothing about the work before the event, and nothing ever will: the device is lost. In a
/// scope.
[[nodiscard]] event_state state_of(hipEvent_t what, hip_health& health) noexcept;

/// Calls again for as long as somebody's capture forbids it. Captures are short; but a thread that
/// captures itself would wait for ever on a runtime that refuses even the relaxed mode.
template <class Call>
hipError_t when_allowed(Call call) noexcept {
  for (;;) {
    const hipError_t code = call();
    if (status_of(code) != status::busy) return code;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The same, where nothing else can be done about what it answers; a lost device is not called.
template <class Call>
void judge_when_allowed(hip_health& health, const char* name, Call call) noexcept {
  if (health.lost()) return;
  static_cast<void>(health.judge(name, when_allowed(call)));
}

/// While it lives, what calls leave in the thread's last error is not the engine's business: the
/// engine would find it after a launch of its own. An error that was there before stays, or at
/// least an error: the runtime keeps one only, and a later one takes its place. But HIP before 7
/// forgets it with the next call that succeeds, any of cairn's too.
class hip_last_error {
 public:
  hip_last_error() noexcept : before_(hipPeekAtLastError()) {}
  ~hip_last_error() {
    if (before_ == hipSuccess && hipPeekAtLastError() != hipSuccess)
      static_cast<void>(hipGetLastError());
  }
  hip_last_error(const hip_last_error&) = delete;
  hip_last_error& operator=(const hip_last_error&) = delete;

 private:
  hipError_t before_;
};

/// While it lives, device `ordinal` is the thread's current one, and the thread's calls are allowed
/// beside other threads' captures and do not end them. Older runtimes refuse some calls all the
/// same. `entered` says whether it is so; nothing may be called when not. A lost device is not
/// called.
///
/// Where the device is not the thread's own, nothing but asking for the current device, setting it
/// and looking at the thread's last error is called outside: any other call might make the process
/// a context on the thread's.
class hip_scope {
 public:
  hip_scope(int ordinal, hip_health& health) noexcept;
  ~hip_scope();
  hip_scope(const hip_scope&) = delete;
  hip_scope& operator=(const hip_scope&) = delete;

  [[nodiscard]] status entered() const noexcept { return entered_; }
  /// Not entered, and what the caller wanted to do must not be left undone.
  void lose() const noexcept { health_.lose(call_, code_); }

 private:
  status enter(int ordinal) noexcept;
  status judge(const char* call, hipError_t code) noexcept {
    call_ = call;
    code_ = code;
    return health_.judge(call, code);
  }

  hip_last_error last_error_;  // first: sees what all the others leave
  hip_health& health_;
  int before_ = 0;
  bool changed_ = false;
  bool relaxed_ = false;
  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;  // then: the thread's own
  const char* call_ = "";                                    // the latest of enter
  hipError_t code_ = hipSuccess;
  status entered_;
};

}  // namespace cairn::detail
