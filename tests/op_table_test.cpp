// Which entries ops get: a slot's own first, all of them before none, and the same in the same
// order whatever thread asks.
#include "runtime/op_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace cairn::detail {
namespace {

op_id begin_in(op_table& ops, std::uint32_t entry) {
  return ops.begin(entry, {{0, 1}, 0, 0, copy_kind::restore});
}

void finish(op_table& ops, op_id op) {
  completion done;
  done.op = op;
  done.code = status::ok;
  op_facts facts;
  op_table::verdict over;
  ASSERT_EQ(ops.count(done, facts, over), op_table::counted::last);
  EXPECT_EQ(over.code, status::ok);
  ops.end(op, over.code);
}

TEST(OpTable, ASlotHasAnEntryOfItsOwn) {
  op_table ops(16, 4, 1);
  EXPECT_EQ(ops.take_entry(2), 2U);
  const std::uint32_t shared = ops.take_entry(2);
  EXPECT_GE(shared, 4U);
  EXPECT_EQ(ops.take_entry(3), 3U);
  finish(ops, begin_in(ops, 2));
  EXPECT_EQ(ops.take_entry(2), 2U);
  finish(ops, begin_in(ops, shared));
  EXPECT_EQ(ops.take_entry(2), shared) << "what was put back last comes first";
}

TEST(OpTable, EveryEntryIsTakenBeforeNoneIs) {
  for (const std::uint32_t capacity : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 64U})
    for (const std::uint32_t slots : {1U, 2U, 7U, 100U}) {
      SCOPED_TRACE(testing::Message() << capacity << " entries, " << slots << " slots");
      op_table ops(capacity, slots, 1);
      std::set<std::uint32_t> taken;
      for (std::uint32_t i = 0; i < capacity; ++i) taken.insert(ops.take_entry(i * 3 % slots));
      ASSERT_EQ(taken.size(), capacity);
      ASSERT_EQ(*taken.rbegin(), capacity - 1);
      for (const std::uint32_t each : taken) {
        for (slot_id slot = 0; slot < slots; ++slot)
          ASSERT_EQ(ops.take_entry(slot), op_table::none);
        ops.give_entry(each);
        ASSERT_EQ(ops.take_entry(slots - 1), each) << "the only one, whose ever it is";
      }
    }
}

// Schedulers that are replicated must get the same ids, and may run on other threads.
TEST(OpTable, TheSameCallsTakeTheSameEntriesInWhateverThread) {
  const auto play = [](bool apart) {
    op_table ops(32, 6, 1);
    std::vector<std::uint64_t> ids;
    std::vector<op_id> open;
    const auto one = [&](std::uint32_t i) {
      if (const std::uint32_t entry = ops.take_entry(i * 5 % 6); entry != op_table::none)
        open.push_back(begin_in(ops, entry));
      if (i % 3 == 2) {
        const auto which = open.begin() + i * 7 % static_cast<std::ptrdiff_t>(open.size());
        finish(ops, *which);
        open.erase(which);
      }
      ids.push_back(std::uint64_t{open.back().generation} << 32 | open.back().index);
    };
    for (std::uint32_t i = 0; i < 100; ++i) {
      if (apart)
        std::thread([&] { one(i); }).join();
      else
        one(i);
    }
    return ids;
  };
  EXPECT_EQ(play(false), play(true));
}

TEST(OpTable, ASlotsOpsAreMetWhereverTheyAreAndFewOthers) {
  constexpr std::uint32_t slots = 1000;
  op_table ops(4 * slots, slots, 1);
  std::vector<op_id> open;
  for (slot_id slot = 0; slot < slots; ++slot) open.push_back(begin_in(ops, ops.take_entry(slot)));
  open.push_back(begin_in(ops, ops.take_entry(7)));
  const auto met = [&](slot_id slot) {
    std::set<std::uint32_t> all;
    ops.for_slot(slot, [&](std::uint32_t i) { EXPECT_TRUE(all.insert(i).second); });
    return all;
  };
  EXPECT_EQ(met(7), (std::set<std::uint32_t>{7, slots}));
  EXPECT_EQ(met(8), (std::set<std::uint32_t>{8, slots}));
  // All shared ones are taken, slot 9's own becomes free, and slot 7 gets it.
  while (open.size() < 4 * slots) open.push_back(begin_in(ops, ops.take_entry(7)));
  EXPECT_EQ(met(8).size(), 3 * slots + 1);
  finish(ops, open[9]);
  EXPECT_EQ(begin_in(ops, ops.take_entry(7)).index, 9U);
  EXPECT_EQ(met(7).size(), 4 * slots);
}

TEST(OpTable, AnEntryThatIsTakenIsNoOpYet) {
  op_table ops(4, 1, 1);
  const std::uint32_t entry = ops.take_entry(0);
  for (std::uint32_t generation = 0; generation < 4; ++generation) {
    const op_id forged{entry, generation};
    completion done;
    done.op = forged;
    op_facts facts;
    op_table::verdict over;
    EXPECT_EQ(ops.count(done, facts, over), op_table::counted::no);
    EXPECT_EQ(ops.prove(forged, 0, 0, facts), op_table::counted::no);
    EXPECT_FALSE(ops.take(forged));
    EXPECT_FALSE(ops.start_cancel(forged, facts));
  }
  op_id op;
  op_facts facts;
  op_phase phase;
  EXPECT_FALSE(ops.look(entry, op, facts, phase));
  finish(ops, begin_in(ops, entry));
}

}  // namespace
}  // namespace cairn::detail
