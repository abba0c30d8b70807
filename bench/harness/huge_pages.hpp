// The library asks for huge pages for its large tables and the host backend for its memory. So
// that its peers have the same memory, malloc does so for everything that they take.
#pragma once

namespace cairn::bench {

/// Starts this program again with the tunable of malloc that asks for huge pages, unless it is set
/// already: malloc reads it before main. Returns where that is so or cannot be had. No peer may
/// have taken memory before.
void malloc_with_huge_pages(char** argv);

}  // namespace cairn::bench
