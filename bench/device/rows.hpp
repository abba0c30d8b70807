// What the benchmark found: one row per comparison, a table for people, JSON for programs. Knows
// figures, not how they were taken.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace cairn::bench {

/// cairn against one peer. A goal has a bar for the ratio, which is at least that, or, where less
/// is better, at most.
struct row {
  std::string suite;
  std::string what;  ///< the case
  std::uint32_t threads = 1;
  std::optional<double> cairn;
  std::string peer;  ///< what it is compared with
  std::optional<double> peer_value;
  std::string unit;  ///< of both values
  std::optional<double> ratio;
  std::optional<double> bar;
  std::optional<bool> ok;  ///< bar met; or, without a bar, false where the case failed
  std::string note{};      ///< what a reader must know; not in the JSON
};

/// A value where more is better: ratio is cairn / peer.
row more_is_better(std::string suite, std::string what, double cairn, std::string peer,
                   double peer_value, std::string unit, std::optional<double> bar = {});
/// A time: ratio is peer / cairn, how many times faster cairn is.
row times_faster(std::string suite, std::string what, double cairn, std::string peer,
                 double peer_value, std::string unit, std::optional<double> bar = {});
/// A value that is to stay small beside another: ratio is cairn / peer, and at most `most`.
row at_most(std::string suite, std::string what, double cairn, std::string peer, double peer_value,
            std::string unit, double most = 1);
/// A value that should stay small: ratio is cairn / peer, and `bar` is the most that cairn's own
/// value may be.
row less_is_better(std::string suite, std::string what, double cairn, std::string peer,
                   double peer_value, std::string unit, std::optional<double> most = {});
/// A case without figures, and why. `failed`: it should have had some.
row without_figures(std::string suite, std::string what, std::string peer, std::string why,
                    bool failed);

/// "-" where there is no value.
std::string text(const std::optional<double>& value, const char* format);

void write_table(std::ostream& to, const std::vector<row>& rows);
/// One line per goal: how many of its rows meet the bar.
void write_goals(std::ostream& to, const std::vector<row>& rows);
void write_json(std::ostream& to, const std::vector<row>& rows);

}  // namespace cairn::bench
