// Compute on HIP devices in a build without HIP: there are none, so nobody gets here.
#include "bench/replay/bad_input.hpp"
#include "bench/replay/compute_lane.hpp"

namespace cairn::replay {

std::unique_ptr<compute_lane> make_hip_lane(const lane_setup&) {
  throw broken_run("this build of cairn_replay has no kernels");
}

void clear_on_device(device&, rank_id, std::byte*, std::uint64_t) {
  throw broken_run("this build of cairn_replay has no kernels");
}

}  // namespace cairn::replay
