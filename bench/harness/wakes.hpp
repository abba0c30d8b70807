// Processor time that this thread has spent in waking others: the library's only way to do so is
// sync::wake_all, and in this program that is looked at (see peers.cmake).
#pragma once

#include <cstdint>

namespace cairn::bench {

/// From now on this thread's wakes are counted.
void count_thread_wakes();

/// Since count_thread_wakes. What measuring itself takes is in it.
std::int64_t thread_wakes_ns();

}  // namespace cairn::bench
