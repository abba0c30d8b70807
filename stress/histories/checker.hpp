// Is a history of one key linearizable? Exact: no window, no sampling. Knows the model of a key and
// nothing of how the history came about.
//
// Wing and Gong's search in the form of Lowe ("Testing for linearizability", 2017): the events are
// replayed in order of their stamps. After each, the checker holds every *configuration* that could
// be: the key's state, and which of the calls under way have taken effect already. A call's effect
// is tried only when some call must have had its effect, at its end; what is under way may go
// first, in every order. No configuration left: no order of effects explains the answers. Calls
// are under way as long as they were; a thread that was preempted inside one holds it open across
// thousands of others, at the cost of one bit.
//
// One call may have several effects: clear goes from record to record, so of one key it may remove
// the image that was there when it began and another that was stored meanwhile. It removes at least
// what is there at one moment, and may do so again until it ends.
//
// Keys are independent (linearizability is local: Herlihy and Wing, 1990), so each is checked
// alone. What is known at the end of one stretch of history is where the next one starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/histories/history.hpp"
#include "stress/histories/key_model.hpp"

namespace cairn::histories {

struct check_figures {
  std::uint64_t calls = 0;
  std::uint64_t overlapped = 0;  ///< calls during which another one of the same key was under way
  std::uint64_t longest = 0;     ///< most calls that ended while one was under way
  std::uint64_t widest = 0;      ///< most calls under way at once
  std::uint64_t configurations = 0;  ///< most at once

  void merge(const check_figures& other) noexcept;
};

class key_checker {
 public:
  /// Nothing is stored under the key.
  void reset();
  /// Goes on with all calls of a stretch at whose ends no call was under way. `calls` get sorted.
  /// False when they cannot be explained; then `why` tells.
  bool check(std::vector<entry>& calls, const rules& with, std::string& why);

  [[nodiscard]] const check_figures& figures() const noexcept { return figures_; }

 private:
  struct configuration {
    key_state state;
    std::uint64_t done = 0;  ///< of the calls under way, by their bits
    friend bool operator==(const configuration&, const configuration&) = default;
  };
  struct under_way {
    const entry* what = nullptr;
    bool crowded = false;
    std::uint64_t ended_before = 0;
  };

  void open(const entry& e);
  bool close(const entry& e, const rules& with);
  void keep(const configuration& c);
  void explore(const configuration& from, std::uint32_t must, const rules& with);
  [[nodiscard]] bool may_precede(const entry& e, const configuration& at) const;
  [[nodiscard]] std::string tell(const std::vector<entry>& calls, const entry& at) const;

  std::vector<configuration> now_{configuration{}};
  std::vector<configuration> next_;
  std::vector<configuration> seen_;
  under_way slots_[64];
  std::uint64_t open_ = 0;    ///< bits of slots_ in use
  std::uint64_t clears_ = 0;  ///< those of them that are calls of clear
  std::uint64_t ended_ = 0;
  check_figures figures_;
};

}  // namespace cairn::histories
