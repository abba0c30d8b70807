// The HIP backend when the runtime fails: each call that it makes is made to fail once, refused or
// with the device lost. Whatever fails, a failure is never taken for a success, the calling thread
// is left as it was, and nothing is freed that the device may still use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/hip_rig.hpp"

namespace cairn::tests {
namespace {

using hip::call;

/// What a backend is used for, once through, on the second of two devices. Takes every status as
/// it comes.
class whole_life {
 public:
  explicit whole_life(call faulty) : faulty_(faulty) {
    own_words(device_before_, mode_before_);
    hip::plan({});
  }

  void run() {
    images_.write_slots(staged_images, 1);
    auto made = check("make_hip_backend", make_hip_backend({.devices = {}, .copy_groups = 2}));
    if (!made) return;
    over_ = std::move(*made);
    device& d = over_->at(1);
    use(d);
    after("the end of what was made");
    over_.reset();
    after("the backend's end");
  }

  /// A call of the library answered an error, or a query "failed".
  [[nodiscard]] bool saw_error() const { return errors_ != 0; }
  [[nodiscard]] bool saw_loss() const { return losses_ != 0; }
  /// Every copy was reported as done.
  [[nodiscard]] bool saw_end() const { return ended_; }
  [[nodiscard]] const tiny_images& images() const { return images_; }
  [[nodiscard]] const std::vector<std::string>& disturbed() const { return disturbed_; }

 private:
  void use(device& d) {
    const copy_plan cut = make_copy_plan(runtime_rig::shape(), images_.memory.memory).value();
    auto plan = check("load", d.load(cut, images_.memory.memory));
    auto e = check("create_event", d.create_event(nullptr));
    auto f = check("create_event", d.create_event(nullptr));
    auto block = check("allocate", d.allocate(100));
    auto pinned = check("allocate_pinned", d.allocate_pinned(staged_images * 8));
    // Last: a stream's end waits for what uses the others.
    auto s = check("create_stream", d.create_stream(stream_priority::normal));
    auto t = check("create_stream", d.create_stream(stream_priority::high));
    if (!plan || !s || !t || !e || !f || !block || !pinned) return;
    auto engine = check("wrap_stream", d.wrap_stream((*s)->native()));
    if (!engine) return;
    batch_report report;
    report.checksums = reinterpret_cast<std::uint64_t*>((*pinned)->data());
    const auto good = [&](const char* what, status code) {
      note(what, code);
      return code == status::ok;
    };
    // Stores on one stream, behind it restores on another, through the ring and without it. Nothing
    // goes on that nothing orders.
    bool well = good("launch", d.launch(**s, **plan, copy_kind::store, images_.tasks, &report));
    well &= good("launch", d.launch(**s, **plan, copy_kind::store, images_.some(2), &report));
    note("capturing", d.capturing(**engine) ? status::busy : status::ok);
    well = good("record", d.record(**e, **engine)) && good("query", await(d, **e)) && well;
    if (!well || !good("wait", d.wait(**t, **e))) return;
    images_.write_slots(staged_images, 9000);
    well = good("launch", d.launch(**t, **plan, copy_kind::restore, images_.tasks, &report));
    well &= good("launch", d.launch(**t, **plan, copy_kind::restore, images_.some(2), nullptr));
    well = good("record", d.record(**f, **t)) && good("query", await(d, **f)) && well;
    ended_ = well;
  }

  // Until fired, failed, or pending for good.
  status await(device& d, const event& what) {
    for (const deadline until = clock::now() + std::chrono::seconds(5); clock::now() < until;) {
      const event_state state = d.query(what);
      after("query");
      if (state == event_state::fired) return status::ok;
      if (state == event_state::failed) return status::device_lost;
      if (hip::streams().empty()) break;
      std::this_thread::yield();
    }
    return status::timed_out;
  }

  template <class T>
  std::optional<T> check(const char* what, result<T> made) {
    note(what, made.code());
    if (!made) return std::nullopt;
    return std::move(made).value();
  }
  void note(const char* what, status code) {
    if (code != status::ok) ++errors_;
    if (code == status::device_lost) ++losses_;
    after(what);
  }

  /// The calling thread is as it was before the library came. Where the runtime refused to set it
  /// back, that cannot be, so such a call is forgiven once.
  void after(const char* what) {
    int device = -1;
    auto mode = hipStreamCaptureModeGlobal;
    if (hipPeekAtLastError() != hipSuccess) {
      disturbed_.push_back(std::string("last error after ") + what);
      static_cast<void>(hipGetLastError());
    }
    own_words(device, mode);
    if (device != device_before_) {
      if (faulty_ != call::hipSetDevice) disturbed_.push_back(std::string("device after ") + what);
      static_cast<void>(hipSetDevice(device_before_));
    }
    if (mode != mode_before_) {
      if (faulty_ != call::hipThreadExchangeStreamCaptureMode)
        disturbed_.push_back(std::string("capture mode after ") + what);
      auto back = mode_before_;
      static_cast<void>(hipThreadExchangeStreamCaptureMode(&back));
    }
  }
  // Not counted as calls of the library: planned faults must not hit them.
  static void own_words(int& device, hipStreamCaptureMode& mode) {
    device = hip::current_device();
    mode = hip::capture_mode();
  }

  call faulty_;
  int device_before_ = 0;
  hipStreamCaptureMode mode_before_ = hipStreamCaptureModeGlobal;
  tiny_images images_{staged_images};
  std::unique_ptr<backend> over_;
  int errors_ = 0;
  int losses_ = 0;
  bool ended_ = false;
  std::vector<std::string> disturbed_;
};

// Under a sanitizer, a part of them.
#if defined(CAIRN_SYNC_HOOK)
constexpr std::uint32_t every = 6;
#else
constexpr std::uint32_t every = 1;
#endif

struct place {
  call which;
  std::uint32_t nth;
};

/// Every call that the library makes in a whole life.
std::vector<place> places() {
  hip::reset();
  whole_life clean(call::hipPeekAtLastError);
  clean.run();
  EXPECT_TRUE(clean.saw_end());
  EXPECT_FALSE(clean.saw_error());
  EXPECT_TRUE(clean.images().holds(staged_images, 1));
  EXPECT_THAT(clean.disturbed(), testing::IsEmpty());
  std::vector<place> all;
  for (std::uint32_t c = 0; c < hip::call_count; ++c) {
    const auto which = static_cast<call>(c);
    // Queries are as many as the device is slow; a few stand for all.
    const std::uint64_t times = std::min<std::uint64_t>(hip::calls(which), 60);
    for (std::uint32_t n = 1; n <= times; n += every) all.push_back({which, n});
  }
  expect_clean_double();
  hip::reset();
  return all;
}

bool tells_nothing(call which) {
  return which == call::hipGetLastError || which == call::hipGetErrorName ||
         which == call::hipGetErrorString || which == call::hipPeekAtLastError;
}
bool ends_something(call which) {
  return which == call::hipStreamDestroy || which == call::hipEventDestroy ||
         which == call::hipFree || which == call::hipHostFree;
}

bool allocates(call which) {
  return which == call::hipMalloc || which == call::hipHostMalloc ||
         which == call::hipStreamCreateWithPriority || which == call::hipEventCreateWithFlags;
}
bool enters(call which) {
  return which == call::hipGetDevice || which == call::hipSetDevice ||
         which == call::hipThreadExchangeStreamCaptureMode;
}

// Refusals of the one call. What ends something does its work, and only says that it failed.
TEST(HipBackendFaults, EachCallMayBeRefusedOnce) {
  for (const hipError_t code : {hipErrorInvalidValue, hipErrorOutOfMemory}) {
    for (const place& at : places()) {
      if (tells_nothing(at.which)) continue;
      if (code == hipErrorOutOfMemory && !allocates(at.which)) continue;
      SCOPED_TRACE(std::string(hip::name_of(at.which)) + " " + std::to_string(at.nth) + ": " +
                   hipGetErrorName(code));
      whole_life life(at.which);
      hip::fail_at(at.which, at.nth, code, ends_something(at.which));
      life.run();
      if (life.saw_end()) {
        EXPECT_TRUE(life.images().holds(staged_images, 1));
      } else {
        EXPECT_TRUE(life.saw_error());
      }
      EXPECT_THAT(life.disturbed(), testing::IsEmpty());
      // What cannot be entered, waited for or asked is kept: the device may still use it.
      if (!life.saw_loss() && !enters(at.which) && at.which != call::hipStreamSynchronize)
        expect_clean_double();
      EXPECT_THAT(hip::complaints(), testing::IsEmpty());
      hip::reset();
    }
  }
}

// The call does its work and answers an error all the same: as far as the library can know, a part
// of it may run.
TEST(HipBackendFaults, EachCallMayFailAfterItsWork) {
  for (const place& at : places()) {
    if (at.which != call::hipLaunchKernel && at.which != call::hipMemcpyAsync &&
        at.which != call::hipEventRecord && at.which != call::hipStreamWaitEvent &&
        at.which != call::hipStreamSynchronize)
      continue;
    SCOPED_TRACE(std::string(hip::name_of(at.which)) + " " + std::to_string(at.nth));
    whole_life life(at.which);
    hip::plan({.seed = at.nth, .which = {}, .delay_one_in = 6});
    hip::fail_at(at.which, at.nth, hipErrorInvalidValue, true);
    life.run();
    EXPECT_FALSE(life.saw_end() && !life.images().holds(staged_images, 1));
    EXPECT_THAT(life.disturbed(), testing::IsEmpty());
    if (at.which != call::hipStreamSynchronize) expect_clean_double();
    EXPECT_THAT(hip::complaints(), testing::IsEmpty());
    hip::reset();
  }
}

TEST(HipBackendFaults, EachCallMayLoseTheDevice) {
  for (const hip::lost_selection how :
       {hip::lost_selection::answers, hip::lost_selection::refuses}) {
    for (const place& at : places()) {
      if (tells_nothing(at.which)) continue;
      SCOPED_TRACE(std::string(hip::name_of(at.which)) + " " + std::to_string(at.nth) +
                   ", selection " + std::to_string(static_cast<int>(how)));
      whole_life life(call::hipPeekAtLastError);  // nothing is forgiven
      hip::set_lost_selection(how);
      hip::lose_before(at.which, at.nth, 1, hipErrorIllegalAddress);
      life.run();
      EXPECT_FALSE(life.saw_end() && !life.images().holds(staged_images, 1));
      EXPECT_THAT(life.disturbed(), testing::IsEmpty());
      EXPECT_THAT(hip::complaints(), testing::IsEmpty());
      hip::reset();
    }
  }
}

}  // namespace
}  // namespace cairn::tests
