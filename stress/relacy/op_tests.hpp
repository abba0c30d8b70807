// The ops in flight, for sets.cpp, which has compiled them over relacy's atomics: whose an entry
// is, and how who waits for an end is woken.
#pragma once

#include <cstdint>
#include <memory>

namespace {

/// One ends an op, one waits for its end: it sees the end, or is woken.
struct waits_for_end : rl::test_suite<waits_for_end, 2> {
  std::unique_ptr<cairn::detail::op_table> ops;
  cairn::op_id op;
  rl::var<int> record;

  void before() {
    cairn::sync::sleepers = ::new cairn::sync::bedroom;
    ops = std::make_unique<cairn::detail::op_table>(1U, 1U, 1U);
    const std::uint32_t entry = ops->take_entry(0);
    op = ops->begin(entry, {{0, 1}, 0, 0, cairn::copy_kind::store});
    ops->observe(op);
    record($) = 0;
  }
  void thread(unsigned t) {
    if (t == 1) {
      RL_ASSERT(ops->wait(op, cairn::deadline::max()) == cairn::status::ok);
      RL_ASSERT(record($) == 1);
      return;
    }
    cairn::completion done;
    done.op = op;
    done.code = cairn::status::ok;
    cairn::detail::op_facts facts;
    cairn::detail::op_table::verdict over;
    RL_ASSERT(ops->count(done, facts, over) == cairn::detail::op_table::counted::last);
    record($) = 1;
    ops->end(op, over.code);
  }
  void after() {
    ops.reset();
    ::delete cairn::sync::sleepers;
  }
};

/// Ops follow each other in the entries: what one does with its entry is over before the next
/// has it.
struct entries : rl::test_suite<entries, 3> {
  std::unique_ptr<cairn::detail::op_table> ops;  // one entry is slot 0's, three are shared
  rl::var<unsigned> holder[4];

  void before() {
    ops = std::make_unique<cairn::detail::op_table>(4U, 1U, 1U);
    for (auto& each : holder) each($) = 0;
  }
  void thread(unsigned t) {
    const std::uint32_t entry = ops->take_entry(0);
    RL_ASSERT(entry != cairn::detail::op_table::none);
    holder[entry]($) = t + 1;
    if (t == 2) {
      ops->give_entry(entry);
      return;
    }
    cairn::completion done;
    done.op = ops->begin(entry, {{t, 7}, 0, 0, cairn::copy_kind::restore});
    done.code = cairn::status::ok;
    cairn::detail::op_facts facts;
    cairn::detail::op_table::verdict over;
    RL_ASSERT(ops->count(done, facts, over) == cairn::detail::op_table::counted::last);
    RL_ASSERT(facts.record.index == t && holder[entry]($) == t + 1);
    ops->end(done.op, over.code);
  }
  void after() {
    for (int i = 0; i < 4; ++i) RL_ASSERT(ops->take_entry(0) != cairn::detail::op_table::none);
    RL_ASSERT(ops->take_entry(0) == cairn::detail::op_table::none);
    ops.reset();
  }
};

}  // namespace
