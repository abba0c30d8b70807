// A batch against what an engine without a kernel of its own would do: a call of the runtime for
// every span, or the runtime's batched copy; and, on the same clock, against one contiguous copy.
// By the wall clock, to the end of the work: such calls cost the host, and that is the point.
#include "bench/device/batched_copy.hpp"
#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "calls";

void copy_by_calls(workload& of, hipStream_t on, std::uint32_t images) {
  for (const span_copy& each : of.spans(copy_kind::store, images))
    check(hipMemcpyAsync(each.to, each.from, each.bytes, hipMemcpyDeviceToDevice, on),
          "hipMemcpyAsync");
}

/// Few rounds: a sample may be hundreds of thousands of calls.
std::uint32_t rounds_for(const rig& on) {
  constexpr std::uint32_t enough = 3;
  return std::min(on.options().rounds, enough);
}

std::uint32_t repetitions_for(const rig& on) {
  constexpr std::uint32_t repetitions = 8;
  return on.options().small ? 1 : repetitions;
}

double wall_us(rig& on, workload& of, std::uint32_t images) {
  return on.on_wall(repetitions_for(on),
                    [&](std::uint32_t) { of.copy(0, copy_kind::store, images); });
}

void against_calls(rig& on, workload& of, std::uint32_t images, const std::string& what,
                   findings& into) {
  constexpr const char* peer = "one call per span";
  into.attempt(on, suite, what, peer, [&] {
    of.verify(images);
    const std::vector<double> us = take_turns(
        rounds_for(on), {[&] { return wall_us(on, of, images); },
                         [&] {
                           return on.on_wall(
                               1, [&](std::uint32_t) { copy_by_calls(of, on.native(0), images); });
                         },
                         [&] {
                           return on.on_wall(repetitions_for(on), [&](std::uint32_t) {
                             of.copy_contiguous(0, copy_kind::store, images);
                           });
                         }});
    // The goal names spans of 8 KiB.
    const std::optional<double> bar =
        of.shape().name == spans_of_8_kib().name ? std::optional(20.0) : std::nullopt;
    into.rows.push_back(times_faster(suite, what, us[0], peer, us[1], "us", bar));
    into.rows.push_back(times_faster(suite, what, us[0], "one contiguous copy", us[2], "us"));
  });
}

void against_batched(rig& on, workload& of, std::uint32_t images, const std::string& what,
                     findings& into) {
  if (batched_copy_name() == nullptr) {
    into.rows.push_back(without_figures(suite, what, "the runtime's batched copy",
                                        "absent from this runtime", false));
    return;
  }
  try {
    batched_copy batched(of.spans(copy_kind::store, images));
    const std::vector<double> us = take_turns(
        rounds_for(on),
        {[&] { return wall_us(on, of, images); },
         [&] { return on.on_wall(1, [&](std::uint32_t) { batched.enqueue(on.native(0)); }); }});
    into.rows.push_back(times_faster(suite, what, us[0], batched_copy_name(), us[1], "us"));
  } catch (const broken_case& refused) {
    // A peer that does not work is a finding, not a failure of this benchmark.
    into.rows.push_back(without_figures(suite, what, batched_copy_name(), refused.what(), false));
    on.synchronise();
  }
}

}  // namespace

void measure_calls(rig& on, workload& of, findings& into) {
  for (const std::uint32_t images : batch_sizes()) {
    const std::string what = of.shape().name + " x" + std::to_string(images) + " store";
    against_calls(on, of, images, what, into);
    into.attempt(on, suite, what, "the runtime's batched copy",
                 [&] { against_batched(on, of, images, what, into); });
  }
}

}  // namespace cairn::bench
