// The runtime over the HIP backend on the double while the engine captures graphs: on runtimes that
// refuse calls meanwhile ops wait and do not fail, and under quiesce none is made. Beside it what
// depends on the size of batches and on the end of a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cairn/copier.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using hip::call;
constexpr hipError_t forbidden = hipErrorStreamCaptureUnsupported;

class RuntimeBesideCaptures : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(hipStreamCreateWithPriority(&graphs_, hipStreamNonBlocking, 0), hipSuccess);
    rig_ = std::make_unique<runtime_rig>(rig_options{
        .manual = false, .over = [] { return make_hip_backend({.devices = {0}}).value(); }});
  }
  void TearDown() override {
    rig_.reset();
    EXPECT_EQ(hipStreamDestroy(graphs_), hipSuccess);
    expect_clean_double();
    hip::reset();
  }
  runtime& rt() { return *rig_->rt; }
  static deadline soon() { return runtime_rig::soon(); }

  /// A store of the image of n from slot 0, with the compute that wrote it before it.
  ticket store(std::uint64_t n) {
    rig_->write(0, n);
    auto made = rt().store(key_of(n), 0, 0);
    EXPECT_TRUE(made.ok()) << made.why().message();
    return std::move(*made);
  }
  void begin() {
    ASSERT_EQ(hipStreamBeginCapture(graphs_, hipStreamCaptureModeGlobal), hipSuccess);
  }
  [[nodiscard]] bool end() { return end_capture(graphs_); }
  /// What only a copy thread calls.
  static std::uint64_t copy_calls() {
    std::uint64_t sum = 0;
    for (const call each : {call::hipLaunchKernel, call::hipMemcpyAsync, call::hipEventQuery,
                            call::hipStreamWaitEvent})
      sum += hip::calls(each);
    return sum;
  }

  hipStream_t graphs_ = nullptr;
  std::unique_ptr<runtime_rig> rig_;
};

// Each kind of call that an op needs, refused until the capture ends.
TEST_F(RuntimeBesideCaptures, OpsWaitForWhatACaptureForbids) {
  std::uint64_t n = 0;
  for (const call which : {call::hipLaunchKernel, call::hipEventRecord, call::hipEventQuery,
                           call::hipGetDevice, call::hipThreadExchangeStreamCaptureMode}) {
    SCOPED_TRACE(hip::name_of(which));
    ASSERT_EQ(rt().drain(soon()), status::ok);
    // In the caller's thread such a refusal is the answer, so the op is accepted before.
    ASSERT_EQ(rt().quiesce(soon()), status::ok);
    const ticket op = store(++n);
    const std::uint64_t so_far = hip::calls(which);
    hip::fail_always(which, forbidden);
    rt().resume();
    while (hip::calls(which) < so_far + 3) std::this_thread::yield();
    EXPECT_EQ(op.code(), status::pending);
    hip::fail_always(which, hipSuccess);
    EXPECT_EQ(op.wait(soon()), status::ok);
    EXPECT_EQ(op.code(), status::ok);
  }
}

// The batch's waits for compute are refused, and come again.
TEST_F(RuntimeBesideCaptures, FencesWaitForWhatACaptureForbids) {
  hip::hold(native(rig_->compute(0, 0)));
  hip::fail_always(call::hipStreamWaitEvent, forbidden);
  const std::uint64_t so_far = hip::calls(call::hipStreamWaitEvent);
  const ticket op = store(1);
  while (hip::calls(call::hipStreamWaitEvent) < so_far + 3) std::this_thread::yield();
  EXPECT_EQ(op.code(), status::pending);
  EXPECT_EQ(hip::calls(call::hipLaunchKernel), 0U);
  hip::fail_always(call::hipStreamWaitEvent, hipSuccess);
  hip::release(native(rig_->compute(0, 0)));
  EXPECT_EQ(op.wait(soon()), status::ok);
}

// A runtime that refuses queries during any capture, whatever the thread's mode.
TEST_F(RuntimeBesideCaptures, WithoutQuietOpsEndAfterTheCapture) {
  hip::set_older_runtime(true);
  begin();
  const std::uint64_t so_far = hip::calls(call::hipEventQuery);
  const ticket op = store(1);
  while (hip::calls(call::hipEventQuery) < so_far + 5) std::this_thread::yield();
  EXPECT_EQ(op.code(), status::pending);
  EXPECT_TRUE(end());
  EXPECT_EQ(op.wait(soon()), status::ok);
  EXPECT_EQ(op.code(), status::ok);
}

TEST_F(RuntimeBesideCaptures, QuietMeansNoCallDuringTheCapture) {
  hip::set_older_runtime(true);
  ASSERT_EQ(store(1).wait(soon()), status::ok);
  ASSERT_EQ(rt().quiesce(soon()), status::ok);
  // Accepted meanwhile, fences drawn: the engine's own stream does not capture.
  const ticket meanwhile = store(2);
  begin();
  const std::uint64_t so_far = copy_calls();
  const auto dropped = rt().restore(key_of(1), 1, 1);
  ASSERT_TRUE(dropped.ok()) << dropped.why().message();
  // The copy thread has made passes when what it was asked to drop is gone.
  EXPECT_TRUE(rt().release_slot(1, 1).ok());
  while (rt().rank(0).outstanding() > 1) std::this_thread::yield();
  EXPECT_EQ(dropped->code(), status::cancelled);
  EXPECT_EQ(copy_calls(), so_far);
  EXPECT_TRUE(end());
  EXPECT_EQ(meanwhile.code(), status::pending);
  rt().resume();
  EXPECT_EQ(meanwhile.wait(soon()), status::ok);
  EXPECT_EQ(meanwhile.code(), status::ok);
}

// ---------------------------------------------------------------------------------------
// Captures of a compute stream itself

/// A copier for a store of slot 0 behind a step of the engine's stream, and a restore.
class CopierBesideCaptures : public testing::Test {
 protected:
  void SetUp() override {
    over_ = make_hip_backend({.devices = {0}}).value();
    ASSERT_EQ(hipStreamCreateWithPriority(&engine_, hipStreamNonBlocking, 0), hipSuccess);
    wrapped_ = over_->at(0).wrap_stream(engine_).value();
    options_.shape = runtime_rig::shape();
    options_.memory = images_.memory.memory;
    options_.threaded = false;
    options_.context = &codes_;
    options_.on_completion = [](void* to, const completion& what) {
      static_cast<std::vector<status>*>(to)->push_back(what.code);
    };
    auto opened = copier::open(options_, over_->at(0));
    ASSERT_TRUE(opened.ok()) << opened.why().message();
    copies_ = std::move(opened).value();
    ASSERT_TRUE(copies_->attach(0, *wrapped_).ok());
    ASSERT_EQ(copies_->mark({0, 1}), status::ok);
  }
  void TearDown() override {
    copies_.reset();
    wrapped_.reset();
    EXPECT_EQ(hipStreamDestroy(engine_), hipSuccess);
    over_.reset();
    expect_clean_double();
    hip::reset();
  }
  void submit(copy_kind kind = copy_kind::store, std::uint64_t step = 1) {
    copy_op op;
    op.header.op = {kind == copy_kind::store ? 0U : 1U, 0};
    op.header.kind = kind;
    op.header.slot = 0;
    op.header.layout_fingerprint = options_.shape.fingerprint();
    op.header.image_bytes = options_.shape.image_bytes;
    op.header.unit_count = 3;
    op.header.fences.merge({0, step});
    op.units = {images_.units.data(), 3};
    const auto accepted = copies_->submit({&op, 1});
    ASSERT_TRUE(accepted.ok()) << accepted.why().message();
  }
  void begin() {
    ASSERT_EQ(hipStreamBeginCapture(engine_, hipStreamCaptureModeThreadLocal), hipSuccess);
  }
  [[nodiscard]] bool end() { return end_capture(engine_); }
  void pump_until_it_ends() {
    for (const deadline until = runtime_rig::soon(); codes_.empty() && clock::now() < until;)
      copies_->pump();
  }

  tiny_images images_{4};
  std::unique_ptr<backend> over_;
  hipStream_t engine_ = nullptr;
  std::unique_ptr<stream> wrapped_;
  std::vector<status> codes_;
  copier_options options_;
  std::unique_ptr<copier> copies_;
};

// A query looks at the stream of the recording, and spoils what is captured there now.
TEST_F(CopierBesideCaptures, AFenceIsNotAskedWhileItsComputeStreamCaptures) {
  submit();
  begin();
  for (int i = 0; i < 20; ++i) copies_->pump();
  EXPECT_TRUE(end()) << "the copy thread's query spoilt the engine's capture";
  pump_until_it_ends();
  EXPECT_EQ(codes_, std::vector<status>{status::ok});
}

/// Of a compute stream: event 1 of so many names step 1, and step 257 after it.
constexpr std::uint64_t positions = 256;

// The position of step 1 is used again for step 257, and a capture takes that recording: the op of
// step 1 ends nevertheless, and not before its compute, though no later step was marked.
TEST_F(CopierBesideCaptures, AnOpWhoseFencesEventACaptureTookStillEndsAndInOrder) {
  for (const bool others : {false, true}) {
    SCOPED_TRACE(others ? "steps between" : "no steps between");
    const std::uint64_t first = others ? 2 * positions + 1 : 1;
    images_.write_slots(1, 1000);
    hip::hold(engine_);
    struct compute {
      tiny_images* images;
      std::uint64_t n;
    } what{&images_, first};
    ASSERT_EQ(hipLaunchHostFunc(
                  engine_,
                  [](void* of) {
                    const auto& self = *static_cast<compute*>(of);
                    self.images->write_slots(1, self.n);
                  },
                  &what),
              hipSuccess);
    ASSERT_EQ(copies_->mark({0, first}), status::ok);
    submit(copy_kind::store, first);
    for (std::uint64_t step = first + 1; others && step < first + positions; ++step)
      ASSERT_EQ(copies_->mark({0, step}), status::ok);
    hip::before_next(call::hipEventRecord, [&] { begin(); });
    EXPECT_EQ(copies_->mark({0, first + positions}), status::busy);
    for (int i = 0; i < 20; ++i) copies_->pump();
    EXPECT_TRUE(end()) << "the copy thread spoilt the engine's capture";
    for (int i = 0; i < 20; ++i) copies_->pump();
    EXPECT_THAT(codes_, testing::IsEmpty());
    hip::release(engine_);
    pump_until_it_ends();
    EXPECT_EQ(codes_, std::vector<status>{status::ok});
    codes_.clear();
    images_.write_slots(1, 2000);
    submit(copy_kind::restore, 0);
    pump_until_it_ends();
    EXPECT_EQ(codes_, std::vector<status>{status::ok});
    codes_.clear();
    EXPECT_TRUE(images_.holds(1, first));
  }
}

// ---------------------------------------------------------------------------------------
// Batches that are too large for the device

/// Images of many units: the ring has room for 24 of them.
struct wide_copier {
  static constexpr std::uint32_t units_each = 8000;
  static constexpr std::uint32_t images = 48;

  wide_copier() : units(units_each), slot(images * units_each) {
    options.shape = {1, units_each, units_each, "wide"};
    options.memory.regions = {{units.data(), 1, 1}};
    options.memory.units = units_each;
    options.memory.segments = {{slot.data(), units_each, units_each}};
    options.memory.slots = images;
    options.max_batch = 4096;
    options.store_streams = 1;
    options.threaded = false;
    options.context = this;
    options.on_completion = [](void* self, const completion& what) {
      static_cast<wide_copier*>(self)->codes.push_back(what.code);
    };
    for (unit_id u = 0; u < units_each; ++u) ids.push_back(u);
    over = make_hip_backend({.devices = {0}}).value();
    auto opened = copier::open(options, over->at(0));
    EXPECT_TRUE(opened.ok()) << opened.why().message();
    copies = std::move(opened).value();
  }
  void submit() {
    std::vector<copy_op> ops;
    for (std::uint32_t i = 0; i < images; ++i) {
      copy_op op;
      op.header.op = {i, 0};
      op.header.kind = copy_kind::store;
      op.header.slot = i;
      op.header.layout_fingerprint = options.shape.fingerprint();
      op.header.image_bytes = units_each;
      op.header.unit_count = units_each;
      op.units = ids;
      ops.push_back(op);
    }
    const auto accepted = copies->submit(ops);
    EXPECT_TRUE(accepted.ok()) << accepted.why().message();
  }

  std::vector<std::byte> units;
  std::vector<std::byte> slot;
  std::vector<unit_id> ids;
  copier_options options;
  std::vector<status> codes;
  std::unique_ptr<backend> over;
  std::unique_ptr<copier> copies;
};

// None of it runs here: what counts is that nothing is refused, and that what does not fit waits.
TEST(RuntimeHipBatches, ACopierCutsWhatItsDeviceCannotTakeAtOnce) {
  {
    wide_copier wide;
    for (const hip::stream_facts& each : hip::streams()) hip::hold(each.handle);
    wide.submit();
    for (int i = 0; i < 20; ++i) wide.copies->pump();
    EXPECT_EQ(hip::calls(call::hipLaunchKernel), store_places);
    EXPECT_THAT(wide.codes, testing::IsEmpty());
    hip::lose(0, hipErrorIllegalAddress);
    for (int i = 0; i < 20; ++i) wide.copies->pump();
    EXPECT_EQ(wide.codes, std::vector<status>(wide_copier::images, status::device_lost));
  }
  hip::reset();
}

// ---------------------------------------------------------------------------------------
// Why a device was lost

TEST(RuntimeHipLoss, TheCauseIsToldWhereverThereIsText) {
  {
    runtime_rig rig(
        {.ranks = 2, .manual = false, .over = [] { return make_hip_backend().value(); }});
    EXPECT_EQ(rig.rt->why_lost(), "");
    hip::fail_at(call::hipLaunchKernel, 1, hipErrorIllegalAddress);
    rig.write(0, 1);
    const auto stored = [&] {
      const auto op = rig.rt->store(key_of(1), 0, 0);
      return op.ok() ? op->wait(runtime_rig::soon()) : op.code();
    }();
    EXPECT_EQ(stored, status::device_lost);
    const auto named =
        testing::ContainsRegex("hip:[01]: hipLaunchKernel answered hipErrorIllegalAddress");
    EXPECT_THAT(rig.rt->why_lost(), named);
    EXPECT_THAT(rig.rt->why_lost(), testing::Not(testing::HasSubstr(";")));
    const auto refused = rig.rt->store(key_of(2), 0, 0);
    EXPECT_EQ(refused.code(), status::device_lost);
    EXPECT_THAT(refused.why().message(), named);
    rig.rt.reset();
    for (const hip::stream_facts& each : hip::streams()) hip::drain(each.handle);
  }
  hip::reset();
}

}  // namespace
}  // namespace cairn::tests
