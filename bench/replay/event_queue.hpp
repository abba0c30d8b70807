// Events of the simulation in virtual-time order, and which of them may be handled at once. Knows
// times, not what an event means. Not thread-safe: its owner holds a lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

namespace cairn::replay {

struct sim_event {
  std::int64_t at_us = 0;
  bool arrival = false;
  std::size_t index = 0;         ///< of the request (arrival) or of the slot
  std::uint64_t generation = 0;  ///< of the run in the slot
  std::uint64_t order = 0;       ///< set by push: ties go to the event that was made first
};

class event_queue {
 public:
  explicit event_queue(std::uint32_t threads) : overtakers_(2 * std::uint64_t{threads}) {}

  void push(sim_event made) {
    made.order = orders_++;
    events_.push(made);
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] bool idle() const { return in_hand_.empty(); }

  /// Is there an event that may be taken now? Threads may not run away from one that is slow:
  /// only the next few events are taken at once, and only while they are near in virtual time.
  [[nodiscard]] bool may_take() const {
    if (events_.empty()) return false;
    if (in_hand_.empty()) return true;
    const auto earlier = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto first = std::min_element(in_hand_.begin(), in_hand_.end(), earlier);
    return taken_ - in_hand_.begin()->first < overtakers_ &&
           events_.top().at_us - first->second <= window_us;
  }
  /// Precondition: may_take(). `number` names the event until it is put away.
  sim_event take(std::uint64_t& number) {
    const sim_event next = events_.top();
    events_.pop();
    number = ++taken_;
    in_hand_.emplace(number, next.at_us);
    return next;
  }
  void put_away(std::uint64_t number) { in_hand_.erase(number); }

 private:
  // How far threads may overtake each other in virtual time: far less than any pause between two
  // turns of a conversation.
  static constexpr std::int64_t window_us = 1'000'000;

  struct later {
    bool operator()(const sim_event& a, const sim_event& b) const {
      return a.at_us != b.at_us ? a.at_us > b.at_us : a.order > b.order;
    }
  };
  std::uint64_t overtakers_;
  std::priority_queue<sim_event, std::vector<sim_event>, later> events_;
  std::uint64_t orders_ = 0;
  std::uint64_t taken_ = 0;
  std::map<std::uint64_t, std::int64_t> in_hand_;  // being handled: number, time
};

}  // namespace cairn::replay
