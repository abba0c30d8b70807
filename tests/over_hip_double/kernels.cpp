// Tells the double the kernels of cairn_replay's compute.
#include "bench/replay/compute_hip_kernels.hpp"
#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests::hip {
namespace {

using namespace cairn::replay;

template <class T>
bool on_device(int device, const T* first, std::size_t count) {
  return count == 0 || reachable(device, first, count * sizeof(T));
}

bool sound_tables(int device, const step_tables& of) {
  return on_device(device, of.regions, of.region_count) &&
         on_device(device, of.segments, of.segment_count) &&
         on_device(device, of.gaps, of.gap_count);
}

[[maybe_unused]] const bool registered = [] {
  register_kernel(&verify_step, [](int device, const verify_work& work) {
    return sound_tables(device, work.tables) &&
           on_device(device, work.claimed, work.claimed_count) &&
           on_device(device, work.verdicts, 1 + work.claimed_count);
  });
  register_kernel(&write_step, [](int device, const write_work& work) {
    return sound_tables(device, work.tables) &&
           on_device(device, work.computed, work.computed_count);
  });
  register_kernel(&set_bytes, [](int device, const set_work& work) {
    return on_device(device, work.to, work.bytes);
  });
  register_kernel(&spoil_byte,
                  [](int device, const spoil_work& work) { return on_device(device, work.at, 1); });
  return true;
}();

}  // namespace
}  // namespace cairn::tests::hip
