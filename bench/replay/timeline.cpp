// Collecting spans, sweeping over them, writing them out.
#include "bench/replay/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cairn::replay {
namespace {

/// Where the number of busy streams changes.
struct edge {
  std::int64_t at_ns = 0;
  int copies = 0;
  int computes = 0;
};

void sweep(std::vector<edge>& edges, overlap_figures& into) {
  std::sort(edges.begin(), edges.end(),
            [](const edge& a, const edge& b) { return a.at_ns < b.at_ns; });
  int copies = 0;
  int computes = 0;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    copies += edges[i].copies;
    computes += edges[i].computes;
    const double seconds = static_cast<double>(edges[i + 1].at_ns - edges[i].at_ns) * 1e-9;
    if (copies > 0) into.busy_seconds += seconds;
    if (copies > 1) into.overlap_seconds += seconds;
    if (copies > 0 && computes > 0) into.with_compute_seconds += seconds;
  }
}

/// Batches of one stream may be reported as overlapping (launched before the last one ended):
/// each stream's spans are joined first, so that a stream never overlaps with itself.
template <class Add>
void join_spans(std::vector<std::pair<std::int64_t, std::int64_t>>& spans, Add add) {
  std::sort(spans.begin(), spans.end());
  std::int64_t begin = 0;
  std::int64_t end = 0;
  for (const auto& [from, to] : spans) {
    if (from > end) {
      if (end > begin) add(begin, end);
      begin = from;
      end = from;
    }
    end = std::max(end, to);
  }
  if (end > begin) add(begin, end);
}

class event_writer {
 public:
  explicit event_writer(std::ostream& to) : to_(to) {
    to_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }
  void close() { to_ << "\n]}\n"; }

  void name(const char* what, rank_id rank, int track, const std::string& name) {
    next() << "{\"ph\":\"M\",\"name\":\"" << what << "\",\"pid\":" << rank << ",\"tid\":" << track
           << ",\"args\":{\"name\":\"" << name << "\"}}";
  }
  std::ostream& span(const char* name, rank_id rank, std::uint32_t track, std::int64_t begin_ns,
                     std::int64_t end_ns, std::int64_t zero_ns) {
    return next() << "{\"ph\":\"X\",\"name\":\"" << name << "\",\"pid\":" << rank
                  << ",\"tid\":" << track << ",\"ts\":" << microseconds(begin_ns - zero_ns)
                  << ",\"dur\":" << microseconds(end_ns - begin_ns);
  }

 private:
  static std::string microseconds(std::int64_t ns) {
    const std::int64_t positive = std::max<std::int64_t>(ns, 0);
    std::string part = std::to_string(positive % 1000);
    return std::to_string(positive / 1000) + "." + std::string(3 - part.size(), '0') + part;
  }
  std::ostream& next() {
    to_ << (first_ ? "\n" : ",\n");
    first_ = false;
    return to_;
  }
  std::ostream& to_;
  bool first_ = true;
};

constexpr std::uint32_t compute_track = 1000;

}  // namespace

void batch_log::on_batch(const batch_span& span) noexcept {
  const std::lock_guard held(mutex_);
  spans_.push_back(span);
}

std::vector<batch_span> batch_log::sorted() const {
  const std::lock_guard held(mutex_);
  std::vector<batch_span> spans = spans_;
  std::stable_sort(spans.begin(), spans.end(), [](const batch_span& a, const batch_span& b) {
    return a.begin_ns < b.begin_ns;
  });
  return spans;
}

overlap_figures measure_overlap(const std::vector<batch_span>& copies,
                                const std::vector<compute_span>& compute) {
  using spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
  std::map<rank_id, std::map<std::uint32_t, spans>> streams;
  for (const batch_span& each : copies)
    streams[each.rank][each.stream].emplace_back(each.begin_ns, each.end_ns);
  std::map<rank_id, std::vector<edge>> edges;
  for (auto& [rank, by_stream] : streams)
    for (auto& [stream, of_stream] : by_stream)
      join_spans(of_stream, [&, into = &edges[rank]](std::int64_t begin, std::int64_t end) {
        into->push_back({begin, +1, 0});
        into->push_back({end, -1, 0});
      });
  for (const compute_span& each : compute) {
    edges[each.rank].push_back({each.begin_ns, 0, +1});
    edges[each.rank].push_back({each.end_ns, 0, -1});
  }
  overlap_figures found;
  for (auto& [rank, of_rank] : edges) sweep(of_rank, found);
  return found;
}

void write_timeline(std::ostream& to, const std::vector<batch_span>& copies,
                    const std::vector<compute_span>& compute, std::uint32_t store_streams) {
  std::int64_t zero_ns = INT64_MAX;
  std::set<std::pair<rank_id, std::uint32_t>> tracks;
  for (const batch_span& each : copies) {
    zero_ns = std::min(zero_ns, each.begin_ns);
    tracks.insert({each.rank, each.stream});
  }
  for (const compute_span& each : compute) {
    zero_ns = std::min(zero_ns, each.begin_ns);
    tracks.insert({each.rank, compute_track});
  }
  event_writer events(to);
  std::set<rank_id> ranks;
  for (const auto& [rank, track] : tracks) {
    if (ranks.insert(rank).second)
      events.name("process_name", rank, 0, "device " + std::to_string(rank));
    const std::string what = track == compute_track  ? "compute"
                             : track < store_streams ? "store " + std::to_string(track)
                                                     : "restore " + std::to_string(track);
    events.name("thread_name", rank, static_cast<int>(track), what);
  }
  for (const batch_span& each : copies)
    events.span(each.kind == copy_kind::store ? "store" : "restore", each.rank, each.stream,
                each.begin_ns, each.end_ns, zero_ns)
        << ",\"args\":{\"images\":" << each.images << ",\"bytes\":" << each.bytes
        << ",\"status\":\"" << to_string(each.code) << "\"}}";
  for (const compute_span& each : compute)
    events.span("compute", each.rank, compute_track, each.begin_ns, each.end_ns, zero_ns)
        << ",\"args\":{\"slot\":" << each.slot << "}}";
  events.close();
}

}  // namespace cairn::replay
