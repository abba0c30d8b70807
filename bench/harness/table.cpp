// Columns.
#include "bench/harness/table.hpp"

#include <cstdio>
#include <map>
#include <string>

namespace cairn::bench {
namespace {

std::string verdict(const row& of) {
  std::string word = of.ok ? (*of.ok ? "yes" : "NO") : "";
  if (!of.note.empty()) word += word.empty() ? of.note : ", " + of.note;
  return word;
}

}  // namespace

void write_heading(std::ostream& to) {
  char line[256];
  std::snprintf(line, sizeof line, "%-9s %-54s %3s %10s  %-26s %10s %-9s %7s %6s  %s\n", "suite",
                "case", "thr", "cairn", "against", "", "unit", "ratio", "bar", "met");
  to << line;
}

void write_line(std::ostream& to, const row& of) {
  char line[512];
  std::snprintf(line, sizeof line, "%-9s %-54s %3u %10s  %-26s %10s %-9s %7s %6s  ",
                of.suite.c_str(), of.what.c_str(), of.threads, text(of.cairn, "%.1f").c_str(),
                of.peer.c_str(), text(of.peer_value, "%.1f").c_str(), of.unit.c_str(),
                text(of.ratio, "%.2f").c_str(), text(of.bar, "%.2f").c_str());
  to << line << verdict(of) << '\n';
}

void write_verdicts(std::ostream& to, const std::vector<row>& rows) {
  std::map<std::string, std::pair<int, int>> suites;
  for (const row& each : rows) {
    if (!each.bar) continue;
    auto& [met, all] = suites[each.suite];
    ++all;
    if (each.ok && *each.ok) ++met;
  }
  to << '\n';
  for (const auto& [name, count] : suites)
    to << "bars of " << name << ": " << count.first << " of " << count.second << " met\n";
  for (const row& each : rows)
    if (each.bar && !(each.ok && *each.ok)) {
      to << "not met: ";
      write_line(to, each);
    }
}

}  // namespace cairn::bench
