// Time in a fault campaign: it stands still until somebody moves it.
#pragma once

#include <chrono>

namespace cairn::stress {

void restart_clock() noexcept;
void advance_clock(std::chrono::nanoseconds by) noexcept;

}  // namespace cairn::stress
