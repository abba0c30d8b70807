// Scenes on units: reservations, live KV, the index of content, eviction's orphans, admission and
// waiting for room.
#include "stress/explore/catalog_settings.hpp"
#include "stress/explore/reservation_scenes.hpp"

namespace cairn::explore {

namespace {

using W = catalog_world;
using P = player;

void cached_two(W& w) {
  w.host().cache(1);
  w.host().cache(2);
}
void live_published(W& w) {
  w.host().allocate();
  w.host().publish(1);
  w.at(0).take_over(w.host());
}
void live_two(W& w) {
  w.host().allocate(2);
  w.at(0).take_over(w.host());
}

const catalog_script scripts[] = {
    // ---- reservations ----
    {"reserve-reserve", {.units = 4}, nullptr,
     {[](W&, P& p) { p.reserve(3); }, [](W&, P& p) { p.reserve(3); }},
     [](W& w) { require(refused(w) == 1, "of two that do not fit together exactly one fits"); }},
    {"reserve-reserve-reserve", {.units = 4}, nullptr,
     {[](W&, P& p) { p.reserve(2); }, [](W&, P& p) { p.reserve(2); }, [](W&, P& p) { p.reserve(2); }},
     [](W& w) { require(refused(w) == 1, "two of three fit"); }},
    {"reserve-release", {.units = 4}, nullptr,
     {[](W&, P& p) {
        p.reserve(2);
        p.release();
      },
      [](W&, P& p) {
        p.reserve(3);
        p.release();
      }}},
    {"reserve-release-all", {.units = 3},
     [](W& w) { w.at(0).reserve(3); },
     {[](W&, P& p) { p.release(); }, [](W&, P& p) { p.reserve(3); }, [](W&, P& p) { p.reserve(1); }}},
    {"release-release", {.units = 3},
     [](W& w) { w.at(0).reserve(2); },
     {[](W& w, P& p) {
        const auto ids = p.reserved();
        p.release();
        static_cast<void>(w.pool().release(ids, 1));
      },
      [](W& w, P&) {
        // A stranger's claim to it changes nothing.
        const std::array<unit_id, 2> ids{0, 1};
        require(!w.pool().release(ids, 77).ok(), "a stranger released a reservation");
      },
      [](W&, P& p) { p.reserve(2); }}},
    {"reserve-store", {}, [](W& w) { w.host().store(1); },
     {[](W&, P& p) { p.reserve(2); }, [](W&, P& p) { p.store(2); }}},
    {"reserve-ready", {.units = 2}, nullptr,
     {[](W&, P& p) {
        p.reserve(2);
        p.release();
      },
      [](W&, P& p) { p.store(2); }, [](W&, P& p) { p.allocate(); }}},
    // ---- live and cached units ----
    {"allocate-free", {.units = 2}, nullptr,
     {[](W&, P& p) {
        p.allocate();
        p.free_one();
        p.allocate();
      },
      [](W&, P& p) { p.allocate(2); }}},
    {"claim-evict", {.units = 2}, cached,
     {[](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.allocate(2); }}},
    {"claim-reserve", {.units = 3}, cached_two,
     {[](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.reserve(3); }, [](W&, P& p) { p.claim(2); }}},
    // The unit is taken, bears another key and is free again while a claimer looks at it.
    {"claim-aba", {.units = 1, .per_image = 1}, cached,
     {[](W&, P& p) { p.claim(1); },
      [](W&, P& p) {
        p.allocate();
        p.publish(2);
        p.free_one();
      }}},
    {"claim-claim", {.units = 2}, cached,
     {[](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.claim(1); }},
     [](W& w) { require(w.pool().counts().live == 1, "a claim of a cached unit missed"); }},
    {"claim-free", {.units = 2}, live_published,
     {[](W&, P& p) { p.free_one(); }, [](W&, P& p) { p.claim(1); }},
     [](W& w) {
       require(w.pool().lookup(key_of(1)) != no_unit, "content was dropped that nobody took");
     }},
    {"claim-free-take", {.units = 2}, live_published,
     {[](W&, P& p) { p.free_one(); }, [](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.allocate(); }}},
    {"free-free", {.units = 3},
     [](W& w) {
       w.host().allocate();
       w.host().publish(1);
       w.at(1).claim(1);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) { p.free_one(); }, [](W&, P& p) { p.free_one(); }, [](W&, P& p) { p.reserve(3); }}},
    {"publish-publish", {.units = 3}, nullptr,
     {[](W&, P& p) {
        p.allocate();
        p.publish(1);
      },
      [](W&, P& p) {
        p.allocate();
        p.publish(1);
      }},
     [](W& w) {
       require(w.pool().lookup(key_of(1)) != no_unit, "a key that was published is not found");
       require(w.pool().indexed() == 1, "one unit is named for a key");
     }},
    {"publish-publish-claim", {.units = 3}, cached,
     {[](W&, P& p) {
        p.allocate();
        p.publish(1);
      },
      [](W&, P& p) {
        p.allocate();
        p.publish(1);
      },
      [](W&, P& p) { p.claim(1); }}},
    {"publish-other-key", {.units = 2}, live_published,
     {[](W&, P& p) { p.publish(2); }, [](W&, P& p) { p.look_unit(1); },
      [](W&, P& p) { p.look_unit(2); }}},
    {"publish-take", {.units = 2}, cached,
     {[](W&, P& p) {
        p.allocate();
        p.publish(1);
        p.free_one();
      },
      [](W&, P& p) { p.allocate(); }}},
    {"index-clear-claim", {.units = 2}, cached,
     {[](W&, P& p) { p.clear_index(); }, [](W&, P& p) { p.claim(1); }}},
    {"index-clear-claim-last", {.units = 1, .per_image = 1}, cached,
     {[](W&, P& p) { p.clear_index(); }, [](W&, P& p) { p.claim(1); }},
     [](W& w) { require(w.pool().counts().cached == 0, "a unit without a key stays cached"); }},
    {"index-clear-take", {.units = 2}, cached,
     {[](W&, P& p) { p.clear_index(); }, [](W&, P& p) { p.allocate(2); }},
     [](W& w) { require(refused(w) == 0, "two free units are two"); }},
    {"index-clear-publish", {.units = 2}, nullptr,
     {[](W&, P& p) { p.clear_index(); },
      [](W&, P& p) {
        p.allocate();
        p.publish(1);
        p.free_one();
      },
      [](W&, P& p) { p.claim(1); }}},
    {"index-clear-free", {.units = 2}, live_published,
     {[](W&, P& p) { p.free_one(); }, [](W&, P& p) { p.clear_index(); },
      [](W&, P& p) { p.reserve(1); }}},
    // ---- size ----
    {"extend-reserve", {.units = 2, .extra_units = 1}, nullptr,
     {[](W&, P& p) { p.extend(); }, [](W&, P& p) { p.reserve(3); }, [](W&, P& p) { p.reserve(2); }}},
    {"retire-take", {.units = 3}, nullptr,
     {[](W&, P& p) { p.retire_top(); }, [](W&, P& p) { p.allocate(3); }}},
    {"retire-free", {.units = 3},
     [](W& w) {
       w.host().allocate(3);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) {
        p.free_one();
        p.free_one();
      },
      [](W&, P& p) { p.extend(); }, [](W&, P& p) { p.reserve(1); }}},
    {"retire-claim", {.units = 3},
     [](W& w) {
       w.host().cache(1);
       w.host().cache(2);
       w.host().cache(3);
     },
     {[](W&, P& p) { p.retire_top(); }, [](W&, P& p) { p.claim(3); }, [](W&, P& p) { p.claim(1); }}},
    // ---- content gone, state useless ----
    {"orphan-restore", {.units = 3}, boundary,
     {[](W&, P& p) { p.allocate(); }, [](W&, P& p) { p.restore(1); }}},
    {"orphan-forget", {.units = 3}, boundary,
     {[](W&, P& p) { p.allocate(); }, [](W&, P& p) { p.forget(1); }},
     [](W& w) { require(w.pool().free_units() == 2, "an orphan keeps its units"); }},
    {"orphan-store", {.units = 3}, cached,
     {[](W&, P& p) { p.allocate(); }, [](W&, P& p) { p.store(1); }}},
    {"orphan-publish", {.units = 4}, boundary,
     {[](W&, P& p) { p.reserve(2); },
      [](W&, P& p) {
        p.allocate();
        p.publish(1);
      }}},
    // ---- admission ----
    {"admit-evict", {.units = 4}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.store(2); }}},
    {"admit-admit", {.units = 4}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.admit(1, 1); }}},
    {"admit-take", {.units = 4}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.allocate(2); }}},
    {"admit-forget", {.units = 4}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.forget(1); }}},
    {"allocate-evict", {.units = 4},
     [](W& w) {
       w.host().store(1);
       w.host().store(2);
     },
     {[](W&, P& p) { p.allocate(2); }, [](W&, P& p) { p.store(3); }}},
    // ---- waiting for room ----
    {"wait-free", {.units = 2}, live_two,
     {[](W&, P& p) {
        p.free_one();
        p.free_one();
      },
      [](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      }},
     [](W& w) { require(w.at(1).refused() == 0, "units came free and the waiter got none"); },
     true},
    {"wait-wait", {.units = 2}, nullptr,
     {[](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      },
      [](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      }},
     [](W& w) { require(refused(w) == 0, "a waiter was passed over"); },
     true},
    {"wait-expired", {.units = 2}, live_two,
     {[](W&, P& p) {
        p.wait_reserve(2, 1'000'000);
        p.free_one();
        p.free_one();
      },
      [](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      }},
     [](W& w) { require(w.at(1).refused() == 0, "an expired waiter held up the next"); },
     true},
    {"wait-store", {.units = 4},
     [](W& w) {
       w.host().store(1);
       w.host().store(2);
     },
     {[](W&, P& p) {
        p.wait_reserve(3, 1'000'000'000);
        p.release();
      },
      [](W&, P& p) { p.store(3); }},
     [](W& w) { require(w.at(0).refused() == 0, "a waiter was passed over"); },
     true},
};

const bool added = (add_catalog_scenes("pool", scripts, std::size(scripts)), true);

const bool reservations_added =
    add_part<reservation_twice>("reservation-twice", false, "pool") &&
    add_part<reservation_aba>("reservation-aba", false, "pool") &&
    add_part<reservation_parts>("reservation-parts", false, "pool") &&
    add_part<reservation_parts_aba>("reservation-parts-aba", false, "pool") &&
    add_part<reservation_named>("reservation-named", false, "pool") &&
    add_part<reservation_cleared>("reservation-cleared", false, "pool") &&
    add_part<reservation_cleared_anew>("reservation-cleared-anew", false, "pool") &&
    add_part<reservation_cleared_first>("reservation-cleared-first", false, "pool");

}  // namespace

}  // namespace cairn::explore
