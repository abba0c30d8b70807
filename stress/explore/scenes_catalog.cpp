// Scenes on records: every pair of catalog calls that can meet on one key, one record or one op.
// Two images of two units fill the pool of four, so that a third store evicts.
#include "stress/explore/catalog_settings.hpp"

namespace cairn::explore {

namespace {

using W = catalog_world;
using P = player;

void one_pinned(W& w) {
  w.host().store(1);
  w.host().pin_key(1);
  w.at(0).take_over(w.host());
}

std::uint32_t begun(W& w) {
  return w.at(0).begun() + w.at(1).begun() + w.at(2).begun();
}
void one_began(W& w) {
  require(begun(w) == 1, "of several stores of a key exactly one begins");
}
void none_refused(W& w) {
  require(refused(w) == 0, "a store was refused although one victim was there for each");
}
void nobody_evicted(W& w) {
  require(w.records().fates().evicted == 0, "a store that had room evicted");
}

const catalog_script scripts[] = {
    // ---- one key ----
    {"store-store",
     {},
     nullptr,
     {[](W&, P& p) { p.begin_store(1); }, [](W&, P& p) { p.begin_store(1); }},
     one_began},
    {"store-store-store",
     {},
     nullptr,
     {[](W&, P& p) { p.begin_store(1); }, [](W&, P& p) { p.begin_store(1); },
      [](W&, P& p) { p.begin_store(1); }},
     one_began},
    {"store-store-published",
     {},
     nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.store(1); }},
     nobody_evicted},
    {"store-store-other",
     {},
     nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.store(2); }},
     [](W& w) {
       require(begun(w) == 2, "there was room for both stores");
       nobody_evicted(w);
     }},
    {"store-restore",
     {},
     nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.restore(1); }}},
    {"store-look", {}, one_ready, {[](W&, P& p) { p.store(2); }, [](W&, P& p) { p.look(1); }},
     [](W& w) { require(w.records().contains(key_of(1)), "a READY key is gone without a reason"); }},
    {"restore-restore",
     {},
     one_ready,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.restore(1); }},
     [](W& w) { require(begun(w) == 2, "a restore missed a READY key"); }},
    {"restore-anew",
     {},
     one_ready,
     {[](W&, P& p) { p.restore(1); },
      [](W&, P& p) {
        p.forget(1);
        p.store(1);
      }}},
    // The record changes hands and comes back under the key.
    {"restore-aba",
     {.units = 2},
     one_ready,
     {[](W&, P& p) { p.restore(1); },
      [](W&, P& p) {
        p.forget(1);
        p.store(2);
        p.forget(2);
        p.store(1);
      }}},
    {"look-aba",
     {.units = 2},
     one_ready,
     {[](W& w, P&) {
        const auto found = w.records().lookup(key_of(3));
        require(!found.has_value(), "a key that was never stored is found");
      },
      [](W&, P& p) {
        p.forget(1);
        p.store(2);
        p.forget(2);
        p.store(4);
      }}},
    // ---- eviction ----
    {"restore-evict",
     {},
     full,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.store(3); }},
     none_refused},
    {"restore-restore-evict",
     {},
     full,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.restore(1); },
      [](W&, P& p) { p.store(3); }}},
    {"restore-evict-one",
     {.units = 2},
     one_ready,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.store(3); }}},
    {"evict-evict",
     {},
     full,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(4); }},
     [](W& w) {
       none_refused(w);
       require(w.records().fates().evicted == 2, "two stores evict two images");
     }},
    {"evict-evict-one",
     {.units = 2},
     one_ready,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(4); }},
     [](W& w) { require(begun(w) >= 1, "the one victim was used by nobody"); }},
    {"evict-evict-evict",
     {.units = 6},
     [](W& w) {
       full(w);
       w.host().store(5);
     },
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(4); }, [](W&, P& p) { p.store(6); }},
     none_refused},
    {"evict-forget",
     {},
     full,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.forget(1); }},
     none_refused},
    {"evict-store-victim",
     {},
     full,
     {[](W&, P& p) { p.store(3); }, [](W&, P& p) { p.store(1); }}},
    {"evict-ensure",
     {},
     full,
     {[](W&, P& p) { p.store(3); },
      [](W& w, P&) { static_cast<void>(w.records().ensure_free_units(2)); }}},
    // ---- forget and clear ----
    {"forget-forget",
     {},
     one_ready,
     {[](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.forget(1); }},
     [](W& w) { require(w.pool().free_units() == 4, "a forgotten image keeps its units"); }},
    {"forget-restore",
     {},
     one_ready,
     {[](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.restore(1); }},
     [](W& w) { require(w.pool().free_units() == 4, "a forgotten image keeps its units"); }},
    {"forget-restore-restore",
     {},
     one_ready,
     {[](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.restore(1); },
      [](W&, P& p) { p.restore(1); }},
     [](W& w) { require(w.pool().free_units() == 4, "a forgotten image keeps its units"); }},
    {"forget-finish",
     {},
     one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.forget(1); }}},
    {"forget-fail",
     {},
     one_copying,
     {[](W&, P& p) { p.finish(status::failed); }, [](W&, P& p) { p.forget(1); },
      [](W& w, P&) {
        for (int i = 0; i < 2; ++i)
          require(!w.records().contains(key_of(1)), "a store that fails shows its key");
      }},
     [](W& w) {
       require(!w.records().contains(key_of(1)), "a failed store is READY");
       require(w.pool().free_units() == 4, "a failed store keeps its units");
     }},
    {"forget-store",
     {},
     nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.forget(1); }}},
    {"forget-restored",
     {},
     one_restoring,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.forget(1); },
      [](W&, P& p) { p.store(1); }}},
    {"forget-anew-forget",
     {},
     one_ready,
     {[](W&, P& p) {
        p.forget(1);
        p.store(1);
      },
      [](W&, P& p) { p.forget(1); }}},
    {"corrupt-forget",
     {},
     one_restoring,
     {[](W&, P& p) { p.finish(status::corrupt); }, [](W&, P& p) { p.forget(1); }},
     [](W& w) { require(w.pool().free_units() == 4, "a corrupt image keeps its units"); }},
    {"corrupt-anew",
     {.units = 2},
     one_restoring,
     {[](W&, P& p) { p.finish(status::corrupt); },
      [](W&, P& p) {
        p.forget(1);
        p.store(1);
      }}},
    {"clear-store", {}, nullptr, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.store(1); }}},
    {"clear-restore",
     {},
     one_ready,
     {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.restore(1); }}},
    {"clear-evict", {}, full, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.store(3); }}},
    {"clear-finish", {}, one_copying, {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.clear(); }}},
    {"clear-forget", {}, full, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.forget(1); }}},
    {"clear-unpin", {}, one_pinned, {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.clear(); }}},
    {"clear-clear", {}, full, {[](W&, P& p) { p.clear(); }, [](W&, P& p) { p.clear(); }}},
    // ---- pins ----
    {"unpin-forget",
     {},
     one_pinned,
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.forget(1); }},
     [](W& w) { require(w.pool().free_units() == 4, "a forgotten image keeps its units"); }},
    {"unpin-forget-store",
     {.units = 2},
     one_pinned,
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.forget(1); }, [](W&, P& p) { p.store(1); }}},
    {"unpin-evict",
     {},
     full_pinned,
     {[](W&, P& p) {
        p.use_pinned(1);
        p.unpin();
      },
      [](W&, P& p) { p.store(3); }},
     none_refused},
    {"unpin-evict-parked",
     {.units = 2},
     one_pinned,
     {[](W&, P& p) { p.unpin(); },
      [](W&, P& p) {
        if (p.store(3) != status::ok) p.store(3);
      }}},
    {"unpin-pin-evict",
     {.units = 2},
     one_pinned,
     {[](W&, P& p) { p.unpin(); },
      [](W&, P& p) {
        p.pin_key(1);
        p.use_pinned(1);
        p.unpin();
      },
      [](W&, P& p) { p.store(3); }}},
    {"pin-evict",
     {},
     full,
     {[](W&, P& p) {
        p.pin_key(1);
        p.use_pinned(1);
        p.unpin();
      },
      [](W&, P& p) { p.store(3); }},
     none_refused},
    {"pin-forget",
     {},
     one_ready,
     {[](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      },
      [](W&, P& p) { p.forget(1); }}},
    // Two of three threads have one entry together.
    {"pin-pin",
     {},
     full,
     {[](W&, P& p) {
        p.pin_key(1);
        p.use_pinned(1);
        p.unpin();
      },
      [](W&, P& p) {
        p.pin_key(1);
        p.unpin();
      },
      [](W&, P& p) {
        p.pin_key(2);
        p.use_pinned(2);
        p.unpin();
      }}},
    {"expire-unpin",
     {},
     [](W& w) {
       w.host().store(1);
       w.host().pin_key(1, 10);
       w.at(0).take_over(w.host());
     },
     {[](W&, P& p) { p.unpin(); }, [](W&, P& p) { p.expire(100); },
      [](W&, P& p) { p.expire(100); }}},
    {"expire-pin-anew",
     {},
     [](W& w) {
       w.host().store(1);
       w.host().pin_key(1, 10);
     },
     // The first, for it gets the same entry as the host.
     {[](W&, P& p) {
        p.expire(100);
        p.pin_key(1);
      },
      [](W&, P& p) { p.expire(100); }, [](W&, P& p) { p.forget(1); }}},
    // ---- ends of ops ----
    {"cancel-take",
     {.cancels = true},
     one_copying,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.cancel_slot(0); }}},
    {"cancel-take-restore",
     {.cancels = true},
     one_restoring,
     {[](W&, P& p) { p.finish(); }, [](W&, P& p) { p.cancel_slot(1); },
      [](W&, P& p) { p.forget(1); }}},
    {"cancel-cancel",
     {.cancels = true},
     one_copying,
     {[](W&, P& p) { p.cancel_slot(0); }, [](W&, P& p) { p.cancel_slot(0); },
      [](W&, P& p) { p.begin_store(2); }}},
    {"cancel-begin",
     {.max_ops = 1, .cancels = true},
     one_restoring,
     {[](W&, P& p) { p.finish(); },
      [](W&, P& p) { p.cancel_slot(1); },
      [](W&, P& p) { p.begin_restore(1, 2); }}},
    {"cancel-forget",
     {},
     one_copying,
     {[](W&, P& p) { p.cancel(); }, [](W&, P& p) { p.forget(1); }}},
    {"staged-cancel",
     {.staged = true, .cancels = true},
     nullptr,
     {[](W& w, P& p) {
        if (p.begin_store(1) != status::ok) return;
        // Being handed over: its units are still its own.
        const auto op = p.newest();
        for (unit_id id : op.units) w.take(id, 16);
        for (unit_id id : op.units) w.give(id);
        w.records().submitted(op.op);
        p.finish();
      },
      [](W&, P& p) { p.cancel_slot(0); }, [](W&, P& p) { p.store(2); }}},
    {"limit-begin",
     {.max_ops = 1},
     one_ready,
     {[](W&, P& p) { p.restore(1); }, [](W&, P& p) { p.restore(1); }},
     [](W& w) { require(begun(w) >= 1, "one op fits"); }},
    {"limit-store",
     {.max_ops = 1},
     nullptr,
     {[](W&, P& p) { p.store(1); }, [](W&, P& p) { p.store(2); }},
     [](W& w) { require(begun(w) >= 1, "one op fits"); }},
    {"close-begin",
     {},
     one_ready,
     {[](W& w, P&) { w.records().close(); },
      [](W&, P& p) {
        p.store(2);
        p.restore(1);
      }},
     [](W& w) { w.closed = true; }},
};

const bool added = (add_catalog_scenes("catalog", scripts, std::size(scripts)), true);

}  // namespace

}  // namespace cairn::explore
