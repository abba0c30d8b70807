// The switches. This file is compiled without sanitizers: what it keeps is touched by every fiber.
#include "stress/explore/scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "stress/explore/arena.hpp"
#include "stress/explore/environment.hpp"
#include "stress/explore/fiber.hpp"

namespace cairn::explore {

gate the_gate;

namespace {

constexpr std::uint32_t judge = threads_max;         // index of its stack
constexpr std::uint32_t director = threads_max + 1;  // the caller of run

enum class standing : std::uint8_t { fresh, running, waiting, frozen, ended };

struct thread {
  fiber on;
  standing at = standing::fresh;
  bool begun = false;  ///< its stack is set up and waits at the top of its loop
  const void* word = nullptr;
  std::int64_t until_ns = 0;
};

thread threads[threads_max + 2];
std::uint32_t count = 0;
std::uint32_t scene_count =
    0;  ///< of these, the scene's own; the others run what std::thread was given
std::uint32_t scene_left = 0;
std::thread::_State* bodies[threads_max] = {};
std::uint32_t body_count = 0;
std::uint32_t ready = 0;
std::uint32_t on_stack = director;  ///< whose stack the processor is on
std::uint64_t trace = 0;
std::int64_t clock_ns = 0;
std::int64_t nap_ns = 0;
std::uint64_t steps_max = 0;
std::uint64_t drawn = 0;  ///< so far in this schedule
strategy* by = nullptr;
program* what = nullptr;
bool failed = false;
char why[512];
int token;  // the tool's order between director and threads

void (*guarded_body)(void*) = nullptr;
void* guarded_context = nullptr;

constexpr std::int64_t clock_start_ns = 1'000'000'000'000LL;

std::int64_t to_ns(std::chrono::steady_clock::time_point at) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

void stack_switch(std::uint32_t to) {
  const std::uint32_t from = on_stack;
  if (to == from) return;
  on_stack = to;
  threads[to].on.resume(threads[from].on);
}

// What a strategy allocates is its own, not the scene's.
std::uint32_t ask(std::uint32_t current) {
  arena::leave();
  const std::uint32_t who = by->choose({the_gate.step, current, ready});
  arena::enter();
  return who;
}

void run_next(std::uint32_t who) {
  trace = (trace ^ (the_gate.step << 4 | who)) * 0x100000001b3ULL;
  trace ^= trace >> 29;
  the_gate.thread = who;
  the_gate.next = std::min(by->next(), steps_max);
  stack_switch(who);
}

void finish_schedule() {
  the_gate.running = false;
  stack_switch(director);
}

// The thread that calls cannot go on (or nobody has begun): somebody else, or the end.
void go_on() {
  for (;;) {
    if (ready == 0) {
      std::uint32_t first = nobody;
      for (std::uint32_t t = 0; t < count; ++t)
        if (threads[t].at == standing::waiting &&
            (first == nobody || threads[t].until_ns < threads[first].until_ns))
          first = t;
      if (first == nobody) return finish_schedule();
      if (threads[first].until_ns - clock_ns > nap_ns)
        fail("thread " + std::to_string(first) + " sleeps and nobody is left to wake it");
      clock_ns = std::max(clock_ns, threads[first].until_ns);
      threads[first].at = standing::running;
      ready |= 1U << first;
    }
    const std::uint32_t who = ask(nobody);
    if (by->frozen() != nobody && (ready >> by->frozen() & 1) != 0) {
      ready &= ~(1U << by->frozen());
      threads[by->frozen()].at = standing::frozen;
      continue;
    }
    return run_next(who);
  }
}

void thread_loop() {
  const std::uint32_t self = on_stack;
  for (;;) {
    tool_acquire(&token);
    if (self < scene_count)
      what->run(self);
    else
      bodies[self - scene_count]->_M_run();
    tool_release(&token);
    threads[self].at = standing::ended;
    ready &= ~(1U << self);
    // The library's own threads are left where they are when the scene is over.
    if (self < scene_count && --scene_left == 0)
      finish_schedule();
    else
      go_on();
  }
}

void judge_loop() {
  for (;;) {
    tool_acquire(&token);
    guarded_body(guarded_context);
    tool_release(&token);
    threads[judge].at = standing::ended;
    stack_switch(director);
  }
}

void set_up(std::uint32_t t, fiber::entry loop) {
  thread& it = threads[t];
  if (it.begun && it.at != standing::ended) {
    // Left in the middle: what it did still comes before all that is to come.
    it.on.give_up(threads[director].on);
    it.begun = false;
  }
  if (!it.begun) it.on.begin(loop);
  it.begun = true;
  it.at = standing::running;
}

void adopt_once() {
  static const bool done = [] {
    threads[director].on.adopt();
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

void fail(const std::string& message) {
  if (!failed) {
    failed = true;
    // By hand: to ThreadSanitizer's snprintf `why` would be the failing thread's.
    const std::size_t length = std::min(message.size(), sizeof why - 1);
    for (std::size_t i = 0; i < length; ++i) why[i] = message[i];
    why[length] = '\0';
  }
  if (on_stack == director) {
    std::fprintf(stderr, "explore: outside a schedule: %s\n", why);
    std::abort();
  }
  the_gate.running = false;
  stack_switch(director);
  std::abort();  // a stack that failed is never gone back to
}

std::uint32_t draw(std::uint32_t ways) noexcept {
  if (!the_gate.running) return 0;
  arena::leave();
  const std::uint32_t way = by->draw({the_gate.step, the_gate.thread, ready}, drawn, ways);
  arena::enter();
  ++drawn;
  const std::uint64_t mark = (drawn << 8 | way) * 0x9e3779b97f4a7c15ULL;
  trace = (trace ^ mark) * 0x100000001b3ULL;
  the_gate.order += mark ^ mark >> 31;
  return way;
}

std::uint32_t current_thread() noexcept {
  return the_gate.thread;
}

std::int64_t now_ns() noexcept {
  return clock_ns == 0 ? clock_start_ns : clock_ns;
}

void note_report() noexcept {
  if (failed) return;
  failed = true;
  std::size_t i = 0;
  for (; tool_reported[i] != '\0'; ++i) why[i] = tool_reported[i];
  why[i] = '\0';
}

void decide() noexcept {
  const std::uint32_t self = the_gate.thread;
  if (the_gate.step >= steps_max) fail("a schedule of so many steps makes no progress");
  const std::uint32_t who = ask(self);
  if (by->frozen() == self) {
    ready &= ~(1U << self);
    threads[self].at = standing::frozen;
    go_on();
    return;
  }
  the_gate.next = std::min(by->next(), steps_max);
  if (who != self) run_next(who);
}

std::string guarded(void (*body)(void*), void* context) {
  adopt_once();
  guarded_body = body;
  guarded_context = context;
  failed = false;
  set_up(judge, judge_loop);
  tool_release(&token);
  stack_switch(judge);
  tool_acquire(&token);
  return failed ? std::string(why) : std::string();
}

outcome run(program& given_program, strategy& strategy_used, const limits& within) {
  adopt_once();
  arena::rewind();
  what = &given_program;
  by = &strategy_used;
  scene_count = scene_left = what->threads();
  count = scene_count + body_count;
  ready = (1U << count) - 1;
  failed = false;
  trace = 0;
  drawn = 0;
  clock_ns = clock_start_ns;
  nap_ns = within.nap_ns;
  steps_max = within.steps;
  for (std::uint32_t t = 0; t < count; ++t) set_up(t, thread_loop);
  if (faults_armed) forget_seen();
  the_gate.reset();
  the_gate.running = true;
  tool_release(&token);
  arena::leave();
  the_gate.next = std::min(by->begin(count), steps_max);
  arena::enter();
  go_on();
  tool_acquire(&token);
  arena::leave();
  by->ended(the_gate.step);
  arena::enter();

  bool all = true;
  for (std::uint32_t t = 0; t < scene_count; ++t) all = all && threads[t].at == standing::ended;
  outcome o;
  o.steps = the_gate.step;
  o.order = the_gate.order;
  o.draws = drawn;
  o.trace = (trace ^ the_gate.order) * 0x9e3779b97f4a7c15ULL + the_gate.step;
  if (!failed && within.hash_state) o.state = arena::digest();
  if (!failed && all)
    static_cast<void>(guarded([](void* p) { static_cast<program*>(p)->judge(); }, what));
  arena::leave();
  o.failed = failed;
  if (failed)
    for (const char* c = why; *c != '\0'; ++c) o.why += *c;
  return o;
}

}  // namespace cairn::explore

// ---- waiting and time -----------------------------------------------------------------------

namespace cairn::sync {

void sleep_until(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                 std::chrono::steady_clock::time_point until) noexcept {
  using namespace explore;
  const std::int64_t until_ns = to_ns(until);
  if (!the_gate.running) {
    if (until_ns > clock_ns) clock_ns = until_ns;
    return;
  }
  explore::step(&word, false);
  if (word.load(std::memory_order_relaxed) != seen || until_ns <= clock_ns) return;
  const std::uint32_t self = the_gate.thread;
  explore::threads[self].at = standing::waiting;
  explore::threads[self].word = &word;
  explore::threads[self].until_ns = until_ns;
  ready &= ~(1U << self);
  go_on();
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  using namespace explore;
  explore::step(&word, true);
  if (!the_gate.running) return;
  bool woken = false;
  for (std::uint32_t t = 0; t < count; ++t) {
    if (explore::threads[t].at != standing::waiting || explore::threads[t].word != &word) continue;
    explore::threads[t].at = standing::running;
    ready |= 1U << t;
    woken = true;
  }
  if (!woken) return;
  arena::leave();
  by->changed({the_gate.step, the_gate.thread, ready});
  arena::enter();
}

}  // namespace cairn::sync

// The linker sends the library's calls of steady_clock::now here (see CMakeLists.txt). What it
// returns is one integer, the time point's only member.
extern "C" std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept;
extern "C" std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() noexcept {
  return cairn::explore::now_ns();
}

#if defined(CAIRN_EXPLORE_ON_TSAN)
// Each report fails its schedule; the tool goes on, so that the next schedule can be tried.
extern "C" void __tsan_on_report(const void* report);
extern "C" void __tsan_on_report(const void*) {
  cairn::explore::note_report();
}
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=0:exitcode=0:report_thread_leaks=0:suppress_equal_stacks=0:"
         "suppress_equal_addresses=0";
}
#endif

// The library's std::threads are logical threads of every schedule. They begin with it: a scene
// that is being built starts them and does nothing that needs them.
extern "C" void
__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, std::unique_ptr<std::thread::_State>* state, void (*)());
extern "C" void
__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, std::unique_ptr<std::thread::_State>* state, void (*)()) {
  using namespace cairn::explore;
  if (the_gate.running || body_count == threads_max) fail("a thread is started in a schedule");
  bodies[body_count++] = state->release();
  const unsigned long id = body_count;  // joinable
  std::memcpy(static_cast<void*>(self), &id, sizeof id);
}
extern "C" void __wrap__ZNSt6thread4joinEv(std::thread* self);
extern "C" void __wrap__ZNSt6thread4joinEv(std::thread*) {
  cairn::explore::fail("a thread is joined in a schedule");
}

// An assertion of the library's that fails is a failure of the schedule.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* function) noexcept {
  std::string text = std::string("assertion failed: ") + assertion + ", " + file + ":" +
                     std::to_string(line) + " (" + function + ")";
  cairn::explore::fail(text);
}
