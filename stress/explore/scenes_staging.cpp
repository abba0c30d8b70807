// Scenes on the staging ring of the HIP backend: several threads launch through a ring that is too
// small for them, while a device runs what they have enqueued. The ring's own source is compiled
// here, over the handful of calls that it makes; the device is a thread of the scene.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/hip_staging.cpp"
#include "stress/explore/part.hpp"

// ---- the device -------------------------------------------------------------------------------

struct ihipStream_t {
  enum class work : std::uint8_t { copy, kernel, record };
  struct item {
    work what = work::copy;
    std::uint32_t* to = nullptr;
    const std::uint32_t* from = nullptr;
    std::uint32_t value = 0;
  };
  static constexpr std::uint32_t most = 64;
  std::array<item, most> items{};                 // one thread enqueues
  cairn::sync::atomic<std::uint32_t> enqueued{};  // what is enqueued is the device's
  cairn::sync::atomic<std::uint32_t> done{};      // and over

  void put(const item& one) {
    const std::uint32_t at = enqueued.load_relaxed();
    if (at == most) cairn::explore::fail("the scene enqueues too much");
    items[at] = one;
    enqueued.store_release(at + 1);
  }
  bool run_one() {
    const std::uint32_t at = done.load_relaxed();
    if (at == enqueued.load_acquire()) return false;
    const item& one = items[at];
    if (one.what == work::copy) *one.to = *one.from;
    if (one.what == work::kernel && *one.from != one.value)
      cairn::explore::fail("a batch reads another's words");
    done.store_release(at + 1);
    return true;
  }
};

/// Where it was last recorded: which stream, behind how many items. It orders, as a runtime that
/// locks does; so nothing here sees that a place's word publishes the recording too.
struct ihipEvent_t {
  std::atomic<ihipStream_t*> on{};
  std::atomic<std::uint32_t> behind{};
};

namespace {

// Outside what a schedule puts back, which would take long: scenes write a word before they read
// it.
constexpr std::size_t ring_bytes = std::size_t{cairn::detail::hip_staging::places} *
                                   cairn::detail::hip_staging::place_words * sizeof(std::uint32_t);
alignas(64) std::byte pinned[ring_bytes + cairn::kernels::board_bytes];
alignas(64) std::byte resident[ring_bytes];

}  // namespace

extern "C" {
hipError_t hipHostMalloc(void** memory, size_t, unsigned) {
  *memory = pinned;
  return hipSuccess;
}
hipError_t hipMalloc(void** memory, size_t) {
  *memory = resident;
  return hipSuccess;
}
hipError_t hipFree(void*) {
  return hipSuccess;
}
hipError_t hipHostFree(void*) {
  return hipSuccess;
}
hipError_t hipEventCreateWithFlags(hipEvent_t* made, unsigned) {
  *made = new ihipEvent_t;
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t which) {
  delete which;
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void* to, const void* from, size_t, hipMemcpyKind, hipStream_t on) {
  on->put({ihipStream_t::work::copy, static_cast<std::uint32_t*>(to),
           static_cast<const std::uint32_t*>(from), 0});
  return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t what, hipStream_t on) {
  on->put({ihipStream_t::work::record, nullptr, nullptr, 0});
  what->behind.store(on->enqueued.load_relaxed(), std::memory_order_relaxed);
  what->on.store(on, std::memory_order_release);
  return hipSuccess;
}
}

namespace cairn::detail {

status status_of(hipError_t code) noexcept {
  return code == hipSuccess ? status::ok : status::failed;
}
std::string hip_health::cause() const {
  return {};
}
event_state state_of(hipEvent_t what, hip_health&) noexcept {
  const ihipStream_t* const on = what->on.load(std::memory_order_acquire);
  if (on == nullptr) return event_state::fired;
  return on->done.load_acquire() >= what->behind.load(std::memory_order_relaxed)
             ? event_state::fired
             : event_state::pending;
}

}  // namespace cairn::detail

// ---- scenes -----------------------------------------------------------------------------------

namespace cairn::explore {

namespace {

using detail::hip_staging;

/// All but a few places of the ring are in use for good.
template <std::uint32_t Left>
struct small_ring {
  detail::hip_health health;
  std::unique_ptr<hip_staging> ring = std::move(*hip_staging::open(health));
  std::array<ihipStream_t, 3> streams{};
  std::array<detail::hip_debts, 3> debts{};
  quiet_word<std::uint32_t> launched;

  small_ring() {
    std::array<std::uint32_t, hip_staging::places> taken{};
    require(ring->claim(copy_kind::restore, hip_staging::places - Left, taken) == status::ok,
            "a new ring is full");
  }
  /// A batch of `count` places on the thread's own stream.
  void launch(std::uint32_t t, std::uint32_t count, std::uint32_t value) {
    std::array<std::uint32_t, hip_staging::places> taken{};
    const status got = ring->claim(copy_kind::restore, count, taken);
    if (got == status::queue_full) return;
    require(got == status::ok, "the ring refuses");
    launched.add(1);
    for (std::uint32_t i = 0; i < count; ++i) {
      *ring->words(taken[i]) = value + i;
      require(ring->send(taken[i], 1, &streams[t]) == status::ok, "a copy is refused");
    }
    for (std::uint32_t i = 0; i < count; ++i)
      streams[t].put({ihipStream_t::work::kernel, nullptr, ring->resident(taken[i]), value + i});
    for (std::uint32_t i = 0; i < count; ++i) ring->fly(taken[i], &streams[t], debts[t]);
  }
  bool run_device() {
    bool any = false;
    for (ihipStream_t& each : streams) any = each.run_one() || any;
    return any;
  }
  void judge() {
    while (run_device()) {
    }
    std::array<std::uint32_t, hip_staging::places> taken{};
    require(ring->claim(copy_kind::restore, Left, taken) == status::ok, "a place is lost");
    require(ring->claim(copy_kind::restore, 1, taken) == status::queue_full,
            "a place is two holders'");
    require(launched.get() != 0, "of several launches through a free ring none went");
  }
};

/// Two threads, one place: it flies, is free again and flies again while the other one looks.
struct staging_one : small_ring<1> {
  static constexpr std::uint32_t threads = 3;
  void run(std::uint32_t t) {
    if (t == 2) {
      for (int i = 0; i < 12; ++i) run_device();
      return;
    }
    for (std::uint32_t n = 0; n < 3; ++n) launch(t, 1, 100 * (t + 1) + 10 * n);
  }
};
const bool staging_one_added = add_part<staging_one>("staging-one", false, "staging");

/// Batches of several places, of which not all fit.
struct staging_batches : small_ring<3> {
  static constexpr std::uint32_t threads = 4;
  void run(std::uint32_t t) {
    if (t == 3) {
      for (int i = 0; i < 8; ++i) run_device();
      return;
    }
    launch(t, t == 2 ? 1 : 2, 100 * (t + 1));
    launch(t, 1, 100 * (t + 1) + 50);
  }
};
const bool staging_batches_added = add_part<staging_batches>("staging-batches", false, "staging");

/// What is given back untouched is free at once; what a stream owes is free when it is forgiven.
struct staging_give : small_ring<2> {
  static constexpr std::uint32_t threads = 3;
  void run(std::uint32_t t) {
    if (t == 2) {
      for (int i = 0; i < 6; ++i) run_device();
      return;
    }
    std::array<std::uint32_t, hip_staging::places> taken{};
    if (t == 0 && ring->claim(copy_kind::restore, 2, taken) == status::ok) {
      *ring->words(taken[0]) = 1;
      *ring->words(taken[1]) = 2;
      ring->give(taken[0]);
      debts[0].add(taken[1]);
      ring->forgive(debts[0], &streams[0]);
    }
    launch(t, 2, 100 * (t + 1));
    launch(t, 1, 100 * (t + 1) + 50);
  }
};
const bool staging_give_added = add_part<staging_give>("staging-give", false, "staging");

}  // namespace

}  // namespace cairn::explore
