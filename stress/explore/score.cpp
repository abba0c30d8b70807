// Looking for known faults: the attack must be able to win.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "stress/explore/campaign.hpp"

namespace cairn::explore {

namespace {

#if defined(CAIRN_EXPLORE_ON_TSAN)
constexpr bool tool = true;
#else
constexpr bool tool = false;
#endif

unsigned long long wide(std::uint64_t n) {
  return n;
}

}  // namespace

bool explore_faults(const plan& how, const std::string& only, const std::string& scene,
                    std::uint64_t median_max) {
  std::vector<std::uint64_t> needed;
  std::uint32_t tried = 0;
  std::uint32_t missed = 0;
  std::uint32_t blind_to = 0;
  plan one = how;
  one.jobs = 1;
  one.shrink = false;
  const fault_list all = known_faults();
  for (std::size_t i = 0; i < all.count; ++i) {
    const fault& f = all.begin[i];
    if (!only.empty() && only != f.name) continue;
    const std::string in = scene.empty() ? f.scene : scene;
    const scene_entry* where = find_scene(in);
    if (where == nullptr) {
      std::printf("%-36s BROKEN: no scene '%s'\n", f.name, in.c_str());
      ++missed;
      continue;
    }
    if (const std::string trouble = arm(f); !trouble.empty()) {
      std::printf("%-36s BROKEN: %s\n", f.name, trouble.c_str());
      ++missed;
      continue;
    }
    disarm();
    // A missing order is for ThreadSanitizer; a scene that is not for it would be "found" by a
    // report that has nothing to do with the fault.
    if (tool ? where->group.ends_with("-plain") : f.kind == fault_kind::relaxed) {
      ++blind_to;
      continue;
    }
    ++tried;
    plan with = one;
    if (f.strategy != nullptr) with.strategy = f.strategy;
    const tally t = explore_apart(*where, with, &f);
    if (t.failed) {
      needed.push_back(std::max<std::uint64_t>(1, t.failed_after));
      std::printf("%-36s %-24s found in %6llu: %s\n", f.name, in.c_str(), wide(needed.back()),
                  t.why);
      if (!only.empty() && t.again[0] != '\0')
        std::printf("  again: explore --fault \"%s\" %s\n", f.name, t.again);
    } else {
      ++missed;
      std::printf("%-36s %-24s MISSED in %llu schedules, met %llu times\n", f.name, in.c_str(),
                  wide(t.schedules), wide(t.fault_hits));
    }
    std::fflush(stdout);
  }
  std::sort(needed.begin(), needed.end());
  std::printf("%zu of %u faults found, median %llu schedules, most %llu", needed.size(), tried,
              wide(needed.empty() ? 0 : needed[needed.size() / 2]),
              wide(needed.empty() ? 0 : needed.back()));
  if (blind_to > 0)
    std::printf(" (%u are for a build %s ThreadSanitizer)", blind_to, tool ? "without" : "with");
  std::printf("\n");
  const bool quick = needed.empty() || median_max == 0 || needed[needed.size() / 2] <= median_max;
  if (!quick) std::printf("explore: the median is above %llu schedules\n", wide(median_max));
  return missed == 0 && tried > 0 && quick;
}

}  // namespace cairn::explore
