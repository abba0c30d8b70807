// Figures out: a table, JSON, and whether the books close.
#include "bench/replay/report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace cairn::replay {
namespace {

double ratio(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}
double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}
double seconds(std::int64_t us) {
  return static_cast<double>(us) * 1e-6;
}
double gb_per_s(const stream_stats& of) {
  // Bytes per nanosecond; image bytes, counted once.
  return ratio(static_cast<double>(of.bytes), static_cast<double>(of.busy_ns));
}
const char* direction(copy_kind kind) {
  return kind == copy_kind::store ? "store" : "restore";
}

/// "12,031": figures are read by people.
std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

class table {
 public:
  explicit table(std::ostream& to) : to_(to) {}
  void line(const char* name, const std::string& value, const std::string& more = {}) {
    to_ << formatted("  %-24s %16s", name, value.c_str());
    if (!more.empty()) to_ << "  " << more;
    to_ << '\n';
  }
  void count(const char* name, std::uint64_t value, const std::string& more = {}) {
    line(name, grouped(value), more);
  }
  void head(const std::string& text) { to_ << text << '\n'; }

 private:
  std::ostream& to_;
};

std::string share(std::uint64_t part, std::uint64_t whole) {
  return formatted("%.2f %%", 100.0 * ratio(part, whole));
}

void write_requests(table& out, const replay_figures& of) {
  const simulation_figures& run = of.run;
  out.head("requests");
  out.count("done", run.requests, formatted("in %.2f s", of.seconds));
  if (run.refused > 0) out.count("refused", run.refused, "larger than the pool");
  if (run.preempted > 0) out.count("preempted", run.preempted, "for want of units");
  out.head("prompt tokens");
  out.count("total", run.total_tokens);
  out.count("seen before", of.seen_tokens,
            share(of.seen_tokens, run.total_tokens) + ", reuse without limits on memory");
  out.count("KV hit", run.kv_hit_tokens, share(run.kv_hit_tokens, run.total_tokens));
  out.count("wanted", run.wanted_tokens,
            share(run.wanted_tokens, run.total_tokens) + ", as far as a hit may reach");
  out.count("resumed", run.resumed_tokens,
            share(run.resumed_tokens, run.total_tokens) + ", the token hit rate");
  out.head("virtual time");
  out.line("to the end", formatted("%.1f s", seconds(run.end_us)),
           formatted("without checkpoints %.1f s", seconds(of.unaided.end_us)));
  out.count("computed tokens", run.computed_tokens,
            "without checkpoints " + grouped(run.total_tokens));
  const auto done = static_cast<double>(run.requests);
  out.line(
      "mean to first token", formatted("%.2f s", ratio(seconds(run.first_token_us), done)),
      formatted("without checkpoints %.2f s", ratio(seconds(of.unaided.first_token_us), done)));
  out.count("chunks", run.chunks, grouped(run.chunk_cuts) + " cut short by a placement");
}

void write_checkpoints(table& out, const replay_figures& of) {
  const fate_counts& fates = of.pool.fates;
  out.head("checkpoints");
  out.count("stores", fates.kept, "of " + grouped(of.run.boundaries) + " boundaries filed");
  out.count("restores", of.run.restores,
            formatted("%.2f per store", ratio(of.run.restores, fates.kept)));
  for (std::size_t i = 0; i < fates.dropped.size(); ++i)
    out.count(formatted("dropped: %s", to_string(static_cast<drop_reason>(i))).c_str(),
              fates.dropped[i]);
  out.count("evicted", fates.evicted);
  out.count("orphaned", fates.orphaned, "their KV was taken");
  out.count("failed", fates.failed);
  out.count("cancelled", fates.cancelled);
  out.head("pool");
  out.count("units", of.pool.total);
  out.count("vacant", of.pool.vacant);
  out.count("cached", of.pool.cached);
  out.count("live", of.pool.live);
  out.count("checkpoint", of.pool.checkpoint, grouped(of.pool.records) + " records");
  out.count("quarantine", of.pool.quarantine);
}

/// HIP's events have no times here: a batch is then timed by the copy thread, from its hand-over to
/// when its end was seen.
const char* timed_by(const replay_options& opts) {
  return opts.backend == "hip" ? "copy thread" : "backend";
}

void write_copies(table& out, const replay_options& opts, const replay_figures& of) {
  out.head("copies");
  for (const stream_stats& each : of.streams)
    out.line(formatted("device %u %s %u", each.rank, direction(each.kind), each.stream).c_str(),
             formatted("%.3f GB", static_cast<double>(each.bytes) * 1e-9),
             formatted("%.3f s busy, %.2f GB/s", static_cast<double>(each.busy_ns) * 1e-9,
                       gb_per_s(each)));
  if (opts.backend == "hip")
    out.head("  (busy as the copy thread saw it, waits included: rates are lower bounds)");
  out.line("overlap", formatted("%.1f %%", 100.0 * of.overlap.share()),
           formatted("of busy time on two streams or more; %.1f %% beside compute",
                     100.0 * of.overlap.compute_share()));
  out.line("compute", formatted("%.3f s", of.compute.busy_seconds),
           formatted("and %.3f s waiting for copies", of.compute.wait_seconds));
  out.head("latency (us)                      p50        p99      p99.9");
  auto latency = [&](const char* name, const quantiles& q) {
    out.head(formatted("  %-24s %11.1f%11.1f%11.1f", name, q.p50, q.p99, q.p999));
  };
  latency("call", of.submit);
  latency("begin to published", of.store);
  latency("begin to usable", of.restore);
  out.head("verified");
  out.count("images", of.compute.images_verified);
  out.count("units", of.compute.units_verified,
            formatted("%.2f GB in all", static_cast<double>(of.compute.bytes_verified) * 1e-9));
  out.count("mismatches", of.compute.mismatches, of.compute.first_mismatch);
}

nlohmann::ordered_json json_of(const quantiles& q) {
  return {{"p50", q.p50}, {"p99", q.p99}, {"p999", q.p999}};
}

nlohmann::ordered_json fates_json(const fate_counts& fates) {
  nlohmann::ordered_json dropped = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < fates.dropped.size(); ++i)
    dropped[to_string(static_cast<drop_reason>(i))] = fates.dropped[i];
  return {{"kept", fates.kept},         {"dropped", dropped},     {"evicted", fates.evicted},
          {"orphaned", fates.orphaned}, {"failed", fates.failed}, {"cancelled", fates.cancelled}};
}

}  // namespace

quantiles quantiles_of(const latency_histogram& from) {
  auto us = [&](double q) { return static_cast<double>(from.quantile_ns(q)) * 1e-3; };
  return {us(0.5), us(0.99), us(0.999)};
}

double replay_figures::token_hit_rate() const noexcept {
  return ratio(run.resumed_tokens, run.total_tokens);
}

std::vector<std::string> replay_figures::broken_books(std::uint32_t units,
                                                      std::uint32_t image_units) const {
  std::vector<std::string> broken;
  auto equal = [&](const char* what, std::uint64_t expected, std::uint64_t got) {
    if (expected != got)
      broken.push_back(std::string(what) + ": expected " + std::to_string(expected) + ", got " +
                       std::to_string(got));
  };
  const std::uint64_t placed =
      std::uint64_t{pool.vacant} + pool.cached + pool.live + pool.checkpoint + pool.quarantine;
  equal("units of the pool", units, pool.total);
  equal("units by place, added up", pool.total, placed);
  equal("live units after the last request", 0, pool.live);
  equal("records that are neither READY nor gone", 0, pool.unfinished_records);
  equal("units held by checkpoints", std::uint64_t{pool.records} * image_units, pool.checkpoint);
  equal("failed stores", 0, pool.fates.failed);
  equal("failed restores", 0, run.failed_restores);
  return broken;
}

void write_table(std::ostream& to, const replay_options& opts, const replay_figures& figures) {
  table out(to);
  out.head("cairn_replay: " + (opts.trace_path.empty() ? "generated workload, seed " +
                                                             std::to_string(opts.workload.seed)
                                                       : opts.trace_path));
  out.head(formatted("  %u threads, %u devices (%s), %u live, geometry %s, %s pool of %u units, "
                     "%u per image, placement ",
                     opts.threads, opts.devices, opts.backend.c_str(), opts.live,
                     opts.geometry_name.c_str(), opts.pool.c_str(), opts.units, opts.image_units) +
           opts.place);
  write_requests(out, figures);
  write_checkpoints(out, figures);
  write_copies(out, opts, figures);
}

void write_json(std::ostream& to, const replay_options& opts, const replay_figures& figures) {
  using json = nlohmann::ordered_json;
  const simulation_figures& run = figures.run;
  // Streams of one device and direction together: which of two idle ones took a batch is a matter
  // of time, and so is the number of batches; one thread's figures must repeat.
  std::vector<stream_stats> by_direction;
  for (const stream_stats& each : figures.streams) {
    if (by_direction.empty() || by_direction.back().rank != each.rank ||
        by_direction.back().kind != each.kind)
      by_direction.push_back({.rank = each.rank, .kind = each.kind});
    by_direction.back().images += each.images;
    by_direction.back().bytes += each.bytes;
    by_direction.back().busy_ns += each.busy_ns;
  }
  json streams = json::array();
  for (const stream_stats& each : by_direction)
    streams.push_back({{"device", each.rank},
                       {"direction", direction(each.kind)},
                       {"images", each.images},
                       {"bytes", each.bytes},
                       {"busy_seconds", static_cast<double>(each.busy_ns) * 1e-9},
                       {"gb_per_s", gb_per_s(each)}});
  const json out = {
      {"trace", opts.trace_path},
      {"threads", opts.threads},
      {"devices", opts.devices},
      {"geometry", opts.geometry_name},
      {"requests", run.requests},
      {"refused", run.refused},
      {"preempted", run.preempted},
      {"seconds", figures.seconds},
      {"virtual_seconds", seconds(run.end_us)},
      {"tokens",
       {{"total", run.total_tokens},
        {"seen", figures.seen_tokens},
        {"kv_hit", run.kv_hit_tokens},
        {"wanted", run.wanted_tokens},
        {"resumed", run.resumed_tokens},
        {"computed", run.computed_tokens},
        {"output", run.output_tokens}}},
      {"token_hit_rate", figures.token_hit_rate()},
      {"first_token_seconds",
       ratio(seconds(run.first_token_us), static_cast<double>(run.requests))},
      {"without_checkpoints",
       {{"computed", run.total_tokens},
        {"virtual_seconds", seconds(figures.unaided.end_us)},
        {"first_token_seconds",
         ratio(seconds(figures.unaided.first_token_us), static_cast<double>(run.requests))}}},
      {"boundaries", run.boundaries},
      {"chunks", run.chunks},
      {"chunk_cuts", run.chunk_cuts},
      {"stores", figures.pool.fates.kept},
      {"restores", run.restores},
      {"restores_per_store", ratio(run.restores, figures.pool.fates.kept)},
      {"mismatches", figures.compute.mismatches},
      {"fates", fates_json(figures.pool.fates)},
      {"pool",
       {{"total", figures.pool.total},
        {"vacant", figures.pool.vacant},
        {"cached", figures.pool.cached},
        {"live", figures.pool.live},
        {"checkpoint", figures.pool.checkpoint},
        {"quarantine", figures.pool.quarantine}}},
      {"records", figures.pool.records},
      {"streams", streams},
      {"streams_timed_by", timed_by(opts)},
      {"overlap", figures.overlap.share()},
      {"overlap_compute", figures.overlap.compute_share()},
      {"compute_seconds", figures.compute.busy_seconds},
      {"compute_wait_seconds", figures.compute.wait_seconds},
      {"latency_us",
       {{"submit", json_of(figures.submit)},
        {"store", json_of(figures.store)},
        {"restore", json_of(figures.restore)}}},
      {"verified",
       {{"images", figures.compute.images_verified},
        {"units", figures.compute.units_verified},
        {"bytes", figures.compute.bytes_verified}}},
  };
  // A path need not be UTF-8.
  to << out.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
}

}  // namespace cairn::replay
