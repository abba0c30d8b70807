// What the index asks of the things that it finds: a place for a key and for a link. Apart from
// the index, so that a record can hold one and know nothing of how it is found.
#pragma once

#include <cstdint>

#include "runtime/sync.hpp"

namespace cairn::detail {

/// Part of whatever an id stands for (a record, a unit). The index alone writes `link`. `hi` and
/// `lo` are written by who is about to insert the node, with release, and by the insertion; they
/// stay as they are from then until the node is inserted again.
struct index_node {
  sync::atomic<std::uint64_t> hi;
  sync::atomic<std::uint64_t> lo;
  sync::atomic<std::uint64_t> link;
};

}  // namespace cairn::detail
