// The runtime under several threads: bytes stay right while images are evicted, and every public
// function may be called at any time.
#include <array>
#include <atomic>

#include "tests/runtime_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

// More keys than images have room; each thread owns a slot and checks what it gets.
void keep_bytes_right(completion_mode mode) {
  const test::yields yields;  // before the threads that read the hook
  runtime_rig rig({.ranks = 2, .units = 16, .manual = false, .tune = [mode](runtime_options& o) {
                     o.completions = mode;
                   }});
  std::atomic<std::uint64_t> restored{0};
  const auto ended = [&](ticket& op) {
    while (op.code() == status::pending) {
      if (mode == completion_mode::settled)
        (void)rig.rt->settle(clock::now() + std::chrono::milliseconds(1));
      else
        (void)op.wait(runtime_rig::soon());
    }
    return op.code();
  };
  test::together(4, [&](std::uint32_t t) {
    test::dice dice(t + 7);
    for (int i = 0; i < 250; ++i) {
      const std::uint64_t n = 1 + dice.below(12);
      if (auto op = rig.rt->restore(key_of(n), t, t % 2); op) {
        ASSERT_EQ(ended(*op), status::ok);
        ASSERT_TRUE(rig.holds(t, n)) << "key " << n;
        ++restored;
        continue;
      }
      rig.write(t, n);
      if (auto op = rig.rt->store(key_of(n), t, t % 2); op) {
        const status code = ended(*op);
        ASSERT_EQ(code, status::ok);
      }
      rig.write(t, 200 + t);
      if (dice.below(8) == 0) {  // live KV takes its share
        std::array<unit_id, 3> kv{};
        if (!rig.rt->records().allocate(kv).ok()) continue;
        for (const unit_id u : kv) ASSERT_TRUE(rig.rt->own_pool()->free(u).ok());
      }
    }
  });
  EXPECT_EQ(rig.rt->settle(runtime_rig::soon()), status::ok);
  EXPECT_GT(restored, 0U);
  EXPECT_GT(rig.rt->records().fates().evicted, 0U);
  const fate_counts fates = rig.rt->records().fates();
  EXPECT_EQ(fates.kept, fates.evicted + rig.rt->records().counts().ready);
  rig.expect_ledger(0);
}

TEST(RuntimeStress, BytesAreRightUnderEviction) {
  keep_bytes_right(completion_mode::immediate);
}
TEST(RuntimeStress, BytesAreRightWhenSettledByMany) {
  keep_bytes_right(completion_mode::settled);
}

/// One call of anything.
void call_anything(runtime_rig& rig, test::dice& dice, std::vector<ticket>& mine) {
  runtime& rt = *rig.rt;
  const slot_id slot = dice.below(8);
  const std::uint32_t compute = dice.below(2);
  const checkpoint_key key = key_of(dice.below(10));
  const std::array<checkpoint_key, 3> keys = {key_of(1), key_of(2), key};
  switch (dice.below(28)) {
    case 0:
    case 1:
    case 2: {
      auto op = rt.store(key, slot, compute, placement_hint::anchor);
      if (op) mine.push_back(std::move(*op));
      break;
    }
    case 3:
    case 4: {
      auto op = rt.restore(key, slot, compute);
      if (op) mine.push_back(std::move(*op));
      break;
    }
    case 5: {
      std::array<unit_id, 5> units{};
      ticket restored;
      const auto held = rt.admit(keys, 2, slot, units, compute, restored);
      if (!held) break;
      const auto until = rt.mark(compute);
      if (dice.below(2) == 0) (void)rt.own_pool()->publish(units[4], key);
      for (const unit_id u : units) ASSERT_TRUE(rt.own_pool()->free(u, *until).ok());
      break;
    }
    case 6:
      (void)rt.release_slot(slot, compute);
      break;
    case 7:
      if (!mine.empty()) (void)rt.order_after(compute, mine.back(), runtime_rig::soon());
      break;
    case 8:
      (void)rt.order_after_slot(compute, slot, runtime_rig::soon());
      break;
    case 9:
      (void)rt.mark(compute);
      break;
    case 10:
      (void)rt.sequences().set_slot(dice.below(64), dice.below(3) == 0 ? no_slot : slot);
      break;
    case 11:
    case 12:
      (void)rt.sequences().file(dice.below(64), key, placement_hint::demand);
      break;
    case 13:
      (void)rt.drain_boundaries(compute);
      break;
    case 14:
      (void)rt.sequences().forget(dice.below(64));
      break;
    case 15:
      (void)rt.sequences().unindex(key);
      break;
    case 16:
      (void)rt.sequences().resumable_hit(keys, 3);
      break;
    case 17:
      (void)rt.records().lookup(key);
      break;
    case 18:
      (void)rt.records().forget(key);
      break;
    case 19: {
      const auto pin = rt.records().pin_longest(keys, 3, runtime_rig::soon());
      if (pin) (void)rt.records().release_pin(*pin);
      break;
    }
    case 20:
      (void)rt.records().has_available_units(4, &key);
      break;
    case 21:
      (void)rt.records().ensure_free_units(dice.below(6));
      break;
    case 22:
      if (!mine.empty()) (void)mine.back().cancel();
      break;
    case 23:
      if (!mine.empty()) (void)mine.back().wait(runtime_rig::soon());
      break;
    case 24:
      (void)rt.records().counts();
      (void)rt.records().fates();
      break;
    case 25:
      (void)rt.rank(dice.below(2)).stats();
      (void)rt.latencies().submit.quantile_ns(0.99);
      break;
    case 26:
      (void)rt.drain(clock::now());
      (void)rt.settle(clock::now());
      break;
    case 27:
      if (dice.below(10) == 0) rt.sequences().reset();
      break;
    default:
      break;
  }
  if (mine.size() > 20) mine.erase(mine.begin(), mine.begin() + 15);
}

TEST(RuntimeStress, AnyFunctionByAnyThread) {
  const test::yields yields;  // before the threads that read the hook
  for (const auto mode : {completion_mode::immediate, completion_mode::settled}) {
    runtime_rig rig({.ranks = 2, .units = 24, .manual = false, .tune = [mode](runtime_options& o) {
                       o.completions = mode;
                     }});
    const bool settled = mode == completion_mode::settled;
    std::atomic<std::uint32_t> running{4};
    test::together(settled ? 5 : 4, [&](std::uint32_t t) {
      if (t == 4) {  // tickets end only if somebody settles
        while (running != 0) (void)rig.rt->settle(clock::now() + std::chrono::milliseconds(1));
        return;
      }
      test::dice dice(t + 100);
      std::vector<ticket> mine;
      for (int i = 0; i < 1500; ++i) call_anything(rig, dice, mine);
      --running;
    });
    EXPECT_EQ(rig.rt->settle(runtime_rig::soon()), status::ok);
    EXPECT_EQ(rig.rt->records().counts().copying, 0U);
    EXPECT_EQ(rig.rt->records().counts().evicting, 0U);
    EXPECT_EQ(rig.rt->records().counts().pins, 0U);
    EXPECT_EQ(rig.rt->records().counts().ops, 0U);
    EXPECT_EQ(rig.rt->records().evictable(), rig.rt->records().counts().ready);
    rig.expect_ledger(0);
    rig.rt->sequences().reset();
    EXPECT_EQ(rig.rt->sequences().pending(), 0U);
    EXPECT_EQ(rig.rt->own_pool()->free_units(), 24U);
  }
}

}  // namespace
}  // namespace cairn::tests
