// Who goes on at which step: all schedules up to a number of preemptions, random ones, PCT, those
// that suspend a thread for ever, or a given one; and what comes of each draw that a scene asks for
// (0: the usual; a device draws its faults so). A strategy knows step numbers and threads, nothing
// of what they do or what a draw decides; the same seed makes the same choices.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cairn::explore {

inline constexpr std::uint32_t threads_max = 12;
/// Most ways in which one draw may come out.
inline constexpr std::uint32_t ways_max = 32;

/// A thread is named, or nobody.
inline constexpr std::uint32_t nobody = ~std::uint32_t{0};

struct situation {
  std::uint64_t step = 0;
  std::uint32_t current = nobody;  ///< nobody: it has ended or waits, so the choice is forced
  std::uint32_t ready = 0;         ///< bit per thread
};

/// Choices other than to go on (or, when forced, than the lowest thread; drawn: than the usual).
struct decision {
  enum class kind : std::uint8_t { step, forced, drawn };
  std::uint64_t at = 0;      ///< a step; or the how many-th forced choice, or draw
  std::uint32_t thread = 0;  ///< drawn: the way
  kind is = kind::step;
};

std::string to_text(const std::vector<decision>& list);
bool from_text(const std::string& text, std::vector<decision>& list);

class strategy {
 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  virtual ~strategy() = default;
  /// Goes on to the next schedule; false when there is none.
  virtual bool advance() = 0;
  /// The current schedule begins; returns the step of the first question.
  virtual std::uint64_t begin(std::uint32_t threads) = 0;
  /// Who goes on? One of the ready ones.
  virtual std::uint32_t choose(const situation& at) = 0;
  /// The step of the next question, after `choose`.
  [[nodiscard]] virtual std::uint64_t next() const = 0;
  /// How the schedule's nth draw comes out, of so many ways; 0 is the usual. Nobody is switched.
  virtual std::uint32_t draw(const situation&, std::uint64_t nth, std::uint32_t ways) {
    static_cast<void>(nth);
    static_cast<void>(ways);
    return 0;
  }
  /// Who is suspended for ever from now on, after `choose`; nobody.
  [[nodiscard]] virtual std::uint32_t frozen() const { return nobody; }
  /// For a strategy that keeps a log: who runs and who could.
  virtual void changed(const situation&) {}
  virtual void ended(std::uint64_t steps) { static_cast<void>(steps); }
  /// Of the current schedule, to be printed; enough to find it again with the same seed.
  [[nodiscard]] virtual std::uint64_t number() const = 0;
};

/// xorshift64*: choices that repeat from a seed on every machine.
class dice {
 public:
  explicit dice(std::uint64_t seed = 1) noexcept { reseed(seed); }
  void reseed(std::uint64_t seed) noexcept;
  std::uint64_t draw() noexcept;
  std::uint32_t below(std::uint32_t n) noexcept;

 private:
  std::uint64_t state_ = 1;
};

/// How the draws of one random schedule come out: mostly as usual, as rarely as it drew for itself.
/// Dice of their own, so that a scene without draws has the schedules that it had.
class draws {
 public:
  void begin(std::uint64_t seed, std::uint64_t number) noexcept;
  std::uint32_t next(std::uint32_t ways) noexcept;

 private:
  dice dice_;
  std::uint32_t one_in_ = 0;  ///< 0: all as usual
};

/// One of the set bits.
std::uint32_t pick(std::uint32_t mask, std::uint32_t nth) noexcept;

class given final : public strategy {
 public:
  explicit given(std::vector<decision> list) : list_(std::move(list)) {}
  bool advance() override { return !std::exchange(done_, true); }
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  std::uint32_t draw(const situation& at, std::uint64_t nth, std::uint32_t ways) override;
  [[nodiscard]] std::uint64_t next() const override;
  [[nodiscard]] std::uint64_t number() const override { return 0; }

 private:
  std::vector<decision> list_;
  std::uint64_t forced_ = 0;
  std::uint64_t step_ = 0;
  bool done_ = false;
};

/// Writes down the decisions of another strategy's current schedule.
class recorder final : public strategy {
 public:
  explicit recorder(strategy& of) : of_(of) {}
  bool advance() override { return true; }
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  std::uint32_t draw(const situation& at, std::uint64_t nth, std::uint32_t ways) override;
  [[nodiscard]] std::uint64_t next() const override { return of_.next(); }
  [[nodiscard]] std::uint32_t frozen() const override { return of_.frozen(); }
  [[nodiscard]] std::uint64_t number() const override { return of_.number(); }
  [[nodiscard]] const std::vector<decision>& list() const noexcept { return list_; }

 private:
  strategy& of_;
  std::vector<decision> list_;
  std::uint64_t forced_ = 0;
};

/// Every schedule with exactly so many preemptions and so many draws that come out unusual. Forced
/// choices are tried in all ways and cost nothing; or, on `calm` schedules, are not tried at all.
/// Depth first; `slice` of `slices` takes its share of the first level's children.
class exhaustive final : public strategy {
 public:
  struct bounds {
    std::uint32_t preemptions = 0;
    std::uint32_t draws = 0;
    bool calm = false;
  };
  exhaustive(const bounds& within, std::uint32_t slice, std::uint32_t slices)
      : bound_(within), slice_(slice), slices_(slices) {}
  bool advance() override;
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  std::uint32_t draw(const situation& at, std::uint64_t nth, std::uint32_t ways) override;
  [[nodiscard]] std::uint64_t next() const override;
  void changed(const situation& at) override;
  void ended(std::uint64_t steps) override;
  [[nodiscard]] std::uint64_t number() const override { return number_; }
  /// Whether the current schedule uses up the bounds: others are only passed through.
  [[nodiscard]] bool counts() const noexcept {
    return used_ == bound_.preemptions && unusual_ == bound_.draws;
  }
  /// All that the current schedule decides.
  [[nodiscard]] const std::vector<decision>& decisions() const noexcept { return list_; }

 private:
  struct stretch {
    std::uint64_t from = 0;  ///< steps before it
    std::uint32_t thread = 0;
    std::uint32_t ready = 0;
    std::uint64_t forced = strategy::never;  ///< which forced choice began it
    std::uint64_t drawn = strategy::never;   ///< which draw did
    std::uint32_t way = 0;                   ///< that it took
    std::uint32_t ways = 0;                  ///< of these
  };
  struct frame {
    std::vector<stretch> log;
    std::uint64_t steps = 0;
    std::uint32_t used = 0;     ///< preemptions
    std::uint32_t unusual = 0;  ///< draws
    std::size_t at = 0;         ///< cursor: stretch, step, thread or way
    std::uint64_t step = 0;
    std::uint32_t thread = 0;
    std::uint64_t children = 0;
  };
  bool child(frame& of, decision& made);
  bool beginning_child(frame& of, const stretch& in, decision& made);
  [[nodiscard]] bool decided(std::uint64_t at, decision::kind is, std::uint32_t& who);

  bounds bound_;
  std::uint32_t slice_;
  std::uint32_t slices_;
  std::uint64_t number_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t unusual_ = 0;
  std::vector<decision> list_;
  std::vector<frame> frames_;
  std::size_t depth_ = 0;
  std::vector<stretch> log_;
  std::uint64_t steps_ = 0;
  std::size_t turn_ = 0;  ///< the next entry of list_
  std::uint64_t forced_ = 0;
  std::size_t last_ = 0;  ///< index in log_ of the stretch that the last decision began
  bool started_ = false;
};

/// Random: each schedule draws a mean distance between switches, then switches at random.
class random_walk final : public strategy {
 public:
  random_walk(std::uint64_t seed, std::uint64_t first, std::uint64_t stride, std::uint64_t count)
      : seed_(seed), number_(first - stride), stride_(stride), end_(count) {}
  bool advance() override { return (number_ += stride_) < end_; }
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  std::uint32_t draw(const situation&, std::uint64_t, std::uint32_t ways) override {
    return draws_.next(ways);
  }
  [[nodiscard]] std::uint64_t next() const override { return next_; }
  [[nodiscard]] std::uint64_t number() const override { return number_; }

 private:
  std::uint64_t seed_;
  std::uint64_t number_;
  std::uint64_t stride_;
  std::uint64_t end_;
  dice dice_;
  draws draws_;
  std::uint64_t next_ = 0;
  std::uint32_t mean_ = 1;
};

/// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010):
/// random priorities, lowered at depth - 1 random steps. A bug that needs `depth` orderings is hit
/// with a probability of at least 1 / (threads * length^(depth - 1)). Each schedule draws depth 2,
/// 3 or 4.
class pct final : public strategy {
 public:
  /// `length`: steps of a schedule, about.
  pct(std::uint64_t seed, std::uint64_t first, std::uint64_t stride, std::uint64_t count,
      std::uint64_t length)
      : seed_(seed), number_(first - stride), stride_(stride), end_(count), length_(length) {}
  bool advance() override { return (number_ += stride_) < end_; }
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  std::uint32_t draw(const situation&, std::uint64_t, std::uint32_t ways) override {
    return draws_.next(ways);
  }
  [[nodiscard]] std::uint64_t next() const override { return next_; }
  [[nodiscard]] std::uint64_t number() const override { return number_; }

 private:
  static constexpr std::uint32_t depth_max = 4;
  std::uint64_t seed_;
  std::uint64_t number_;
  std::uint64_t stride_;
  std::uint64_t end_;
  std::uint64_t length_;
  dice dice_;
  draws draws_;
  std::uint32_t priority_[threads_max] = {};
  std::uint64_t points_[depth_max] = {};
  std::uint32_t points_left_ = 0;
  std::uint64_t next_ = 0;
};

/// Two strategies in turn.
class alternate final : public strategy {
 public:
  alternate(strategy& a, strategy& b) : turns_{&a, &b} {}
  bool advance() override {
    at_ = 1 - at_;
    return turns_[at_]->advance();
  }
  std::uint64_t begin(std::uint32_t threads) override { return turns_[at_]->begin(threads); }
  std::uint32_t choose(const situation& at) override { return turns_[at_]->choose(at); }
  std::uint32_t draw(const situation& at, std::uint64_t nth, std::uint32_t ways) override {
    return turns_[at_]->draw(at, nth, ways);
  }
  [[nodiscard]] std::uint64_t next() const override { return turns_[at_]->next(); }
  /// Even: the first one's.
  [[nodiscard]] std::uint64_t number() const override { return 2 * turns_[at_]->number() + at_; }

 private:
  strategy* turns_[2];
  std::uint32_t at_ = 1;
};

/// Suspends one thread for ever before its n-th step, for each thread and each n, `rounds` times.
/// In the first round the doomed thread runs alone until then, in the others all are switched at
/// random from the beginning; the others go on in turn, switched at random.
class freeze final : public strategy {
 public:
  freeze(std::uint64_t seed, std::uint64_t rounds) : seed_(seed), rounds_(rounds) {}
  /// Only the schedule of this number.
  freeze(std::uint64_t seed, std::uint64_t rounds, std::uint64_t number);
  bool advance() override;
  std::uint64_t begin(std::uint32_t threads) override;
  std::uint32_t choose(const situation& at) override;
  [[nodiscard]] std::uint64_t next() const override { return next_; }
  [[nodiscard]] std::uint32_t frozen() const override { return frozen_; }
  [[nodiscard]] std::uint64_t number() const override {
    return std::uint64_t{victim_} << 48 | moment_ << 16 | round_;
  }
  void ended(std::uint64_t steps) override;
  /// Which thread was suspended, and before which of its steps.
  [[nodiscard]] std::uint32_t victim() const noexcept { return victim_; }
  [[nodiscard]] std::uint64_t moment() const noexcept { return moment_; }
  [[nodiscard]] bool happened() const noexcept { return frozen_ != nobody; }

 private:
  std::uint64_t seed_;
  std::uint64_t rounds_;  ///< schedules for each thread and step
  std::uint32_t threads_ = 0;
  std::uint32_t victim_ = 0;
  std::uint64_t moment_ = 1;
  std::uint64_t round_ = 0;
  std::uint64_t made_ = 0;  ///< steps of the victim
  bool started_ = false;
  bool met_ = false;  ///< in some round of this moment the victim got so far
  bool single_ = false;
  dice dice_;
  std::uint64_t next_ = 0;
  std::uint32_t frozen_ = nobody;
};

}  // namespace cairn::explore
