// The set of integers, the order of stamps, credits beside bits, the index, the doorbell, and how
// who waits for an op's end is woken, under relacy: protocols of several words, whose missing
// orders neither a sequentially consistent explorer nor ThreadSanitizer can see. The sources
// themselves are compiled here, against environment.hpp; but the pool's credits and bits are a copy
// of what it does with the set, since the pool as a whole is more than relacy can try.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cairn/backend.hpp>
#include <cairn/types.hpp>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <relacy/relacy.hpp>
#include <vector>

#define CAIRN_SYNC_ENVIRONMENT "stress/relacy/environment.hpp"
// Relacy's new and delete are for the tests' own data; the sources use neither by name.
#undef new
#undef delete
#undef assert
// These are relacy's macros in place of the names of <atomic>.
#undef memory_order_relaxed
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef memory_order_consume
#include "runtime/bitmap.cpp"
#include "runtime/doorbell.cpp"
#include "runtime/index.hpp"
#include "runtime/op_table.cpp"
#include "runtime/op_table_entries.cpp"
#include "runtime/order.cpp"

namespace {

const char* fault = "";

}  // namespace

namespace cairn::sync {
bool mutated(const char* name) noexcept {
  return std::strcmp(fault, name) == 0;
}
}  // namespace cairn::sync

#include "stress/relacy/op_tests.hpp"
#include "stress/relacy/order_tests.hpp"

namespace {

using cairn::detail::bitmap;

/// A credit is taken before a bit, and returned after it: whoever holds a credit finds a bit. A set
/// of so many has a summary, or none.
template <std::uint32_t Capacity>
struct credits_and_bits : rl::test_suite<credits_and_bits<Capacity>, 3> {
  std::unique_ptr<bitmap> set;
  std::unique_ptr<cairn::sync::atomic<std::uint32_t>> credits;
  rl::var<int> owner[2];

  void before() {
    set = std::make_unique<bitmap>(Capacity);
    credits = std::make_unique<cairn::sync::atomic<std::uint32_t>>(1U);
    set->put(100);
    owner[0]($) = owner[1]($) = 0;
  }
  void thread(unsigned t) {
    if (t == 0) {
      // Somebody frees another one.
      owner[1]($) = 1;
      const bool early = cairn::sync::mutated("credits before bits");
      if (early) credits->fetch_add_release(1);
      set->put(101);
      if (!early) credits->fetch_add_release(1);
      return;
    }
    std::uint32_t seen = credits->load_relaxed();
    while (seen > 0 && !credits->cas_acquire(seen, seen - 1)) {
    }
    if (seen == 0) return;
    const std::uint32_t i = set->take_lowest();
    RL_ASSERT(i == 100 || i == 101);
    owner[i - 100]($) = static_cast<int>(t) + 1;
  }
  // Relacy's memory is given back while its simulation lasts.
  void after() {
    set.reset();
    credits.reset();
  }
};

/// A member that stays is found while others come and go around it.
struct stays : rl::test_suite<stays, 2> {
  std::unique_ptr<bitmap> set;

  void before() {
    set = std::make_unique<bitmap>(2048);
    set->put(70);
    set->put(700);
  }
  void thread(unsigned t) {
    if (t == 0) {
      if (set->take(70)) set->put(70);
    } else {
      const std::uint32_t i = set->take_lowest();
      RL_ASSERT(i == 70 || i == 700);
      set->put(i);
    }
  }
  void after() {
    RL_ASSERT(set->take_lowest() == 70);
    RL_ASSERT(set->take_lowest() == 700);
    set.reset();
  }
};

/// A word has run empty; one settles it while another puts a member into it and only reads the
/// summary.
struct settles : rl::test_suite<settles, 2> {
  std::unique_ptr<bitmap> set;
  bool got;

  void before() {
    set = std::make_unique<bitmap>(2048);
    set->put(100);
    RL_ASSERT(set->take(100));
    got = false;
  }
  void thread(unsigned t) {
    if (t == 0) {
      set->put(101);
    } else {
      const std::uint32_t i = set->take_lowest();
      RL_ASSERT(i == 101 || i == bitmap::none);
      got = i == 101;
    }
  }
  void after() {
    RL_ASSERT(got || set->take_lowest() == 101);
    set.reset();
  }
};

/// The index: who finds an id sees what was written before it was inserted, whatever is erased and
/// inserted again beside it; of several insertions of one key one wins.
struct index_part {
  struct nodes_of {
    cairn::detail::index_node* nodes;
    cairn::detail::index_node& operator()(std::uint32_t id) const noexcept { return nodes[id]; }
  };
  using map_type = cairn::detail::index<nodes_of>;
  std::unique_ptr<std::array<cairn::detail::index_node, 4>> nodes;
  std::unique_ptr<map_type> map;  // two buckets: keys collide
  rl::var<int> meaning[4];        // of each id, by its holder

  static cairn::checkpoint_key key(std::uint64_t n) {
    for (std::uint64_t i = 0;; ++i)
      if ((cairn::detail::hash_of({i, i}) >> 31 & 1) == 0 && n-- == 0) return {i, i};
  }
  bool insert(std::uint32_t id, std::uint64_t n) {
    return map->insert_unless(id, key(n), [](std::uint32_t) { return true; }) == map_type::none;
  }
  std::uint32_t find(std::uint64_t n) {
    return map->find(key(n), [](std::uint32_t) { return true; });
  }
  void open() {
    nodes = std::make_unique<std::array<cairn::detail::index_node, 4>>();
    map = std::make_unique<map_type>(1U, nodes_of{nodes->data()});
    for (int i = 0; i < 4; ++i) meaning[i]($) = i == 3 ? 0 : i + 1;
  }
  void close() {
    map.reset();
    nodes.reset();
  }
};

struct index_finds : rl::test_suite<index_finds, 3>, index_part {
  void before() {
    open();
    RL_ASSERT(insert(0, 1) && insert(1, 2));
  }
  void thread(unsigned t) {
    if (t == 0) {
      meaning[3]($) = 4;
      RL_ASSERT(insert(3, 4));
    } else if (t == 1) {
      map->erase(1);
      meaning[1]($) = 3;
      RL_ASSERT(insert(1, 3));
    } else {
      RL_ASSERT(find(1) == 0);
      const std::uint32_t there = find(4);
      RL_ASSERT(there == map_type::none || (there == 3 && meaning[3]($) == 4));
      const std::uint32_t back = find(3);
      RL_ASSERT(back == map_type::none || (back == 1 && meaning[1]($) == 3));
    }
  }
  void after() {
    RL_ASSERT(find(1) == 0 && find(2) == map_type::none && find(3) == 1 && find(4) == 3);
    close();
  }
};

struct index_inserts : rl::test_suite<index_inserts, 3>, index_part {
  std::uint32_t won = 0;

  void before() {
    won = 0;
    open();
    RL_ASSERT(insert(0, 1));
  }
  void thread(unsigned t) {
    if (t == 0)
      map->erase(0);
    else if (insert(t, 7))
      ++won;
  }
  void after() {
    RL_ASSERT(won == 1 && find(7) != map_type::none && find(1) == map_type::none);
    close();
  }
};

/// A word with the calls of std::atomic.
class simulated_word {
 public:
  std::uint32_t load(std::memory_order how) const noexcept { return value_($).load(order_of(how)); }
  std::uint32_t fetch_add(std::uint32_t v, std::memory_order how) noexcept {
    return value_($).fetch_add(v, order_of(how));
  }
  std::uint32_t fetch_sub(std::uint32_t v, std::memory_order how) noexcept {
    return value_($).fetch_sub(v, order_of(how));
  }
  operator rl::atomic<std::uint32_t>&() const noexcept { return value_; }
  void clear() noexcept { value_($).store(0, rl::mo_relaxed); }

 private:
  static rl::memory_order order_of(std::memory_order how) noexcept {
    switch (how) {
      case std::memory_order_acquire:
        return cairn::sync::mutated("loads acquire nothing") ? rl::mo_relaxed : rl::mo_acquire;
      case std::memory_order_acq_rel:
        return cairn::sync::mutated("counts change relaxed") ? rl::mo_relaxed : rl::mo_acq_rel;
      default:
        return rl::mo_relaxed;
    }
  }
  mutable rl::atomic<std::uint32_t> value_;
};

/// Work is filed, then the bell is rung; the sleeper reads the bell, then looks for work.
struct rings : rl::test_suite<rings, 3> {
  simulated_word bell;
  simulated_word sleepers;
  std::unique_ptr<cairn::sync::atomic<std::uint32_t>> filed;

  void before() {
    cairn::sync::sleepers = ::new cairn::sync::bedroom;
    filed = std::make_unique<cairn::sync::atomic<std::uint32_t>>(0U);
    bell.clear();
    sleepers.clear();
  }
  void thread(unsigned t) {
    if (t < 2) {
      filed->fetch_add_relaxed(1);
      cairn::detail::ring_bell(bell, sleepers);
      return;
    }
    for (;;) {
      const std::uint32_t seen = cairn::detail::bell_seen(bell);
      if (filed->load_relaxed() == 2) return;
      cairn::detail::wait_for_bell(bell, sleepers, seen, cairn::deadline::max());
    }
  }
  void after() {
    filed.reset();
    ::delete cairn::sync::sleepers;
  }
};

template <class Test>
bool simulate(const char* name, unsigned long count) {
  rl::test_params p;
  p.iteration_count = count;
  p.execution_depth_limit = 20000;  // a refresh of sixteen children is long, not a livelock
  p.search_type = rl::random_scheduler_type;
  // Not into memory: relacy prints while it has taken the allocator over.
  std::ostream nowhere(nullptr);
  p.output_stream = fault[0] == '\0' ? &std::cout : &nowhere;
  p.progress_stream = &nowhere;
  const bool ok = rl::simulate<Test>(p);
  std::printf("%-28s %lu executions: %s\n", name, count, ok ? "nothing found" : "a fault found");
  return ok;
}

/// Whether the simulation notices what is wrong with this fault.
template <class Test>
bool finds(const char* name, const char* planted, unsigned long count) {
  fault = planted;
  return !simulate<Test>(name, count);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20000;
  bool ok = simulate<credits_and_bits<2048>>("credits and bits", count);
  ok = simulate<credits_and_bits<128>>("credits, no summary", count) && ok;
  ok = simulate<order_at_rest>("order at rest", count) && ok;
  ok = simulate<order_meets>("order: in meets out", count) && ok;
  ok = simulate<order_at_random<2, 4>>("order: two at random", count) && ok;
  ok = simulate<order_at_random<3, 2>>("order: three at random", count) && ok;
  ok = simulate<stays>("a member that stays", count) && ok;
  ok = simulate<settles>("an empty word settled", count) && ok;
  ok = simulate<waits_for_end>("waits for an end", count) && ok;
  ok = simulate<entries>("entries of ops", count) && ok;
  ok = simulate<index_finds>("index: finds", count) && ok;
  ok = simulate<index_inserts>("index: insertions", count) && ok;
  ok = simulate<rings>("doorbell", count) && ok;
  // It must be able to fail.
  ok = finds<order_at_rest>("  without its second look", "no second look at the children", count) &&
       ok;
  ok = finds<order_at_rest>("  an entry that only looks", "order: sinks by a look", count) && ok;
  ok = finds<order_meets>("  and here", "order: sinks by a look", count) && ok;
  ok = finds<order_at_random<3, 2>>("  and at random", "order: sinks by a look", count) && ok;
  ok = finds<credits_and_bits<128>>("  credits before bits", "credits before bits", count) && ok;
  ok = finds<settles>("  a settler that only reads", "set: settler only reads", count) && ok;
  ok = finds<rings>("  a doorbell that orders nothing", "counts change relaxed", count) && ok;
  ok = finds<waits_for_end>("  a waiter unannounced", "waiter for an end unannounced", count) && ok;
  ok = finds<rings>("  a sleeper unannounced", "sleeper unannounced", count) && ok;
  ok = finds<entries>("  entries that are taken relaxed", "entries taken relaxed", count) && ok;
  ok = finds<index_finds>("  links that are read relaxed", "loads acquire nothing", count) && ok;
  return ok ? 0 : 1;
}
