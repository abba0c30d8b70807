// What the differential tests share: seeds, budgets of operations, the tail of a history, and the
// loop over short episodes. Knows nothing of what is compared.
//
//   CAIRN_DIFF_OPS=N   operations per test (default: the test's own)
//   CAIRN_DIFF_SEED=S  the first episode has this seed; a failure prints the one to use
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cairn/types.hpp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>

namespace differential {

/// Small, fast and the same on every machine (std::uniform_int_distribution is not).
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  /// Where draws come from instead of the seed while it is set: a fuzzer's input.
  struct outside {
    std::uint64_t (*draw)(void* context, std::uint64_t bound);
    void* context;
  };
  static inline outside from_outside{};

  /// Below `bound`; 0 when that is 0.
  std::uint32_t below(std::uint64_t bound) {
    if (bound == 0) return 0;
    if (from_outside.draw != nullptr)
      return static_cast<std::uint32_t>(from_outside.draw(from_outside.context, bound));
    return static_cast<std::uint32_t>(engine_() % bound);
  }
  /// In [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(std::uint64_t{high} - low + 1);
  }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  template <class Container>
  auto& pick(Container& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// The last operations of an episode, and whether an answer has differed.
class history {
 public:
  void note(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(lines_[count_++ % lines_.size()].data(), line_length, format, arguments);
    va_end(arguments);
  }
  template <class A, class B>
  void same(const char* what, const A& cairn, const B& model) {
    if (failed() || cairn == model) return;
    failure_ = std::string(what) + ": cairn " + show(cairn) + ", model " + show(model);
  }
  void fail(const std::string& what) {
    if (!failed()) failure_ = what;
  }
  bool failed() const { return !failure_.empty(); }
  std::uint64_t operations() const { return count_; }
  std::string tell() const {
    std::ostringstream text;
    text << failure_ << "\n";
    std::uint64_t first = count_ > lines_.size() ? count_ - lines_.size() : 0;
    for (std::uint64_t i = first; i < count_; ++i)
      text << "  " << i << ": " << lines_[i % lines_.size()].data() << "\n";
    return text.str();
  }

 private:
  template <class T>
  static std::string show(const T& value) {
    if constexpr (std::is_same_v<T, cairn::status>) return cairn::to_string(value);
    return testing::PrintToString(value);
  }

  static constexpr std::size_t line_length = 160;
  std::array<std::array<char, line_length>, 30> lines_{};
  std::uint64_t count_ = 0;
  std::string failure_;
};

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

/// The tests are single-threaded: ThreadSanitizer has little to see, and is slow.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t slowdown = 10;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr std::uint64_t slowdown = 10;
#else
inline constexpr std::uint64_t slowdown = 1;
#endif
#else
inline constexpr std::uint64_t slowdown = 1;
#endif

/// Runs episodes `Episode(seed, history&).step()` until `operations` are spent.
template <class Episode>
void run_episodes(std::uint64_t operations) {
  operations = from_environment("CAIRN_DIFF_OPS", operations / slowdown);
  std::uint64_t seed = from_environment("CAIRN_DIFF_SEED", 1);
  for (std::uint64_t done = 0; done < operations; ++seed) {
    history past;
    Episode episode(seed, past);
    dice length(seed * 2 + 1);
    std::uint32_t steps = length.one_in(4) ? length.between(500, 3000) : length.between(50, 500);
    for (std::uint32_t i = 0; i < steps && !past.failed(); ++i) episode.step();
    if (!past.failed()) episode.finish();
    done += past.operations();
    if (past.failed()) {
      FAIL() << "reproduce with CAIRN_DIFF_SEED=" << seed << "; the last operations:\n"
             << episode.describe() << "\n"
             << past.tell();
    }
  }
}

}  // namespace differential
