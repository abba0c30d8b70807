// The end of a runtime: nothing is accepted any more, everything accepted is reported once, and
// memory that a copy may still touch is kept.
#include <atomic>
#include <thread>

#include "tests/runtime_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

TEST(Close, StopsAdmissionsAndIsIdempotent) {
  runtime_rig rig;
  rig.keep(1);
  EXPECT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->close(clock::now()), status::ok);
  EXPECT_EQ(rig.rt->store(key_of(2), 0, 0).code(), status::closed);
  EXPECT_EQ(rig.rt->restore(key_of(1), 0, 0).code(), status::closed);
  std::vector<unit_id> units(2);
  ticket restored;
  EXPECT_EQ(rig.rt->admit({}, 2, 0, units, 0, restored).code(), status::closed);
  EXPECT_EQ(rig.rt->own_pool()->counts().live, 0U);
  ASSERT_TRUE(rig.rt->sequences().set_slot(0, 0).ok());
  ASSERT_TRUE(rig.rt->sequences().file(0, key_of(3)).ok());
  EXPECT_EQ(rig.rt->drain_boundaries(0), 0U);
  EXPECT_EQ(rig.dropped(drop_reason::closed), 1U);
  EXPECT_EQ(rig.rt->settle(clock::now()), status::ok);
  EXPECT_TRUE(rig.rt->records().contains(key_of(1))) << "what was kept can still be asked about";
}

TEST(Close, LetsAcceptedOpsFinishUntilTheDeadline) {
  std::atomic<bool> go{false};
  std::function<void()> gate = [&] {
    while (!go) std::this_thread::yield();
  };
  runtime_rig rig({.ranks = 2, .manual = false});
  rig.enqueue(1, 0, gate);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  std::thread opener([&] {
    while (rig.rt->store(key_of(2), 1, 1).code() != status::closed) std::this_thread::yield();
    go = true;
  });
  EXPECT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  opener.join();
  EXPECT_EQ(stored->code(), status::ok);
  rig.expect_ledger(0);
}

// One op is with the device and does not come back, one never got there.
void close_over_a_stuck_copy(completion_mode mode) {
  runtime_rig rig({.ranks = 2, .tune = [mode](runtime_options& o) { o.completions = mode; }});
  auto stuck = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stuck.ok());
  (void)rig.rt->pump();
  auto queued = rig.rt->store(key_of(2), 1, 0);
  ASSERT_TRUE(queued.ok());
  EXPECT_EQ(rig.rt->close(clock::now()), status::timed_out);
  EXPECT_EQ(stuck->code(), status::timed_out);
  EXPECT_EQ(queued->code(), status::cancelled);
  EXPECT_FALSE(rig.rt->records().contains_or_copying(key_of(1)));
  EXPECT_FALSE(rig.rt->records().contains_or_copying(key_of(2)));
  EXPECT_EQ(rig.rt->own_pool()->counts().reserved, 3U) << "the stuck copy may still write";
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 3U);
  rig.expect_ledger(0);
  rig.run();  // the device comes back after all
  EXPECT_EQ(stuck->code(), status::timed_out);
}

TEST(Close, ReportsTheRestByWhatBecameOfIt) {
  close_over_a_stuck_copy(completion_mode::immediate);
}

TEST(Close, AppliesWhatWasReportedInSettledMode) {
  close_over_a_stuck_copy(completion_mode::settled);
  runtime_rig rig({.tune = [](runtime_options& o) { o.completions = completion_mode::settled; }});
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  rig.run();
  EXPECT_EQ(stored->code(), status::pending);
  EXPECT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(stored->code(), status::ok);
}

TEST(Close, DestroyingARuntimeWithOpsQueuedDoesNotHang) {
  for (const bool manual : {true, false}) {
    runtime_rig rig({.ranks = 2, .manual = manual});
    for (std::uint64_t n = 0; n < 4; ++n) (void)rig.rt->store(key_of(n), 0, 0);
    rig.rt.reset();
  }
}

TEST(Close, WaitersAreWoken) {
  std::atomic<bool> go{false};
  std::function<void()> gate = [&] {
    while (!go) std::this_thread::yield();
  };
  runtime_rig rig({.ranks = 2, .manual = false});
  rig.enqueue(0, 0, gate);
  auto stored = rig.rt->store(key_of(1), 0, 0);
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(rig.rt->order_after_slot(1, 0, runtime_rig::soon()), status::ok) << "launched";
  std::thread waiter([&] { EXPECT_EQ(stored->wait(runtime_rig::soon()), status::timed_out); });
  EXPECT_EQ(rig.rt->close(clock::now()), status::timed_out);
  waiter.join();
  go = true;
}

// Threads submit, cancel and forget until they are refused; at some moment the runtime closes.
void shut_down_under_load(std::uint64_t seed, bool generous, completion_mode mode) {
  const test::yields yields;  // before the threads that read the hook
  runtime_rig rig({.ranks = 2, .units = 24, .manual = false, .tune = [mode](runtime_options& o) {
                     o.completions = mode;
                   }});
  std::atomic<std::uint64_t> accepted{0};
  std::vector<std::vector<ticket>> tickets(3);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < tickets.size(); ++t)
    threads.emplace_back([&, t] {
      const auto slot = static_cast<slot_id>(t);
      for (std::uint64_t i = 0;; ++i) {
        const checkpoint_key key = key_of((i * 7 + t) % 40);
        if (mode == completion_mode::settled && i % 5 == 0) (void)rig.rt->settle(clock::now());
        auto op = i % 3 == 0 ? rig.rt->restore(key, slot, 0) : rig.rt->store(key, slot, 0);
        if (op.code() == status::closed) break;
        if (!op) {
          std::this_thread::yield();
          continue;
        }
        ++accepted;
        if (i % 11 == 0) (void)rig.rt->release_slot(slot, 1);
        if (tickets[t].size() == 60) tickets[t].erase(tickets[t].begin(), tickets[t].begin() + 50);
        tickets[t].push_back(std::move(*op));
      }
    });
  while (accepted < 20 + seed * 13) std::this_thread::yield();
  const status closed = rig.rt->close(generous ? runtime_rig::soon() : clock::now());
  for (auto& t : threads) t.join();
  EXPECT_TRUE(closed == status::ok || !generous);
  for (const auto& of_thread : tickets)
    for (const ticket& each : of_thread) {
      // Without patience, a thread may have been between its acceptance and its last rank.
      ASSERT_NE(generous ? each.code() : each.wait(runtime_rig::soon()), status::pending);
    }
  EXPECT_EQ(rig.rt->drain(generous ? clock::now() : runtime_rig::soon()), status::ok);
  // What was given up is over in the end, and says so.
  EXPECT_EQ(rig.rt->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.rt->records().counts().copying, 0U);
  EXPECT_EQ(rig.rt->records().counts().quarantine_units, 0U);
  rig.expect_ledger(0);
  tickets.clear();
  EXPECT_EQ(rig.rt->records().counts().ops, 0U);
}

TEST(Shutdown, UnderLoadEveryTicketEndsAndTheLedgerCloses) {
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    shut_down_under_load(seed, true, completion_mode::immediate);
}

TEST(Shutdown, UnderLoadWithoutPatience) {
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    shut_down_under_load(seed, false, completion_mode::immediate);
}

TEST(Shutdown, UnderLoadInSettledMode) {
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    shut_down_under_load(seed, seed % 2 == 0, completion_mode::settled);
}

}  // namespace
}  // namespace cairn::tests
