// Threads submit while others quiesce and resume. The memory under the copies is plain: what a
// quiet engine writes and reads there is a race if quiesce and resume do not order it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cairn/copier.hpp>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/quiescence.hpp"
#include "tests/faulty_device.hpp"
#include "tests/runtime_fixture.hpp"
#include "tests/threads.hpp"

namespace cairn::tests {
namespace {

constexpr std::uint32_t submitters = 2;
constexpr std::uint32_t units_each = 3;

struct quiet_rig {
  explicit quiet_rig(bool polling)
      : host(std::move(*make_host_backend({1, 2}))),
        device(host->at(0)),
        memory(submitters * units_each, submitters),
        units(submitters * units_each) {
    std::iota(units.begin(), units.end(), 0U);
    device.quiet = true;
    device.poll = polling;
    device.plain_calls = &touched;
    copier_options o;
    o.shape = runtime_rig::shape();
    o.memory = memory.memory;
    o.max_ops = 64;
    o.store_depth = 8;
    o.restore_depth = 8;
    o.max_batch = 2;
    o.checksums = false;  // the engine of this test writes into images
    o.on_completion = [](void* self, const completion& what) {
      if (what.code == status::ok) ++static_cast<quiet_rig*>(self)->copied;
    };
    o.on_cancelled = [](void*, op_id) { return false; };
    o.context = this;
    made = std::move(*copier::open(o, device));
  }

  copy_op op(std::uint32_t thread, std::uint32_t nth, copy_kind kind) const {
    copy_op made_op;
    made_op.header.op = {thread * 32 + nth % 32, nth};
    made_op.header.layout_fingerprint = runtime_rig::shape().fingerprint();
    made_op.header.image_bytes = tiny_memory::image_bytes;
    made_op.header.slot = thread;
    made_op.header.unit_count = units_each;
    made_op.header.kind = kind;
    made_op.units = {&units[std::size_t{thread} * units_each], units_each};
    return made_op;
  }
  /// The image of a thread's slot, or of its units: they follow each other.
  [[nodiscard]] std::byte* slot(std::uint32_t thread) {
    return &memory.slot_area[std::size_t{thread} * tiny_memory::slot_bytes];
  }
  [[nodiscard]] std::byte* image(std::uint32_t thread) {
    return &memory.unit_area[std::size_t{thread} * units_each * tiny_memory::unit_bytes];
  }

  std::unique_ptr<backend> host;
  faulty_device device;
  tiny_memory memory;
  std::vector<unit_id> units;
  /// Plain: the copy thread adds to it in each call of the device, the engine when it is quiet.
  std::uint64_t touched = 0;
  std::atomic<std::uint64_t> copied{0};
  std::unique_ptr<copier> made;
};

bool uniform(const std::byte* from) {
  return std::all_of(from, from + tiny_memory::image_bytes,
                     [from](std::byte each) { return each == *from; });
}

// Every image is always one byte over and over; only the engine, in a quiet copier, changes which.
void quiesce_under_load(std::uint64_t seed, bool polling) {
  const test::yields yields;
  quiet_rig rig(polling);
  constexpr std::uint32_t rounds = 40;
  std::atomic<bool> over{false};
  test::together(submitters + 2, [&](std::uint32_t t) {
    test::dice dice(seed * 16 + t);
    if (t < submitters) {
      for (std::uint32_t i = 0; !over; ++i) {
        const copy_op op = rig.op(t, i, dice.below(3) == 0 ? copy_kind::restore : copy_kind::store);
        while (!over && rig.made->submit({&op, 1}).code() == status::queue_full) {
          rig.made->drop_cancelled();  // keeps the copy thread awake, also while it is quiet
          std::this_thread::yield();
        }
      }
      return;
    }
    if (t == submitters) {  // somebody else who wants it quiet now and then, sometimes too soon
      while (!over) {
        const deadline until = dice.below(2) == 0 ? clock::now() : runtime_rig::soon();
        const bool quiet = rig.made->quiesce(until) == status::ok;
        for (std::uint32_t i = dice.below(10); i != 0; --i) std::this_thread::yield();
        if (quiet) rig.made->resume();
        for (std::uint32_t i = dice.below(50); i != 0; --i) std::this_thread::yield();
      }
      return;
    }
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      ASSERT_EQ(rig.made->quiesce(runtime_rig::soon()), status::ok);
      const std::uint64_t touched = ++rig.touched;
      for (std::uint32_t s = 0; s < submitters; ++s) {
        EXPECT_TRUE(uniform(rig.image(s)));
        EXPECT_TRUE(uniform(rig.slot(s)));
        std::fill_n(rig.slot(s), tiny_memory::image_bytes, static_cast<std::byte>(round));
        EXPECT_EQ(rig.made->reset_slot(s), status::ok);
        if (dice.below(2) == 0)
          std::fill_n(rig.image(s), tiny_memory::image_bytes, static_cast<std::byte>(round + 100));
      }
      for (std::uint32_t i = dice.below(20); i != 0; --i) std::this_thread::yield();
      EXPECT_EQ(rig.touched, touched);
      rig.made->resume();
      const std::uint64_t copied = rig.copied;
      while (rig.copied == copied) std::this_thread::yield();
    }
    over = true;
  });
  EXPECT_EQ(rig.made->close(runtime_rig::soon()), status::ok);
  EXPECT_EQ(rig.made->outstanding(), 0U);
}

// The word alone: no doorbell orders anything here.
TEST(Quiescence, OrdersTheCopyThreadAndItsHolders) {
  const test::yields yields;
  using view = detail::quiescence::view;
  detail::quiescence word;
  std::uint64_t plain = 0;
  std::atomic<std::uint32_t> callers{2};
  test::together(3, [&](std::uint32_t t) {
    if (t == 0) {  // the copy thread
      while (callers.load(std::memory_order_relaxed) != 0) {
        if (word.asked())
          word.settle();
        else
          ++plain;
      }
      return;
    }
    for (std::uint32_t round = 0; round < 300; ++round) {
      word.join();
      while (word.look() != view::quiet) std::this_thread::yield();
      if (t == 1) ++plain;  // the other one only holds
      word.leave();
    }
    callers.fetch_sub(1, std::memory_order_relaxed);
  });
  EXPECT_GE(plain, 300U);
}

TEST(QuiesceUnderLoad, OrdersWhatTheEngineDoesMeanwhile) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) quiesce_under_load(seed, seed % 2 == 1);
}

}  // namespace
}  // namespace cairn::tests
