// What a batch costs the thread that launches it: the backend's launch and the recording behind it,
// on a stream that has room. Against the least that any launch costs here, a bare kernel and an
// event.
#include <limits>

#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "host";

/// Median over calls, in microseconds; the stream is drained before it could push back.
double us_per_call(rig& on, const std::function<void()>& call) {
  constexpr std::uint32_t drains = 24;
  constexpr std::uint32_t calls = 8;
  std::vector<double> samples;
  for (std::uint32_t drain = 0; drain < (on.options().small ? 2 : drains); ++drain) {
    on.synchronise();
    for (std::uint32_t i = 0; i < calls; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      const auto took = std::chrono::steady_clock::now() - begin;
      samples.push_back(std::chrono::duration<double, std::micro>(took).count());
    }
  }
  on.synchronise();
  return median(std::move(samples));
}

}  // namespace

void measure_host_cost(rig& on, workload& of, findings& into) {
  for (const std::uint32_t images : batch_sizes()) {
    const std::string what = of.shape().name + " x" + std::to_string(images) +
                             (of.fits_inline(images) ? " inline" : " staged");
    constexpr const char* peer = "a bare launch and an event";
    into.attempt(on, suite, what, peer, [&] {
      timed_event behind;
      const std::vector<double> us = take_turns(
          std::min(on.options().rounds, 3U),
          {[&] { return us_per_call(on, [&] { of.copy(0, copy_kind::store, images); }); },
           [&] {
             return us_per_call(on, [&] {
               check(launch(burn_work{1, std::numeric_limits<float>::quiet_NaN(), on.sink()}, 1,
                            on.native(0)),
                     "launch");
               behind.record(on.native(0));
             });
           }});
      into.rows.push_back(less_is_better(suite, what, us[0], peer, us[1], "us/batch", 8.0));
    });
  }
}

}  // namespace cairn::bench
