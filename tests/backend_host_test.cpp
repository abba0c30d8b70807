// The host backend: the conformance suites, its limits, and its manual mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/copy_plan.hpp"
#include "runtime/host_stream.hpp"
#include "tests/backend_conformance.hpp"
#include "tests/copy_conformance.hpp"

namespace cairn::tests {
namespace {

constexpr backend_factory host_threads{"host", [] {
                                         host_options opts;
                                         opts.copy_threads = 3;
                                         return make_host_backend(opts);
                                       }};
constexpr backend_factory host_alone{"host_alone", [] {
                                       host_options opts;
                                       opts.copy_threads = 1;
                                       return make_host_backend(opts);
                                     }};

std::string factory_name(const testing::TestParamInfo<backend_factory>& each) {
  return each.param.name;
}

INSTANTIATE_TEST_SUITE_P(Host, BackendConformance, testing::Values(host_threads, host_alone),
                         factory_name);
INSTANTIATE_TEST_SUITE_P(Host, CopyConformance,
                         testing::Combine(testing::Values(host_threads),
                                          testing::ValuesIn(geometries()), testing::Bool()),
                         copy_case_name);
INSTANTIATE_TEST_SUITE_P(HostAlone, CopyConformance,
                         testing::Combine(testing::Values(host_alone),
                                          testing::Values(geometry_named("ragged"),
                                                          geometry_named("replay")),
                                          testing::Bool()),
                         copy_case_name);

std::unique_ptr<backend> make(const host_options& opts) {
  return std::move(make_host_backend(opts)).value();
}

std::unique_ptr<stream> stream_of(device& d) {
  return std::move(d.create_stream(stream_priority::normal)).value();
}

// ---------------------------------------------------------------------------------------
// Limits and mistakes

TEST(HostBackend, AFullStreamRefusesAndDoesNotMoveTheEvent) {
  host_options opts;
  opts.stream_depth = 3;
  const auto b = make(opts);
  device& d = b->at(0);
  gate g;
  auto s = stream_of(d);
  awaited_event e(d), last(d);
  ASSERT_EQ(g.close(d, *s), status::ok);
  ASSERT_TRUE(g.reached());
  ASSERT_EQ(d.record(e.get(), *s), status::ok);
  ASSERT_EQ(d.call(
                *s, [](void*) {}, nullptr),
            status::ok);
  EXPECT_EQ(d.call(
                *s, [](void*) {}, nullptr),
            status::queue_full);
  EXPECT_EQ(d.record(last.get(), *s), status::queue_full);
  EXPECT_EQ(last.state(), event_state::fired);
  g.open();
  EXPECT_TRUE(e.fires());
}

TEST(HostBackend, AStreamOfDepthOneWorks) {
  host_options opts;
  opts.stream_depth = 1;
  const auto b = make(opts);
  auto s = stream_of(b->at(0));
  awaited_event e(b->at(0));
  for (int i = 0; i < 10; ++i) {
    // The item counts until it is over, which is a moment after its event has fired.
    status code = status::queue_full;
    for (const deadline until = soon(); code == status::queue_full && clock::now() < until;)
      code = b->at(0).record(e.get(), *s);
    ASSERT_EQ(code, status::ok);
    ASSERT_TRUE(e.fires());
  }
}

TEST(HostBackend, RefusesWhatItCannotDo) {
  host_options opts;
  opts.devices = 0;
  EXPECT_EQ(make_host_backend(opts).code(), status::invalid);
  opts.devices = max_ranks + 1;
  EXPECT_EQ(make_host_backend(opts).code(), status::invalid);
  opts.devices = 2;
  opts.stream_depth = 0;
  EXPECT_EQ(make_host_backend(opts).code(), status::invalid);
  opts.stream_depth = 8;
  const auto b = make(opts);
  EXPECT_EQ(b->device_count(), 2U);
  EXPECT_EQ(b->at(1).name(), "host:1");
  EXPECT_EQ(b->at(0).wrap_stream(nullptr).code(), status::unsupported);
  EXPECT_FALSE(b->at(0).polls());
  EXPECT_FALSE(b->step());
  EXPECT_EQ(make_hip_backend().code(), status::unsupported);
  EXPECT_THAT(make_hip_backend().why().message(), testing::HasSubstr("HIP"));
}

TEST(HostBackend, RefusesWhatBelongsToAnotherDevice) {
  host_options opts;
  opts.devices = 2;
  const auto b = make(opts);
  const auto other = make(opts);
  device& d = b->at(0);
  auto mine = stream_of(d);
  auto next = stream_of(b->at(1));
  awaited_event event_here(d), event_there(other->at(0));
  const geometry& g = geometry_named("tiny");
  modelled_rank rank(d, g, 4, 1, false);
  const copy_plan cut = make_copy_plan(g.shape(), rank.memory()).value();
  auto plan = std::move(d.load(cut, rank.memory())).value();

  EXPECT_EQ(d.record(event_here.get(), *next), status::invalid);
  EXPECT_EQ(d.record(event_there.get(), *mine), status::invalid);
  EXPECT_EQ(d.wait(*mine, event_there.get()), status::invalid);
  EXPECT_EQ(d.call(
                *next, [](void*) {}, nullptr),
            status::invalid);
  EXPECT_EQ(d.call(*mine, nullptr, nullptr), status::invalid);
  EXPECT_EQ(d.launch(*next, *plan, copy_kind::store, {}, nullptr), status::invalid);
  EXPECT_EQ(b->at(1).launch(*next, *plan, copy_kind::store, {}, nullptr), status::invalid);
  EXPECT_EQ(d.query(event_there.get()), event_state::failed);
  EXPECT_FALSE(b->step(*mine));

  // Events of another device of the same backend order streams of this one.
  ASSERT_EQ(b->at(1).record(event_here.get(), *next), status::ok);
  EXPECT_EQ(d.wait(*mine, event_here.get()), status::ok);
  EXPECT_TRUE(event_here.fires());

  rank_memory bent = rank.memory();
  bent.segments[0].base = nullptr;
  EXPECT_EQ(d.load(cut, bent).code(), status::invalid);
}

TEST(HostBackend, ABatchThatNamesWhatIsNotThereFailsAndTouchesNothing) {
  const auto b = make({});
  device& d = b->at(0);
  const geometry& g = geometry_named("ragged");
  modelled_rank rank(d, g, 8, 2, false);
  const copy_plan cut = make_copy_plan(g.shape(), rank.memory()).value();
  auto plan = std::move(d.load(cut, rank.memory())).value();
  auto s = stream_of(d);
  const unit_id good[] = {1, 5, 3};
  const unit_id bad[] = {1, 8, 3};
  const copy_task wrong_unit[] = {{0, good}, {1, bad}};
  const copy_task wrong_slot[] = {{0, good}, {2, good}};
  for (const auto tasks : {std::span(wrong_unit), std::span(wrong_slot)}) {
    batch_report report;
    awaited_event e(d);
    ASSERT_EQ(d.launch(*s, *plan, copy_kind::store, tasks, &report), status::ok);
    ASSERT_EQ(d.record(e.get(), *s), status::ok);
    ASSERT_TRUE(e.fires());
    EXPECT_TRUE(report.failed.load());
    EXPECT_TRUE(rank.matches());
  }
}

TEST(HostBackend, ABatchShouldBringAsMuchAsItsThreadsClaimAtOnce) {
  // 256 KiB for each thread, and one image at least.
  const auto images_max = [](const char* geometry_name, const host_options& opts) {
    const auto b = make(opts);
    const geometry& g = geometry_named(geometry_name);
    modelled_rank rank(b->at(0), g, g.shape().units_per_checkpoint(), 1, false);
    const copy_plan cut = make_copy_plan(g.shape(), rank.memory()).value();
    return std::move(b->at(0).load(cut, rank.memory())).value()->images_max();
  };
  host_options opts;
  opts.copy_threads = 2;
  EXPECT_EQ(images_max("replay", opts), 8U);
  EXPECT_EQ(images_max("dsv4_flash", opts), 1U);
  opts.copy_threads = 64;
  EXPECT_EQ(images_max("replay", opts), 279U);
  opts.manual = true;  // one thread, whatever the option says
  EXPECT_EQ(images_max("replay", opts), 4U);
}

TEST(HostBackend, LimitsTheNumberOfStreamsAndUsesThemAgain) {
  host_options opts;
  opts.manual = true;  // no threads
  opts.stream_depth = 1;
  const auto b = make(opts);
  std::vector<std::unique_ptr<stream>> streams;
  for (std::uint32_t i = 0; i < detail::event_position::max_lanes; ++i)
    streams.push_back(stream_of(b->at(0)));
  EXPECT_EQ(b->at(0).create_stream(stream_priority::normal).code(), status::limit);

  opts.manual = false;
  const auto threaded = make(opts);
  for (std::uint32_t i = 0; i < 2 * detail::event_position::max_lanes; ++i)
    ASSERT_TRUE(threaded->at(0).create_stream(stream_priority::normal).ok());
}

TEST(HostBackend, AStreamCanBeToldThatItCaptures) {
  const auto b = make({});
  auto s = stream_of(b->at(0));
  auto other = stream_of(b->at(0));
  EXPECT_FALSE(b->at(0).capturing(*s));
  detail::set_capturing(*s, true);
  EXPECT_TRUE(b->at(0).capturing(*s));
  EXPECT_FALSE(b->at(0).capturing(*other));
  detail::set_capturing(*s, false);
  EXPECT_FALSE(b->at(0).capturing(*s));
}

TEST(HostBackend, StreamsAndEventsMayOutliveTheBackend) {
  auto b = make({});
  auto s = stream_of(b->at(0));
  doorbell bell;
  auto e = std::move(b->at(0).create_event(&bell)).value();
  ASSERT_EQ(b->at(0).record(*e, *s), status::ok);
  b.reset();
  s.reset();
  e.reset();
}

// Not that it will soon: nobody is woken for it.
TEST(HostBackend, AnEventRecordedWhereNothingIsLeftToRunHasFired) {
  const auto b = make({});
  auto s = stream_of(b->at(0));
  auto other = stream_of(b->at(0));
  doorbell bell;
  auto e = std::move(b->at(0).create_event(&bell)).value();
  std::atomic<bool> go = false;
  const auto hold = [](void* until) { static_cast<std::atomic<bool>*>(until)->wait(false); };
  ASSERT_EQ(b->at(0).call(*s, hold, &go), status::ok);
  ASSERT_EQ(b->at(0).record(*e, *s), status::ok);
  EXPECT_EQ(b->at(0).query(*e), event_state::pending) << "something is left to run";
  go = true;
  go.notify_all();
  std::uint32_t seen = bell.seen();
  while (b->at(0).query(*e) != event_state::fired) {
    bell.wait(seen, clock::now() + std::chrono::seconds(1));
    seen = bell.seen();
  }
  // The ring of the first recording may come late.
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(b->at(0).record(*e, *s), status::ok);
    ASSERT_EQ(b->at(0).query(*e), event_state::fired);
  }
  EXPECT_GE(bell.seen() - seen, 100U) << "a recording did not ring";
  EXPECT_EQ(b->at(0).wait(*other, *e), status::ok);
}

// The last item and the close may come between any two looks of the stream's thread. Here they
// come at its n-th access, in the same thread, so each case is met for certain.
TEST(HostBackend, ALaneRunsWhatCameBeforeItsClose) {
#if defined(CAIRN_SYNC_HOOK)
  struct intruder {
    detail::host_lane lane{0, 4, nullptr, false};
    int accesses_left = 0;
    bool ran = false;
  };
  static intruder* now = nullptr;
  for (int n = 1; n <= 5; ++n) {
    intruder here;
    here.accesses_left = n;
    now = &here;
    sync::schedule_hook = []() noexcept {
      if (now->accesses_left == 0 || --now->accesses_left > 0) return;
      EXPECT_TRUE(now->lane.call([](void* ran) { *static_cast<bool*>(ran) = true; }, &now->ran));
      now->lane.close();
    };
    here.lane.run_until_closed();
    sync::schedule_hook = nullptr;
    EXPECT_TRUE(here.ran) << "access " << n;
  }
#else
  GTEST_SKIP() << "needs a build with CAIRN_SYNC_HOOK";
#endif
}

// ---------------------------------------------------------------------------------------
// Manual mode

class HostBackendManual : public testing::Test {
 protected:
  HostBackendManual() {
    host_options opts;
    opts.manual = true;
    backend_ = make(opts);
    for (auto& s : streams_) s = stream_of(dev());
  }
  [[nodiscard]] device& dev() { return backend_->at(0); }
  /// Enqueues a call that appends `name` to the log.
  void enqueue(std::size_t on, char name) {
    struct entry {
      std::string* log;
      char name;
    };
    ASSERT_EQ(dev().call(
                  *streams_[on],
                  [](void* p) {
                    const std::unique_ptr<entry> e(static_cast<entry*>(p));
                    e->log->push_back(e->name);
                  },
                  new entry{&log_, name}),
              status::ok);
  }

  std::string log_;
  std::unique_ptr<backend> backend_;
  std::array<std::unique_ptr<stream>, 3> streams_;
};

TEST_F(HostBackendManual, NothingRunsBeforeAStep) {
  awaited_event e(dev());
  enqueue(0, 'a');
  ASSERT_EQ(dev().record(e.get(), *streams_[0]), status::ok);
  EXPECT_EQ(e.state(), event_state::pending);
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(log_, "a");
  EXPECT_EQ(e.state(), event_state::pending);
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(e.state(), event_state::fired);
  EXPECT_FALSE(backend_->step());
}

TEST_F(HostBackendManual, StepsTheLowestStreamThatCanRun) {
  awaited_event e(dev());
  enqueue(2, 'x');
  ASSERT_EQ(dev().record(e.get(), *streams_[2]), status::ok);
  ASSERT_EQ(dev().wait(*streams_[0], e.get()), status::ok);
  enqueue(0, 'a');
  enqueue(1, 'b');
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(log_, "b");
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(log_, "bx");
  EXPECT_TRUE(backend_->step());  // the recording
  EXPECT_TRUE(backend_->step());  // the wait
  EXPECT_EQ(log_, "bx");
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(log_, "bxa");
  EXPECT_FALSE(backend_->step());
}

TEST_F(HostBackendManual, StepsOneStreamAlone) {
  enqueue(0, 'a');
  enqueue(1, 'b');
  EXPECT_TRUE(backend_->step(*streams_[1]));
  EXPECT_FALSE(backend_->step(*streams_[1]));
  EXPECT_EQ(log_, "b");
  EXPECT_TRUE(backend_->step(*streams_[0]));
}

TEST_F(HostBackendManual, AWaitRefersToTheRecordingAtItsCall) {
  awaited_event e(dev());
  enqueue(0, 'x');
  ASSERT_EQ(dev().record(e.get(), *streams_[0]), status::ok);
  ASSERT_EQ(dev().wait(*streams_[1], e.get()), status::ok);
  enqueue(1, 'a');
  ASSERT_EQ(dev().record(e.get(), *streams_[2]), status::ok);
  EXPECT_TRUE(backend_->step(*streams_[2]));
  EXPECT_EQ(e.state(), event_state::fired);
  EXPECT_FALSE(backend_->step(*streams_[1]));  // still behind stream 0
  EXPECT_TRUE(backend_->step(*streams_[0]));
  EXPECT_TRUE(backend_->step(*streams_[0]));
  EXPECT_TRUE(backend_->step(*streams_[1]));
  EXPECT_TRUE(backend_->step(*streams_[1]));
  EXPECT_EQ(log_, "xa");
}

TEST_F(HostBackendManual, CopiesReadTheirUnitsWhenTheyRun) {
  const geometry& g = geometry_named("ragged");
  modelled_rank rank(dev(), g, 8, 2, true);
  const copy_plan cut = make_copy_plan(g.shape(), rank.memory()).value();
  auto plan = std::move(dev().load(cut, rank.memory())).value();
  std::vector<unit_id> units = {0, 0, 0};
  const copy_task store[] = {{1, units.data()}};
  batch_report report;
  ASSERT_EQ(dev().launch(*streams_[0], *plan, copy_kind::store, store, &report), status::ok);
  units = {6, 2, 5};
  rank.scribble(1, 3);
  EXPECT_TRUE(rank.matches());
  EXPECT_TRUE(backend_->step());
  rank.model_store(1, units);
  EXPECT_TRUE(rank.matches());
  EXPECT_FALSE(report.failed.load());
}

TEST_F(HostBackendManual, WhatWasNotRunIsDroppedWithItsStream) {
  awaited_event ran(dev()), dropped(dev()), after(dev());
  bool called = false;
  ASSERT_EQ(dev().record(ran.get(), *streams_[0]), status::ok);
  ASSERT_EQ(dev().call(
                *streams_[0], [](void* p) { *static_cast<bool*>(p) = true; }, &called),
            status::ok);
  ASSERT_EQ(dev().record(dropped.get(), *streams_[0]), status::ok);
  ASSERT_EQ(dev().wait(*streams_[1], dropped.get()), status::ok);
  ASSERT_EQ(dev().record(after.get(), *streams_[1]), status::ok);
  EXPECT_TRUE(backend_->step());
  EXPECT_FALSE(backend_->step(*streams_[1]));
  const std::uint32_t seen = dropped.bell().seen();
  streams_[0].reset();
  EXPECT_FALSE(called);
  EXPECT_NE(dropped.bell().seen(), seen);
  EXPECT_EQ(ran.state(), event_state::fired);
  EXPECT_EQ(dropped.state(), event_state::failed);
  EXPECT_TRUE(backend_->step());
  EXPECT_TRUE(backend_->step());
  EXPECT_EQ(after.state(), event_state::fired);
}

}  // namespace
}  // namespace cairn::tests
