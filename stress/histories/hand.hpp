// What both players share: the names of keys and handles, one thread that writes down its calls,
// and a stretch in which several play. Knows the catalog's plain values only.
#pragma once

#include <atomic>
#include <cairn/types.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "stress/histories/scene.hpp"
#include "tests/threads.hpp"

namespace cairn::histories {

inline checkpoint_key key_of(std::uint32_t n) noexcept {
  return {n * 0x9e3779b97f4a7c15ULL, n + 1ULL};
}

/// A handle as one word, never 0.
inline std::uint64_t word_of(record_handle h) noexcept {
  return std::uint64_t{h.index} << 32 | (std::uint64_t{h.generation} + 1);
}

/// One thread: its choices, and what it writes down.
class hand {
 public:
  [[nodiscard]] const char* wrong() const noexcept { return wrong_; }

 protected:
  hand(stamps& time, std::uint64_t seed, std::uint16_t thread, journal& to)
      : dice_(seed * 64 + thread), thread_(thread), log_(to), time_(time) {
    log_.clear();
  }

  entry began(std::uint32_t key, call what) {
    entry e;
    e.key = key;
    e.thread = thread_;
    e.what = what;
    e.begin = time_.begin();
    return e;
  }
  void ended(entry e, answer said) {
    e.end = time_.end();
    e.said = said;
    log_.push_back(e);
  }
  /// For what becomes known of the latest call after its end.
  entry& latest() { return log_.back(); }
  static answer word_for(status code) noexcept {
    if (code == status::duplicate) return answer::duplicate;
    return code == status::not_found ? answer::no : answer::refused;
  }

  test::dice dice_;
  const std::uint16_t thread_;
  journal& log_;
  const char* wrong_ = nullptr;

 private:
  stamps& time_;
};

/// A stretch: `threads` hands play at once, then `audit(wrong)` looks while nothing moves. What is
/// wrong without a checker is in `why`.
template <class Hand, class World, class Audit>
bool play_hands(World& in, std::uint64_t seed, std::uint32_t threads, std::uint64_t calls,
                std::vector<journal>& logs, std::string& why, Audit&& audit) {
  logs.resize(threads);
  std::atomic<const char*> wrong{nullptr};
  test::together(threads, [&](std::uint32_t t) {
    Hand mine(in, seed, static_cast<std::uint16_t>(t), logs[t]);
    mine.play(calls);
    if (mine.wrong() != nullptr) wrong.store(mine.wrong());
  });
  if (wrong.load() == nullptr) audit(wrong);
  if (wrong.load() == nullptr) return true;
  why = wrong.load();
  return false;
}

/// For each hand, its own.
struct alignas(64) counter {
  std::uint64_t value = 0;
};

}  // namespace cairn::histories
