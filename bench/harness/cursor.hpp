// Threads that go round in one stream, each from a place of its own on, and on from where it
// stopped: so far from the others that none finds in the caches what they have just touched. Knows
// nothing of what the stream is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::bench {

/// Of a contest.
inline constexpr std::uint32_t threads_max = 8;

template <class T>
class cursor {
 public:
  /// The stream must outlive it.
  explicit cursor(const std::vector<T>& stream) : stream_(stream), places_(threads_max) {
    for (std::size_t i = 0; i < threads_max; ++i) places_[i].at = i * (stream.size() / threads_max);
  }
  /// Calls each(element) -> number for the thread's next `ops` elements.
  template <class Each>
  void walk(std::uint32_t thread, std::uint64_t ops, Each&& each) {
    place& mine = places_[thread];
    std::size_t at = mine.at;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < ops; ++i) {
      sum += each(stream_[at]);
      if (++at == stream_.size()) at = 0;
    }
    mine.at = at;
    mine.sum += sum;
  }

 private:
  struct alignas(64) place {
    std::size_t at = 0;
    std::uint64_t sum = 0;  ///< what was found: so that finding it is not left out
  };
  const std::vector<T>& stream_;
  std::vector<place> places_;
};

}  // namespace cairn::bench
