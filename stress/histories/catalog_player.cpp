// Histories of the catalog: threads that begin and end stores and restores, look up, pin and
// forget, with the device played by themselves. An image is one word in each of its units.
#include <array>
#include <atomic>
#include <cairn/catalog.hpp>
#include <chrono>

#include "stress/histories/hand.hpp"

namespace cairn::histories {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t per_image = 2;

class catalog_player final : public player {
 public:
  catalog_player(const scene& in, stamps& time, liar& lies)
      : scene_(in), time_(time), lies_(lies), content_(in.images * per_image + spare_units(in)) {
    const auto units = static_cast<std::uint32_t>(content_.size());
    pool_ = std::move(unit_pool::open({units, units, 1})).value();
    catalog_options opts;
    opts.shape = {8, 16, 16, "history"};
    opts.slots = 4;
    opts.max_ops = 4096;
    opts.max_pins = 1024;
    opts.max_threads = 64;
    records_ = std::move(catalog::open(std::move(opts), *pool_)).value();
    last_ = std::vector<remembered>(in.keys);
  }

  bool play(std::uint64_t seed, std::uint32_t threads, std::uint64_t calls,
            std::vector<journal>& logs, std::string& why) override {
    return play_hands<catalog_hand>(*this, seed, threads, calls, logs, why,
                                    [this](std::atomic<const char*>& wrong) {
                                      if (!lies_.lies()) audit(wrong);
                                    });
  }

  void clear() override { records_->clear(); }

 private:
  /// What `allocate` takes, and what stores that are refused may hold for a moment.
  static std::uint32_t spare_units(const scene& in) { return in.with.ample ? 64 * per_image : 1; }

  /// For lies: what the key brought last, and before that.
  struct remembered {
    std::atomic<std::uint64_t> image{0}, image_before{0}, handle{0}, handle_before{0};
    static void note(std::atomic<std::uint64_t>& now, std::atomic<std::uint64_t>& before,
                     std::uint64_t value) {
      const std::uint64_t old = now.load(std::memory_order_relaxed);
      if (old == value) return;
      before.store(old, std::memory_order_relaxed);
      now.store(value, std::memory_order_relaxed);
    }
  };

  /// No call is under way.
  void audit(std::atomic<const char*>& wrong) const {
    const catalog_counts c = records_->counts();
    const pool_counts p = pool_->counts();
    if (c.copying + c.evicting + c.ops + c.pins != 0) wrong = "something is left in flight";
    if (p.vacant + p.cached + p.live + p.reserved != p.total) wrong = "units are in no place";
    if (p.live != 0 || p.reserved != c.checkpoint_units) wrong = "units are lost";
    if (records_->evictable() != c.ready) wrong = "evictable is not what is READY";
  }

  /// One thread: what it holds, and its calls.
  class catalog_hand : public hand {
   public:
    catalog_hand(catalog_player& in, std::uint64_t seed, std::uint16_t thread, journal& to)
        : hand(in.time_, seed, thread, to), w_(in), catalog_(*in.records_) {}

    void play(std::uint64_t calls) {
      log_.reserve(calls + 64);
      while (log_.size() < calls && wrong_ == nullptr) step(calls);
      while (flights_ > 0) finish(0);
      while (pins_ > 0) unpin();
      while (live_ > 0) (void)w_.pool_->free(units_[--live_]);
    }

   private:
    struct flight {
      op_id op;
      std::uint32_t epoch = 0;
      std::uint32_t key = 0;
      std::uint64_t image = 0;
      std::array<unit_id, per_image> units{};
      copy_kind kind = copy_kind::store;
    };
    struct held {
      pin which;
      std::uint32_t key = 0;
      std::uint64_t handle = 0;
    };

    void step(std::uint64_t calls) {
      const scene& s = w_.scene_;
      const std::uint64_t at = log_.size() * (s.keys - s.window + 1) / calls;
      const auto key = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(at + dice_.below(s.window), s.keys - 1));
      if (dice_.below(1024) < s.forget) return forget(key);
      if (dice_.below(1024) < s.allocate) return allocate();
      if (s.clear != 0 && dice_.below(1024 * 64) < s.clear) return clear();
      switch (dice_.below(12)) {
        case 0:
        case 1:
        case 2:
          return store(key);
        case 3:
        case 4:
        case 5:
          return restore(key);
        case 6:
          return lookup(key);
        case 7:
          return ask(key, call::contains);
        case 8:
          return ask(key, call::occupied);
        case 9:
          if (pins_ > 0 && dice_.below(2) == 0) return unpin();
          return pin_key(key);
        default:
          if (flights_ > 0) return finish(dice_.below(flights_));
      }
    }

    // ---- calls ----
    void store(std::uint32_t key) {
      if (flights_ == most) return finish(dice_.below(flights_));
      entry e = began(key, call::store);
      e.image = std::uint64_t{thread_} << 48 | ++w_.next_image_[thread_].value;
      const auto op = catalog_.begin_store(key_of(key), 0);
      if (!op) {
        if (op.code() == status::duplicate && w_.lies_.now(lie::double_success)) {
          w_.lies_.told();
          return ended(e, answer::ok);
        }
        return ended(e, word_for(op.code()));
      }
      ended(e, answer::ok);
      flight f{op->header.op, op->header.epoch, key, e.image, {}, copy_kind::store};
      for (std::uint32_t i = 0; i < per_image; ++i) {
        f.units[i] = op->units[i];
        w_.content_[f.units[i]] = e.image;
      }
      flying_[flights_++] = f;
      if (w_.lies_.now(lie::early_publication)) {
        completion done;
        done.op = f.op;
        done.epoch = f.epoch;
        (void)catalog_.finish(done);
        w_.lies_.told();
      }
    }

    void restore(std::uint32_t key) {
      if (flights_ == most) return finish(dice_.below(flights_));
      const entry e = began(key, call::restore);
      const auto op = catalog_.begin_restore(key_of(key), 1);
      ended(e, op ? answer::ok : word_for(op.code()));
      if (!op) return;
      flight f{op->header.op, op->header.epoch, key, 0, {}, copy_kind::restore};
      std::copy(op->units.begin(), op->units.end(), f.units.begin());
      f.image = image_in(f);
      latest().image = f.image;
      flying_[flights_++] = f;
      remembered& r = w_.last_[key];
      if (w_.lies_.lies()) remembered::note(r.image, r.image_before, f.image);
      const std::uint64_t before = r.image_before.load(std::memory_order_relaxed);
      if (before != 0 && before != f.image && w_.lies_.now(lie::stale_image)) {
        latest().image = before;
        flying_[flights_ - 1].image = before;
        w_.lies_.told();
      }
      if (w_.lies_.now(lie::weak_pin)) {
        end_restore(flying_[flights_ - 1]);  // behind the driver's back
        w_.lies_.told();
      }
    }

    std::uint64_t image_in(const flight& f) {
      const std::uint64_t first = w_.content_[f.units[0]];
      for (const unit_id u : f.units)
        if (w_.content_[u] != first) wrong_ = "a restore saw parts of two images";
      return first;
    }

    void finish(std::uint32_t place) {
      const flight f = flying_[place];
      flying_[place] = flying_[--flights_];
      if (f.kind == copy_kind::restore) {
        // Still the same image: nobody else may have been given the units.
        if (!w_.lies_.lies() && image_in(f) != f.image)
          wrong_ = "the units of a pinned image were overwritten";
        entry e = began(f.key, call::unpin);
        e.image = f.image;
        const bool done = end_restore(f);
        ended(e, answer::ok);
        if (!done && !w_.lies_.lies()) wrong_ = "a restore's completion did not count";
        return;
      }
      const bool fails = dice_.below(1024) < w_.scene_.fail;
      entry e = began(f.key, call::publish);
      e.image = f.image;
      bool done = false;
      if (fails && dice_.below(2) == 0) {
        done = catalog_.cancel(f.op);
      } else {
        completion over;
        over.op = f.op;
        over.epoch = f.epoch;
        over.code = fails ? status::failed : status::ok;
        if (!fails && w_.lies_.now(lie::lost_publication)) {
          over.code = status::failed;
          w_.lies_.told();
        }
        catalog_.take(over.op);
        done = catalog_.finish(over).ended;
      }
      ended(e, fails ? answer::failed : answer::ok);
      if (!done && !w_.lies_.lies()) wrong_ = "a store's completion did not count";
    }

    bool end_restore(const flight& f) {
      completion over;
      over.op = f.op;
      over.epoch = f.epoch;
      catalog_.take(over.op);
      return catalog_.finish(over).ended;
    }

    void lookup(std::uint32_t key) {
      entry e = began(key, call::lookup);
      auto found = catalog_.lookup(key_of(key));
      if (found && w_.lies_.now(lie::false_miss)) {
        w_.lies_.told();
        found.reset();
      }
      if (found) e.handle = word_of(*found);
      if (found && w_.lies_.lies()) {
        remembered& r = w_.last_[key];
        remembered::note(r.handle, r.handle_before, e.handle);
        const std::uint64_t before = r.handle_before.load(std::memory_order_relaxed);
        if (before != 0 && before != e.handle && w_.lies_.now(lie::stale_handle)) {
          e.handle = before;
          w_.lies_.told();
        }
      }
      ended(e, found ? answer::ok : answer::no);
    }

    void ask(std::uint32_t key, call what) {
      const entry e = began(key, what);
      const bool there = what == call::contains ? catalog_.contains(key_of(key))
                                                : catalog_.contains_or_copying(key_of(key));
      ended(e, there ? answer::ok : answer::no);
    }

    void pin_key(std::uint32_t key) {
      if (pins_ == held_.size()) return unpin();
      const checkpoint_key keys[] = {key_of(key)};
      entry e = began(key, call::pin);
      const auto got = catalog_.pin_longest(keys, 1, clock::now() + 1h);
      if (got) e.handle = word_of(got->record);
      ended(e, got ? answer::ok : word_for(got.code()));
      if (got) held_[pins_++] = {*got, key, e.handle};
    }

    void unpin() {
      std::swap(held_[dice_.below(pins_)], held_[pins_ - 1]);
      const held h = held_[--pins_];
      entry e = began(h.key, call::unpin);
      e.handle = h.handle;
      const bool done = catalog_.release_pin(h.which);
      ended(e, answer::ok);
      if (!done) wrong_ = "a pin was gone before it was released";
    }

    void forget(std::uint32_t key) {
      const entry e = began(key, call::forget);
      if (w_.lies_.now(lie::undead) && catalog_.contains(key_of(key))) {
        w_.lies_.told();
        return ended(e, answer::ok);
      }
      const bool went = catalog_.forget(key_of(key));
      ended(e, went ? answer::ok : answer::no);
    }

    void clear() {
      entry e = began(0, call::clear);
      catalog_.clear();
      ended(e, answer::ok);
      e = latest();
      for (e.key = 1; e.key < w_.scene_.keys; ++e.key) log_.push_back(e);
    }

    /// Live KV takes units that images held.
    void allocate() {
      if (live_ > 0) {
        (void)w_.pool_->free(units_[--live_]);
        return;
      }
      if (!catalog_.allocate({units_.data(), 1})) return;
      w_.content_[units_[0]] = ~std::uint64_t{0};
      live_ = 1;
    }

    static constexpr std::uint32_t most = 6;
    catalog_player& w_;
    catalog& catalog_;
    std::array<flight, most> flying_{};
    std::uint32_t flights_ = 0;
    std::array<held, 3> held_{};
    std::uint32_t pins_ = 0;
    std::array<unit_id, 1> units_{};
    std::uint32_t live_ = 0;
  };

  const scene& scene_;
  stamps& time_;
  liar& lies_;
  std::vector<std::uint64_t> content_;  ///< by unit; plain, so that tools see who is not ordered
  std::vector<remembered> last_;
  std::array<counter, 64> next_image_{};
  std::unique_ptr<unit_pool> pool_;
  std::unique_ptr<catalog> records_;
};

}  // namespace

std::unique_ptr<player> make_catalog_player(const scene& in, stamps& time, liar& lies) {
  return std::make_unique<catalog_player>(in, time, lies);
}

}  // namespace cairn::histories
