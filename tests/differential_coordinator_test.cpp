// coordinator over catalog over unit_pool, with the link from a taken cached unit to pendings and
// checkpoints, against the sequential model: boundaries filed, superseded, forgotten, drained.
#include <gtest/gtest.h>

#include <cairn/coordinator.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "tests/differential_catalogs.hpp"
#include "tests/model_coordinator.hpp"

namespace {

using namespace differential;

/// What one side's drain asked for, and what its catalog answered.
struct asked {
  std::uint32_t sequence;
  checkpoint_key key;
  slot_id slot;
  placement_hint hint;
  friend bool operator==(const asked&, const asked&) = default;
  friend void PrintTo(const asked& a, std::ostream* out) {
    *out << "sequence " << a.sequence << " key " << pool_pair::number(a.key) << " slot " << a.slot;
  }
};

/// How a store function of the test fares, by its number in the drain.
enum class fortune { begins, finds_queue_full, finds_closed };

class coordinator_episode {
 public:
  coordinator_episode(std::uint64_t seed, history& past)
      : random_(seed),
        past_(past),
        shape_(catalog_shape::random(random_)),
        sequences_(random_.between(1, 6)),
        pair_(shape_, random_, past),
        model_(sequences_, pair_.model) {
    if (past_.failed()) return;
    cairn::coordinator_options opts;
    opts.max_sequences = sequences_;
    auto opened = cairn::coordinator::open(opts, *pair_.cairn);
    if (opened.ok()) {
      cairn_ = std::move(opened.value());
    } else {
      past_.fail("open: " + opened.why().message());
    }
  }

  void step() {
    if (random_.one_in(2)) {
      sequence_step();
    } else {
      engine_step();
    }
    compare();
  }

  void finish() {
    reset();
    pair_.complete_all();
    pair_.pools.finish_retire();
    while (!pair_.pools.shares().empty()) pair_.pools.free_share();
    compare();
    past_.same("all free at the end", pair_.pools.cairn->free_units(),
               pair_.pools.cairn->counts().total);
  }

  std::string describe() const {
    return shape_.describe() + ", " + std::to_string(sequences_) + " sequences";
  }

 private:
  void sequence_step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return set_slot();
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
        return file();
      case 10:
        return forget();
      case 11:
        if (random_.one_in(12)) return reset();
        return unindex();
      default:
        return drain();
    }
  }
  void engine_step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return pair_.complete_one();
      case 5:
        return pair_.begin_restore(pair_.pools.any_key(), pair_.any_slot());
      case 6:
        return pair_.run_request();
      case 7:
        return pair_.allocate(random_.below(4));
      case 8:
        if (pair_.in_flight() > 0) pair_.take(random_.below(pair_.in_flight()));
        return;
      case 9:
        return pair_.forget(pair_.pools.any_key());
      default:
        return pair_.pools.live_step();
    }
  }

  std::uint32_t any_sequence() {
    return random_.one_in(60) ? sequences_ + random_.below(3) : random_.below(sequences_);
  }

  void set_slot() {
    std::uint32_t sequence = any_sequence();
    slot_id slot = random_.one_in(5) ? cairn::no_slot : random_.below(shape_.slots);
    past_.note("set_slot(%u, %d)", sequence, static_cast<int>(slot));
    past_.same("set_slot", cairn_->set_slot(sequence, slot).code(),
               model_.set_slot(sequence, slot));
  }
  void file() {
    std::uint32_t sequence = any_sequence();
    checkpoint_key key = pair_.pools.any_key();
    auto hint = static_cast<placement_hint>(random_.below(4));
    past_.note("file(%u, %u)", sequence, pool_pair::number(key));
    past_.same("file", cairn_->file(sequence, key, hint).code(), model_.file(sequence, key, hint));
  }
  void forget() {
    std::uint32_t sequence = any_sequence();
    past_.note("forget sequence(%u)", sequence);
    past_.same("forget", cairn_->forget(sequence).code(), model_.forget(sequence));
    slot_id slot = model_.slot_of(sequence);
    if (slot != cairn::no_slot) pair_.land_cancelled(copy_kind::restore, slot);
  }
  void unindex() {
    checkpoint_key key = pair_.pools.any_key();
    past_.note("unindex(%u)", pool_pair::number(key));
    past_.same("unindex", cairn_->unindex(key), model_.unindex(key));
  }
  void reset() {
    past_.note("reset()");
    cairn_->reset();
    model_.reset();
  }

  // ---- draining -------------------------------------------------------------------
  struct cairn_drain {
    coordinator_episode* self;
    std::vector<asked> calls;
    std::vector<cairn::result<cairn::copy_op>> answers;
    std::deque<std::vector<unit_id>> units;  // an op's view ends with the op
  };

  void drain() {
    past_.note("drain()");
    for (fortune& one : fortunes_) {
      one = fortune::begins;
      if (random_.one_in(8))
        one = random_.one_in(2) ? fortune::finds_queue_full : fortune::finds_closed;
    }
    cairn_drain mine{this, {}, {}, {}};
    std::uint32_t began = cairn_->drain(
        [](void* context, const cairn::boundary& what) {
          auto& drain = *static_cast<cairn_drain*>(context);
          return drain.self->store(drain, what);
        },
        &mine);
    std::vector<asked> calls;
    std::vector<cairn_model::begin_answer> answers;
    std::uint32_t expected = model_.drain([&](const cairn_model::boundary& what) {
      calls.push_back({what.sequence, what.key, what.slot, what.hint});
      return store_in_model(what, fortunes_[(calls.size() - 1) % fortunes_.size()], answers);
    });
    past_.same("asked by the drain", mine.calls, calls);
    past_.same("began", began, expected);
    for (std::size_t i = 0; i < answers.size() && !past_.failed(); ++i) {
      pair_.compare_begun(mine.answers[i], answers[i], copy_kind::store, calls[i].slot);
      bool unqueued = fortunes_[i % fortunes_.size()] == fortune::finds_queue_full;
      if (answers[i].ok() && unqueued && !past_.failed()) pair_.land_latest();
    }
  }

  /// As a runtime would: a full queue is met after the store has begun, and cancels it.
  status store(cairn_drain& drain, const cairn::boundary& what) {
    fortune luck = fortunes_[drain.calls.size() % fortunes_.size()];
    drain.calls.push_back({what.sequence, what.key, what.slot, what.hint});
    if (luck == fortune::finds_closed) {
      drain.answers.push_back(cairn::error(status::closed, "by the test"));
      return status::closed;
    }
    drain.answers.push_back(pair_.cairn->begin_store(what.key, what.slot, what.hint));
    auto& answer = drain.answers.back();
    if (!answer.ok()) return answer.code();
    drain.units.emplace_back(answer->units.begin(), answer->units.end());
    answer->units = drain.units.back();
    if (luck == fortune::begins) return status::ok;
    if (!pair_.cairn->cancel(answer->header.op)) past_.fail("cancel of a fresh store refused");
    return status::queue_full;
  }
  status store_in_model(const cairn_model::boundary& what, fortune luck,
                        std::vector<cairn_model::begin_answer>& answers) {
    answers.push_back({{status::closed}, 0, {}});
    if (luck == fortune::finds_closed) return status::closed;
    answers.back() = pair_.model.begin_store(what.key, what.slot, what.hint);
    const auto& answer = answers.back();
    if (!answer.ok()) return *answer.refusals.begin();
    if (luck == fortune::begins) return status::ok;
    pair_.model.cancel(answer.stamp);
    return status::queue_full;
  }

  void compare() {
    pair_.compare();
    past_.same("pending", cairn_->pending(), model_.pending());
    for (std::uint32_t sequence = 0; sequence <= sequences_; ++sequence)
      past_.same("slot_of", cairn_->slot_of(sequence), model_.slot_of(sequence));
    auto keys = pair_.any_keys();
    std::uint32_t hit = random_.below(keys.size() + 1);
    bool assume = random_.one_in(4);
    past_.same("resumable_hit", cairn_->resumable_hit(keys, hit, assume),
               model_.resumable_hit(keys, hit, assume));
  }

  dice random_;
  history& past_;
  catalog_shape shape_;
  std::uint32_t sequences_;
  catalog_pair pair_;
  std::unique_ptr<cairn::coordinator> cairn_;
  cairn_model::coordinator model_;
  std::vector<fortune> fortunes_ = std::vector<fortune>(8);
};

TEST(DifferentialCoordinator, EveryAnswerEqualsTheModel) {
  run_episodes<coordinator_episode>(300'000);
}

}  // namespace
