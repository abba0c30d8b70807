// The suites of the benchmark. Each appends its rows; a case that breaks gets a row that says why,
// and the next one goes on.
#pragma once

#include <functional>
#include <vector>

#include "bench/device/rig.hpp"
#include "bench/device/rows.hpp"
#include "bench/device/workload.hpp"

namespace cairn::bench {

/// Where all suites put what they find.
struct findings {
  std::vector<row> rows;
  double best_contiguous = 0.0;  ///< GB/s, read and written: the run's peak
  bool broken = false;           ///< a case failed

  /// Runs one case; what it throws becomes a row. Past the time limit it is not begun.
  void attempt(rig& on, const std::string& suite, const std::string& what, const std::string& peer,
               const std::function<void()>& body);
};

/// Images per batch, the smallest first. Three sizes.
std::vector<std::uint32_t> batch_sizes();
inline const char* name_of(copy_kind kind) {
  return kind == copy_kind::store ? "store" : "restore";
}

/// Batches of every geometry against a contiguous copy of as many bytes, both directions.
void measure_images(rig& on, workload& of, findings& into);
/// The same figures against the best contiguous copy of the run. After all geometries.
void measure_peak(findings& into);
/// The same batches with checksums, as shipped, and without.
void measure_checksums(rig& on, workload& of, findings& into);
/// One call of the runtime per span, and the runtime's batched copy where it has one.
void measure_calls(rig& on, workload& of, findings& into);
/// Both directions at once: on two streams, and in one launch.
void measure_both_ways(rig& on, workload& of, findings& into);
/// How much slower a neighbour runs beside copies.
void measure_beside(rig& on, workload& of, findings& into);
/// Time of the calling thread per batch.
void measure_host_cost(rig& on, workload& of, findings& into);
/// Groups per launch and bytes per tile.
void measure_limits(rig& on, workload& of, findings& into);

}  // namespace cairn::bench
