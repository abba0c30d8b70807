// A lock-free map from 128-bit keys to small ids: fixed capacity, chained buckets whose links
// live in the nodes, one CAS on the bucket's head per insertion. It knows nothing of what an id
// stands for: whether a node still means what it seems to is the caller's word.
//
// A bucket is a list, newest node first. A head or a link holds an *edge* to the next node: its id,
// eight bits of its key's hash, which of its lives is meant, and whether it had no successor when
// it was put in (then it never gets one, as nodes enter at the front only). So most misses read
// the head and no node.
//
// A node's life, and who makes each transition:
//   free     -> private  insert_unless: writes the key, then the link with the next life's number
//   private  -> linked   insert_unless: CAS of the head to this node and this life
//   linked   -> erased   erase: sets `erased` in the node's link, which no thread changes after
//   erased   -> unlinked any walk: CAS of the predecessor's edge to the node's successor
//   unlinked -> free     erase, once a walk over the whole bucket did not meet the node
//
// Why walks stay on their chain. Nodes are recycled, so an edge may be out of date when it is
// followed. find compares the life in the edge with the one in the node, and starts over when
// they differ. A life wraps after 2^15 insertions of one node: a thread that is held up between
// two reads for just a multiple of those can leave its chain, and find can then miss a key, once.
// walk, which carries insertion and erasure, rules that out: having read a node's link it reads
// the edge again, (7). If that still stands, the node was linked and its link belongs to that
// life: whoever recycles the node has first seen it gone from this very word, or seen the
// word's own node erased, and the re-read would see so too.
//
// Why a walk over the whole bucket proves absence. The list is ordered by insertion. Each hop
// holds at the moment of (7): node a was in the list and its successor was b. If b is older
// than x, x was not between them, and x never comes back in this life.
//
// Why one key is inserted once. insert_unless walks the list from the head's value h and sees
// every node of it. Its CAS succeeds only if the head is still h, which names first node, life
// and the number of insertions: nothing that the walk has not seen is in the list now.
//
// Why an answer of blocks() counts. The key of a node may be rewritten, for its next life, while
// it is compared: half old, half new. Key words are written with release after the mark that ended
// the old life, so whoever read a new one sees that mark or a later link: (9) looks. find has no
// such check after accept(); accept must verify what it needs by the caller's own protocol (pin the
// record, then compare state and key again). Nodes that are marked erased are shown to neither.
//
// blocks() and accept() may be called for one node several times; they must not touch the index.
//
// Progress: find is wait-free: it starts over at most 64 times, each time because a node on its way
// was erased and inserted again during the call, and then answers none. insert_unless and erase are
// lock-free: they repeat only when another thread has changed the bucket.
#pragma once

#include <cairn/types.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/index_node.hpp"
#include "runtime/index_words.hpp"
#include "runtime/large_array.hpp"
#include "runtime/sync.hpp"

namespace cairn::detail {

/// `Nodes` is a copyable callable: `index_node& operator()(std::uint32_t id) const`.
template <class Nodes>
class index {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  index(std::uint32_t capacity, Nodes nodes)
      : buckets_(std::uint64_t{2} * (capacity == 0 ? 1 : capacity)),
        heads_(buckets_),
        nodes_(std::move(nodes)) {
    // Relaxed: before any thread knows the index.
    for (std::size_t b = 0; b < buckets_; ++b) heads_[b].store_relaxed(head_word{}.pack());
  }

  /// The bucket of a key with this hash may be wanted soon: brings it near, without waiting.
  void expect(std::uint64_t hash) const noexcept { __builtin_prefetch(&head_of(hash)); }

  /// No node has a key with this hash, at a first glance: find would answer none without reading a
  /// node. Most misses are seen so, and how few instructions they take decides how many of a
  /// caller's misses wait for memory at the same time.
  [[nodiscard]] bool lacks(std::uint64_t hash) const noexcept {
    return ends_at(edge::unpack(head_of(hash).load_acquire()), print_of(hash));  // (4)
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
    return heads_[(hash & 0xffff'ffff) * buckets_ >> 32];
  }
  /// Nobody behind this edge has a key with this print, and no node need be read to know it.
  static bool ends_at(const edge& to, std::uint8_t print) noexcept {
    return to.differs(print) && to.last;
  }
  static bool has_key(const index_node& node, const checkpoint_key& key) noexcept {
    // (5) acquire: pairs with (1). Who reads the key of a later life sees, from then on, the
    // mark (6) that ended the earlier one.
    // Both are read and one branch follows: fewer guesses for the processor.
    const std::uint64_t hi = node.hi.load_acquire() ^ key.hi;
    return (hi | (node.lo.load_acquire() ^ key.lo)) == 0;
  }

  /// Visits each node of a bucket that is not erased, newest first, and unlinks the erased ones:
  /// visit(to, node, link) -> verdict. Starts over whenever it may have left the chain. Returns
  /// the head as it was when the walk passed it.
  template <class Visit>
  std::uint64_t walk(word& head, Visit&& visit);
  /// One try of walk.
  template <class Visit>
  bool walk_once(word& head, std::uint64_t& from, Visit& visit);

  std::uint64_t buckets_;
  large_array<word> heads_;
  Nodes nodes_;
};

template <class Nodes>
template <class Accept>
[[gnu::always_inline]] inline std::uint32_t index<Nodes>::find(const checkpoint_key& key,
                                                               Accept&& accept) const {
  const std::uint64_t hash = hash_of(key);
  const std::uint8_t print = print_of(hash);
  const word& head = head_of(hash);
  for (int restarts = 0;; ++restarts) {
    // (4) acquire: pairs with (2), (3), (6) and (8).
    edge to = edge::unpack(head.load_acquire());
    for (;;) {
      if (ends_at(to, print)) return none;
      const index_node& node = nodes_(to.id);
      const std::uint64_t link = node.link.load_acquire();  // (4)
      if (to.print == print && link_word::lives(link, to)) {
        if (has_key(node, key) && accept(to.id)) return to.id;
      } else if (link_word::unpack(link).life != to.life) {
        break;  // recycled: start over
      }
      to = edge::unpack(link);
    }
    if (restarts == restarts_max) return none;
  }
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
      // (8) acq_rel: hands on what (4) acquired with `packed`: that the node is erased (see 7).
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
    const head_word wanted{edge::to(id, print, life, old.first.ends()), old.next_version()};
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
