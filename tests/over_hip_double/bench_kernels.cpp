// Tells the double the kernels of device_bench.
#include "bench/device/kernels.hpp"
#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests::hip {
namespace {

using namespace cairn::bench;

template <class T>
bool on_device(int device, const T* first, std::size_t count) {
  return count == 0 || reachable(device, first, count * sizeof(T));
}

[[maybe_unused]] const bool registered = [] {
  register_kernel(&fill_memory, [](int device, const fill_work& work) {
    return on_device(device, work.to, work.bytes);
  });
  register_kernel(&compare_ends, [](int device, const compare_work& work) {
    const copy_tables& of = work.tables;
    return on_device(device, of.tiles, of.tiles_per_image) &&
           on_device(device, work.words,
                     std::size_t{work.images} * words_per_image(of.units_per_image)) &&
           on_device(device, work.differing, 1);
  });
  register_kernel(&burn_cycles, [](int device, const burn_work& work) {
    return on_device(device, work.sink, 1);
  });
  register_kernel(&stream_memory, [](int device, const stream_work& work) {
    return on_device(device, work.to, work.count) && on_device(device, work.a, work.count) &&
           on_device(device, work.b, work.count);
  });
  return true;
}();

}  // namespace
}  // namespace cairn::tests::hip
