// Suite `queue`: how long copier::submit of one op holds the scheduling thread. The device copies
// nothing.
//
// Awake: the copy thread is busy launching. The 99th percentile is to be under a microsecond.
// Asleep: it has had time to; then the call wakes it, which is a futex call, and may take half a
// microsecond beyond what the same call takes for a thread that sleeps in plain sight, measured in
// turns with it. Medians there. Elapsed time, and so with whatever the machine does in between.
//
// Where the kernel runs the woken thread at once on the caller's processor, that thread's passes
// count as the caller's time. What these are, in rows without bars: the call and the passes by one
// thread; the call when the copy thread does not take the processor (SCHED_BATCH), and how long its
// op takes then if the caller does not let go of it; and the call with the threads that sleep on a
// processor of their own, no row where there is but one.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/team.hpp"
#include "bench/peers/hollow_copier.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "queue";

double quantile(std::vector<double> of, double q) {
  std::sort(of.begin(), of.end());
  return of[std::min(of.size() - 1, static_cast<std::size_t>(q * static_cast<double>(of.size())))];
}

double timed_submit(hollow_copier& on, slot_id slot) {
  const std::int64_t begin = elapsed_ns();
  on.submit(slot);
  return static_cast<double>(elapsed_ns() - begin);
}

/// A thread that sleeps until it is woken, again and again.
class sleeper {
 public:
  sleeper() : thread_([this] { sleep(); }) {}
  ~sleeper() {
    over_.store(true);
    (void)timed_wake();
    thread_.join();
  }
  double timed_wake() {
    const std::int64_t begin = elapsed_ns();
    word_.fetch_add(1);
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return static_cast<double>(elapsed_ns() - begin);
  }

 private:
  void sleep() {
    while (!over_.load()) {
      const std::uint32_t seen = word_.load();
      if (over_.load()) return;
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
  }
  std::atomic<std::uint32_t> word_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Keeps the calling thread, and those that it starts, on one of the processors that it may use.
class on_processor {
 public:
  explicit on_processor(int nth) {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &before_) && nth-- == 0) CPU_SET(cpu, &one);
    set_ = CPU_COUNT(&one) == 1 && sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~on_processor() {
    if (set_) (void)sched_setaffinity(0, sizeof before_, &before_);
  }
  on_processor(const on_processor&) = delete;
  on_processor& operator=(const on_processor&) = delete;
  [[nodiscard]] bool set() const { return set_; }

 private:
  cpu_set_t before_{};
  bool set_ = false;
};

struct sleepers {
  hollow_copier copies{"replay", true};
  sleeper other;
};

struct wake_times {
  std::vector<double> ours;
  std::vector<double> bare;
};

wake_times wake_in_turn(hollow_copier& on, sleeper& other, int count) {
  wake_times ns;
  for (int i = 0; i < count; ++i) {
    // Long enough for both to have spun and fallen asleep.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ns.ours.push_back(timed_submit(on, static_cast<slot_id>(on.sent() % hollow_copier::slots)));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ns.bare.push_back(other.timed_wake());
  }
  return ns;
}

/// Submit after a sleep, and what the copy thread does until it would sleep again, by one thread.
std::vector<double> with_passes(int count) {
  hollow_copier on("replay", false);
  std::vector<double> ns;
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const std::int64_t begin = elapsed_ns();
    on.submit(static_cast<slot_id>(on.sent() % hollow_copier::slots));
    while (on.get().pump()) {
    }
    ns.push_back(static_cast<double>(elapsed_ns() - begin));
  }
  return ns;
}

/// From submit until the op has ended, to a copy thread that sleeps, by a caller who looks on.
std::vector<double> looking_on(hollow_copier& on, int count) {
  std::vector<double> ns;
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const std::int64_t begin = elapsed_ns();
    on.submit(static_cast<slot_id>(on.sent() % hollow_copier::slots));
    while (on.ended() < on.sent()) {
    }
    ns.push_back(static_cast<double>(elapsed_ns() - begin));
  }
  return ns;
}

/// While the copy thread is busy with one launch, an op for each other slot.
std::vector<double> awake(hollow_copier& on, std::size_t count) {
  std::vector<double> ns;
  while (ns.size() < count) {
    on.device().hold(true);
    const std::uint64_t entered = on.device().entered();
    on.submit(0);
    while (on.device().entered() == entered) std::this_thread::yield();
    for (slot_id slot = 1; slot < hollow_copier::slots; ++slot)
      ns.push_back(timed_submit(on, slot));
    on.device().hold(false);
    // Before an op of a slot comes again, the last one has ended.
    while (on.ended() < on.sent()) std::this_thread::yield();
  }
  return ns;
}

}  // namespace

void measure_queue(const suite_options& how, std::vector<row>& into) {
  hollow_copier on("replay", true);
  const std::size_t calls = how.small() ? 1000 : how.how == effort::quick ? 100'000 : 1'000'000;
  constexpr int rounds = 9;
  std::vector<double> medians;
  std::vector<double> tails;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> ns = awake(on, calls / rounds);
    medians.push_back(quantile(ns, 0.5));
    tails.push_back(quantile(ns, 0.99));
  }
  into.push_back(
      at_most(suite_name, "submit, copy thread awake, p99", median(tails), "at most", 1000, "ns"));
  into.push_back(less_is_better(suite_name, "submit, copy thread awake, median", median(medians),
                                "", 0, "ns"));

  const int wakes = how.small() ? 20 : 2000;
  sleeper other;
  const auto [ours, bare] = wake_in_turn(on, other, wakes);
  const double wake = median(bare);
  into.push_back(at_most(suite_name, "submit, copy thread asleep, median", median(ours),
                         "futex wake", wake, "ns", (wake + 500) / wake));
  // Where the thread that is woken does not take the caller's processor at once: the kernel
  // decides, and mostly it does. Its time counts as the caller's then.
  into.push_back(less_is_better(suite_name, "submit, copy thread asleep, first decile",
                                quantile(ours, 0.1), "futex wake", quantile(bare, 0.1), "ns"));

  into.push_back(less_is_better(suite_name, "submit and the copy thread's passes, by one thread",
                                median(with_passes(wakes)), "what the bar leaves", 500, "ns"));
  sleepers behind;
  behind.copies.give_way();
  behind.copies.submit(0);
  while (behind.copies.ended() == 0) std::this_thread::yield();
  const auto [late, bare_late] = wake_in_turn(behind.copies, behind.other, wakes);
  into.push_back(less_is_better(suite_name,
                                "submit, copy thread asleep, it gives way to the caller, median",
                                median(late), "futex wake", median(bare_late), "ns"));
  const int ends = std::max(1, wakes / 4);
  const std::vector<double> ended = looking_on(on, ends);
  const std::vector<double> ended_late = looking_on(behind.copies, ends);
  for (const auto& [name, q] : {std::pair{"median", 0.5}, std::pair{"p99", 0.99}})
    into.push_back(
        less_is_better(suite_name, std::string("submit to the op's end, caller looks on, ") + name,
                       quantile(ended, q), "if it gives way", quantile(ended_late, q), "ns"));

  std::optional<sleepers> apart;
  if (const on_processor second(1); second.set()) apart.emplace();
  const on_processor first(0);
  if (!apart || !first.set()) return;  // one processor: not a row without figures, which fails
  const auto [far, bare_far] = wake_in_turn(apart->copies, apart->other, wakes);
  into.push_back(less_is_better(suite_name,
                                "submit, copy thread asleep on a processor of its own, median",
                                median(far), "futex wake", median(bare_far), "ns"));
}

}  // namespace cairn::bench
