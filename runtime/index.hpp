// A lock-free map from 128-bit keys to small ids: fixed capacity, chained buckets whose links
// live in the nodes, one CAS on the bucket's head per insertion. It knows nothing of what an id
// stands for: whether a node still means what it seems to is the caller's word.
#pragma once

#include <bit>
#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/index_words.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// Part of whatever an id stands for (a record, a unit). The index alone writes it. `hi` and
/// `lo` stay as they are from the insertion until the node is inserted again.
struct index_node {
  sync::atomic<std::uint64_t> hi;
  sync::atomic<std::uint64_t> lo;
  sync::atomic<std::uint64_t> link;
};

/// `Nodes` is a copyable callable: `index_node& operator()(std::uint32_t id) const`.
template <class Nodes>
class index {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  index(std::uint32_t capacity, Nodes nodes)
      : buckets_(std::bit_ceil(std::size_t{2} * (capacity == 0 ? 1 : capacity))),
        heads_(std::make_unique<word[]>(buckets_)),
        nodes_(std::move(nodes)) {
    for (std::size_t b = 0; b < buckets_; ++b) heads_[b].store_relaxed(head_word{}.pack());
  }

  /// Calls accept(id) -> bool for each node under `key`, newest first, until one is accepted;
  /// returns it or none. The node may be leaving the index: accept decides (by its own
  /// state word) whether the id still means what it seems to. Bounded number of hops.
  template <class Accept>
  std::uint32_t find(const checkpoint_key& key, Accept&& accept) const;

  /// Inserts `id` under `key` unless a node under `key` is accepted by blocks(other) -> bool;
  /// returns none when inserted, else that node. Two concurrent insertions of one key never
  /// both succeed unless blocks() denies one. Precondition: `id` is in no index.
  template <class Blocks>
  std::uint32_t insert_unless(std::uint32_t id, const checkpoint_key& key, Blocks&& blocks);

  /// Removes `id`, which the caller alone may remove now and which is in the index. On
  /// return the node may be inserted again (here or elsewhere).
  void erase(std::uint32_t id);

 private:
  using word = sync::atomic<std::uint64_t>;
  enum class verdict : std::uint8_t { pass, stop, again };

  /// How often one find starts over when nodes are recycled under it.
  static constexpr int restarts_max = 64;

  [[nodiscard]] word& head_of(std::uint64_t hash) const noexcept {
    return heads_[hash & (buckets_ - 1)];
  }
  static bool has_key(const index_node& node, const checkpoint_key& key) noexcept {
    // (5) acquire: pairs with (1). Who reads the key of a later life sees, from then on, the
    // mark (6) that ended the earlier one.
    return node.hi.load_acquire() == key.hi && node.lo.load_acquire() == key.lo;
  }

  /// One try of find: false when it was overtaken by a recycled node.
  template <class Accept>
  bool probe(std::uint64_t hash, const checkpoint_key& key, Accept& accept,
             std::uint32_t& found) const;
  /// Visits each node of a bucket that is not erased, newest first, and unlinks the erased ones:
  /// visit(to, node, link) -> verdict. Starts over whenever it may have left the chain. Returns
  /// the head as it was when the walk passed it.
  template <class Visit>
  std::uint64_t walk(word& head, Visit&& visit);
  /// One try of walk.
  template <class Visit>
  bool walk_once(word& head, std::uint64_t& from, Visit& visit);

  std::size_t buckets_;
  std::unique_ptr<word[]> heads_;
  Nodes nodes_;
};

template <class Nodes>
template <class Accept>
std::uint32_t index<Nodes>::find(const checkpoint_key& key, Accept&& accept) const {
  const std::uint64_t hash = hash_of(key);
  std::uint32_t found = none;
  for (int i = 0; i <= restarts_max; ++i)
    if (probe(hash, key, accept, found)) return found;
  return none;
}

template <class Nodes>
template <class Accept>
bool index<Nodes>::probe(std::uint64_t hash, const checkpoint_key& key, Accept& accept,
                         std::uint32_t& found) const {
  const std::uint8_t print = print_of(hash);
  // (4) acquire: pairs with (3) and (8).
  edge to = edge::unpack(head_of(hash).load_acquire());
  while (!to.ends()) {
    if (to.print != print && to.last) return true;  // the usual miss: no node touched
    const index_node& node = nodes_(to.id);
    const auto link = link_word::unpack(node.link.load_acquire());  // (4)
    if (link.life != to.life) return false;
    if (to.print == print && !link.erased && has_key(node, key) && accept(to.id)) {
      found = to.id;
      return true;
    }
    to = link.next;
  }
  return true;
}

template <class Nodes>
template <class Visit>
std::uint64_t index<Nodes>::walk(word& head, Visit&& visit) {
  std::uint64_t from = 0;
  while (!walk_once(head, from, visit)) {
  }
  return from;
}

template <class Nodes>
template <class Visit>
bool index<Nodes>::walk_once(word& head, std::uint64_t& from, Visit& visit) {
  word* at = &head;                          // the word whose edge is followed
  std::uint64_t seen = head.load_acquire();  // (4)
  from = seen;
  for (;;) {
    const edge to = edge::unpack(seen);
    if (to.ends()) return true;
    index_node& node = nodes_(to.id);
    const std::uint64_t packed = node.link.load_acquire();  // (4)
    // (7) acquire, for the next look to come later. The edge still stands, and `at` is still in
    // the chain (an erased node's word has its mark): so `packed` was read in this life.
    if (at->load_acquire() != seen) return false;
    const auto link = link_word::unpack(packed);
    if (link.erased) {
      const std::uint64_t around = edge::replace(seen, link.next);
      // (8) acq_rel: hands on what (4) acquired with `packed`: the chain behind the node.
      if (!at->cas_acq_rel(seen, around)) return false;
      if (at == &head) from = around;
      seen = around;
      continue;
    }
    switch (visit(to, node, packed)) {
      case verdict::pass:
        break;
      case verdict::stop:
        return true;
      case verdict::again:
        return false;
    }
    at = &node.link;
    seen = packed;
  }
}

template <class Nodes>
template <class Blocks>
std::uint32_t index<Nodes>::insert_unless(std::uint32_t id, const checkpoint_key& key,
                                          Blocks&& blocks) {
  const std::uint64_t hash = hash_of(key);
  const std::uint8_t print = print_of(hash);
  word& head = head_of(hash);
  index_node& mine = nodes_(id);
  const auto life = link_word::unpack(mine.link.load_relaxed()).next_life();
  mine.hi.store_release(key.hi);  // (1) release: pairs with (5)
  mine.lo.store_release(key.lo);  // (1)
  for (;;) {
    std::uint32_t blocker = none;
    std::uint64_t seen = walk(head, [&](edge to, const index_node& node, std::uint64_t packed) {
      if (to.print != print || !has_key(node, key) || !blocks(to.id)) return verdict::pass;
      // (9) relaxed, ordered by (5): still this life, so key and answer belonged to it.
      if (node.link.load_relaxed() != packed) return verdict::again;
      blocker = to.id;
      return verdict::stop;
    });
    if (blocker != none) return blocker;
    const auto old = head_word::unpack(seen);
    // (2) release: pairs with (4) of readers who come by an outdated edge.
    mine.link.store_release(link_word{old.first, life, false}.pack());
    const head_word wanted{edge{id, print, life, old.first.ends()}, old.next_version()};
    // (3) acq_rel: publishes key and link to (4). Fails if anything was inserted, or the
    // first node unlinked, since the walk began.
    if (head.cas_acq_rel(seen, wanted.pack())) return none;
  }
}

template <class Nodes>
void index<Nodes>::erase(std::uint32_t id) {
  index_node& mine = nodes_(id);
  // Relaxed: whoever may erase a node has seen its insertion.
  const checkpoint_key key{mine.hi.load_relaxed(), mine.lo.load_relaxed()};
  // (6) acq_rel: from here on nobody changes the link; pairs with (4).
  mine.link.fetch_or_acq_rel(link_word::erased_bit);
  walk(head_of(hash_of(key)), [](edge, const index_node&, std::uint64_t) { return verdict::pass; });
}

}  // namespace cairn::detail
