// The order of stamps, for sets.cpp, which has compiled it over relacy's atomics.
#pragma once

namespace {

using cairn::detail::order;

/// The first at rest is the first, whatever the updaters saw of each other.
struct order_at_rest : rl::test_suite<order_at_rest, 2> {
  std::unique_ptr<order> line;

  void before() {
    line = std::make_unique<order>(20);
    line->set(3, 5);
    line->set(19, 6);
  }
  void thread(unsigned t) {
    if (t == 0) {
      line->clear(3);
      line->set(3, 7);
    } else {
      line->clear(19);
    }
  }
  void after() {
    RL_ASSERT(line->first() == 3);
    line.reset();
  }
};

/// One comes in, with a later stamp, while the first of its brothers leaves and another is used
/// again: sinking meets climbing.
struct order_meets : rl::test_suite<order_meets, 3> {
  std::unique_ptr<order> line;

  void before() {
    line = std::make_unique<order>(20);
    line->set(3, 1);
    line->set(4, 2);
    line->set(19, 9);
  }
  void thread(unsigned t) {
    if (t == 0)
      line->clear(3);
    else if (t == 1)
      line->set(5, 6);
    else
      line->set(4, 7);
  }
  void after() {
    RL_ASSERT(line->first() == 5);
    line->clear(5);
    RL_ASSERT(line->first() == 4);
    line.reset();
  }
};

/// Each thread does what comes, to any entry: some leave, come back with the same stamp, are moved
/// by two at once, and some look. At rest the tree names what the leaves hold, down to the last
/// entry.
template <unsigned threads, unsigned calls>
struct order_at_random : rl::test_suite<order_at_random<threads, calls>, threads> {
  static constexpr unsigned capacity = 20;
  std::unique_ptr<order> line;

  /// Two groups of brothers; few, so that threads meet.
  static std::uint32_t some_entry() {
    constexpr std::array<std::uint32_t, 5> these{0, 1, 2, 18, 19};
    return these[rl::rand(these.size())];
  }
  void move(unsigned choice) {
    if (choice < 2)
      line->set(some_entry(), rl::rand(6) + 1);
    else
      line->clear(some_entry());
  }
  void before() {
    line = std::make_unique<order>(capacity);
    for (unsigned n = rl::rand(3) + 1; n-- > 0;) move(0);
  }
  void thread(unsigned) {
    for (unsigned n = 0; n < calls; ++n) {
      if (const unsigned choice = rl::rand(5); choice < 4) {
        move(choice);
      } else {
        const std::uint32_t first = line->first();
        RL_ASSERT(first == order::none || first < capacity);
      }
    }
  }
  void after() {
    for (;;) {
      const std::uint32_t first = line->first();
      RL_ASSERT(first == line->first_by_scan());
      if (first == order::none) break;
      line->clear(first);
    }
    line.reset();
  }
};

}  // namespace
