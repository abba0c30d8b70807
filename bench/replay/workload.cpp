// The generator: conversations begin at random, each turn repeats everything said so far and adds
// to it, and the pauses between turns are what makes a cache forget.
#include "bench/replay/workload.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "bench/replay/keys.hpp"

namespace cairn::replay {
namespace {

/// Random numbers that do not depend on the standard library's distributions.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(mixed(seed + 0x9e3779b97f4a7c15)) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(uniform() * static_cast<double>(bound));
  }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  /// A number of tokens, at least 1: most are small, some are very large.
  std::uint32_t tokens(double mean, std::uint32_t most) {
    const double spread = exponential(1.0);
    return static_cast<std::uint32_t>(std::min<double>(most, 1.0 + mean * 0.5 * spread * spread));
  }

 private:
  std::uint64_t state_;
};

struct conversation {
  std::vector<std::uint64_t> blocks;  // ids of the whole blocks said so far
  std::uint32_t tokens = 0;           // said so far, outputs included
  std::uint32_t turns_left = 0;
};

struct turn {
  std::int64_t at_us = 0;
  std::uint64_t order = 0;
  std::size_t of = 0;
  friend bool operator>(const turn& a, const turn& b) {
    return a.at_us != b.at_us ? a.at_us > b.at_us : a.order > b.order;
  }
};

constexpr std::uint32_t context_most = 120'000;
constexpr std::uint32_t system_prompts = 3;
constexpr double turns_mean = 4.0;
constexpr double pause_mean_s = 90.0;

class generator {
 public:
  explicit generator(const workload_options& opts) : opts_(opts), random_(opts.seed) {
    for (std::uint32_t i = 0; i < system_prompts; ++i) {
      prompts_.emplace_back();
      for (std::uint32_t blocks = 0; blocks <= 2 * i; ++blocks) prompts_.back().push_back(ids_++);
    }
  }

  trace run() {
    trace_builder builder;
    begin_conversation(0);
    for (std::uint32_t made = 0; made < opts_.requests; ++made) {
      const turn now = waiting_.top();
      waiting_.pop();
      add(now, builder);
    }
    return builder.finish();
  }

 private:
  void begin_conversation(std::int64_t at_us) {
    conversation fresh;
    fresh.blocks = prompts_[random_.below(system_prompts)];
    fresh.tokens = static_cast<std::uint32_t>(fresh.blocks.size()) * block_tokens;
    fresh.turns_left = 1 + static_cast<std::uint32_t>(random_.exponential(turns_mean));
    conversations_.push_back(std::move(fresh));
    newest_ = conversations_.size() - 1;
    schedule(newest_, at_us);
  }

  void schedule(std::size_t of, std::int64_t at_us) { waiting_.push({at_us, order_++, of}); }

  void add(const turn& now, trace_builder& builder) {
    const bool first = now.of == newest_;
    conversation& talk = conversations_[now.of];
    const std::uint32_t asked = random_.tokens(first ? 6000.0 : 1500.0, 40'000);
    talk.tokens = std::min(talk.tokens + asked, context_most);
    while (talk.blocks.size() < talk.tokens / block_tokens) talk.blocks.push_back(ids_++);
    const std::uint32_t answered = random_.tokens(340.0, 4000);
    builder.add(now.at_us, talk.tokens, answered, talk.blocks);
    talk.tokens += answered;
    if (--talk.turns_left > 0 && talk.tokens < context_most)
      schedule(now.of, now.at_us + microseconds(5.0 + random_.exponential(pause_mean_s)));
    // The next conversation begins after this one has, whatever becomes of it.
    if (first)
      begin_conversation(now.at_us + microseconds(random_.exponential((1.0 + turns_mean) /
                                                                      opts_.requests_per_second)));
  }

  static std::int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

  workload_options opts_;
  random_source random_;
  std::vector<std::vector<std::uint64_t>> prompts_;
  std::vector<conversation> conversations_;
  std::priority_queue<turn, std::vector<turn>, std::greater<>> waiting_;
  std::size_t newest_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t ids_ = 0;
};

}  // namespace

trace make_workload(const workload_options& opts) {
  return generator(opts).run();
}

}  // namespace cairn::replay
