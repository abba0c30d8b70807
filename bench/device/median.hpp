// The figure that a benchmark reports of its samples.
#pragma once

#include <algorithm>
#include <vector>

namespace cairn::bench {

/// Of an even number of samples the mean of the middle two; of none 0.
inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

}  // namespace cairn::bench
