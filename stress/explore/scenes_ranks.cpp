// Scenes of ops with two ranks: completions that meet each other, a forget, a cancel or a lost
// rank; and callers who wait for an op's end.
#include "stress/explore/catalog_world.hpp"

namespace cairn::explore {

namespace {

using W = catalog_world;
using P = player;

constexpr world_options two_ranks{.units = 4, .ranks = 2};

void copying(W& w) {
  w.host().begin_store(1);
}
void restoring(W& w) {
  w.host().store(1);
  w.host().begin_restore(1);
}

/// The host's op, reported by one rank.
void report(W& w, rank_id rank, status code) {
  w.host().tell_from(rank, code);
}
void taken(W& w) {
  copying(w);
  w.host().hand_to_device();
}
void restore_taken(W& w) {
  restoring(w);
  w.host().hand_to_device();
}

void both_ok(W& w, P&) {
  report(w, 0, status::ok);
  report(w, 1, status::ok);
}
void first_ok(W& w, P&) {
  report(w, 0, status::ok);
}
void second_ok(W& w, P&) {
  report(w, 1, status::ok);
}

void published(W& w) {
  require(w.records().contains(key_of(1)), "both ranks succeeded and the key is not READY");
}
void unwound(W& w) {
  require(!w.records().contains(key_of(1)), "a rank failed and the key is READY");
  require(w.pool().free_units() == 4, "a failed store keeps its units");
}
void ended_once(W& w) {
  require(w.host().told() == 3, "a rank's report did not count");
  require(w.host().ends() == 1, "an op ends once");
}

const catalog_script scripts[] = {
    {"rank-rank",
     two_ranks,
     taken,
     {first_ok, second_ok},
     [](W& w) {
       published(w);
       ended_once(w);
     }},
    {"rank-rank-fail",
     two_ranks,
     taken,
     {[](W& w, P&) { report(w, 0, status::failed); }, second_ok},
     [](W& w) {
       unwound(w);
       ended_once(w);
       require(w.records().fates().failed == 1, "a failure is counted once");
     }},
    {"rank-rank-unproven",
     two_ranks,
     taken,
     {[](W& w, P&) { report(w, 0, status::failed); },
      [](W& w, P&) { report(w, 1, status::timed_out); }},
     [](W& w) {
       ended_once(w);
       require(w.records().counts().quarantine_units == 2, "units that a copy may touch are free");
       w.host().prove_from(1);
       unwound(w);
     }},
    {"rank-rank-proven",
     two_ranks,
     taken,
     {[](W& w, P&) { report(w, 0, status::failed); },
      [](W& w, P&) {
        report(w, 1, status::timed_out);
        w.host().prove_from(1);
      },
      [](W&, P& p) { p.forget(1); }},
     [](W& w) {
       ended_once(w);
       unwound(w);
     }},
    {"prove-prove",
     two_ranks,
     [](W& w) {
       taken(w);
       report(w, 0, status::timed_out);
       report(w, 1, status::timed_out);
     },
     {[](W& w, P&) { w.host().prove_from(0); }, [](W& w, P&) { w.host().prove_from(1); },
      [](W& w, P&) { w.host().prove_from(1); }},
     unwound},
    {"prove-restore",
     two_ranks,
     restore_taken,
     {[](W& w, P&) {
        report(w, 0, status::timed_out);
        w.host().prove_from(0);
      },
      [](W& w, P&) {
        report(w, 1, status::timed_out);
        w.host().prove_from(1);
      },
      [](W&, P& p) { p.forget(1); }},
     [](W& w) {
       ended_once(w);
       require(w.pool().free_units() == 4, "a forgotten image keeps its units");
     }},
    {"rank-rank-twice",
     two_ranks,
     taken,
     {[](W& w, P&) {
        report(w, 0, status::ok);
        report(w, 0, status::failed);
      },
      second_ok},
     [](W& w) {
       ended_once(w);
       published(w);
     }},
    {"rank-twice-at-once",
     two_ranks,
     taken,
     {first_ok, first_ok, second_ok},
     [](W& w) {
       ended_once(w);
       published(w);
     }},
    {"rank-rank-forget",
     two_ranks,
     taken,
     {first_ok, second_ok, [](W&, P& p) { p.forget(1); }},
     ended_once},
    {"rank-late",
     two_ranks,
     taken,
     {both_ok,
      [](W& w, P& p) {
        report(w, 0, status::ok);  // late or early, it is one op's
        p.store(2);
      }},
     ended_once},
    // The index of an op that has ended is another op's when a late report of the first comes.
    {"rank-late-other",
     two_ranks,
     taken,
     {both_ok,
      [](W& w, P& p) {
        p.begin_store(2);
        report(w, 0, status::ok);
        p.finish();
      }},
     ended_once},
    {"rank-rank-restore",
     two_ranks,
     restore_taken,
     {first_ok, [](W& w, P&) { report(w, 1, status::corrupt); }, [](W&, P& p) { p.store(1); }},
     ended_once},
    {"lose-store",
     two_ranks,
     nullptr,
     {[](W&, P& p) { p.lose_rank(1); }, [](W&, P& p) { p.store(1); }}},
    {"lose-restore",
     two_ranks,
     [](W& w) { w.host().store(1); },
     {[](W&, P& p) { p.lose_rank(1); }, [](W&, P& p) { p.restore(1); }}},
    {"lose-finish", two_ranks, taken, {[](W&, P& p) { p.lose_rank(1); }, both_ok}},
    {"epoch-store",
     two_ranks,
     nullptr,
     {[](W& w, P&) { w.records().advance_epoch(); }, [](W&, P& p) { p.store(1); },
      [](W&, P& p) { p.store(1); }}},
    // ---- those who wait ----
    {"wait-finish",
     two_ranks,
     [](W& w) {
       taken(w);
       w.records().observe(w.host().newest().op);
     },
     {both_ok,
      [](W& w, P&) {
        const op_id op = w.host().newest().op;
        const status got = w.records().wait(op, deadline(std::chrono::hours(10)));
        require(got == status::ok, "a waiter learns that the op succeeded");
        require(w.records().contains(key_of(1)), "who sees the end sees the key READY");
      }},
     [](W& w) { w.records().unobserve(w.host().newest().op); },
     true},
    {"wait-wait-fail",
     two_ranks,
     [](W& w) {
       taken(w);
       w.records().observe(w.host().newest().op);
     },
     {[](W& w, P&) {
        report(w, 1, status::failed);
        report(w, 0, status::ok);
      },
      [](W& w, P&) {
        require(w.records().wait(w.host().newest().op, deadline(std::chrono::hours(10))) ==
                    status::failed,
                "a waiter learns that the op failed");
      },
      [](W& w, P&) {
        require(w.records().wait(w.host().newest().op, deadline(std::chrono::hours(10))) ==
                    status::failed,
                "a waiter learns that the op failed");
      }},
     [](W& w) { w.records().unobserve(w.host().newest().op); },
     true},
    {"observe-end",
     two_ranks,
     taken,
     {both_ok,
      [](W& w, P&) {
        const op_id op = w.host().newest().op;
        w.records().observe(op);
        static_cast<void>(w.records().op_status(op));
        w.records().unobserve(op);
      },
      [](W&, P& p) { p.store(2); }}},
};

const bool added = (add_catalog_scenes("ranks", scripts, std::size(scripts)), true);

}  // namespace

}  // namespace cairn::explore
