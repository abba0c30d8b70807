// Lanes of the double: what a kernel's calls do to memory, and how lanes of a wave meet.
//
// A launch is run by crews. A crew has as many threads as a wave has lanes, each of which is one
// lane of the crew's waves, one wave after another; crew k of n takes every n-th wave, so waves of
// different crews run at once, and those of different groups beside each other. Lanes meet wherever
// they exchange registers, and at a wave's end, all of them: who comes first sleeps. A meeting is
// for one purpose; lanes that come for different ones have parted ways, which a device does not
// forgive. With waves of one lane and one crew, the stream's own thread is the lane.
//
// Memory is as weak as a device's, as far as kernels of cairn depend on it, so that a fence that is
// not there shows:
//   * an addition whose answer nobody reads is posted, and takes effect at the lane's next fence;
//   * other atomic accesses order nothing, except right behind a fence (release), and before the
//   next
//     one (acquire): to ThreadSanitizer, what is not fenced is a race;
//   * an exchange takes a word out for which others have ceased to add: an ordinary access, so that
//   it
//     races with every addition that it is not ordered after;
//   * a shuffle orders nothing: it hands over registers. Only __syncwarp does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/hip_double/state.hpp"

namespace cairn::tests::hip {

/// What one lane has done to memory and not yet ordered.
class lane_memory {
 public:
  template <class Word>
  void post(Word* at, Word by);
  /// Takes effect at once; the value before.
  template <class Word>
  Word add(Word* at, Word by);
  unsigned long long exchange(unsigned long long* at, unsigned long long value);
  void fence();
  /// The lane's end in this kernel: everything has taken effect.
  void end();

 private:
  /// What was posted takes effect.
  void settle();

  struct posted {
    void* at;
    std::uint64_t by;
    std::size_t bytes;
  };
  std::vector<posted> posted_;
  std::vector<const unsigned*> read_;  ///< since the last fence
  bool fenced_ = false;                ///< nothing done since the last fence
};

enum class purpose : std::uint32_t { shuffle, order, end };

/// The lanes of one wave at a time, each a thread.
class crew {
 public:
  explicit crew(std::uint32_t lanes);

  /// Lane `lane` comes with a value; returns when all lanes have come. Orders nothing in the eyes
  /// of ThreadSanitizer. False: they came for different purposes.
  bool meet(std::uint32_t lane, purpose why, std::uint64_t value);
  /// What a lane brought to the meeting that `lane` has just left.
  [[nodiscard]] std::uint64_t brought(std::uint32_t lane, std::uint32_t by) const;
  /// All lanes before it happens before all of them after it.
  void order(std::uint32_t lane);
  [[nodiscard]] std::uint32_t lanes() const noexcept { return lanes_; }
  /// Lanes that should have met did not.
  void part() noexcept { parted_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool parted() const noexcept { return parted_.load(std::memory_order_relaxed); }

 private:
  struct place {
    std::uint32_t meetings = 0;  ///< that the lane has come to
    purpose why[2] = {};         ///< of the latest two: some are still at the one before
    std::uint64_t value[2] = {};
  };
  std::uint32_t lanes_;
  std::unique_ptr<place[]> places_;
  std::uint32_t arrived_ = 0;   ///< at meetings, all together
  std::uint32_t finished_ = 0;  ///< meetings
  std::atomic<std::uint32_t> ordered_{0};
  std::atomic<bool> parted_{false};
};

/// Groups of a grid, threads of a group.
[[nodiscard]] inline std::uint64_t count(const dim3& size) noexcept {
  return std::uint64_t{size.x} * size.y * size.z;
}

/// Runs a kernel on all lanes of its groups.
void run_lanes(const bound_kernel& kernel, const dim3& grid, const dim3& group,
               const wave_plan& how);

}  // namespace cairn::tests::hip
