// catalog over unit_pool against the sequential model: stores, restores, completions in begin
// order, cancels, evictions by several policies, orphans, admissions, bare pins, mistakes.
#include <gtest/gtest.h>

#include "tests/differential_catalogs.hpp"

namespace {

using namespace differential;

class catalog_episode {
 public:
  catalog_episode(std::uint64_t seed, history& past)
      : random_(seed),
        past_(past),
        shape_(catalog_shape::random(random_)),
        eager_(random_.between(1, 8)),
        pair_(shape_, random_, past) {}

  void step() {
    one_step();
    pair_.compare();
    compare_hit();
  }

  /// Everything ends and is given back: no unit may be missing.
  void finish() {
    if (random_.one_in(2)) refuse_when_closed();
    pair_.complete_all();
    pair_.release_pins();
    pair_.clear();
    pair_.pools.finish_retire();
    while (!pair_.pools.shares().empty()) pair_.pools.free_share();
    pair_.compare();
    past_.same("all free at the end", pair_.pools.cairn->free_units(),
               pair_.pools.cairn->counts().total);
  }

  std::string describe() const { return shape_.describe(); }

 private:
  void one_step() {
    // Some episodes complete at once, others let ops pile up.
    if (random_.below(10) < eager_ && random_.one_in(2)) return pair_.complete_one();
    switch (random_.below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        pair_.begin_store(pair_.pools.any_key(), pair_.any_slot(), any_hint());
        return;
      case 5:
      case 6:
      case 7:
      case 8:
        return pair_.begin_restore(pair_.pools.any_key(), pair_.any_slot());
      case 9:
        if (pair_.in_flight() > 0) pair_.take(random_.below(pair_.in_flight()));
        return;
      case 10:
        if (pair_.in_flight() > 0) pair_.cancel(random_.below(pair_.in_flight()));
        return;
      case 11:
        return pair_.cancel_slot(random_.one_in(3) ? copy_kind::store : copy_kind::restore,
                                 pair_.any_slot());
      case 12:
        return random_.one_in(2) ? pair_.complete_wrongly() : pair_.complete_one();
      case 13:
        return room_step();
      case 14:
        return removal_step();
      case 15:
        return random_.one_in(2) ? pin() : pair_.release_pin();
      case 16:
      case 17:
      case 18:
        return pair_.run_request();
      default:
        return pair_.pools.live_step();
    }
  }

  void room_step() {
    std::uint32_t count = random_.below(random_.one_in(3) ? shape_.max_units + 2 : 5);
    return random_.one_in(3) ? pair_.ensure_free_units(count) : pair_.allocate(count);
  }
  void removal_step() {
    if (random_.one_in(20)) return pair_.clear();
    checkpoint_key key = pair_.pools.any_key();
    return random_.one_in(3) ? pair_.orphan(key) : pair_.forget(key);
  }
  void pin() {
    auto keys = pair_.any_keys();
    pair_.pin_longest(keys, random_.below(keys.size() + 1));
  }
  placement_hint any_hint() { return static_cast<placement_hint>(random_.below(4)); }

  void compare_hit() {
    auto keys = pair_.any_keys();
    std::uint32_t hit = random_.below(keys.size() + 1);
    past_.same("resumable_hit", pair_.cairn->resumable_hit(keys, hit),
               pair_.model.resumable_hit(keys, hit));
    past_.same("assumed hit", pair_.cairn->resumable_hit(keys, hit, true), hit);
  }

  void refuse_when_closed() {
    past_.note("close()");
    pair_.cairn->close();
    pair_.model.close();
    pair_.begin_store(pair_.pools.any_key(), 0, placement_hint::none);
    pair_.begin_restore(pair_.pools.any_key(), 0);
    pair_.admit(pair_.any_keys(), 1, 0);
    pair_.allocate(1);
  }

  dice random_;
  history& past_;
  catalog_shape shape_;
  std::uint32_t eager_;
  catalog_pair pair_;
};

TEST(DifferentialCatalog, EveryAnswerEqualsTheModel) {
  run_episodes<catalog_episode>(500'000);
}

}  // namespace
