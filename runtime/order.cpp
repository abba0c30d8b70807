// The protocol is explained in order.hpp.
#include "runtime/order.hpp"

#include <algorithm>
#include <bit>

namespace cairn::detail {

order::group::group() noexcept {
  for (node& n : at) n.store_relaxed(out);  // before any thread knows the tree
}

order::order(std::uint32_t capacity)
    : capacity_(std::max(capacity, 1U)),
      index_bits_(static_cast<std::uint32_t>(std::bit_width(capacity_))) {
  for (std::uint32_t members = capacity_;;) {
    const std::uint32_t groups = (members - 1) / fan_out + 1;
    levels_[depth_++] = std::make_unique<group[]>(groups);
    if (groups == 1) break;
    members = groups;
  }
}

std::uint64_t order::next_stamp() noexcept {
  // Relaxed: a stamp is a number; whoever passes it on brings the order.
  return stamps_.fetch_add_relaxed(1) + 1;
}

void order::set(std::uint32_t i, std::uint64_t stamp) noexcept {
  move(i, place_of(i, stamp));
}

void order::clear(std::uint32_t i) noexcept {
  move(i, out);
}

void order::move(std::uint32_t i, std::uint64_t place) noexcept {
  // (1) acq_rel: releases the caller's writes to whoever finds the entry, (6) and (7), and
  // to whoever refreshes the node above, (2); two calls for one entry are ordered here.
  const std::uint64_t before = leaf(i).exchange_acq_rel(place);
  if (place < before) {
    sink(i, place);
    return;
  }
  // Relaxed: a node that comes to name `before` after this look is below the minimum, which the
  // essay allows.
  if (place != before && above(0, i / fan_out).load_relaxed() == before) climb(i, care::changes);
}

void order::sink(std::uint32_t i, std::uint64_t place) noexcept {
  for (std::uint32_t level = 0; level < depth_; ++level) {
    i /= fan_out;
    node& up = above(level, i);
    std::uint64_t seen = up.load_relaxed();  // a guess, which (5) judges
    if (seen < place && sync::mutated("order: sinks by a look")) return;
    // (5) acq_rel: pairs with (2), (3), (4), (6): as (4), also when it changes nothing.
    while (!up.cas_acq_rel(seen, std::min(seen, place))) {
    }
    if (seen < place) return;
  }
}

std::uint64_t order::lowest(const group& children) noexcept {
  // Four at a time, so that no comparison need wait for the one before.
  // (2) acquire: pairs with (1), (4) and (5) one level below.
  const auto at = [&](std::uint32_t i) { return children.at[i].load_acquire(); };
  std::uint64_t a = at(0), b = at(1), c = at(2), d = at(3);
  for (std::uint32_t i = 4; i < fan_out; i += 4) {
    a = std::min(a, at(i));
    b = std::min(b, at(i + 1));
    c = std::min(c, at(i + 2));
    d = std::min(d, at(i + 3));
  }
  return std::min(std::min(a, b), std::min(c, d));
}

bool order::refresh(node& above, const group& children) noexcept {
  bool changed = false;
  for (;;) {
    std::uint64_t seen = above.load_acquire();  // (3) acquire: pairs with (4), (5)
    const std::uint64_t low = lowest(children);
    // (4) acq_rel: where updaters of one node meet; the later one acquires the children that the
    // earlier one had changed. Also when `seen` equals `low`. Releases to (2), (3), (5) and (6).
    if (!above.cas_acq_rel(seen, low)) continue;
    changed = changed || seen != low;
    if (sync::mutated("no second look at the children")) return changed;
    if (lowest(children) == low) return changed;
  }
}

void order::climb(std::uint32_t i, care how) noexcept {
  for (std::uint32_t level = 0; level < depth_; ++level) {
    i /= fan_out;  // the group on this level, and the node above it on the next
    // Whoever changes a child sees to the nodes above it: where nothing changed, nothing is due.
    if (!refresh(above(level, i), levels_[level][i]) && how == care::changes) return;
  }
}

std::uint32_t order::first() noexcept {
  for (;;) {
    const std::uint64_t place = root_.load_acquire();  // (6) acquire: pairs with (4), (5)
    if (place == out) return none;
    const std::uint32_t i = entry_of(place);
    if (leaf(i).load_acquire() == place) return i;  // (7) acquire: pairs with (1)
    climb(i, sync::mutated("order: helps where it changes") ? care::changes : care::all);
  }
}

std::uint32_t order::first_by_scan() const noexcept {
  std::uint64_t low = out;
  for (std::uint32_t g = 0; g <= (capacity_ - 1) / fan_out; ++g)
    low = std::min(low, lowest(levels_[0][g]));
  return low == out ? none : entry_of(low);
}

}  // namespace cairn::detail
