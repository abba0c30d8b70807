// Running a case so that a failure costs that case only.
#include "bench/device/suites.hpp"

namespace cairn::bench {

void findings::attempt(rig& on, const std::string& suite, const std::string& what,
                       const std::string& peer, const std::function<void()>& body) {
  if (on.out_of_time()) {
    rows.push_back(without_figures(suite, what, peer, "not begun: out of time", true));
    broken = true;
    return;
  }
  try {
    body();
  } catch (const broken_case& why) {
    rows.push_back(without_figures(suite, what, peer, why.what(), true));
    broken = true;
    try {
      on.synchronise();  // what the case has left behind
    } catch (const broken_case&) {
      // A lost device: every further case will say so.
    }
  }
}

std::vector<std::uint32_t> batch_sizes() {
  return {1, 16, 128};
}

}  // namespace cairn::bench
