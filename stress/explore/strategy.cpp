// The strategies. See strategy.hpp.
#include "stress/explore/strategy.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace cairn::explore {

// ---- choices --------------------------------------------------------------------------------

void dice::reseed(std::uint64_t seed) noexcept {
  // The finaliser of SplitMix64, so that neighbouring seeds have nothing in common.
  seed += 0x9e3779b97f4a7c15ULL;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebULL;
  state_ = (seed ^ (seed >> 31)) | 1;
}

std::uint64_t dice::draw() noexcept {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return state_ * 0x2545f4914f6cdd1dULL;
}

std::uint32_t dice::below(std::uint32_t n) noexcept {
  return static_cast<std::uint32_t>((draw() >> 32) * n >> 32);
}

std::uint32_t pick(std::uint32_t mask, std::uint32_t nth) noexcept {
  while (nth-- > 0) mask &= mask - 1;
  return static_cast<std::uint32_t>(std::countr_zero(mask));
}

namespace {

using kind = decision::kind;

std::uint32_t count(std::uint32_t mask) noexcept {
  return static_cast<std::uint32_t>(std::popcount(mask));
}
std::uint32_t lowest(std::uint32_t mask) noexcept {
  return static_cast<std::uint32_t>(std::countr_zero(mask));
}
bool has(std::uint32_t mask, std::uint32_t thread) noexcept {
  return thread < 32 && (mask >> thread & 1) != 0;
}

}  // namespace

std::string to_text(const std::vector<decision>& list) {
  std::string text;
  for (const decision& d : list) {
    if (!text.empty()) text += ',';
    if (d.is != kind::step) text += d.is == kind::forced ? 'f' : 'd';
    text.append(std::to_string(d.at)).append(1, '>').append(std::to_string(d.thread));
  }
  return text.empty() ? "-" : text;
}

bool from_text(const std::string& text, std::vector<decision>& list) {
  list.clear();
  const char* at = text.c_str();
  if (text == "-") return true;
  for (;;) {
    decision d;
    if (*at == 'f' || *at == 'd') d.is = *at++ == 'f' ? kind::forced : kind::drawn;
    char* end = nullptr;
    d.at = std::strtoull(at, &end, 10);
    if (end == at || *end != '>') return false;
    at = end + 1;
    d.thread = static_cast<std::uint32_t>(std::strtoul(at, &end, 10));
    if (end == at || d.thread >= (d.is == kind::drawn ? ways_max : threads_max)) return false;
    list.push_back(d);
    if (*end == '\0') return true;
    if (*end != ',') return false;
    at = end + 1;
  }
}

// ---- a given schedule, and one that is written down -----------------------------------------

std::uint64_t given::begin(std::uint32_t) {
  forced_ = 0;
  step_ = 0;
  return next();
}

std::uint64_t given::next() const {
  std::uint64_t at = never;
  for (const decision& d : list_)
    if (d.is == kind::step && d.at > step_) at = std::min(at, d.at);
  return at;
}

std::uint32_t given::choose(const situation& at) {
  const bool forced = at.current == nobody;
  const std::uint64_t now = forced ? forced_++ : at.step;
  if (!forced) step_ = at.step;
  const kind is = forced ? kind::forced : kind::step;
  for (const decision& d : list_)
    if (d.is == is && d.at == now && has(at.ready, d.thread)) return d.thread;
  return forced ? lowest(at.ready) : at.current;
}

std::uint32_t given::draw(const situation&, std::uint64_t nth, std::uint32_t ways) {
  for (const decision& d : list_)
    if (d.is == kind::drawn && d.at == nth && d.thread < ways) return d.thread;
  return 0;
}

// Strategies are asked on the threads' stacks. What they keep there is reserved before, since to
// ThreadSanitizer an allocator's memory that goes from one thread to another is a race.
namespace {
constexpr std::size_t log_most = 16384;

template <class T>
void keep(std::vector<T>& list, const T& one) {
  if (list.size() < list.capacity()) list.push_back(one);
}
}  // namespace

std::uint64_t recorder::begin(std::uint32_t threads) {
  list_.clear();
  list_.reserve(log_most);
  forced_ = 0;
  return of_.begin(threads);
}

std::uint32_t recorder::choose(const situation& at) {
  const std::uint32_t who = of_.choose(at);
  if (at.current == nobody) {
    if (who != lowest(at.ready)) keep(list_, {forced_, who, kind::forced});
    ++forced_;
  } else if (who != at.current) {
    keep(list_, {at.step, who, kind::step});
  }
  return who;
}

std::uint32_t recorder::draw(const situation& at, std::uint64_t nth, std::uint32_t ways) {
  const std::uint32_t way = of_.draw(at, nth, ways);
  if (way != 0) keep(list_, {nth, way, kind::drawn});
  return way;
}

// ---- exhaustive -----------------------------------------------------------------------------

bool exhaustive::advance() {
  if (!started_) {
    started_ = true;
    return true;
  }
  // The schedule that just ran becomes a parent.
  if (frames_.size() <= depth_) frames_.emplace_back();
  frame& made = frames_[depth_++];
  made.log.swap(log_);
  made.steps = steps_;
  made.used = used_;
  made.unusual = unusual_;
  made.at = list_.empty() ? 0 : last_;
  made.step = made.at < made.log.size() ? made.log[made.at].from : 0;
  made.thread = 0;
  made.children = 0;
  // The stretch that the last decision began has had its own beginning decided.
  if (!list_.empty()) ++made.step;
  while (depth_ > 0) {
    frame& top = frames_[depth_ - 1];
    list_.resize(depth_ - 1);
    decision next;
    bool found = child(top, next);
    // Whole subtrees are dealt out.
    while (found && depth_ == 1 && top.children++ % slices_ != slice_) found = child(top, next);
    if (found) {
      list_.push_back(next);
      used_ = top.used + (next.is == kind::step ? 1 : 0);
      unusual_ = top.unusual + (next.is == kind::drawn ? 1 : 0);
      ++number_;
      return true;
    }
    --depth_;
  }
  return false;
}

// Another way for the choice or the draw that began a stretch.
bool exhaustive::beginning_child(frame& of, const stretch& in, decision& made) {
  if (in.drawn != never) {
    if (of.unusual >= bound_.draws) return false;
    for (; of.thread < in.ways; ++of.thread) {
      if (of.thread == in.way) continue;
      made = decision{in.drawn, of.thread++, kind::drawn};
      return true;
    }
    return false;
  }
  if (in.forced == never || bound_.calm) return false;
  for (; of.thread < threads_max; ++of.thread) {
    if (of.thread == in.thread || !has(in.ready, of.thread)) continue;
    made = decision{in.forced, of.thread++, kind::forced};
    return true;
  }
  return false;
}

// The next way to deviate, later than what was decided. The cursor (stretch, step, thread): a step
// that equals the stretch's first is its beginning, where a forced choice or a draw may go
// otherwise.
bool exhaustive::child(frame& of, decision& made) {
  for (; of.at < of.log.size();
       ++of.at, of.thread = 0, of.step = of.at < of.log.size() ? of.log[of.at].from : 0) {
    const stretch& in = of.log[of.at];
    const std::uint64_t last = of.at + 1 < of.log.size() ? of.log[of.at + 1].from : of.steps;
    for (; of.step <= last; ++of.step, of.thread = 0) {
      if (of.step == in.from) {
        if (beginning_child(of, in, made)) return true;
        continue;
      }
      if (of.used >= bound_.preemptions) break;
      for (; of.thread < threads_max; ++of.thread) {
        if (of.thread == in.thread || !has(in.ready, of.thread)) continue;
        made = decision{of.step, of.thread++, kind::step};
        return true;
      }
    }
  }
  return false;
}

std::uint64_t exhaustive::begin(std::uint32_t) {
  log_.clear();
  log_.reserve(log_most);
  turn_ = 0;
  forced_ = 0;
  last_ = 0;
  return next();
}

std::uint64_t exhaustive::next() const {
  for (std::size_t i = turn_; i < list_.size(); ++i)
    if (list_[i].is == kind::step) return list_[i].at;
  return never;
}

// Whether the schedule decides this; then it is what it decides next.
bool exhaustive::decided(std::uint64_t at, decision::kind is, std::uint32_t& who) {
  if (turn_ == list_.size()) return false;
  const decision& its = list_[turn_];
  if (its.is != is || its.at != at) return false;
  who = its.thread;
  if (++turn_ == list_.size()) last_ = log_.size();
  return true;
}

std::uint32_t exhaustive::choose(const situation& at) {
  const bool forced = at.current == nobody;
  const std::uint64_t now = forced ? forced_++ : at.step;
  std::uint32_t who = forced ? lowest(at.ready) : at.current;
  static_cast<void>(decided(now, forced ? kind::forced : kind::step, who));
  if (forced || who != at.current)
    keep(log_, {at.step, who, at.ready, forced ? now : never, never, 0, 0});
  return who;
}

std::uint32_t exhaustive::draw(const situation& at, std::uint64_t nth, std::uint32_t ways) {
  std::uint32_t way = 0;
  static_cast<void>(decided(nth, kind::drawn, way));
  keep(log_, {at.step, at.current, at.ready, never, nth, way, ways});
  return way;
}

void exhaustive::changed(const situation& at) {
  if (!log_.empty()) keep(log_, {at.step, at.current, at.ready, never, never, 0, 0});
}

void exhaustive::ended(std::uint64_t steps) {
  steps_ = steps;
}

// ---- draws of random schedules ----------------------------------------------------------------

void draws::begin(std::uint64_t seed, std::uint64_t number) noexcept {
  dice_.reseed(~seed * 0x100000001b3ULL + number);
  const std::uint32_t rate = dice_.below(8);
  one_in_ = rate == 0 ? 0 : 1U << (rate < 7 ? rate : 2);
}

std::uint32_t draws::next(std::uint32_t ways) noexcept {
  if (one_in_ == 0 || dice_.below(one_in_) != 0) return 0;
  return 1 + dice_.below(ways - 1);
}

// ---- random ---------------------------------------------------------------------------------

std::uint64_t random_walk::begin(std::uint32_t) {
  dice_.reseed(seed_ * 0x100000001b3ULL + number_);
  draws_.begin(seed_, number_);
  mean_ = 1U << (1 + dice_.below(6));
  return next_ = 1 + dice_.below(2 * mean_);
}

std::uint32_t random_walk::choose(const situation& at) {
  if (at.current == nobody) return pick(at.ready, dice_.below(count(at.ready)));
  next_ = at.step + 1 + dice_.below(2 * mean_);
  const std::uint32_t others = at.ready & ~(1U << at.current);
  return others == 0 ? at.current : pick(others, dice_.below(count(others)));
}

// ---- PCT ------------------------------------------------------------------------------------

std::uint64_t pct::begin(std::uint32_t threads) {
  dice_.reseed(seed_ * 0x100000001b3ULL + number_);
  draws_.begin(seed_, number_);
  const std::uint32_t depth = 2 + dice_.below(depth_max - 1);
  for (std::uint32_t t = 0; t < threads; ++t) priority_[t] = depth_max + t;
  for (std::uint32_t t = threads; t > 1; --t)
    std::swap(priority_[t - 1], priority_[dice_.below(t)]);
  points_left_ = depth - 1;
  for (std::uint32_t i = 0; i < points_left_; ++i)
    points_[i] = 1 + dice_.draw() % std::max<std::uint64_t>(1, length_);
  std::sort(points_, points_ + points_left_, std::greater<>());
  return next_ = points_[points_left_ - 1];
}

std::uint32_t pct::choose(const situation& at) {
  if (at.current != nobody) {
    if (points_left_ > 0) priority_[at.current] = --points_left_;
    // Points that have passed meanwhile (a step between two questions) fall together.
    while (points_left_ > 0 && points_[points_left_ - 1] <= at.step) --points_left_;
    next_ = points_left_ > 0 ? points_[points_left_ - 1] : never;
  }
  std::uint32_t best = nobody;
  for (std::uint32_t t = 0; t < threads_max; ++t)
    if (has(at.ready, t) && (best == nobody || priority_[t] > priority_[best])) best = t;
  return best;
}

// ---- freeze ---------------------------------------------------------------------------------

freeze::freeze(std::uint64_t seed, std::uint64_t rounds, std::uint64_t number)
    : seed_(seed),
      rounds_(rounds),
      victim_(static_cast<std::uint32_t>(number >> 48)),
      moment_(number >> 16 & 0xffffffff),
      round_(number & 0xffff),
      single_(true) {}

bool freeze::advance() {
  if (!started_) {
    started_ = true;
    return true;
  }
  if (single_) return false;
  met_ = met_ || happened();
  if (++round_ < rounds_) return true;
  round_ = 0;
  if (met_) {
    ++moment_;
  } else {
    // It has ended by then: the next thread.
    ++victim_;
    moment_ = 1;
  }
  met_ = false;
  return victim_ < threads_;
}

std::uint64_t freeze::begin(std::uint32_t threads) {
  threads_ = threads;
  frozen_ = nobody;
  made_ = 0;
  dice_.reseed(seed_ * 0x100000001b3ULL + number());
  return next_ = 1;
}

std::uint32_t freeze::choose(const situation& at) {
  next_ = at.step + 1;
  if (at.current == victim_ && frozen_ == nobody && ++made_ == moment_) frozen_ = victim_;
  const std::uint32_t ready = frozen_ == nobody ? at.ready : at.ready & ~(1U << victim_);
  if (frozen_ == nobody && round_ == 0 && has(ready, victim_)) return victim_;
  if (has(ready, at.current) && dice_.below(8) != 0) return at.current;
  return ready == 0 ? at.current : pick(ready, dice_.below(count(ready)));
}

void freeze::ended(std::uint64_t) {}

}  // namespace cairn::explore
