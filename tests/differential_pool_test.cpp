// unit_pool against the sequential model: live KV and reservations by several owners, orphans that
// release reservations in the middle of others, mistakes. Knows no catalog.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/differential.hpp"
#include "tests/differential_pools.hpp"

namespace {

using namespace differential;

/// What a catalog would do for one side: a reservation hangs on a key and goes when it is orphaned.
struct linked {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::vector<unit_id>>> by_key;
  std::vector<std::uint32_t> told;

  template <class Release>
  void orphan(const checkpoint_key& key, Release release) {
    std::uint32_t n = pool_pair::number(key);
    told.push_back(n);
    auto found = by_key.find(n);
    if (found == by_key.end()) return;
    auto [owner, ids] = found->second;
    by_key.erase(found);
    release(ids, owner);
  }
};

class pool_episode {
 public:
  pool_episode(std::uint64_t seed, history& past)
      : random_(seed),
        past_(past),
        units_(random_.between(1, random_.one_in(3) ? 8 : 40)),
        max_units_(units_ + (random_.one_in(2) ? random_.below(12) : 0)),
        keys_(random_.between(1, 2 * max_units_)),
        pools_(units_, max_units_, keys_, random_, past) {
    if (past_.failed()) return;
    pools_.model.on_orphan([this](const checkpoint_key& key) {
      model_side_.orphan(key, [this](const auto& ids, std::uint64_t owner) {
        if (pools_.model.release(ids, owner) != status::ok) past_.fail("the test's own mistake");
      });
    });
    pools_.cairn->set_orphan_hook(
        [](void* self, const checkpoint_key& key) {
          static_cast<pool_episode*>(self)->cairn_orphan(key);
        },
        this);
  }

  void step() {
    if (random_.one_in(2)) {
      pools_.live_step();
    } else {
      reservation_step();
    }
    past_.same("orphans", cairn_side_.told, model_side_.told);
    cairn_side_.told.clear();
    model_side_.told.clear();
    pools_.compare(true);
  }

  /// Everything is given back; then everything is free.
  void finish() {
    pools_.finish_retire();
    while (!held_.empty()) release_held();
    pools_.clear_index();  // nothing is orphaned any more
    while (!model_side_.by_key.empty()) drop_linked();
    while (!pools_.shares().empty()) pools_.free_share();
    pools_.compare(true);
    past_.same("all free at the end", pools_.cairn->free_units(), pools_.cairn->counts().total);
  }

  std::string describe() const {
    std::ostringstream text;
    text << units_ << " units, at most " << max_units_ << ", " << keys_ << " keys";
    return text.str();
  }

 private:
  struct reservation {
    std::uint64_t owner;
    std::vector<unit_id> ids;
  };

  void cairn_orphan(const checkpoint_key& key) {
    cairn_side_.orphan(key, [this](const auto& ids, std::uint64_t owner) {
      if (!pools_.cairn->release(ids, owner).ok()) past_.fail("release within the hook refused");
    });
  }

  void reservation_step() {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return reserve(random_.one_in(10) ? random_.between(1, pools_.model.total() + 2)
                                          : random_.between(1, 5));
      case 4:
      case 5:
      case 6:
        return release_held();
      case 7:
      case 8:
        return link_held();
      case 9:
        return replace();
      default:
        return wrong_release();
    }
  }

  std::uint64_t any_owner() { return random_.one_in(40) ? 0 : random_.between(1, 4); }

  void reserve(std::uint32_t count) {
    std::uint64_t owner = any_owner();
    past_.note("reserve(%u, owner %u)", count, static_cast<unsigned>(owner));
    std::vector<unit_id> ids(count, no_unit);
    auto answer = pools_.cairn->reserve(ids, owner);
    auto expected = pools_.model.reserve(count, owner);
    past_.same("reserve", answer.code(), expected.code);
    if (expected.code != status::ok) return;
    past_.same("reserved", ids, expected.ids);
    held_.push_back({owner, expected.ids});
  }

  void release(const std::vector<unit_id>& ids, std::uint64_t owner) {
    past_.note("release(%s, owner %u)", testing::PrintToString(ids).c_str(),
               static_cast<unsigned>(owner));
    past_.same("release", pools_.cairn->release(ids, owner).code(),
               pools_.model.release(ids, owner));
  }
  reservation take_held() {
    std::swap(random_.pick(held_), held_.back());
    reservation taken = held_.back();
    held_.pop_back();
    return taken;
  }
  void release_held() {
    if (held_.empty()) return;
    reservation given = take_held();
    release(given.ids, given.owner);
    if (random_.one_in(8)) release(given.ids, given.owner);  // once only
  }
  void drop_linked() {
    auto [n, given] = *model_side_.by_key.begin();
    model_side_.by_key.erase(n);
    cairn_side_.by_key.erase(n);
    release(given.second, given.first);
  }
  /// From now on the reservation hangs on a key, as a checkpoint does.
  void link_held() {
    if (held_.empty()) return;
    std::uint32_t n = random_.below(keys_);
    if (model_side_.by_key.count(n) != 0) return;
    reservation given = take_held();
    past_.note("link(%s to key %u)", testing::PrintToString(given.ids).c_str(), n);
    cairn_side_.by_key[n] = model_side_.by_key[n] = {given.owner, given.ids};
  }
  void replace() {
    if (held_.empty()) return;
    reservation given = take_held();
    std::uint64_t giver = random_.one_in(6) ? any_owner() : given.owner;
    std::uint64_t owner = any_owner();
    auto size = static_cast<std::uint32_t>(given.ids.size());
    std::uint32_t count = random_.between(1, random_.one_in(6) ? size + 2 : size);
    past_.note("replace(%s, giver %u, %u, owner %u)", testing::PrintToString(given.ids).c_str(),
               static_cast<unsigned>(giver), count, static_cast<unsigned>(owner));
    std::vector<unit_id> ids(count, no_unit);
    auto answer = pools_.cairn->replace(given.ids, giver, ids, owner);
    auto expected = pools_.model.replace(given.ids, giver, count, owner);
    past_.same("replace", answer.code(), expected.code);
    if (expected.code != status::ok) return held_.push_back(given);
    past_.same("replaced", ids, expected.ids);
    held_.push_back({owner, expected.ids});
  }

  /// A reservation with something wrong about it.
  void wrong_release() {
    if (held_.empty()) return release({pools_.any_unit()}, 9);
    reservation wrong = random_.pick(held_);
    auto place = [&] { return static_cast<std::ptrdiff_t>(random_.below(wrong.ids.size())); };
    switch (random_.below(7)) {
      case 0:
        wrong.owner = wrong.owner % 4 + 1;
        break;
      case 1:
        std::swap(random_.pick(wrong.ids), random_.pick(wrong.ids));
        break;
      case 2:
        random_.pick(wrong.ids) = random_.pick(wrong.ids);
        break;
      case 3:
        random_.pick(wrong.ids) = pools_.any_unit();
        break;
      case 4:
        wrong.ids.pop_back();
        break;
      case 5:
        wrong.ids.insert(wrong.ids.begin() + place(), pools_.any_unit());
        break;
      default:  // pieces of two reservations, each at its place
        splice(wrong.ids, random_.pick(held_).ids);
    }
    if (!wrong.ids.empty() && !is_reservation(wrong)) release(wrong.ids, wrong.owner);
  }
  /// A wrong one may have come out right after all, or as another reservation.
  bool is_reservation(const reservation& asked) const {
    auto held = [&](const reservation& r) { return r.owner == asked.owner && r.ids == asked.ids; };
    auto hangs = [&](const auto& each) { return held({each.second.first, each.second.second}); };
    return std::any_of(held_.begin(), held_.end(), held) ||
           std::any_of(model_side_.by_key.begin(), model_side_.by_key.end(), hangs);
  }
  void splice(std::vector<unit_id>& into, const std::vector<unit_id>& from) {
    for (std::size_t i = random_.below(into.size()); i < into.size() && i < from.size(); ++i)
      into[i] = from[i];
  }

  dice random_;
  history& past_;
  std::uint32_t units_;
  std::uint32_t max_units_;
  std::uint32_t keys_;
  pool_pair pools_;
  linked cairn_side_;
  linked model_side_;
  std::vector<reservation> held_;
};

TEST(DifferentialPool, EveryAnswerEqualsTheModel) {
  run_episodes<pool_episode>(400'000);
}

}  // namespace
