// Batches of images, as a copier launches them, against a contiguous copy of as many bytes.
#include <algorithm>
#include <array>

#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "images";
constexpr const char* peer = "one contiguous copy";
constexpr std::array both = {copy_kind::store, copy_kind::restore};

std::string case_name(const workload& of, std::uint32_t images, copy_kind kind) {
  return of.shape().name + " x" + std::to_string(images) + " " + name_of(kind);
}

/// Large enough that neither a launch nor a cache shapes the rate.
bool is_large(const rig& on, const workload& of, std::uint32_t images) {
  constexpr std::uint64_t batch_bytes_min = std::uint64_t{64} << 20;
  return on.options().small || of.image_bytes() * images >= batch_bytes_min;
}

/// The goal holds for large batches whose spans have 16 KiB and more.
std::optional<double> bar_for(const rig& on, const workload& of, std::uint32_t images) {
  constexpr std::uint64_t span_bytes_min = 16 << 10;
  if (!is_large(on, of, images) || of.span_bytes_min() < span_bytes_min) return std::nullopt;
  return 0.95;
}

bool has_large_images(const std::string& what) {
  return what.starts_with("dsv4_flash ") || what.starts_with("gdn_36 ");
}

}  // namespace

void measure_images(rig& on, workload& of, findings& into) {
  for (const std::uint32_t images : batch_sizes()) {
    for (const copy_kind kind : both) {
      const std::string what = case_name(of, images, kind);
      into.attempt(on, suite, what, peer, [&] {
        of.verify(images);
        const std::uint32_t repetitions = of.repetitions(images);
        const std::vector<double> us = take_turns(
            on.options().rounds,
            {[&] {
               return on.on_stream(repetitions, [&](std::uint32_t) { of.copy(0, kind, images); });
             },
             [&] {
               return on.on_stream(repetitions,
                                   [&](std::uint32_t) { of.copy_contiguous(0, kind, images); });
             }});
        const double contiguous = of.rate(images, us[1]);
        if (is_large(on, of, images))
          into.best_contiguous = std::max(into.best_contiguous, contiguous);
        into.rows.push_back(more_is_better(suite, what, of.rate(images, us[0]), peer, contiguous,
                                           "GB/s", bar_for(on, of, images)));
      });
    }
  }
}

void measure_peak(findings& into) {
  std::vector<row> found;
  for (const row& each : into.rows) {
    if (each.suite != suite || !has_large_images(each.what)) continue;
    const bool one = each.what.find(" x1 ") != std::string::npos;
    const bool many = each.what.find(" x128 ") != std::string::npos;
    std::optional<double> bar;
    if (one) bar = 0.40;
    if (many) bar = 0.88;
    const std::string best = "best contiguous copy of the run";
    if (each.cairn)
      found.push_back(
          more_is_better("peak", each.what, *each.cairn, best, into.best_contiguous, "GB/s", bar));
    else
      found.push_back(without_figures("peak", each.what, best, each.note, true));
  }
  into.rows.insert(into.rows.end(), found.begin(), found.end());
}

}  // namespace cairn::bench
