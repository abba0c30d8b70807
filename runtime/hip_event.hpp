// An event of the HIP backend: two of the runtime's, of which one holds the position. Knows no
// streams but the one that a recording names, and no captures but that one may take a recording.
//
// Two, because the runtime's event moves whatever comes of a recording, also when a capture that
// began meanwhile takes it for its graph: to query that one would spoil the capture, and to wait
// for it would make the waiting stream part of the graph. So a recording goes to the runtime's
// event that holds no position (the target), and only when it is proved to be in the stream does
// the target hold the position: before, and after a refusal, all is as it was.
//
// Recordings of one event may overlap (a caller that is held up for as long as others take to use
// all positions of a fence ring). Those go to one target, so that of them the latest counts, as the
// runtime orders them. When one of them is on a stream that the engine may capture, it may be taken
// for a graph after another was shown: then nothing is asked while they are under way (mixed), nor
// afterwards when one was refused, until a recording comes alone.
//
//   at rest         --begin-->                one under way   target: the one not shown
//   one under way   --begin-->                mixed           the same target; mixed when one of
//                                                             them may be taken
//   under way       --end, in the stream-->   the same        the target is shown from now on
//   one under way   --end-->                  at rest
//   mixed           --the last end, and none of them was refused-->  at rest
//   mixed           --the last end, and one of them was refused-->   mixed, at rest
//   mixed, at rest  --begin-->                mixed, one under way
//   mixed, one      --end, in the stream-->   at rest         refused: mixed, at rest again
//
// All of it is one word, and relaxed: it carries nothing. Who must see a recording comes after it
// by the callers' own order, and then sees its word; the runtime orders a recording and a wait that
// overlap, either way round. Who has read the word and is held up before its call, for as long as
// two later recordings take, may meet a target instead: also a later position, but a capture may
// take that one. In a fence ring two recordings of an event are hundreds of steps apart.
#pragma once

#include <bit>
#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/bit_fields.hpp"
#include "runtime/hip_objects.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

class hip_event final : public event {
 public:
  hip_event(std::shared_ptr<hip_context> on, hipEvent_t first, hipEvent_t second) noexcept
      : on_(std::move(on)), natives_{first, second} {}
  ~hip_event() override {
    const hip_scope scope(on_->ordinal, on_->health);
    if (scope.entered() != status::ok) return;
    for (const hipEvent_t each : natives_)
      judge_when_allowed(on_->health, "hipEventDestroy", [&] { return hipEventDestroy(each); });
  }
  hip_event(const hip_event&) = delete;
  hip_event& operator=(const hip_event&) = delete;

  [[nodiscard]] hip_context& on() const noexcept { return *on_; }

  /// A recording begins: what to record. `end` follows. `takeable`: the engine may capture the
  /// stream.
  [[nodiscard]] hipEvent_t begin(bool takeable) noexcept {
    position now = load();
    position next{};
    do {
      next = now;
      if (now.under_way == 0) {
        next.target = now.shown == 0 ? 1 : 0;
        next.refused = 0;
        next.takeable = 0;
      }
      if (takeable) next.takeable = 1;
      if (now.under_way != 0 && next.takeable != 0) next.mixed = 1;
      ++next.under_way;
    } while (!exchanged(now, next));
    return natives_[next.target];
  }
  /// Whether it is in the stream; if not, the event stays where it was.
  void end(bool in_stream) noexcept {
    position now = load();
    position next{};
    do {
      next = now;
      --next.under_way;
      if (in_stream) {
        next.recorded = 1;
        next.shown = now.target;
      } else {
        next.refused = 1;
      }
      if (next.under_way == 0 && next.refused == 0) next.mixed = 0;
    } while (!exchanged(now, next));
  }

  struct latest {
    bool recorded = false;
    hipEvent_t what = nullptr;  ///< null: nobody can tell for now
  };
  [[nodiscard]] latest look() const noexcept {
    const position now = load();
    return {now.recorded != 0, now.mixed != 0 ? nullptr : natives_[now.shown]};
  }

 private:
  struct position {
    std::uint32_t shown : 1;     ///< of the runtime's two events the one that holds the position
    std::uint32_t target : 1;    ///< of the recordings that are under way
    std::uint32_t recorded : 1;  ///< ever
    std::uint32_t takeable : 1;  ///< one of those that are or were under way together
    std::uint32_t mixed : 1;     ///< such recordings overlap
    std::uint32_t refused : 1;   ///< one of those that are or were under way together
    std::uint32_t under_way : 26;
  };

  [[nodiscard]] position load() const noexcept {
    return std::bit_cast<position>(word_.load_relaxed());  // relaxed: see above
  }
  /// False: `now` is what stands there.
  bool exchanged(position& now, position next) noexcept {
    auto seen = std::bit_cast<std::uint32_t>(now);
    // Relaxed: see above.
    const bool done = word_.cas_relaxed(seen, std::bit_cast<std::uint32_t>(next));
    now = std::bit_cast<position>(seen);
    return done;
  }

  std::shared_ptr<hip_context> on_;
  hipEvent_t natives_[2];
  sync::atomic<std::uint32_t> word_{0};
};

}  // namespace cairn::detail
