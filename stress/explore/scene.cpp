#include "stress/explore/scene.hpp"

#include <algorithm>

namespace cairn::explore {

namespace {

std::vector<scene_entry>& all() {
  static std::vector<scene_entry> list;
  return list;
}

}  // namespace

void add_scene(scene_entry entry) {
  all().push_back(std::move(entry));
  std::sort(all().begin(), all().end(),
            [](const scene_entry& a, const scene_entry& b) { return a.name < b.name; });
}

const std::vector<scene_entry>& scenes() {
  return all();
}

const scene_entry* find_scene(const std::string& name) {
  for (const scene_entry& each : all())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace cairn::explore
