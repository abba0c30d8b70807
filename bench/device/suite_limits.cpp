// The kernel's two limits, each over a range while the other stays: work groups of a launch, and
// bytes of a tile. Launches go around the backend, with the words on the device already.
#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "limits";
constexpr const char* peer = "one contiguous copy";

void measure_one(rig& on, workload& of, const std::string& what, const resident_pieces& tiles,
                 std::uint32_t groups, std::uint32_t images, findings& into) {
  into.attempt(on, suite, what, peer, [&] {
    of.verify(images, [&](copy_kind kind) { of.copy_with(tiles, groups, 0, kind, images); });
    const std::uint32_t repetitions = of.repetitions(images);
    const std::vector<double> us = take_turns(
        on.options().rounds, {[&] {
                                return on.on_stream(repetitions, [&](std::uint32_t) {
                                  of.copy_with(tiles, groups, 0, copy_kind::store, images);
                                });
                              },
                              [&] {
                                return on.on_stream(repetitions, [&](std::uint32_t) {
                                  of.copy_contiguous(0, copy_kind::store, images);
                                });
                              }});
    into.rows.push_back(
        more_is_better(suite, what, of.rate(images, us[0]), peer, of.rate(images, us[1]), "GB/s"));
  });
}

}  // namespace

void measure_limits(rig& on, workload& of, findings& into) {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  for (const std::uint32_t images : {sizes[0], sizes[1]}) {
    const std::string shape = of.shape().name + " x" + std::to_string(images);
    for (const std::uint32_t groups : on.group_limits()) {
      const std::string what = shape + " " + std::to_string(groups) + " groups";
      into.attempt(on, suite, what, peer, [&] {
        measure_one(on, of, what, *of.cut(copy_plan::tile_bytes), groups, images, into);
      });
    }
    for (const std::uint64_t kib : {4U, 16U, 32U, 64U, 128U, 256U}) {
      const std::string what = shape + " tiles of " + std::to_string(kib) + " KiB";
      into.attempt(on, suite, what, peer, [&] {
        measure_one(on, of, what, *of.cut(kib << 10), 4 * on.compute_units(), images, into);
      });
    }
  }
}

}  // namespace cairn::bench
