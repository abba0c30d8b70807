// The table that people read: a line per row, then the verdict on the bars of each suite.
#pragma once

#include <ostream>
#include <vector>

#include "bench/device/rows.hpp"

namespace cairn::bench {

void write_heading(std::ostream& to);
void write_line(std::ostream& to, const row& of);
/// Per suite how many bars are met, and each that is not.
void write_verdicts(std::ostream& to, const std::vector<row>& rows);

}  // namespace cairn::bench
