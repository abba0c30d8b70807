// Time that a test moves: the library's calls of steady_clock::now answer as if the clock were
// ahead by what was added. Sleeps still take real time, so whoever runs copy threads that may have
// to wake for a time puts the clock right first. A program that uses it links virtual_clock.cpp
// with the option that tests/CMakeLists.txt gives it.
#pragma once

#include <chrono>

namespace cairn::tests {

void advance_clock(std::chrono::nanoseconds by) noexcept;
/// Real time again.
void put_clock_right() noexcept;

}  // namespace cairn::tests
