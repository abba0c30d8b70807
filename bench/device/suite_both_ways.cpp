// Stores and restores at once: on two streams, as a copier has them, and in one launch whose images
// go both ways, against one after the other; the former also against contiguous copies on as many
// streams. Says whether the directions should share a launch.
#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "both";

void two_streams(rig& on, workload& of, std::uint32_t images, findings& into) {
  const std::string what = of.shape().name + " x" + std::to_string(images) + " on two streams";
  constexpr const char* peer = "one after the other";
  into.attempt(on, suite, what, peer, [&] {
    of.verify(images);
    const std::uint32_t repetitions = (of.repetitions(images) + 1) / 2;
    const std::vector<double> us =
        take_turns(on.options().rounds, {[&] {
                                           return on.on_streams(repetitions, [&](std::uint32_t) {
                                             of.copy(0, copy_kind::store, images);
                                             of.copy(1, copy_kind::restore, images);
                                           });
                                         },
                                         [&] {
                                           return on.on_stream(repetitions, [&](std::uint32_t) {
                                             of.copy(0, copy_kind::store, images);
                                             of.copy(0, copy_kind::restore, images);
                                           });
                                         },
                                         [&] {
                                           return on.on_streams(repetitions, [&](std::uint32_t) {
                                             of.copy_contiguous(0, copy_kind::store, images);
                                             of.copy_contiguous(1, copy_kind::restore, images);
                                           });
                                         }});
    const double rate = of.rate(2 * images, us[0]);
    into.rows.push_back(
        more_is_better(suite, what, rate, peer, of.rate(2 * images, us[1]), "GB/s"));
    into.rows.push_back(more_is_better(suite, what, rate, "contiguous copies on two streams",
                                       of.rate(2 * images, us[2]), "GB/s"));
  });
}

void one_launch(rig& on, workload& of, std::uint32_t images, findings& into) {
  const std::string what = of.shape().name + " x" + std::to_string(images) + " in one launch";
  constexpr const char* peer = "two launches, half each";
  into.attempt(on, suite, what, peer, [&] {
    const std::uint32_t groups = 4 * on.compute_units();
    const std::unique_ptr<resident_pieces> tiles = of.cut(copy_plan::tile_bytes);
    of.verify(images, [&](copy_kind kind) { of.copy_with(*tiles, groups, 0, kind, images); });
    const std::uint32_t repetitions = of.repetitions(images);
    const std::vector<double> us = take_turns(
        on.options().rounds, {[&] {
                                return on.on_stream(repetitions, [&](std::uint32_t) {
                                  of.copy_with(*tiles, groups, 0, copy_kind::store, images, true);
                                });
                              },
                              [&] {
                                return on.on_stream(repetitions, [&](std::uint32_t) {
                                  of.copy_with(*tiles, groups, 0, copy_kind::store, images / 2);
                                  of.copy_with(*tiles, groups, 0, copy_kind::restore, images / 2);
                                });
                              }});
    into.rows.push_back(
        more_is_better(suite, what, of.rate(images, us[0]), peer, of.rate(images, us[1]), "GB/s"));
  });
}

}  // namespace

void measure_both_ways(rig& on, workload& of, findings& into) {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  two_streams(on, of, sizes[0], into);
  two_streams(on, of, sizes[1], into);
  one_launch(on, of, sizes[1], into);
  one_launch(on, of, sizes[2], into);
}

}  // namespace cairn::bench
