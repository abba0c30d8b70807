// Which of many entries has the lowest stamp: a lock-free min tree that leaves out ineligible
// entries. It knows nothing of what the entries are or why they are ordered so.
//
// A leaf holds `out` or its place: the stamp above, the entry's index below, so that a value
// names its entry and no two entries share one. Each inner node holds the lowest of its 16
// children; the root names the first entry.
//
// Any thread may call each of these, also for one entry at once:
//
//   set, clear   exchange the leaf.
//                To an earlier place (it comes in): *sinks* along the nodes above: { read the node;
//                CAS it to the place or, where it is earlier, to what it is; repeat if that failed
//                }, as long as that changes the node. To a later place (it is used again) or out,
//                and the node above names another: that is all. Else *climbs*, as long as the node
//                or leaf below was changed by this thread. Each node on the way is refreshed: {
//                read the node; read the children; CAS the node to their minimum, also when that
//                changes nothing; read the children again; repeat if the CAS failed or the minimum
//                differs }. Above a node that stays as it was nothing is due: whoever has changed a
//                node sees to those above it.
//   first        reads the root and then the leaf that it names. If the leaf holds something
//                else by now, helps: climbs from that leaf, refreshing every node; again.
//
// Why no node is above the minimum of its children once no call is under way. Take a node n, one
// child c, and the last time that c became earlier, to the value v, by thread V. What c became
// after that is later, and so no concern of n's. V went on to n with a read-modify-write W. If it
// sank, W left n at v or earlier; if it refreshed, at what its second look found in c, v or what c
// became after that, or earlier. What else has written n after W? All writes of n are
// read-modify-writes. One that sinks makes n earlier. One that refreshes acquires what W released,
// c's value v or a later one, before it reads the children *again*, and it ends only when what it
// wrote equals that. So n is at c's last value or earlier whatever came last. This is why the CAS
// is done even when it changes nothing (two updaters of one node meet in it; without it the one
// that refreshes could read the old child and the one that sinks the old node, as nothing here is
// sequentially consistent), and why the children are read twice: an entry may leave and come back
// with the same stamp, so that a node returns to a value that a slow thread has read before; its
// CAS then succeeds with a minimum of long ago, and only the second look repairs that.
//
// A node may be *below* that minimum: it names a place that its entry has left meanwhile, because
// the thread that moved the entry saw the node before it came to name it. That takes two calls that
// overlap, and only costs a visit: no place is passed over, and first goes on until the root names
// a place that is held. Each round removes the place that it found left from all nodes.
//
// While calls overlap, `first` still never names an entry whose leaf was out or had another
// stamp when it looked. It may pass over entries that the overlapping calls move, and entries
// that those hide: a call that is held up between a leaf and the root, or between the CAS and
// the second look, leaves nodes on that one path behind. An update that changes the child
// below such a node, or a first that meets an entry which has moved, repairs it; others pass it by.
// So "none" is certain only when nothing overlaps: a caller who knows better asks first_by_scan.
//
// In the common cases little is due. An entry that is used again was hardly ever the first of its
// brothers: its leaf is written, the node above looked at. One that comes in with the latest stamp
// meets the first node whose other children are in. The root is not contended.
//
// Progress: all functions are lock-free: a thread repeats a step only because another one
// has changed a node or a leaf. first_by_scan is wait-free. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/sync.hpp"

namespace cairn::detail {

class order {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// All out; entries are below `capacity`.
  explicit order(std::uint32_t capacity);
  /// Draws the next stamp, from 1. Never runs out: 2^40 stamps are the least that fit.
  std::uint64_t next_stamp() noexcept;
  /// Puts entry `i` at `stamp` (drawn by next_stamp), replacing its place.
  void set(std::uint32_t i, std::uint64_t stamp) noexcept;
  /// Takes entry `i` out.
  void clear(std::uint32_t i) noexcept;
  /// The entry with the lowest stamp, or none. Exact while no set or clear is under way.
  std::uint32_t first() noexcept;
  /// The same by looking at every entry: finds one even while the tree lags behind.
  std::uint32_t first_by_scan() const noexcept;

 private:
  static constexpr std::uint32_t fan_out = 16;
  static constexpr std::uint32_t levels_max = 8;  // 16^8: every 32-bit index
  static constexpr std::uint64_t out = ~std::uint64_t{0};

  using node = sync::atomic<std::uint64_t>;
  /// Brothers: the children of one node of the level above.
  struct alignas(sync::cache_line) group {
    node at[fan_out];
    group() noexcept;
  };
  enum class care : bool { changes, all };

  [[nodiscard]] std::uint64_t place_of(std::uint32_t i, std::uint64_t stamp) const noexcept {
    return stamp << index_bits_ | i;
  }
  [[nodiscard]] std::uint32_t entry_of(std::uint64_t place) const noexcept {
    return static_cast<std::uint32_t>(place & ((std::uint64_t{1} << index_bits_) - 1));
  }
  [[nodiscard]] node& leaf(std::uint32_t i) const noexcept {
    return levels_[0][i / fan_out].at[i % fan_out];
  }
  /// The node above the children that are group `g` of `level`.
  [[nodiscard]] node& above(std::uint32_t level, std::uint32_t g) noexcept {
    return level + 1 == depth_ ? root_ : levels_[level + 1][g / fan_out].at[g % fan_out];
  }
  static std::uint64_t lowest(const group& children) noexcept;

  void move(std::uint32_t i, std::uint64_t place) noexcept;
  /// Leaf `i` has become earlier, `place`: so do the nodes above it that are later.
  void sink(std::uint32_t i, std::uint64_t place) noexcept;
  /// Brings the nodes above leaf `i` into line; see the essay. `how`: refresh every node, or
  /// only as far as changes reach.
  void climb(std::uint32_t i, care how) noexcept;
  /// Makes `above` the minimum of `children`; true when that changed it.
  static bool refresh(node& above, const group& children) noexcept;

  std::uint32_t capacity_;
  std::uint32_t index_bits_;
  std::uint32_t depth_ = 0;  ///< levels of groups, leaves included
  std::unique_ptr<group[]> levels_[levels_max];
  alignas(sync::cache_line) node root_{out};
  alignas(sync::cache_line) node stamps_{0};
};

}  // namespace cairn::detail
