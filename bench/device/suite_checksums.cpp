// What the checksums of images cost: batches with them, as shipped, against batches without.
#include "bench/device/suites.hpp"

namespace cairn::bench {

void measure_checksums(rig& on, workload& of, findings& into) {
  constexpr const char* suite = "sums";
  constexpr const char* peer = "without checksums";
  for (const std::uint32_t images : batch_sizes())
    for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
      const std::string what =
          of.shape().name + " x" + std::to_string(images) + " " + name_of(kind);
      into.attempt(on, suite, what, peer, [&] {
        const std::uint32_t repetitions = of.repetitions(images);
        const auto us_with = [&](bool checksums) {
          return on.on_stream(
              repetitions, [&, checksums](std::uint32_t) { of.copy(0, kind, images, checksums); });
        };
        const std::vector<double> us = take_turns(
            on.options().rounds, {[&] { return us_with(true); }, [&] { return us_with(false); }});
        into.rows.push_back(more_is_better(suite, what, of.rate(images, us[0]), peer,
                                           of.rate(images, us[1]), "GB/s"));
      });
    }
}

}  // namespace cairn::bench
