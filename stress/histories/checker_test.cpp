// The checker against slower judges: the search against every order of effects, the model of a key
// against the catalog's sequential model, and histories whose verdict is known.
#include "stress/histories/checker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/model_catalog.hpp"
#include "tests/threads.hpp"

namespace cairn::histories {
namespace {

entry call_of(call what, answer said, std::uint64_t begin, std::uint64_t end,
              std::uint64_t image = 0, std::uint64_t handle = 0) {
  entry e;
  e.what = what;
  e.said = said;
  e.begin = begin;
  e.end = end;
  e.image = image;
  e.handle = handle;
  e.thread = static_cast<std::uint16_t>(begin);
  return e;
}

bool accepts(std::vector<entry> calls, const rules& with = {}) {
  key_checker checker;
  std::string why;
  return checker.check(calls, with, why);
}

// ---- known verdicts ---------------------------------------------------------------------

TEST(HistoryChecker, AMissAfterPublicationIsAViolationUnlessTheImageMayGo) {
  const std::vector<entry> history{call_of(call::store, answer::ok, 1, 2, 7),
                                   call_of(call::publish, answer::ok, 3, 4, 7),
                                   call_of(call::lookup, answer::no, 5, 6)};
  EXPECT_FALSE(accepts(history));
  EXPECT_TRUE(accepts(history, {.evicts = true}));
}

TEST(HistoryChecker, AMissThatOverlapsThePublicationIsFine) {
  EXPECT_TRUE(accepts({call_of(call::store, answer::ok, 1, 2, 7),
                       call_of(call::publish, answer::ok, 3, 6, 7),
                       call_of(call::lookup, answer::no, 5, 8)}));
}

TEST(HistoryChecker, AfterAHitTheImageStays) {
  EXPECT_FALSE(accepts(
      {call_of(call::store, answer::ok, 1, 2, 7), call_of(call::publish, answer::ok, 3, 20, 7),
       call_of(call::contains, answer::ok, 5, 6), call_of(call::contains, answer::no, 7, 8)}));
}

TEST(HistoryChecker, OfTwoStoresOneBegins) {
  EXPECT_FALSE(accepts(
      {call_of(call::store, answer::ok, 1, 5, 7), call_of(call::store, answer::ok, 2, 6, 8)}));
  EXPECT_FALSE(accepts({call_of(call::store, answer::duplicate, 1, 5, 7),
                        call_of(call::store, answer::duplicate, 2, 6, 8)}))
      << "and not none of them";
  EXPECT_TRUE(accepts({call_of(call::store, answer::ok, 1, 5, 7),
                       call_of(call::store, answer::duplicate, 2, 6, 8)}));
}

TEST(HistoryChecker, APinnedImageIsNotEvicted) {
  const std::vector<entry> pinned{
      call_of(call::store, answer::ok, 1, 2, 7), call_of(call::publish, answer::ok, 3, 4, 7),
      call_of(call::pin, answer::ok, 5, 6, 0, 100), call_of(call::lookup, answer::no, 7, 8)};
  EXPECT_FALSE(accepts(pinned, {.evicts = true}));
  std::vector<entry> released = pinned;
  released.insert(released.end() - 1, call_of(call::unpin, answer::ok, 7, 9, 0, 100));
  EXPECT_TRUE(accepts(released, {.evicts = true}));
}

TEST(HistoryChecker, AHandleOfAnEarlierTenancyIsStale) {
  std::vector<entry> history{call_of(call::store, answer::ok, 1, 2, 7),
                             call_of(call::publish, answer::ok, 3, 4, 7),
                             call_of(call::lookup, answer::ok, 5, 6, 0, 50),
                             call_of(call::forget, answer::ok, 7, 8),
                             call_of(call::store, answer::ok, 9, 10, 8),
                             call_of(call::publish, answer::ok, 11, 12, 8),
                             call_of(call::lookup, answer::ok, 13, 14, 0, 51)};
  EXPECT_TRUE(accepts(history));
  history.back().handle = 50;
  EXPECT_FALSE(accepts(history));
}

TEST(HistoryChecker, ACallHeldOpenAcrossThousandsIsJudgedExactly) {
  for (const answer late : {answer::ok, answer::no}) {
    std::vector<entry> history{call_of(call::store, answer::ok, 1, 2, 1),
                               call_of(call::publish, answer::ok, 3, 4, 1)};
    std::uint64_t now = 10;
    // Preempted in the middle of a lookup that began when the image was there ...
    history.push_back(call_of(call::contains, late, 5, 1'000'000));
    for (int i = 0; i < 20'000; ++i, now += 2)
      history.push_back(call_of(call::contains, answer::ok, now, now + 1));
    EXPECT_EQ(accepts(history), late == answer::ok);
    // ... and was forgotten before it ended.
    history.push_back(call_of(call::forget, answer::ok, now, now + 1));
    EXPECT_TRUE(accepts(history));
  }
}

TEST(HistoryChecker, ClearMayRemoveTwoImagesOfOneKeyButNotLater) {
  const std::vector<entry> history{
      call_of(call::store, answer::ok, 1, 2, 7),   call_of(call::publish, answer::ok, 3, 4, 7),
      call_of(call::clear, answer::ok, 5, 30),     call_of(call::store, answer::ok, 6, 7, 8),
      call_of(call::publish, answer::ok, 8, 9, 8), call_of(call::lookup, answer::ok, 10, 11, 0, 1),
      call_of(call::lookup, answer::no, 12, 13)};
  EXPECT_TRUE(accepts(history));
  std::vector<entry> later = history;
  later[2].end = 9;  // over before the last hit
  EXPECT_FALSE(accepts(later));
}

TEST(HistoryChecker, ClearMayRemoveAnImageWhoseStoreHasNotEnded) {
  // The miss shows that it has removed the first image; so it must be the second, too.
  const std::vector<entry> history{
      call_of(call::store, answer::ok, 1, 2, 7),     call_of(call::publish, answer::ok, 3, 4, 7),
      call_of(call::clear, answer::ok, 5, 30),       call_of(call::forget, answer::no, 10, 11),
      call_of(call::store, answer::ok, 20, 40, 8),   call_of(call::store, answer::ok, 50, 51, 9),
      call_of(call::publish, answer::ok, 60, 61, 9), call_of(call::publish, answer::ok, 62, 63, 8)};
  EXPECT_TRUE(accepts(history));
  std::vector<entry> later = history;
  later[4].begin = 31;  // behind the clear
  EXPECT_FALSE(accepts(later));
}

// ---- the search against every order of effects ---------------------------------------------

/// Tries all orders that keep who ended before whom began; evictions are steps of their own.
class every_order {
 public:
  every_order(const std::vector<entry>& calls, const rules& with) : calls_(calls), with_(with) {}
  bool accepts() { return extend({}, 0); }

 private:
  bool crowded(std::size_t i) const {
    for (std::size_t j = 0; j < calls_.size(); ++j)
      if (j != i && calls_[j].what == call::store && calls_[j].said != answer::duplicate &&
          calls_[j].begin <= calls_[i].end && calls_[i].begin <= calls_[j].end)
        return true;
    return false;
  }
  bool extend(const key_state& state, std::uint32_t done) {
    if (done == (1U << calls_.size()) - 1) return true;
    if (with_.evicts && state.now == key_state::phase::ready && state.pins == 0) {
      key_state gone = state;
      detail::leave(gone);
      if (extend(gone, done)) return true;
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) != 0) continue;
      bool first = true;
      for (std::size_t j = 0; j < calls_.size(); ++j)
        if ((done >> j & 1) == 0 && calls_[j].end < calls_[i].begin) first = false;
      key_state next = state;
      if (first && apply(next, calls_[i], {.evicts = false, .ample = with_.ample}, crowded(i)) &&
          extend(next, done | 1U << i))
        return true;
    }
    return false;
  }

  const std::vector<entry>& calls_;
  const rules with_;
};

TEST(HistoryChecker, TheSearchFindsAnOrderExactlyWhenThereIsOne) {
  test::dice dice(5);
  int good = 0;
  constexpr int histories = 20'000;
  for (int n = 0; n < histories; ++n) {
    std::vector<entry> calls;
    const std::uint32_t count = 3 + dice.below(5);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t begin = 1 + dice.below(12);
      entry e = call_of(call::lookup, answer::ok, begin, begin + 1 + dice.below(5));
      e.thread = static_cast<std::uint16_t>(i);
      constexpr call kinds[] = {call::store,    call::store,    call::publish,
                                call::publish,  call::restore,  call::unpin,
                                call::contains, call::occupied, call::forget};
      e.what = kinds[dice.below(9)];
      if (dice.below(3) == 0) e.said = e.what == call::store ? answer::duplicate : answer::no;
      if (e.what == call::publish) e.said = dice.below(4) == 0 ? answer::failed : answer::ok;
      if (e.what == call::unpin) e.said = answer::ok;
      if (e.what != call::contains && e.what != call::occupied && e.what != call::forget)
        e.image = 1 + dice.below(2);
      calls.push_back(e);
    }
    const rules with{.evicts = n % 2 == 0};
    const bool expected = every_order(calls, with).accepts();
    ASSERT_EQ(accepts(calls, with), expected) << "history " << n;
    good += expected ? 1 : 0;
  }
  EXPECT_GT(good, histories / 50);
  EXPECT_LT(good, histories * 49 / 50);
}

// ---- the model of a key against the catalog's ----------------------------------------------

TEST(HistoryModel, AgreesWithTheCatalogsModelAndWithNoOtherAnswer) {
  test::dice dice(9);
  for (int round = 0; round < 200; ++round) {
    cairn_model::pool pool(64, 64);
    cairn_model::catalog model({2, 4, 1, 64, 16, nullptr}, pool);
    const checkpoint_key key{1, 2};
    const std::vector<checkpoint_key> keys{key};
    struct flight {
      std::uint64_t stamp;
      std::uint64_t image;
      bool store;
    };
    std::vector<flight> flying;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pins;  // the model's, the handle
    std::uint64_t published = 0;                                // the image that is READY
    key_state state;
    for (int i = 0; i < 300; ++i) {
      entry e = call_of(call::lookup, answer::ok, 1, 1);
      switch (dice.below(8)) {
        case 0: {
          e.what = call::store;
          e.image = static_cast<std::uint64_t>(i) + 1;
          const auto begun = model.begin_store(key, 0);
          e.said = begun.ok() ? answer::ok : answer::duplicate;
          if (begun.ok()) flying.push_back({begun.stamp, e.image, true});
          break;
        }
        case 1: {
          e.what = call::restore;
          const auto begun = model.begin_restore(key, 0);
          e.said = begun.ok() ? answer::ok : answer::no;
          if (!begun.ok()) break;
          e.image = published;
          flying.push_back({begun.stamp, published, false});
          break;
        }
        case 2:
        case 3: {
          if (flying.empty()) continue;
          const flight f = flying.front();
          flying.erase(flying.begin());
          const bool well = dice.below(4) != 0;
          e.what = f.store ? call::publish : call::unpin;
          e.image = f.image;
          e.said = f.store && !well ? answer::failed : answer::ok;
          model.finish(f.stamp, 0, well ? status::ok : status::failed);
          if (f.store && well && model.contains(key)) published = f.image;
          break;
        }
        case 4:
          e.what = call::contains;
          e.said = model.contains(key) ? answer::ok : answer::no;
          break;
        case 5:
          e.what = call::occupied;
          e.said = model.contains_or_copying(key) ? answer::ok : answer::no;
          break;
        case 6:
          e.what = call::forget;
          e.said = model.forget(key) ? answer::ok : answer::no;
          break;
        default: {
          if (!pins.empty() && dice.below(2) == 0) {
            e.what = call::unpin;
            e.handle = pins.back().second;
            model.release_pin(pins.back().first);
            pins.pop_back();
            break;
          }
          e.what = call::pin;
          const auto got = model.pin_longest(keys, 1);
          e.said = got.code == status::ok ? answer::ok : answer::no;
          if (got.code != status::ok) break;
          e.handle = 1000 + published;
          pins.emplace_back(got.pin, e.handle);
        }
      }
      if (e.what != call::publish && e.what != call::unpin) {
        entry other = e;
        other.said = e.said != answer::ok    ? answer::ok
                     : e.what == call::store ? answer::duplicate
                                             : answer::no;
        key_state spoilt = state;
        ASSERT_FALSE(apply(spoilt, other, {}, false)) << to_string(e.what);
      }
      ASSERT_TRUE(apply(state, e, {}, false)) << to_string(e.what) << " " << to_string(e.said);
    }
  }
}

}  // namespace
}  // namespace cairn::histories
