// Lanes of the double; lane.hpp says what they are.
#include "tests/hip_double/lane.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <deque>
#include <thread>

#if defined(__SANITIZE_THREAD__)
#define CAIRN_ORDER_IS_SEEN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAIRN_ORDER_IS_SEEN 1
#endif
#endif
#if defined(CAIRN_ORDER_IS_SEEN)
#include <sanitizer/tsan_interface.h>
#endif

/// Real order, which ThreadSanitizer does not see. Clang's other attribute would show it atomics.
#if defined(__clang__)
#define CAIRN_UNSEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define CAIRN_UNSEEN __attribute__((no_sanitize("thread")))
#endif

constinit thread_local dim3 gridDim;
constinit thread_local dim3 blockDim;
constinit thread_local dim3 blockIdx;
constinit thread_local dim3 threadIdx;
constinit thread_local int warpSize = 1;

namespace cairn::tests::hip {
namespace {

/// What the calling thread is, while it runs a kernel.
struct current_lane {
  lane_memory memory;
  crew* among = nullptr;  ///< null: a wave of one
  std::uint32_t number = 0;
  std::uint32_t delays_as = 0;
  std::uint64_t accesses = 0;
};
constinit thread_local current_lane* mine = nullptr;

/// Others come in between where the plan says so.
void hesitate() {
  delay(2'000 + mine->delays_as, ++mine->accesses);
}

/// Whoever released the word happens before what follows. No access: to load the word once more
/// would race with whoever may write it now.
void acquire([[maybe_unused]] const unsigned* word) {
#if defined(CAIRN_ORDER_IS_SEEN)
  __tsan_acquire(const_cast<unsigned*>(word));
#else
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/// A lane that is not where the others are gets no value.
constexpr std::uint64_t nothing = 0xDDDDDDDDDDDDDDDD;

/// Comes to a meeting, and what `from` brought there.
std::uint64_t exchange_registers(std::uint64_t value, std::uint32_t from) {
  crew* const among = mine->among;
  if (among == nullptr) return from == 0 ? value : nothing;
  const bool together = among->meet(mine->number, purpose::shuffle, value);
  return together && from < among->lanes() ? among->brought(mine->number, from) : nothing;
}

dim3 place_in(const dim3& size, std::uint64_t index) {
  return {static_cast<std::uint32_t>(index % size.x),
          static_cast<std::uint32_t>(index / size.x % size.y),
          static_cast<std::uint32_t>(index / size.x / size.y)};
}

/// A launch, as all its lanes see it.
struct launch_view {
  const bound_kernel& kernel;
  dim3 grid;
  dim3 group;
  std::uint32_t lanes;  ///< of a wave
  std::uint32_t crews;
  [[nodiscard]] std::uint64_t waves_per_group() const { return (count(group) + lanes - 1) / lanes; }
};

/// One lane after another on the calling thread.
void run_alone(const launch_view& of) {
  current_lane self;
  mine = &self;
  for (std::uint64_t g = 0; g < count(of.grid); ++g) {
    blockIdx = place_in(of.grid, g);
    for (std::uint64_t t = 0; t < count(of.group); ++t) {
      threadIdx = place_in(of.group, t);
      of.kernel.lane();
      self.memory.end();
    }
  }
  mine = nullptr;
}

/// Lane `lane` of the waves of crew `number`. In a group's last wave it may be one of none.
void run_in_crew(const launch_view& of, crew& among, std::uint32_t number, std::uint32_t lane) {
  gridDim = of.grid;
  blockDim = of.group;
  warpSize = static_cast<int>(of.lanes);
  current_lane self{{}, &among, lane, number * of.lanes + lane, 0};
  mine = &self;
  const std::uint64_t groups = count(of.grid);
  for (std::uint64_t w = number; w < groups * of.waves_per_group(); w += of.crews) {
    const std::uint64_t thread = w / groups * of.lanes + lane;
    if (thread < count(of.group)) {
      blockIdx = place_in(of.grid, w % groups);
      threadIdx = place_in(of.group, thread);
      of.kernel.lane();
      self.memory.end();
    }
    while (!among.meet(lane, purpose::end, 0)) among.part();
  }
  mine = nullptr;
}

}  // namespace

// ---------------------------------------------------------------------------------------
// Memory

template <class Word>
void lane_memory::post(Word* at, Word by) {
  posted_.push_back({at, by, sizeof(Word)});
  fenced_ = false;
}

template <class Word>
Word lane_memory::add(Word* at, Word by) {
  const Word before = fenced_ ? __atomic_fetch_add(at, by, __ATOMIC_RELEASE)
                              : __atomic_fetch_add(at, by, __ATOMIC_RELAXED);
  if constexpr (sizeof(Word) == sizeof(unsigned)) read_.push_back(at);
  fenced_ = false;
  return before;
}

unsigned long long lane_memory::exchange(unsigned long long* at, unsigned long long value) {
  settle();  // a lane's own accesses to one word stay in order
  const unsigned long long before = *at;
  *at = value;
  fenced_ = false;
  return before;
}

void lane_memory::settle() {
  for (const posted& each : posted_) {
    if (each.bytes == sizeof(unsigned))
      __atomic_fetch_add(static_cast<unsigned*>(each.at), static_cast<unsigned>(each.by),
                         __ATOMIC_RELAXED);
    else
      __atomic_fetch_add(static_cast<unsigned long long*>(each.at), each.by, __ATOMIC_RELAXED);
  }
  posted_.clear();
}

void lane_memory::fence() {
  settle();
  for (const unsigned* const each : read_) acquire(each);
  read_.clear();
  fenced_ = true;
}

void lane_memory::end() {
  settle();
  read_.clear();
  fenced_ = false;
}

// ---------------------------------------------------------------------------------------
// Meetings

crew::crew(std::uint32_t lanes) : lanes_(lanes), places_(std::make_unique<place[]>(lanes)) {}

CAIRN_UNSEEN bool crew::meet(std::uint32_t lane, purpose why, std::uint64_t value) {
  place& own = places_[lane];
  const std::uint32_t number = own.meetings++;
  own.why[number % 2] = why;
  own.value[number % 2] = value;
  // Counters wrap together after many meetings.
  if (__atomic_add_fetch(&arrived_, 1U, __ATOMIC_ACQ_REL) == lanes_ * (number + 1)) {
    __atomic_store_n(&finished_, number + 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &finished_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  for (;;) {
    const std::uint32_t finished = __atomic_load_n(&finished_, __ATOMIC_ACQUIRE);
    if (finished == number + 1) break;
    syscall(SYS_futex, &finished_, FUTEX_WAIT_PRIVATE, finished, nullptr, nullptr, 0);
  }
  for (std::uint32_t i = 0; i < lanes_; ++i)
    if (places_[i].why[number % 2] != why) return false;
  return true;
}

CAIRN_UNSEEN std::uint64_t crew::brought(std::uint32_t lane, std::uint32_t by) const {
  return places_[by].value[(places_[lane].meetings - 1) % 2];
}

void crew::order(std::uint32_t lane) {
  ordered_.fetch_add(1, std::memory_order_release);
  meet(lane, purpose::order, 0);
  static_cast<void>(ordered_.load(std::memory_order_acquire));
}

// ---------------------------------------------------------------------------------------
// Launches

void run_lanes(const bound_kernel& kernel, const dim3& grid, const dim3& group,
               const wave_plan& how) {
  const launch_view of{kernel, grid, group, how.lanes, how.crews};
  if (how.lanes == 1 && how.crews == 1) {
    gridDim = grid;
    blockDim = group;
    return run_alone(of);
  }
  std::deque<crew> crews;
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < of.crews; ++c) {
    crew& among = crews.emplace_back(of.lanes);
    for (std::uint32_t lane = 0; lane < of.lanes; ++lane)
      threads.emplace_back([&of, &among, c, lane] { run_in_crew(of, among, c, lane); });
  }
  for (std::thread& each : threads) each.join();
  if (std::any_of(crews.begin(), crews.end(), [](const crew& each) { return each.parted(); }))
    complain("the lanes of a wave have parted ways: some exchange registers, some do not");
}

template <class Word>
addition<Word>::~addition() {
  if (asked_) return;
  hesitate();
  mine->memory.post(at_, by_);
}

template <class Word>
addition<Word>::operator Word() {
  hesitate();
  asked_ = true;
  return mine->memory.add(at_, by_);
}

template class addition<unsigned>;
template class addition<unsigned long long>;

}  // namespace cairn::tests::hip

using namespace cairn::tests::hip;

unsigned long long __shfl_xor(unsigned long long value, int distance) {
  return exchange_registers(value, mine->number ^ static_cast<std::uint32_t>(distance));
}

unsigned __shfl(unsigned value, int lane) {
  return static_cast<unsigned>(exchange_registers(value, static_cast<std::uint32_t>(lane)));
}

void __syncwarp() {
  if (mine->among != nullptr) mine->among->order(mine->number);
}

unsigned long long atomicExch(unsigned long long* at, unsigned long long value) {
  hesitate();
  return mine->memory.exchange(at, value);
}

void __threadfence() {
  hesitate();
  mine->memory.fence();
}

void __threadfence_system() {
  __threadfence();
}
