// What the process holds of memory, over time: what is resident, and what of the heap is in use.
// The latter knows nothing of what sanitizers and allocators keep (shadow, quarantine, pages that
// came back), so that it shows a leak in a minute, in every build. Knows nothing of who takes
// memory.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAIRN_SOAK_SANITIZED
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif
#endif

namespace cairn::soak {

class memory_curve {
 public:
  void add() {
    points_.push_back(
        {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
         resident_kib(), heap_kib()});
  }
  /// Per minute, once the first third is over: until then tables fill and threads come. 0 when what
  /// is left is too short to tell.
  [[nodiscard]] double resident_slope_kib() const { return slope(&point::resident_kib); }
  [[nodiscard]] double heap_slope_kib() const { return slope(&point::heap_kib); }

 private:
  struct point {
    double seconds;
    double resident_kib;
    double heap_kib;
  };

  static constexpr double seconds_min = 10;

  static double resident_kib() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    file >> total >> resident;
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
  }
  static double heap_kib() {
#if defined(CAIRN_SOAK_SANITIZED)
    return static_cast<double>(__sanitizer_get_current_allocated_bytes()) / 1024;
#else
    const struct mallinfo2 now = mallinfo2();
    return static_cast<double>(now.uordblks + now.hblkhd) / 1024;
#endif
  }

  /// Of the line that fits best.
  [[nodiscard]] double slope(double point::*what) const {
    const std::size_t first = points_.size() / 3;
    const auto count = static_cast<double>(points_.size() - first);
    if (count < 3 || points_.back().seconds - points_[first].seconds < seconds_min) return 0;
    double t = 0, m = 0, tt = 0, tm = 0;
    for (std::size_t i = first; i < points_.size(); ++i) {
      const double x = points_[i].seconds - points_[first].seconds;
      const double y = points_[i].*what;
      t += x;
      m += y;
      tt += x * x;
      tm += x * y;
    }
    return (count * tm - t * m) / (count * tt - t * t) * 60;
  }

  std::vector<point> points_;
};

}  // namespace cairn::soak
