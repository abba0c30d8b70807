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
  // (1) acq_rel: releases the caller's writes to whoever finds the entry, (6) and (7); two
  // calls for one entry are ordered here.
  const std::uint64_t before = leaf(i).exchange_acq_rel(place);
  climb(i, before != place, care::check);
}

std::uint64_t order::lowest(const group& children) noexcept {
  std::uint64_t low = out;
  // (2) acquire: pairs with (1) and (4) one level below.
  for (const node& child : children.at) low = std::min(low, child.load_acquire());
  return low;
}

bool order::refresh(node& above, const group& children) noexcept {
  bool changed = false;
  for (;;) {
    std::uint64_t seen = above.load_acquire();  // (3) acquire: pairs with (4)
    const std::uint64_t low = lowest(children);
    // (4) acq_rel: where updaters of one node meet; the later one acquires the children that the
    // earlier one had changed. Also when `seen` equals `low`.
    if (!above.cas_acq_rel(seen, low)) continue;
    changed = changed || seen != low;
    if (lowest(children) == low) return changed;
  }
}

void order::climb(std::uint32_t i, bool leaf_changed, care how) noexcept {
  bool changed = leaf_changed;
  for (std::uint32_t level = 0; level < depth_; ++level) {
    i /= fan_out;  // the group on this level, and the node above it on the next
    const group& children = levels_[level][i];
    node& above = level + 1 == depth_ ? root_ : levels_[level + 1][i / fan_out].at[i % fan_out];
    if (!changed && how == care::check &&
        above.load_acquire() == lowest(children))  // (5) acquire: pairs with (4)
      continue;
    changed = refresh(above, children);
  }
}

std::uint32_t order::first() noexcept {
  for (;;) {
    const std::uint64_t place = root_.load_acquire();  // (6) acquire: pairs with (4)
    if (place == out) return none;
    const std::uint32_t i = entry_of(place);
    if (leaf(i).load_acquire() == place) return i;  // (7) acquire: pairs with (1)
    climb(i, true, care::refresh);
  }
}

std::uint32_t order::first_by_scan() const noexcept {
  std::uint64_t low = out;
  for (std::uint32_t g = 0; g <= (capacity_ - 1) / fan_out; ++g)
    low = std::min(low, lowest(levels_[0][g]));
  return low == out ? none : entry_of(low);
}

}  // namespace cairn::detail
