// Scenes on the sets, orders and indices beneath catalog and pool.
#include <array>
#include <cairn/types.hpp>
#include <vector>

#include "runtime/bitmap.hpp"
#include "runtime/index.hpp"
#include "runtime/order.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

using detail::bitmap;
using detail::order;

// ---- bitmap -----------------------------------------------------------------------------------

/// Large enough for a summary level.
struct bitmap_levels {
  static constexpr std::uint32_t threads = 3;
  bitmap set{2048};
  std::array<std::uint64_t, 2048> bytes{};  // plain: whoever has taken a member owns its place
  std::uint32_t got[3] = {bitmap::none, bitmap::none, bitmap::none};

  bitmap_levels() {
    set.put(100);
    bytes[100] = 100;
  }
  void give(std::uint32_t i) {
    bytes[i] = i;
    set.put(i);
  }
  void take(std::uint32_t t) {
    got[t] = set.take_lowest();
    if (got[t] == bitmap::none) return;
    require(bytes[got[t]] == got[t], "a member's place is another's");
    bytes[got[t]] = 0;
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      take(0);
    } else if (t == 1) {
      give(101);  // the word that the other may be emptying
    } else {
      take(2);
    }
  }
  void judge() {
    std::uint32_t left = 0;
    for (std::uint32_t i = set.take_lowest(); i != bitmap::none; i = set.take_lowest()) ++left;
    for (std::uint32_t each : {got[0], got[2]})
      if (each != bitmap::none) ++left;
    require(left == 2, "a member was lost, or was there twice");
    require(got[0] != bitmap::none || got[2] != bitmap::none, "there was a member all the time");
  }
};
const bool bitmap_levels_added = add_part<bitmap_levels>("bitmap-levels");

struct bitmap_crossing {
  static constexpr std::uint32_t threads = 3;
  bitmap set{2048};
  std::uint32_t taken[3] = {};

  bitmap_crossing() {
    set.put(5);
    set.put(900);
  }
  void run(std::uint32_t t) {
    if (t == 2) {
      // Always two members but for a moment of one, wherever the others are.
      if (set.take(5)) set.put(5);
      return;
    }
    if (const std::uint32_t i = set.take_lowest(); i != bitmap::none) {
      set.put(i);
      ++taken[t];
    }
  }
  void judge() {
    require(set.take_lowest() == 5 && set.take_lowest() == 900 && set.take_lowest() == bitmap::none,
            "the set is not what it was");
  }
};
const bool bitmap_crossing_added = add_part<bitmap_crossing>("bitmap-crossing");

/// A member that stays all the time is found by everybody who takes. So many empty words stand
/// before it: none, and its own is settled when nothing is left below the summary's word; or as
/// many as a way down passes over, and with the next one that is empty all are settled.
template <std::uint32_t Before>
struct bitmap_stays {
  static constexpr std::uint32_t threads = 3;
  static constexpr std::uint32_t member = Before * 64 + 6;
  static constexpr std::uint32_t behind = Before == 0 ? 64 * 64 : member + 10 * 64;
  bitmap set{behind + 64 * 64};

  bitmap_stays() {
    for (std::uint32_t i = 0; i < Before; ++i) {
      set.put(i * 64);
      require(set.take(i * 64), "a member was lost");
    }
    set.put(member);
    set.put(behind);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      if (set.take(member)) set.put(member);
    } else if (t == 1) {
      if (set.take(member + 1)) set.put(member + 1);
      if (set.take(member)) set.put(member);
    } else {
      const std::uint32_t i = set.take_lowest();
      require(i != bitmap::none, "a member that stayed in the set was not found");
      set.put(i);
    }
  }
  void judge() {
    require(set.take_lowest() == member && set.take_lowest() == behind,
            "the set is not what it was");
  }
};
const bool bitmap_stays_added = add_part<bitmap_stays<0>>("bitmap-stays");
const bool bitmap_passes_added = add_part<bitmap_stays<bitmap::passes_max>>("bitmap-passes");

/// A word has run empty and nobody has settled it; two takers do, while a member comes.
struct bitmap_empty {
  static constexpr std::uint32_t threads = 3;
  bitmap set{2048};
  std::uint32_t got[3] = {bitmap::none, bitmap::none, bitmap::none};

  bitmap_empty() {
    set.put(100);
    require(set.take(100), "a member was lost");
  }
  void run(std::uint32_t t) {
    if (t == 1)
      set.put(101);
    else
      got[t] = set.take_lowest();
  }
  void judge() {
    std::uint32_t there = 0;
    for (const std::uint32_t each : {got[0], got[2], set.take_lowest(), set.take_lowest()})
      if (each == 101) ++there;
    require(there == 1, "a member was lost, or was there twice");
  }
};
const bool bitmap_empty_added = add_part<bitmap_empty>("bitmap-empty");

// ---- order ------------------------------------------------------------------------------------

/// Two levels of nodes. At rest the first is the first.
struct order_moves {
  static constexpr std::uint32_t threads = 3;
  order line{40};
  std::uint64_t stamp[40] = {};

  order_moves() {
    for (std::uint32_t i : {1U, 2U, 20U}) set(i);
  }
  void set(std::uint32_t i) {
    stamp[i] = line.next_stamp();
    line.set(i, stamp[i]);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      set(1);
    } else if (t == 1) {
      line.clear(2);
      stamp[2] = 0;
    } else {
      set(20);
    }
  }
  void judge() {
    std::uint32_t first = order::none;
    for (std::uint32_t i = 0; i < 40; ++i)
      if (stamp[i] != 0 && (first == order::none || stamp[i] < stamp[first])) first = i;
    require(line.first_by_scan() == first, "a leaf is wrong");
    require(line.first() == first, "the root does not name the first");
    line.clear(first);
    stamp[first] = 0;
    require(line.first() != first, "an entry that is out is named");
  }
};
const bool order_moves_added = add_part<order_moves>("order-moves");

/// One entry leaves and comes back with the same stamp while others refresh the nodes above it.
struct order_back {
  static constexpr std::uint32_t threads = 3;
  order line{20};
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  order_back() {
    first = line.next_stamp();
    second = line.next_stamp();
    line.set(3, first);
    line.set(4, second);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      line.clear(3);
      line.set(3, first);
    } else if (t == 1) {
      line.clear(4);
    } else {
      const std::uint32_t i = line.first();
      require(i == 3 || i == 4 || i == order::none, "an entry that was never in is named");
    }
  }
  void judge() { require(line.first() == 3, "the root does not name the first"); }
};
const bool order_back_added = add_part<order_back>("order-back");

/// An entry leaves before it has come in everywhere, beside the first of its brothers: what names
/// the place that it has left keeps nobody from the first.
struct order_overtaken {
  static constexpr std::uint32_t threads = 3;
  order line{20};

  order_overtaken() {
    line.set(2, 1);
    line.set(19, 9);
  }
  void run(std::uint32_t t) {
    if (t == 0)
      line.set(3, 5);
    else
      line.clear(t == 1 ? 3 : 2);
    const std::uint32_t first = line.first();
    require(first == 2 || first == 3 || first == 19, "an entry that stays was passed over");
  }
  void judge() {
    for (int left = 0; left < 3; ++left) {
      const std::uint32_t first = line.first();
      require(line.first_by_scan() == first, "the root does not name the first");
      if (first != order::none) line.clear(first);
    }
  }
};
const bool order_overtaken_added = add_part<order_overtaken>("order-overtaken");

struct order_same {
  static constexpr std::uint32_t threads = 2;
  order line{20};
  void run(std::uint32_t t) {
    if (t == 0) {
      line.set(3, line.next_stamp());
      line.clear(3);
    } else {
      line.set(19, line.next_stamp());
      line.clear(19);
    }
  }
  void judge() {
    require(line.first_by_scan() == order::none, "a leaf is wrong");
    require(line.first() == order::none, "the root names an entry that is out");
  }
};
const bool order_same_added = add_part<order_same>("order-clear");

// ---- index ------------------------------------------------------------------------------------

struct nodes_of {
  detail::index_node* nodes;
  detail::index_node& operator()(std::uint32_t id) const noexcept { return nodes[id]; }
};

struct index_part {
  std::array<detail::index_node, 6> nodes{};
  std::array<std::uint64_t, 6> meaning{};  // plain: what an id stands for, written before inserting
  detail::index<nodes_of> map{1, nodes_of{nodes.data()}};  // two buckets: keys collide
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Whether the key's hash falls into the second bucket: see index::head_of.
  static bool second(const checkpoint_key& key) { return (detail::hash_of(key) >> 31 & 1) != 0; }
  /// The n-th key whose hash falls into the first bucket.
  static checkpoint_key key(std::uint64_t n) {
    for (std::uint64_t i = 0;; ++i)
      if (!second({i, i}) && n-- == 0) return {i, i};
  }
  std::uint32_t insert(std::uint32_t id, std::uint64_t n) {
    meaning[id] = n;
    return map.insert_unless(id, key(n), [](std::uint32_t) { return true; });
  }
  std::uint32_t find(std::uint64_t n) {
    return map.find(key(n), [](std::uint32_t) { return true; });
  }
  bool has(std::uint64_t n) { return find(n) != none; }
};

struct index_insert : index_part {
  static constexpr std::uint32_t threads = 3;
  std::uint32_t won = 0;
  void run(std::uint32_t t) {
    if (insert(t, 7) == none) ++won;
  }
  void judge() {
    require(won == 1, "one key was inserted by several, or by nobody");
    require(has(7), "what was inserted is not found");
  }
};
const bool index_insert_added = add_part<index_insert>("index-insert");

struct index_stays : index_part {
  static constexpr std::uint32_t threads = 3;
  index_stays() {
    insert(0, 1);
    insert(1, 2);
    insert(2, 3);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      map.erase(1);
      insert(1, 4);
    } else if (t == 1) {
      map.erase(2);
      insert(2, 5);
    } else {
      const std::uint32_t at = find(1);
      require(at == 0, "a key that stays is not found");
      require(meaning[at] == 1, "an id means something else");
    }
  }
  void judge() {
    require(has(1) && has(4) && has(5), "a key that was inserted is not found");
    require(!has(2) && !has(3), "a key that was erased is found");
  }
};
const bool index_stays_added = add_part<index_stays>("index-stays");

struct index_recycle : index_part {
  static constexpr std::uint32_t threads = 3;
  std::uint32_t won = 0;
  index_recycle() {
    insert(0, 1);
    insert(1, 2);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      map.erase(1);
      insert(1, 3);
      map.erase(1);
    } else {
      if (insert(1 + t, 9) == none) ++won;
    }
  }
  void judge() {
    require(won == 1, "one key was inserted by several, or by nobody");
    require(has(1) && has(9), "a key that was inserted is not found");
    require(!has(2) && !has(3), "a key that was erased is found");
  }
};
const bool index_recycle_added = add_part<index_recycle>("index-recycle");

/// A node that an insertion's walk is about to visit comes back in another chain; the key stands
/// behind it in this one.
struct index_astray : index_part {
  static constexpr std::uint32_t threads = 2;
  std::uint64_t other = 0;  // a key of the second bucket
  index_astray() {
    while (!second({other, other})) ++other;
    insert(0, 1);
    insert(1, 2);
    insert(2, 3);
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      map.erase(1);
      map.insert_unless(1, {other, other}, [](std::uint32_t) { return true; });
    } else {
      require(insert(3, 1) == 0, "a key was inserted twice");
    }
  }
  void judge() {
    require(map.find({other, other}, [](std::uint32_t) { return true; }) == 1,
            "a key that was inserted is not found");
    require(has(1) && has(3) && !has(2), "a key is not where it was");
  }
};
const bool index_astray_added = add_part<index_astray>("index-astray");

/// Erasures side by side, each beneath the other's node.
struct index_erase : index_part {
  static constexpr std::uint32_t threads = 3;
  index_erase() {
    insert(0, 1);
    insert(1, 2);
    insert(2, 3);
    insert(3, 4);
  }
  void run(std::uint32_t t) {
    map.erase(t);
    if (t == 1) insert(1, 5);
  }
  void judge() {
    require(has(4) && has(5), "a key that was inserted is not found");
    require(!has(1) && !has(2) && !has(3), "a key that was erased is found");
    // Nothing hangs on: all of them can come back.
    insert(0, 1);
    insert(2, 3);
    require(has(1) && has(3), "a node cannot be inserted again");
  }
};
const bool index_erase_added = add_part<index_erase>("index-erase");

}  // namespace

}  // namespace cairn::explore
