// A scene: a small world, the calls that meet in it, and what must hold afterwards. Scenes register
// themselves by name; the explorer knows no more of them than this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stress/explore/scheduler.hpp"

namespace cairn::explore {

class scene : public program {
 public:
  /// Makes the world, in the arena. Once per process.
  virtual void build() = 0;
};

struct scene_entry {
  std::string name;
  /// catalog, pool, parts, runtime... One that ends in `-plain` is not for ThreadSanitizer: its
  /// fibers share what the library keeps for their one real thread (a buffer), which the tool takes
  /// for a race.
  std::string group;
  /// Threads that may wait for others: the freeze test leaves them out.
  bool waits = false;
  std::unique_ptr<scene> (*make)(const scene_entry& self) = nullptr;
  const void* data = nullptr;  ///< for make
};

/// All of them, by name.
const std::vector<scene_entry>& scenes();
const scene_entry* find_scene(const std::string& name);
void add_scene(scene_entry entry);

/// Fails the schedule unless it holds.
inline void require(bool holds, const char* text) {
  if (!holds) fail(text);
}

}  // namespace cairn::explore
