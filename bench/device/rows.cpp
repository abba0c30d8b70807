// Rows made, and written out.
#include "bench/device/rows.hpp"

#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace cairn::bench {
namespace {

row made(std::string suite, std::string what, double cairn, std::string peer, double peer_value,
         std::string unit) {
  row r;
  r.suite = std::move(suite);
  r.what = std::move(what);
  r.cairn = cairn;
  r.peer = std::move(peer);
  r.peer_value = peer_value;
  r.unit = std::move(unit);
  return r;
}

std::optional<double> quotient(double over, double under) {
  if (under > 0.0) return over / under;
  return std::nullopt;
}

std::string verdict(const row& of) {
  if (!of.ok) return of.note.empty() ? "" : of.note;
  std::string word = *of.ok ? "yes" : of.bar ? "NO" : "FAILED";
  return of.note.empty() ? word : word + ", " + of.note;
}

}  // namespace

std::string text(const std::optional<double>& value, const char* format) {
  if (!value) return "-";
  char digits[64];
  std::snprintf(digits, sizeof digits, format, *value);
  return digits;
}

row more_is_better(std::string suite, std::string what, double cairn, std::string peer,
                   double peer_value, std::string unit, std::optional<double> bar) {
  row r =
      made(std::move(suite), std::move(what), cairn, std::move(peer), peer_value, std::move(unit));
  r.ratio = quotient(cairn, peer_value);
  r.bar = bar;
  if (bar) r.ok = r.ratio && *r.ratio >= *bar;
  return r;
}

row times_faster(std::string suite, std::string what, double cairn, std::string peer,
                 double peer_value, std::string unit, std::optional<double> bar) {
  row r =
      made(std::move(suite), std::move(what), cairn, std::move(peer), peer_value, std::move(unit));
  r.ratio = quotient(peer_value, cairn);
  r.bar = bar;
  if (bar) r.ok = r.ratio && *r.ratio >= *bar;
  return r;
}

row at_most(std::string suite, std::string what, double cairn, std::string peer, double peer_value,
            std::string unit, double most) {
  row r =
      made(std::move(suite), std::move(what), cairn, std::move(peer), peer_value, std::move(unit));
  r.ratio = quotient(cairn, peer_value);
  r.bar = most;
  r.ok = r.ratio && *r.ratio <= most;
  return r;
}

row less_is_better(std::string suite, std::string what, double cairn, std::string peer,
                   double peer_value, std::string unit, std::optional<double> most) {
  row r =
      made(std::move(suite), std::move(what), cairn, std::move(peer), peer_value, std::move(unit));
  r.ratio = quotient(cairn, peer_value);
  r.bar = most;
  if (most) r.ok = cairn <= *most;
  return r;
}

row without_figures(std::string suite, std::string what, std::string peer, std::string why,
                    bool failed) {
  row r;
  r.suite = std::move(suite);
  r.what = std::move(what);
  r.peer = std::move(peer);
  r.note = std::move(why);
  if (failed) r.ok = false;
  return r;
}

void write_table(std::ostream& to, const std::vector<row>& rows) {
  char line[512];
  std::snprintf(line, sizeof line, "%-8s %-40s %11s  %-34s %11s %-9s %7s %6s  %s\n", "suite",
                "case", "cairn", "against", "", "unit", "ratio", "bar", "met");
  to << line;
  for (const row& each : rows) {
    std::snprintf(line, sizeof line, "%-8s %-40s %11s  %-34s %11s %-9s %7s %6s  ",
                  each.suite.c_str(), each.what.c_str(), text(each.cairn, "%.2f").c_str(),
                  each.peer.c_str(), text(each.peer_value, "%.2f").c_str(), each.unit.c_str(),
                  text(each.ratio, "%.3f").c_str(), text(each.bar, "%.2f").c_str());
    to << line << verdict(each) << '\n';
  }
}

void write_goals(std::ostream& to, const std::vector<row>& rows) {
  std::map<std::pair<std::string, double>, std::pair<int, int>> goals;
  for (const row& each : rows) {
    if (!each.bar) continue;
    auto& [met, all] = goals[{each.suite, *each.bar}];
    if (each.ok && *each.ok) ++met;
    ++all;
  }
  for (const auto& [goal, count] : goals) {
    char line[128];
    std::snprintf(line, sizeof line, "goal %-8s %6.2f: met by %d of %d\n", goal.first.c_str(),
                  goal.second, count.first, count.second);
    to << line;
  }
}

void write_json(std::ostream& to, const std::vector<row>& rows) {
  using json = nlohmann::ordered_json;
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  json out = json::array();
  for (const row& each : rows)
    out.push_back({{"suite", each.suite},
                   {"case", each.what},
                   {"threads", each.threads},
                   {"cairn", number(each.cairn)},
                   {"peer", each.peer},
                   {"peer_value", number(each.peer_value)},
                   {"unit", each.unit},
                   {"ratio", number(each.ratio)},
                   {"bar", number(each.bar)},
                   {"ok", each.ok ? json(*each.ok) : json(nullptr)}});
  to << out.dump(2) << '\n';
}

}  // namespace cairn::bench
