// Histories of a whole runtime on the host backend: real copies on two ranks, ended by copy
// threads. What a store wrote is read back from the slot of a restore. Each op is two effects: its
// beginning, within the call, and its end, some time between the call and the moment at which its
// ticket was seen to have ended.
#include <array>
#include <atomic>
#include <cairn/runtime.hpp>
#include <chrono>
#include <cstring>
#include <vector>

#include "stress/histories/hand.hpp"

namespace cairn::histories {
namespace {

constexpr std::uint32_t ranks = 2;
constexpr std::uint32_t words = 3;  // of an image, one per unit
constexpr std::uint32_t threads_most = 8;
constexpr std::uint32_t slots_each = 2;

class runtime_player final : public player {
 public:
  runtime_player(const scene& in, stamps& time)
      : scene_(in),
        time_(time),
        devices_(std::move(make_host_backend({.devices = ranks, .copy_threads = 1})).value()) {
    const std::uint32_t units = (in.images + (in.with.ample ? threads_most * 2 : 0)) * words;
    runtime_options opts;
    opts.shape = {8, 8 * words, 8 * words, "history"};
    for (rank_id r = 0; r < ranks; ++r) {
      units_[r].resize(units);
      slots_[r].resize(std::size_t{threads_most} * slots_each * words);
      rank_memory m;
      m.regions = {{reinterpret_cast<std::byte*>(units_[r].data()), 8, 8}};
      m.units = units;
      m.segments = {{reinterpret_cast<std::byte*>(slots_[r].data()), 8 * words, 8 * words}};
      m.slots = threads_most * slots_each;
      opts.ranks.push_back(m);
      computes_[r] = std::move(devices_->at(r).create_stream(stream_priority::normal)).value();
    }
    opts.max_ops = 256;
    opts.store_depth = 64;
    opts.restore_depth = 64;
    runtime_ = std::move(runtime::open(std::move(opts), *devices_)).value();
    for (rank_id r = 0; r < ranks; ++r) (void)runtime_->attach(r, 0, *computes_[r]);
  }

  bool play(std::uint64_t seed, std::uint32_t threads, std::uint64_t calls,
            std::vector<journal>& logs, std::string& why) override {
    threads = std::min(threads, threads_most);
    calls = std::min<std::uint64_t>(calls, 4000);
    return play_hands<runtime_hand>(*this, seed, threads, calls, logs, why,
                                    [this](std::atomic<const char*>& wrong) { audit(wrong); });
  }

  void clear() override { runtime_->records().clear(); }

 private:
  void audit(std::atomic<const char*>& wrong) const {
    const catalog_counts c = runtime_->records().counts();
    const pool_counts p = runtime_->own_pool()->counts();
    if (c.copying + c.evicting + c.ops + c.pins != 0) wrong = "something is left in flight";
    if (p.vacant + p.cached + p.reserved != p.total || p.reserved != c.checkpoint_units)
      wrong = "units are lost";
  }

  class runtime_hand : public hand {
   public:
    runtime_hand(runtime_player& in, std::uint64_t seed, std::uint16_t thread, journal& to)
        : hand(in.time_, seed, thread, to), w_(in), rt_(*in.runtime_) {}

    void play(std::uint64_t calls) {
      log_.reserve(calls + 64);
      while (log_.size() < calls && wrong_ == nullptr) step();
      for (flight& f : flying_) end(f);
    }

   private:
    struct flight {
      ticket op;
      std::uint32_t key = 0;
      std::uint64_t image = 0;
      std::uint64_t begin = 0;
      std::size_t place = 0;  // of the beginning, in the log
      bool store = false;
    };

    void step() {
      const std::uint32_t key = dice_.below(w_.scene_.keys);
      const std::uint32_t slot = dice_.below(slots_each);
      if (dice_.below(1024) < w_.scene_.forget) return forget(key);
      switch (dice_.below(8)) {
        case 0:
        case 1:
          end(flying_[slot]);
          return store(key, slot);
        case 2:
        case 3:
          end(flying_[slot]);
          return restore(key, slot);
        case 4:
          return end(flying_[slot]);
        default:
          return look(key);
      }
    }

    [[nodiscard]] slot_id slot_of(std::uint32_t slot) const { return thread_ * slots_each + slot; }
    std::uint64_t* words_of(rank_id rank, std::uint32_t slot) {
      return &w_.slots_[rank][std::size_t{slot_of(slot)} * words];
    }

    /// Precondition: nothing is in flight on the slot.
    void store(std::uint32_t key, std::uint32_t slot) {
      const std::uint64_t image =
          std::uint64_t{thread_ + 1U} << 48 | ++w_.next_image_[thread_].value;
      for (rank_id r = 0; r < ranks; ++r) std::fill_n(words_of(r, slot), words, image);
      entry e = began(key, call::store);
      e.image = image;
      auto op = rt_.store(key_of(key), slot_of(slot), 0);
      ended(e, op ? answer::ok : word_for(op.code()));
      if (op) flying_[slot] = {std::move(*op), key, image, e.begin, log_.size() - 1, true};
    }

    void restore(std::uint32_t key, std::uint32_t slot) {
      const entry e = began(key, call::restore);
      auto op = rt_.restore(key_of(key), slot_of(slot), 0);
      ended(e, op ? answer::ok : word_for(op.code()));
      if (op) flying_[slot] = {std::move(*op), key, 0, e.begin, log_.size() - 1, false};
    }

    void end(flight& f) {
      if (!f.op.valid()) return;
      const status how = f.op.wait(clock::now() + std::chrono::seconds(60));
      if (how != status::ok) wrong_ = "an op has not ended well";
      entry e;
      e.key = f.key;
      e.thread = thread_;
      e.begin = f.begin;
      e.what = f.store ? call::publish : call::unpin;
      if (!f.store) {
        const auto slot = static_cast<std::uint32_t>(&f - flying_.data());
        f.image = *words_of(0, slot);
        for (rank_id r = 0; r < ranks; ++r)
          for (std::uint32_t i = 0; i < words; ++i)
            if (words_of(r, slot)[i] != f.image) wrong_ = "a restore brought parts of two images";
        log_[f.place].image = f.image;
      }
      e.image = f.image;
      ended(e, answer::ok);
      f = {};
    }

    void look(std::uint32_t key) {
      const call what = dice_.below(2) == 0   ? call::lookup
                        : dice_.below(2) == 0 ? call::contains
                                              : call::occupied;
      entry e = began(key, what);
      bool found = false;
      if (what == call::lookup) {
        const auto handle = rt_.records().lookup(key_of(key));
        found = handle.has_value();
        if (found) e.handle = word_of(*handle);
      } else {
        found = what == call::contains ? rt_.records().contains(key_of(key))
                                       : rt_.records().contains_or_copying(key_of(key));
      }
      ended(e, found ? answer::ok : answer::no);
    }

    void forget(std::uint32_t key) {
      const entry e = began(key, call::forget);
      const bool went = rt_.records().forget(key_of(key));
      ended(e, went ? answer::ok : answer::no);
    }

    runtime_player& w_;
    runtime& rt_;
    std::array<flight, slots_each> flying_;
  };

  const scene& scene_;
  stamps& time_;
  std::array<std::vector<std::uint64_t>, ranks> units_;
  std::array<std::vector<std::uint64_t>, ranks> slots_;
  std::array<counter, threads_most> next_image_{};
  std::unique_ptr<backend> devices_;
  std::array<std::unique_ptr<stream>, ranks> computes_;
  std::unique_ptr<runtime> runtime_;
};

}  // namespace

std::unique_ptr<player> make_runtime_player(const scene& in, stamps& time) {
  return std::make_unique<runtime_player>(in, time);
}

}  // namespace cairn::histories
