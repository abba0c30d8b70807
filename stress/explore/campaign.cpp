// Running plans. See campaign.hpp.
#include "stress/explore/campaign.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "stress/explore/arena.hpp"

namespace cairn::explore {

double real_seconds() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

namespace {

template <std::size_t N>
void put(char (&to)[N], const std::string& text) {
  std::snprintf(to, N, "%s", text.c_str());
}

/// The schedule that runs. In shared memory, so that it is known also when the process dies of it.
struct under_way {
  static constexpr std::size_t decisions_max = 64;
  char strategy[16] = {};
  std::uint64_t number = 0;
  std::size_t decision_count = 0;
  decision decisions[decisions_max] = {};  ///< exhaustive
};

/// Options that repeat it.
std::string again(const scene_entry& entry, const plan& how, const under_way& what) {
  const std::string scene = "--scene " + entry.name;
  if (std::strcmp(what.strategy, "given") == 0)
    return scene + " --decisions '" + how.decisions + "'";
  if (std::strcmp(what.strategy, "exhaustive") == 0)
    return scene + " --decisions '" +
           to_text({what.decisions, what.decisions + what.decision_count}) + "'";
  return scene + " --strategy " + what.strategy + " --seed " + std::to_string(how.seed) +
         " --replay " + std::to_string(what.number);
}

class explorer {
 public:
  explorer(const scene_entry& entry, const plan& how, std::uint32_t slice, under_way& now,
           tally& out)
      : entry_(entry), how_(how), slice_(slice), now_(now), out_(out), began_(real_seconds()) {}

  void go() {
    arena::open();
    scene_ = entry_.make(entry_);
    const std::string trouble =
        guarded([](void* s) { static_cast<scene*>(s)->build(); }, scene_.get());
    if (!trouble.empty()) {
      out_.failed = true;
      put(out_.why, "the setting fails: " + trouble);
      return;
    }
    arena::keep();
    arena::leave();
    if (!how_.decisions.empty()) {
      std::vector<decision> list;
      if (!from_text(how_.decisions, list)) {
        out_.failed = true;
        put(out_.why, "--decisions cannot be read");
        return;
      }
      given only(list);
      drive(only, 1, "given");
      return;
    }
    // How long a schedule is when nobody is preempted: PCT chooses its points within it.
    given calm({});
    const outcome first = once(calm);
    length_ = first.steps;
    draws_ = first.draws != 0;
    const std::uint64_t share = (how_.schedules + how_.jobs - 1) / how_.jobs;
    if (how_.strategy == "mix") {
      exhaust(share / 2, how_.seconds / 2);
      const std::uint64_t left = share - std::min(share, out_.schedules);
      random(left / 2, (how_.seconds - spent()) / 2);
      precise(share - std::min(share, out_.schedules), how_.seconds - spent());
    } else if (how_.strategy == "exhaustive") {
      exhaust(share, how_.seconds);
    } else if (how_.strategy == "random") {
      random(share, how_.seconds);
    } else if (how_.strategy == "hunt") {
      hunt(share);
    } else if (how_.strategy == "pct") {
      precise(share, how_.seconds);
    } else {
      suspend(share, how_.seconds);
    }
    out_.fault_hits = fault_hits();
    out_.seconds = spent();
  }

 private:
  [[nodiscard]] double spent() const { return real_seconds() - began_; }

  outcome once(strategy& by) { return run(*scene_, by, limits_); }
  outcome once(strategy& by, const char* name) {
    now_.number = by.number();
    if (std::strcmp(now_.strategy, name) != 0) put(now_.strategy, name);
    if (const auto* tried = dynamic_cast<const exhaustive*>(&by)) {
      const std::vector<decision>& list = tried->decisions();
      now_.decision_count = std::min(list.size(), under_way::decisions_max);
      std::copy_n(list.begin(), now_.decision_count, now_.decisions);
    }
    return once(by);
  }

  bool stopped(std::uint64_t until_count, double until) {
    if (out_.failed || out_.schedules >= until_count) return true;
    return (out_.schedules & 255) == 0 && spent() >= until;
  }

  void count(const outcome& o) {
    ++out_.schedules;
    out_.steps += o.steps;
    out_.steps_max = std::max(out_.steps_max, o.steps);
    out_.traces += o.trace;
    out_.chain = (out_.chain ^ o.trace) * 0x100000001b3ULL + o.steps;
    out_.orders.add(o.order);
    out_.states.add(o.state);
    if (how_.trace)
      std::printf("%s %016llx %llu\n", entry_.name.c_str(),
                  static_cast<unsigned long long>(o.trace),
                  static_cast<unsigned long long>(o.steps));
  }

  /// Up to `most` more schedules, for up to `seconds` more.
  void drive(strategy& by, std::uint64_t most, const char* name) {
    drive(by, most, how_.seconds, name);
  }
  void drive(strategy& by, std::uint64_t most, double seconds, const char* name) {
    const std::uint64_t until_count = out_.schedules + most;
    const double until = spent() + seconds;
    while (!stopped(until_count, until) && by.advance()) {
      const outcome o = once(by, name);
      count(o);
      if (o.failed) failed(by, o, name);
    }
  }

  /// One level; false when there was no time for all of it.
  bool exhaust_level(const exhaustive::bounds& level, std::uint64_t until_count, double until) {
    exhaustive by(level, slice_, how_.jobs);
    bool more = true;
    while (!stopped(until_count, until) && (more = by.advance())) {
      const outcome o = once(by, "exhaustive");
      if (by.counts()) count(o);
      if (o.failed) failed(by, o, "exhaustive");
    }
    return !more;
  }

  void exhaust(std::uint64_t most, double seconds) {
    const std::uint64_t from = out_.schedules;
    const double began = spent();
    const std::uint32_t troubles = draws_ ? how_.troubles : 0;
    // First every few draws of the schedule in which nobody is preempted: these are few.
    for (std::uint32_t d = 1; d <= troubles; ++d)
      if (!exhaust_level({0, d, true}, from + most / 2, began + seconds / 2)) break;
    bool all = true;
    for (std::uint32_t p = 0; all && p <= how_.preemptions; ++p)
      for (std::uint32_t d = 0; all && d <= troubles; ++d)
        all = exhaust_level({p, d, false}, from + most, began + seconds);
    out_.complete = all && !out_.failed;
  }

  void hunt(std::uint64_t most) {
    const bool one = how_.replay != ~std::uint64_t{0};
    const std::uint64_t first = one ? how_.replay / 2 : slice_;
    const std::uint64_t stride = one ? 1 : how_.jobs;
    random_walk a(how_.seed, first, stride, ~std::uint64_t{0});
    pct b(how_.seed, first, stride, ~std::uint64_t{0}, length_);
    alternate by(a, b);
    if (one && how_.replay % 2 != 0) static_cast<void>(by.advance());
    drive(by, one ? 1 : most, "hunt");
  }

  void random(std::uint64_t most, double seconds) {
    if (how_.replay != ~std::uint64_t{0}) {
      random_walk by(how_.seed, how_.replay, 1, how_.replay + 1);
      drive(by, 1, "random");
      return;
    }
    random_walk by(how_.seed, slice_, how_.jobs, ~std::uint64_t{0});
    drive(by, most, seconds, "random");
  }

  void precise(std::uint64_t most, double seconds) {
    if (how_.replay != ~std::uint64_t{0}) {
      pct by(how_.seed, how_.replay, 1, how_.replay + 1, length_);
      drive(by, 1, "pct");
      return;
    }
    pct by(how_.seed, slice_, how_.jobs, ~std::uint64_t{0}, length_);
    drive(by, most, seconds, "pct");
  }

  void suspend(std::uint64_t most, double seconds) {
    if (how_.replay != ~std::uint64_t{0}) {
      freeze by(how_.seed, 1, how_.replay);
      drive(by, 1, "freeze");
      return;
    }
    out_.complete = true;
    if (slice_ != 0) return;
    freeze by(how_.seed, 4);
    const std::uint64_t all = most * how_.jobs;
    drive(by, all, seconds, "freeze");
    out_.complete = !out_.failed && out_.schedules < all && spent() < seconds;
  }

  void failed(strategy& by, const outcome& o, const char* name) {
    out_.failed = true;
    out_.failed_after = out_.schedules;
    put(out_.why, o.why);
    put(out_.again, again(entry_, how_, now_));
    if (std::strcmp(name, "freeze") == 0 || std::strcmp(name, "given") == 0) return;
    // What the tool reports once it does not report so well again.
    if (!how_.shrink || o.why == tool_reported) return;
    recorder log(by);
    static_cast<void>(once(log));
    std::vector<decision> list = log.list();
    // Fewer decisions that fail too. One that is left out moves the steps of those behind it, so
    // this finds a short one, not the shortest.
    bool shorter = true;
    while (shorter) {
      shorter = false;
      for (std::size_t i = list.size(); i-- > 0;) {
        std::vector<decision> fewer = list;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        given by_fewer(fewer);
        if (!once(by_fewer).failed) continue;
        list = std::move(fewer);
        shorter = true;
      }
    }
    put(out_.shortest, "--scene " + entry_.name + " --decisions '" + to_text(list) + "'");
  }

  const scene_entry& entry_;
  const plan& how_;
  std::uint32_t slice_;
  under_way& now_;
  tally& out_;
  double began_;
  std::unique_ptr<scene> scene_;
  limits limits_;
  std::uint64_t length_ = 0;
  bool draws_ = false;  ///< the scene leaves something to the strategy
};

bool read_all(int from, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = read(from, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void write_all(int to, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = write(to, at, bytes);
    if (n <= 0) std::_Exit(3);
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void merge(tally& into, const tally& one) {
  into.schedules += one.schedules;
  into.steps += one.steps;
  into.steps_max = std::max(into.steps_max, one.steps_max);
  into.traces += one.traces;
  into.chain += one.chain;
  into.fault_hits += one.fault_hits;
  into.seconds = std::max(into.seconds, one.seconds);
  into.complete = into.complete && one.complete;
  into.orders.merge(one.orders);
  into.states.merge(one.states);
  if (!one.failed || into.failed) return;
  into.failed = true;
  into.failed_after = one.failed_after;
  std::memcpy(into.why, one.why, sizeof into.why);
  std::memcpy(into.again, one.again, sizeof into.again);
  std::memcpy(into.shortest, one.shortest, sizeof into.shortest);
}

}  // namespace

void explore_here(const scene_entry& which, const plan& how, std::uint32_t slice, tally& out) {
  under_way now;
  explorer(which, how, slice, now, out).go();
}

tally explore_apart(const scene_entry& which, const plan& how, const fault* with) {
  struct child {
    pid_t pid;
    int pipe;
    under_way* now;
  };
  std::vector<child> children;
  std::fflush(nullptr);
  const std::uint32_t jobs =
      how.replay != ~std::uint64_t{0} || !how.decisions.empty() ? 1 : how.jobs;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    int ends[2];
    void* const shared =
        mmap(nullptr, sizeof(under_way), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(ends) != 0) std::abort();
    auto* const now = new (shared) under_way;
    const pid_t pid = fork();
    if (pid < 0) std::abort();
    if (pid == 0) {
      close(ends[0]);
      if (with != nullptr) {
        // A fault is looked for, so what the tools say of it is no news.
        const int quiet = open("/dev/null", O_WRONLY);
        if (quiet >= 0) dup2(quiet, 2);
        if (const std::string trouble = arm(*with); !trouble.empty()) std::_Exit(4);
      }
      auto* mine = new tally;
      explorer(which, how, i, *now, *mine).go();
      std::fflush(nullptr);
      write_all(ends[1], mine, sizeof *mine);
      std::_Exit(0);
    }
    close(ends[1]);
    children.push_back({pid, ends[0], now});
  }
  tally sum;
  sum.complete = true;
  for (const child& c : children) {
    auto one = std::make_unique<tally>();
    const bool whole = read_all(c.pipe, one.get(), sizeof *one);
    close(c.pipe);
    int state = 0;
    waitpid(c.pid, &state, 0);
    if (!whole) {
      *one = tally{};
      one->failed = true;
      one->fault_hits = 1;
      put(one->why, WIFSIGNALED(state)
                        ? "a process died of signal " + std::to_string(WTERMSIG(state)) +
                              " (run with --jobs 1 --here to see where)"
                        : "a process ended with " + std::to_string(WEXITSTATUS(state)));
      if (c.now->strategy[0] != '\0') put(one->again, again(which, how, *c.now));
    }
    munmap(c.now, sizeof(under_way));
    merge(sum, *one);
  }
  return sum;
}

}  // namespace cairn::explore
