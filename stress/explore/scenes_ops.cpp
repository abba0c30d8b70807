// Scenes on the entries of ops in flight: whose an entry is, and when there is none.
#include <array>

#include "runtime/op_table.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

using detail::op_facts;
using detail::op_table;

/// One entry is a slot's, three are shared, and there are as many ops as entries: they follow each
/// other in the first, and each meets its own facts.
struct ops_entries {
  static constexpr std::uint32_t threads = 2;
  op_table ops{4, 1, 1};
  std::array<std::uint64_t, 4> holder{};  // plain: an entry is its taker's
  std::array<quiet_word<std::uint64_t>, threads> ids;

  void run(std::uint32_t t) {
    const std::uint32_t entry = ops.take_entry(0);
    require(entry != op_table::none, "no entry for an op");
    require(holder[entry] == 0, "an entry is two ops'");
    holder[entry] = t + 1;
    const op_id op = ops.begin(entry, {{t, 7}, 0, 0, copy_kind::restore});
    ids[t].set(std::uint64_t{op.generation} << 32 | op.index);
    completion done;
    done.op = op;
    done.code = status::ok;
    op_facts facts;
    op_table::verdict over;
    require(ops.count(done, facts, over) == op_table::counted::last, "an op did not end");
    require(facts.record.index == t, "an op has another's facts");
    require(holder[entry] == t + 1, "an entry was taken away");
    holder[entry] = 0;
    ops.end(op, status::ok);
  }
  void judge() {
    require(ids[0].get() != ids[1].get(), "two ops have one id");
    for (std::uint32_t i = 0; i < 4; ++i)
      require(ops.take_entry(0) != op_table::none, "an entry was lost");
    require(ops.take_entry(0) == op_table::none, "more entries than there are");
  }
};
const bool ops_entries_added = add_part<ops_entries>("ops-entries");

/// The shared entries are taken, two slots have one each, and each thread holds one at most: there
/// is always one for who comes, though the other goes to and fro between them.
struct ops_room {
  static constexpr std::uint32_t threads = 2;
  op_table ops{8, 2, 1};
  std::array<std::uint64_t, 2> holder{};  // plain

  ops_room() {
    const std::uint32_t own = ops.take_entry(0);
    for (std::uint32_t i = 0; i < 6; ++i)
      require(ops.take_entry(0) >= 2, "a slot's entry is taken before the shared ones");
    ops.give_entry(own);
  }
  void hold(slot_id slot, std::uint32_t t) {
    const std::uint32_t entry = ops.take_entry(slot);
    require(entry != op_table::none, "no entry, although one was free all the time");
    require(holder[entry] == 0, "an entry is two ops'");
    holder[entry] = t + 1;
    require(holder[entry] == t + 1, "an entry was taken away");
    holder[entry] = 0;
    ops.give_entry(entry);
  }
  void run(std::uint32_t t) {
    hold(0, t);
    if (t == 0) hold(1, t);
  }
  void judge() {
    require(ops.take_entry(0) == 0 && ops.take_entry(1) == 1, "an entry was lost");
    require(ops.take_entry(0) == op_table::none, "more entries than there are");
  }
};
const bool ops_room_added = add_part<ops_room>("ops-room");

}  // namespace

}  // namespace cairn::explore
