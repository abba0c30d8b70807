// Scenes on records, ops and units in which three and four calls meet, and the pairs that the files
// on records, ranks and units leave out: everything against clear, close and a lost rank.
#include "stress/explore/catalog_settings.hpp"

namespace cairn::explore {

namespace {

using W = catalog_world;
using P = player;

void closed(W& w) {
  w.closed = true;
}
void all_free(W& w) {
  require(w.pool().free_units() == w.options.units, "what nobody holds is not free");
}

constexpr world_options two_ranks{.units = 4, .ranks = 2};

const catalog_script scripts[] = {
    // ---- stores ----
    {"store-x4", {.units = 8}, nullptr,
     {[](W&, P& p) { p.begin_store(1); }, [](W&, P& p) { p.begin_store(1); },
      [](W&, P& p) { p.begin_store(1); }, [](W&, P& p) { p.begin_store(1); }},
     [](W& w) {
       std::uint32_t begun = 0;
       for (std::uint32_t t = 0; t < 4; ++t) begun += w.at(t).begun();
       require(begun == 1, "of several stores of a key exactly one begins");
     }},
    {"store-x4-evict", {.units = 4}, full,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(4); }, [](W&, P& p) { p.store(5); },
      [](W&, P& p) { p.look(1); }}},
    {"store-restore-evict", {.units = 2}, nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.store(3); }}},
    {"store-restore-forget", {}, nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.forget(1); }}},
    // ---- evictions ----
    {"restore-evict-forget", {}, full,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.store(3); }, [](W&, P& p) { p.forget(1); }}},
    {"evict-forget-store", {.units = 2}, one_ready,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.store(1); }}},
    {"evict-restore-forget-store", {.units = 2}, one_ready,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.forget(1); },
      [](W&, P& p) { p.store(1); }}},
    {"evict-evict-restore-restore", {.units = 4}, full,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(4); }, [](W&, P& p) { p.restore(1); },
      [](W&, P& p) { p.restore(2); }}},
    {"evict-ensure-allocate", {.units = 4}, full,
     {[](W&, P& p) { p.store(3); },
      [](W& w, P&) { static_cast<void>(w.records().ensure_free_units(2)); },
      [](W&, P& p) { p.allocate(2); }}},
    // ---- ends of ops ----
    {"forget-finish-store", {}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.store(1); }}},
    {"forget-fail-store", {}, one_copying,
     {[](W&, P& p) { p.finish(status::failed); }, [](W&, P& p) { p.forget(1); },
      [](W&, P& p) { p.store(1); }}},
    {"finish-forget-restore-evict", {.units = 2}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.restore(1); },
      [](W&, P& p) { p.store(3); }}},
    {"cancel-finish-forget-store", {.units = 2, .cancels = true}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.cancel_slot(0); },
      [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.begin_store(1); }}},
    {"cancel-restore-evict", {.units = 2, .cancels = true}, one_restoring,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.cancel_slot(1); },
      [](W&, P& p) { p.begin_store(3); }}},
    // ---- pins ----
    {"unpin-forget-evict", {}, full_pinned,
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.store(3); }}},
    {"unpin-expire-forget-evict", {},
     [](W& w) {
       full(w);
       w.host().pin_key(1, 10);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.expire(100); }, [](W&, P& p) { p.forget(1); },
      [](W&, P& p) { p.store(3); }}},
    {"pin-pin-evict-forget", {.units = 2}, one_ready,
     {[](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      },
      [](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      },
      [](W&, P& p) { p.store(3); }, [](W&, P& p) { p.forget(1); }}},
    // ---- clear ----
    {"clear-pin", {}, one_ready,
     {[](W&, P& p) { p.clear(); },
      [](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      }},
     all_free},
    {"clear-expire", {},
     [](W& w) {
       w.host().store(1);
       w.host().pin_key(1, 10);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.clear(); }, [](W&, P& p) { p.expire(100); }},
     all_free},
    {"clear-fail", {}, one_copying,
     {[](W&, P& p) { p.finish(status::failed); }, [](W&, P& p) { p.clear(); }}, all_free},
    {"clear-cancel", {.cancels = true}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.clear(); },
      [](W&, P& p) { p.cancel_slot(0); }},
     all_free},
    {"clear-restored", {}, one_restoring,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.clear(); }, [](W&, P& p) { p.restore(1); }},
     all_free},
    {"clear-evict-store", {}, full,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(1); }}},
    {"clear-ensure", {}, full,
     {[](W&, P& p) { p.clear(); },
      [](W& w, P&) { static_cast<void>(w.records().ensure_free_units(4)); }},
     all_free},
    {"clear-allocate", {}, full, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.allocate(4); }}},
    {"clear-reserve", {}, full, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.reserve(2); }}},
    {"clear-orphan", {.units = 3}, boundary,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.allocate(); }}},
    {"clear-admit", {}, boundary,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.admit(1, 1); }}},
    {"clear-restore-store-forget", {}, one_ready,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.store(1); },
      [](W&, P& p) { p.forget(1); }}},
    {"clear-lose", two_ranks, one_ready,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.lose_rank(1); }, [](W&, P& p) { p.store(2); }}},
    {"clear-prove", two_ranks,
     [](W& w) {
       w.host().begin_store(1);
       w.host().hand_to_device();
       w.host().tell_from(0, status::ok);
       w.host().tell_from(1, status::timed_out);
     },
     {[](W& w, P&) { w.host().prove_from(1); }, [](W&, P& p) { p.clear(); }}, all_free},
    // ---- a lost rank ----
    {"lose-lose", two_ranks, one_ready,
     {[](W&, P& p) { p.lose_rank(0); }, [](W&, P& p) { p.lose_rank(1); },
      [](W&, P& p) { p.store(1); }}},
    {"lose-forget", two_ranks, one_ready,
     {[](W&, P& p) { p.lose_rank(1); }, [](W&, P& p) { p.forget(1); }}, all_free},
    {"lose-evict", two_ranks, full,
     {[](W&, P& p) { p.lose_rank(1); }, [](W&, P& p) { p.store(3); }}},
    {"lose-prove", two_ranks,
     [](W& w) {
       w.host().begin_store(1);
       w.host().hand_to_device();
       w.host().tell_from(0, status::ok);
       w.host().tell_from(1, status::timed_out);
     },
     {[](W& w, P&) { w.host().prove_from(1); }, [](W&, P& p) { p.lose_rank(1); }}, all_free},
    {"lose-pin", two_ranks, one_ready,
     {[](W&, P& p) { p.lose_rank(1); },
      [](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      }},
     all_free},
    // ---- close ----
    {"close-admit", {}, boundary,
     {[](W& w, P&) { w.records().close(); }, [](W&, P& p) { p.admit(1, 1); }}, closed},
    {"close-finish", {}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W& w, P&) { w.records().close(); },
      [](W&, P& p) { p.forget(1); }},
     closed},
    {"close-cancel", {.cancels = true}, one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.cancel_slot(0); },
      [](W& w, P&) { w.records().close(); }},
     closed},
    {"close-store-restore", {}, one_ready,
     {[](W& w, P&) { w.records().close(); }, [](W&, P& p) { p.store(2); },
      [](W&, P& p) { p.restore(1); }},
     closed},
    {"close-wait", {.units = 2},
     [](W& w) {
       w.host().allocate(2);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) { p.free_one(); },
      [](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      },
      [](W& w, P&) { w.records().close(); }},
     closed,
     true},
    // ---- units ----
    {"reserve-x4", {.units = 4}, nullptr,
     {[](W&, P& p) { p.reserve(2); }, [](W&, P& p) { p.reserve(2); }, [](W&, P& p) { p.reserve(2); },
      [](W&, P& p) { p.reserve(2); }},
     [](W& w) {
       std::uint32_t refused = 0;
       for (std::uint32_t t = 0; t < 4; ++t) refused += w.at(t).refused();
       require(refused == 2, "two of four fit");
     }},
    {"reserve-release-x4", {.units = 4}, nullptr,
     {[](W&, P& p) {
        p.reserve(2);
        p.release();
      },
      [](W&, P& p) {
        p.reserve(3);
        p.release();
      },
      [](W&, P& p) { p.reserve(1); },
      [](W&, P& p) {
        p.allocate();
        p.free_one();
      }}},
    {"claim-evict-clear", {.units = 2}, cached,
     {[](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.allocate(2); },
      [](W&, P& p) { p.clear_index(); }}},
    {"claim-evict-publish-free", {.units = 3}, cached,
     {[](W&, P& p) { p.claim(1); }, [](W&, P& p) { p.reserve(3); },
      [](W&, P& p) {
        p.allocate();
        p.publish(1);
        p.free_one();
      },
      [](W&, P& p) { p.look_unit(1); }}},
    {"claim-claim-free-take", {.units = 2}, cached,
     {[](W&, P& p) {
        p.claim(1);
        p.free_one();
      },
      [](W&, P& p) {
        p.claim(1);
        p.free_one();
      },
      [](W&, P& p) { p.allocate(); }, [](W&, P& p) { p.clear_index(); }}},
    {"admit-admit-evict", {.units = 5}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.store(3); }}},
    {"admit-clear-index", {.units = 4}, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.clear_index(); }}},
    {"admit-lose", two_ranks, boundary,
     {[](W&, P& p) { p.admit(1, 1); }, [](W&, P& p) { p.lose_rank(0); }}},
    {"retire-reserve-release", {.units = 3},
     [](W& w) { w.at(1).reserve(1); },
     {[](W&, P& p) { p.retire_top(); }, [](W&, P& p) { p.release(); }, [](W&, P& p) { p.reserve(2); }}},
    {"retire-extend", {.units = 2, .extra_units = 1}, nullptr,
     {[](W&, P& p) { p.retire_top(); }, [](W&, P& p) { p.extend(); }, [](W&, P& p) { p.reserve(1); }}},
    {"retire-clear-index", {.units = 3},
     [](W& w) {
       w.host().cache(1);
       w.host().cache(2);
       w.host().cache(3);
     },
     {[](W&, P& p) { p.retire_top(); }, [](W&, P& p) { p.clear_index(); },
      [](W&, P& p) { p.allocate(); }}},
    {"wait-wait-free", {.units = 2},
     [](W& w) {
       w.host().allocate(2);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) {
        p.free_one();
        p.free_one();
      },
      [](W&, P& p) {
        p.wait_reserve(2, 1'000'000'000);
        p.release();
      },
      [](W&, P& p) {
        p.wait_reserve(1, 1'000'000'000);
        p.release();
      }},
     [](W& w) {
       require(w.at(1).refused() + w.at(2).refused() == 0, "a waiter was passed over");
     },
     true},
};

const bool added = (add_catalog_scenes("pairs", scripts, std::size(scripts)), true);

}  // namespace

}  // namespace cairn::explore
