// What every backend must do with streams and events, whatever the device. A program that
// tests a backend includes this file and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Host, BackendConformance, testing::Values(backend_factory{...}));
//
// The suite sees devices through <cairn/backend.hpp> only. Where it needs work that blocks it
// uses the factory's call, and skips where that is unsupported.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cairn/backend.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "tests/backend_tools.hpp"

namespace cairn::tests {

class BackendConformance : public testing::TestWithParam<backend_factory> {
 protected:
  void SetUp() override {
    auto made = GetParam().make();
    ASSERT_TRUE(made.ok()) << made.why().message();
    backend_ = std::move(made).value();
    ASSERT_GE(backend_->device_count(), 1U);
  }
  [[nodiscard]] device& dev() { return backend_->at(0); }
  [[nodiscard]] std::unique_ptr<stream> new_stream(
      stream_priority priority = stream_priority::normal) {
    return std::move(dev().create_stream(priority)).value();
  }
  status call(stream& on, void (*function)(void* context), void* context) {
    return GetParam().call(dev(), on, function, context);
  }
  status close(gate& g, stream& on) { return g.close(dev(), on, GetParam().call); }
  /// Enqueues a plain store to `flag`.
  void enqueue_set(stream& on, std::atomic<bool>& flag) {
    ASSERT_EQ(call(
                  on, [](void* f) { static_cast<std::atomic<bool>*>(f)->store(true); }, &flag),
              status::ok);
  }
  [[nodiscard]] bool has_calls() {
    auto probe = new_stream();
    return call(
               *probe, [](void*) {}, nullptr) == status::ok;
  }

  std::unique_ptr<backend> backend_;
};

#define CAIRN_NEEDS_CALLS() \
  if (!has_calls()) GTEST_SKIP() << "this backend runs no functions of the caller"

TEST_P(BackendConformance, AnEventNeverRecordedHasFiredAndDoesNotBlock) {
  auto s = new_stream();
  awaited_event never(dev());
  awaited_event after(dev());
  EXPECT_EQ(never.state(), event_state::fired);
  EXPECT_EQ(dev().wait(*s, never.get()), status::ok);
  EXPECT_EQ(dev().record(after.get(), *s), status::ok);
  EXPECT_TRUE(after.fires());
}

TEST_P(BackendConformance, AnEventFiresAgainAfterEachRecording) {
  auto a = new_stream();
  auto b = new_stream(stream_priority::high);
  awaited_event e(dev());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(dev().record(e.get(), i % 2 == 0 ? *a : *b), status::ok);
    ASSERT_TRUE(e.fires());
  }
}

TEST_P(BackendConformance, RunsAStreamInOrder) {
  CAIRN_NEEDS_CALLS();
  struct step {
    std::vector<int>* log;
    int number;
  };
  std::vector<int> log;
  std::vector<step> steps;
  for (int i = 0; i < 100; ++i) steps.push_back({&log, i});
  auto s = new_stream();
  for (step& each : steps)
    ASSERT_EQ(call(
                  *s,
                  [](void* p) {
                    auto* self = static_cast<step*>(p);
                    self->log->push_back(self->number);
                  },
                  &each),
              status::ok);
  awaited_event end(dev());
  ASSERT_EQ(dev().record(end.get(), *s), status::ok);
  ASSERT_TRUE(end.fires());
  ASSERT_EQ(log.size(), steps.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(log[static_cast<std::size_t>(i)], i);
}

// Two threads take turns; each turn happens before the next, so it must run before it. A queue
// that keeps order per producer only would mix them.
TEST_P(BackendConformance, KeepsTheOrderOfCallsByDifferentThreads) {
  CAIRN_NEEDS_CALLS();
  struct step {
    std::vector<int>* log;
    int number;
  };
  constexpr int turns = 400;
  std::vector<int> log;
  std::vector<step> steps;
  for (int i = 0; i < turns; ++i) steps.push_back({&log, i});
  auto s = new_stream();
  std::binary_semaphore turn[2] = {std::binary_semaphore{1}, std::binary_semaphore{0}};
  const auto play = [&](int who) {
    for (int i = who; i < turns; i += 2) {
      turn[who].acquire();
      EXPECT_EQ(call(
                    *s,
                    [](void* p) {
                      auto* self = static_cast<step*>(p);
                      self->log->push_back(self->number);
                    },
                    &steps[static_cast<std::size_t>(i)]),
                status::ok);
      turn[1 - who].release();
    }
  };
  {
    std::jthread other([&] { play(1); });
    play(0);
  }
  awaited_event end(dev());
  ASSERT_EQ(dev().record(end.get(), *s), status::ok);
  ASSERT_TRUE(end.fires());
  ASSERT_EQ(log.size(), std::size_t{turns});
  for (int i = 0; i < turns; ++i) ASSERT_EQ(log[static_cast<std::size_t>(i)], i);
}

TEST_P(BackendConformance, RunsStreamsBesideEachOther) {
  CAIRN_NEEDS_CALLS();
  // Each call waits for the other: they end only if both are under way at once.
  struct meeting {
    std::counting_semaphore<> here[2] = {std::counting_semaphore<>{0},
                                         std::counting_semaphore<>{0}};
    bool met[2] = {false, false};
  } both;
  auto a = new_stream();
  auto b = new_stream();
  const auto first = [](void* p) {
    auto* m = static_cast<meeting*>(p);
    m->here[0].release();
    m->met[0] = m->here[1].try_acquire_until(soon());
  };
  const auto second = [](void* p) {
    auto* m = static_cast<meeting*>(p);
    m->here[1].release();
    m->met[1] = m->here[0].try_acquire_until(soon());
  };
  ASSERT_EQ(call(*a, first, &both), status::ok);
  ASSERT_EQ(call(*b, second, &both), status::ok);
  a.reset();
  b.reset();
  EXPECT_TRUE(both.met[0]);
  EXPECT_TRUE(both.met[1]);
}

TEST_P(BackendConformance, AnEventFiresOnlyAfterEarlierWork) {
  CAIRN_NEEDS_CALLS();
  gate g;
  auto s = new_stream();
  awaited_event e(dev());
  std::atomic<bool> done{false};
  ASSERT_EQ(close(g, *s), status::ok);
  enqueue_set(*s, done);
  ASSERT_EQ(dev().record(e.get(), *s), status::ok);
  ASSERT_TRUE(g.reached());
  EXPECT_EQ(e.state(), event_state::pending);
  g.open();
  EXPECT_TRUE(e.fires());
  EXPECT_TRUE(done.load());
}

TEST_P(BackendConformance, AWaitHoldsLaterWorkOnly) {
  CAIRN_NEEDS_CALLS();
  gate g;
  auto a = new_stream();
  auto b = new_stream();
  awaited_event source(dev()), before(dev()), after(dev());
  ASSERT_EQ(close(g, *a), status::ok);
  ASSERT_EQ(dev().record(source.get(), *a), status::ok);
  ASSERT_EQ(dev().record(before.get(), *b), status::ok);
  ASSERT_EQ(dev().wait(*b, source.get()), status::ok);
  ASSERT_EQ(dev().record(after.get(), *b), status::ok);
  EXPECT_TRUE(before.fires());
  EXPECT_EQ(after.state(), event_state::pending);
  g.open();
  EXPECT_TRUE(after.fires());
  EXPECT_EQ(source.state(), event_state::fired);
}

TEST_P(BackendConformance, RecordingAgainDoesNotDelayAnEarlierWait) {
  CAIRN_NEEDS_CALLS();
  gate first, second;
  auto a = new_stream();
  auto b = new_stream();
  awaited_event source(dev()), after(dev());
  ASSERT_EQ(close(first, *a), status::ok);
  ASSERT_EQ(dev().record(source.get(), *a), status::ok);
  ASSERT_EQ(dev().wait(*b, source.get()), status::ok);
  ASSERT_EQ(dev().record(after.get(), *b), status::ok);
  ASSERT_EQ(close(second, *a), status::ok);
  ASSERT_EQ(dev().record(source.get(), *a), status::ok);
  first.open();
  EXPECT_TRUE(after.fires());
  ASSERT_TRUE(second.reached());
  EXPECT_EQ(source.state(), event_state::pending);
  second.open();
  EXPECT_TRUE(source.fires());
}

TEST_P(BackendConformance, RecordingElsewhereDoesNotReleaseAnEarlierWait) {
  CAIRN_NEEDS_CALLS();
  gate g;
  auto a = new_stream();
  auto b = new_stream();
  auto c = new_stream();
  awaited_event source(dev()), after(dev());
  std::atomic<bool> opened{false}, early{false};
  struct witness {
    std::atomic<bool>*opened, *early;
  } w{&opened, &early};
  ASSERT_EQ(close(g, *a), status::ok);
  ASSERT_EQ(dev().record(source.get(), *a), status::ok);
  ASSERT_EQ(dev().wait(*b, source.get()), status::ok);
  ASSERT_EQ(call(
                *b,
                [](void* p) {
                  auto* self = static_cast<witness*>(p);
                  if (!self->opened->load()) self->early->store(true);
                },
                &w),
            status::ok);
  ASSERT_EQ(dev().record(after.get(), *b), status::ok);
  ASSERT_EQ(dev().record(source.get(), *c), status::ok);  // idle: fires at once
  EXPECT_TRUE(source.fires());
  EXPECT_EQ(after.state(), event_state::pending);
  opened.store(true);
  g.open();
  EXPECT_TRUE(after.fires());
  EXPECT_FALSE(early.load());
}

TEST_P(BackendConformance, TheDoorbellRingsWhenTheEventFires) {
  if (dev().polls()) GTEST_SKIP() << "this backend is polled";
  CAIRN_NEEDS_CALLS();
  gate g;
  auto s = new_stream();
  awaited_event e(dev());
  ASSERT_EQ(close(g, *s), status::ok);
  ASSERT_EQ(dev().record(e.get(), *s), status::ok);
  const std::uint32_t seen = e.bell().seen();
  EXPECT_EQ(e.state(), event_state::pending);
  g.open();
  const deadline until = soon();
  e.bell().wait(seen, until);
  EXPECT_LT(clock::now(), until);
  EXPECT_EQ(e.state(), event_state::fired);
}

TEST_P(BackendConformance, AnEventMayGoBeforeItFiresAndBeforeItsWaiters) {
  CAIRN_NEEDS_CALLS();
  gate g;
  auto a = new_stream();
  auto b = new_stream();
  awaited_event after(dev());
  ASSERT_EQ(close(g, *a), status::ok);
  {
    awaited_event gone(dev());  // takes its doorbell along
    ASSERT_EQ(dev().record(gone.get(), *a), status::ok);
    ASSERT_EQ(dev().wait(*b, gone.get()), status::ok);
  }
  ASSERT_EQ(dev().record(after.get(), *b), status::ok);
  EXPECT_EQ(after.state(), event_state::pending);
  g.open();
  EXPECT_TRUE(after.fires());
}

TEST_P(BackendConformance, DestroyingAStreamWaitsForItsWork) {
  CAIRN_NEEDS_CALLS();
  gate g;
  std::atomic<bool> done{false};
  auto s = new_stream();
  awaited_event e(dev());
  ASSERT_EQ(close(g, *s), status::ok);
  enqueue_set(*s, done);
  ASSERT_EQ(dev().record(e.get(), *s), status::ok);
  {
    std::jthread opener([&] {
      EXPECT_TRUE(g.reached());
      g.open();
    });
    s.reset();
    EXPECT_TRUE(done.load());
  }
  EXPECT_EQ(e.state(), event_state::fired);
  // A new stream in its place does not take the event back.
  auto next = new_stream();
  EXPECT_EQ(e.state(), event_state::fired);
  EXPECT_EQ(dev().wait(*next, e.get()), status::ok);
}

// The last call may come at the very moment at which the stream looks whether it may end.
TEST_P(BackendConformance, AStreamThatEndsAtOnceRunsWhatItWasGiven) {
  CAIRN_NEEDS_CALLS();
  const hasty_threads hasty;
  for (int i = 0; i < 500; ++i) {
    std::atomic<bool> begun{false}, done{false};
    auto s = new_stream();
    enqueue_set(*s, begun);
    while (!begun.load()) std::this_thread::yield();
    enqueue_set(*s, done);
    s.reset();
    ASSERT_TRUE(done.load()) << "stream " << i;
  }
}

// Recorders and waiters meet on one event without any order between them: each wait holds for
// some recording, all streams come to an end, and nothing races.
TEST_P(BackendConformance, RecordAndWaitMayMeetOnOneEvent) {
  const hasty_threads hasty;
  constexpr int rounds = 300;
  auto a = new_stream();
  auto b = new_stream();
  auto c = new_stream();
  awaited_event shared(dev());
  {
    const auto record_on = [&](stream& s) {
      for (int i = 0; i < rounds; ++i) EXPECT_EQ(dev().record(shared.get(), s), status::ok);
    };
    std::jthread first([&] { record_on(*a); });
    std::jthread second([&] { record_on(*b); });
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(dev().wait(*c, shared.get()), status::ok);
      static_cast<void>(shared.state());
    }
  }
  EXPECT_TRUE(shared.fires());
  awaited_event end(dev());
  ASSERT_EQ(dev().wait(*c, shared.get()), status::ok);
  ASSERT_EQ(dev().record(end.get(), *c), status::ok);
  EXPECT_TRUE(end.fires());
}

TEST_P(BackendConformance, TwoBackendsLiveSideBySide) {
  auto made = GetParam().make();
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<backend> other = std::move(made).value();
  auto here = new_stream();
  auto there = std::move(other->at(0).create_stream(stream_priority::normal)).value();
  awaited_event e(dev()), f(other->at(0));
  ASSERT_EQ(dev().record(e.get(), *here), status::ok);
  ASSERT_EQ(other->at(0).record(f.get(), *there), status::ok);
  EXPECT_TRUE(e.fires());
  EXPECT_TRUE(f.fires());
}

TEST_P(BackendConformance, GivesWritableMemoryAndRefusesNone) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{3} << 20}) {
    auto block = dev().allocate_pinned(bytes);
    ASSERT_TRUE(block.ok());
    EXPECT_GE(block.value()->size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.value()->data()) % 64, 0U);
    std::fill_n(block.value()->data(), bytes, std::byte{7});
    EXPECT_TRUE(dev().allocate(bytes).ok());
  }
  EXPECT_EQ(dev().allocate(0).code(), status::invalid);
  EXPECT_EQ(dev().allocate_pinned(0).code(), status::invalid);
}

}  // namespace cairn::tests
