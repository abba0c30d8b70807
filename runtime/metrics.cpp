// Fates and latency histograms. Knows neither who counts nor what was timed.
#include <bit>
#include <cairn/metrics.hpp>
#include <cmath>
#include <numeric>

namespace cairn {

const char* to_string(drop_reason why) noexcept {
  switch (why) {
    case drop_reason::no_room:
      return "no_room";
    case drop_reason::superseded:
      return "superseded";
    case drop_reason::queue_full:
      return "queue_full";
    case drop_reason::closed:
      return "closed";
    case drop_reason::refused:
      return "refused";
    case drop_reason::count:
      break;
  }
  return "unknown";
}

std::uint64_t fate_counts::dropped_total() const noexcept {
  return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
}

// Buckets. Below 16 ns each value has its own. From there on, a value of b bits lands in one of
// 16 buckets of its power of two, chosen by the four bits below the leading one; a bucket is
// then at most 1/16 of its lower edge wide.
namespace {

constexpr unsigned sub_bits = 4;
constexpr std::uint64_t subs = 1U << sub_bits;

std::size_t bucket_of(std::uint64_t value) noexcept {
  if (value < subs) return static_cast<std::size_t>(value);
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - sub_bits;
  return (shift + 1) * subs + ((value >> shift) & (subs - 1));
}

/// The largest value that lands in `bucket`.
std::int64_t upper_edge(std::size_t bucket) noexcept {
  if (bucket < subs) return static_cast<std::int64_t>(bucket);
  const auto shift = static_cast<unsigned>(bucket / subs) - 1;
  const std::uint64_t low = (subs + bucket % subs) << shift;
  return static_cast<std::int64_t>(low + ((std::uint64_t{1} << shift) - 1));
}

}  // namespace

// All accesses are relaxed: the counters order nothing and are read for people.
// Relaxed, as all here: figures.
void latency_histogram::add(std::int64_t ns) noexcept {
  const std::int64_t value = ns < 0 ? 0 : ns;
  counts_[bucket_of(static_cast<std::uint64_t>(value))].fetch_add(1, std::memory_order_relaxed);
  total_ns_.fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t latency_histogram::count() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& c : counts_) sum += c.load(std::memory_order_relaxed);  // see add
  return sum;
}

std::int64_t latency_histogram::quantile_ns(double q) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = std::ceil((q > 0 ? q : 0) * static_cast<double>(all));
  std::uint64_t seen = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const std::uint64_t here = counts_[i].load(std::memory_order_relaxed);
    if (here == 0) continue;
    seen += here;
    last = i;
    if (static_cast<double>(seen) >= wanted) break;
  }
  return upper_edge(last);
}

std::int64_t latency_histogram::total_ns() const noexcept {
  return total_ns_.load(std::memory_order_relaxed);
}

}  // namespace cairn
