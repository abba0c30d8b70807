// The mutations: protocol faults that the explorer must find, each with the scene that finds it.
// See fault.hpp for how an access is named.
#include "stress/explore/fault.hpp"

namespace cairn::explore {

namespace {

using enum fault_kind;

constexpr const char* records = "runtime/catalog_records.cpp";
constexpr const char* index = "runtime/index.hpp";
constexpr const char* bitmap = "runtime/bitmap.cpp";
constexpr const char* op_table = "runtime/op_table.cpp";
constexpr const char* op_entries = "runtime/op_table_entries.cpp";
constexpr const char* reservations = "runtime/unit_pool_reserve.cpp";
constexpr const char* pool_state = "runtime/unit_pool_state.hpp";
constexpr const char* batch = "runtime/copy_batch.hpp";

const fault list[] = {
    // ---- records: orders ----
    {"unpin relaxed", "restore-evict-one", "runtime/catalog_state.hpp",
     "r.word.fetch_sub_acq_rel(one)", relaxed},
    // ---- records: the protocol ----
    {"eviction ignores a pin", "restore-evict-one", records,
     "if (!r.word.cas_acq_rel(bits, after.bits())) continue;", blind},
    {"reclaim not elected", "forget-restore-restore", records,
     "if (r.word.cas_acq_rel(expected, next.bits())) reclaim(id, true);", blind},
    {"early unpin", "restore-evict-one", nullptr, nullptr, coded},
    {"pin after a check", "restore-evict-one", nullptr, nullptr, coded},
    {"pin without its key", "restore-aba", nullptr, nullptr, coded},
    {"pin after a check", "pin-evict", nullptr, nullptr, coded},
    {"wrong pin kept", "restore-aba", nullptr, nullptr, coded},
    {"wrong pin undone by a store", "restore-aba", nullptr, nullptr, coded},
    {"transition without comparing", "forget-finish", records,
     "if (r.word.cas_acq_rel(bits, after.bits())) return true;", blind},
    {"bare pin generation kept", "expire-pin-anew", nullptr, nullptr, coded},
    {"bare pin falls twice", "expire-unpin", "runtime/pin_table.hpp",
     "if (!e.word.cas_release(word, freed)) return false;", blind},
    {"bare pin's entry taken without comparing", "pin-pin", "runtime/pin_table.hpp",
     "if (at.cas_acquire(word, word + 1)) return true;", blind},
    // ---- the index ----
    {"index: insertion without comparing", "store-store-store", index,
     "if (head.cas_acq_rel(seen, wanted.pack())) return none;", blind},
    {"index: no second look at the edge", "index-astray", index,
     "if (at->load_acquire() != seen) return false;", stale},
    {"index: node not marked", "index-erase", index,
     "mine.link.fetch_or_acq_rel(link_word::erased_bit);", skipped},
    {"index: unlinked without comparing", "index-erase", index,
     "if (!at->cas_acq_rel(seen, around)) return false;", blind},
    // ---- ops ----
    {"op generation kept", "rank-late-other", nullptr, nullptr, coded},
    {"failure as success", "rank-rank-fail", nullptr, nullptr, coded},
    {"failure as success", "forget-fail", nullptr, nullptr, coded},
    {"unproven forgotten", "rank-rank-unproven", nullptr, nullptr, coded},
    {"a rank counts twice", "rank-twice-at-once", nullptr, nullptr, coded},
    {"first rank ends the op", "rank-rank", nullptr, nullptr, coded},
    {"cancel of a taken op", "cancel-take", nullptr, nullptr, coded},
    {"end before the record", "wait-finish", nullptr, nullptr, coded},
    {"op entry taken without comparing", "ops-entries", op_entries,
     "if (state.cas_acquire(bits, mine.bits())) return true;", blind},
    {"op entry taken relaxed", "ops-entries", op_entries,
     "if (state.cas_acquire(bits, mine.bits())) return true;", relaxed},
    {"op entry given back relaxed", "ops-room", op_entries, "state.store_release(free.bits());",
     relaxed},
    {"own entries looked at once", "ops-room", nullptr, nullptr, coded},
    {"end not rung", "wait-finish", op_table, "e.bell.fetch_add_release(1);", skipped},
    // ---- units ----
    {"credits before bits", "reserve-release-all", nullptr, nullptr, coded},
    {"credits taken without comparing", "reserve-reserve", pool_state,
     "if (credits_.cas_acquire(seen, seen - count)) return true;", blind},
    {"claim without a credit", "claim-reserve", nullptr, nullptr, coded},
    {"unit taken without comparing", "free-free", pool_state,
     "return units_[id].word.cas_acq_rel(seen, next);", blind},
    {"unit generation kept", "claim-aba", pool_state,
     "return units_[id].word.cas_acq_rel(seen, next);", kept},
    {"vacant by a look", "reservation-named", nullptr, nullptr, coded},
    {"release not elected", "reservation-twice", reservations,
     "return held.cas_acq_rel(seen, {seen.generation + 1, 0});", blind},
    {"tenure generation kept", "reservation-aba", reservations,
     "return held.cas_acq_rel(seen, {seen.generation + 1, 0});", kept},
    {"units before their part", "reservation-parts", nullptr, nullptr, coded},
    {"part not ended", "reservation-parts-aba", reservations,
     "part.held.store_relaxed({part.held.load_relaxed().generation + 1, 0});", skipped},
    {"cleared units not told of", "reservation-cleared", "runtime/unit_pool_index.cpp",
     "if (any) state_->credits_.fetch_or_acq_rel(state::cleared_bit);", skipped},
    {"no second look at cleared units", "reservation-cleared-anew", nullptr, nullptr, coded},
    // ---- sets and orders ----
    {"set: no second look at the word", "bitmap-stays", nullptr, nullptr, coded},
    {"set: summary not raised", "bitmap-levels", bitmap, "above.fetch_or_acq_rel(bit_of(w));",
     skipped},
    {"set: member put relaxed", "bitmap-levels", bitmap,
     "level_[0][w].fetch_or_acq_rel(members.bits);", relaxed},
    {"set: member taken relaxed", "bitmap-levels", bitmap, "seen = at.fetch_and_acq_rel(~wanted);",
     relaxed},
    {"no second look at the children", "order-back", nullptr, nullptr, coded},
    {"order: helps where it changes", "order-overtaken", nullptr, nullptr, coded},
    {"sum: what went looked at once", "sum-moves", nullptr, nullptr, coded},
    // ---- doors and rings ----
    {"gate: room without comparing", "gate-close", "runtime/room_gate.hpp",
     "if (word_.cas_acquire(seen, want)) return status::ok;", blind},
    {"gate: room given back relaxed", "gate-close", "runtime/room_gate.hpp",
     "word_.fetch_sub_release(count * one);", relaxed},
    {"row tag kept", "rows-aba", nullptr, nullptr, coded},
    {"row put back relaxed", "rows", "runtime/index_stack.hpp",
     "while (!head_.cas_release(seen, make(i, seen)));", relaxed},
    {"completion put relaxed", "completions", "runtime/completion_ring.hpp",
     "c.turn.store_release(at + 1);", relaxed},
    {"completion taken relaxed", "completions-wrap", "runtime/completion_ring.hpp",
     "c.turn.store_release(head_ + mask_ + 1);", relaxed},
    {"work shown relaxed", "work-item-one", "runtime/work_ring.hpp",
     "place.turn.store_release(free_turn + 1);", relaxed},
    {"work done relaxed", "work-item-one", "runtime/work_ring.hpp", "done_.store_release(head_);",
     relaxed},
    {"sleeper unannounced", "bell", nullptr, nullptr, coded},
    {"submitter not counted", "flight-close", "runtime/flight.hpp",
     "const std::uint64_t before = word_.fetch_add_acquire(one_submitter);", skipped},
    {"leaving relaxed", "flight-close", "runtime/flight.hpp",
     "word_.fetch_sub_acq_rel(one_submitter) - one_submitter;", relaxed},
    // ---- the data plane's fences ----
    {"mark before the event", "fence-marks", nullptr, nullptr, coded},
    {"stream wait dropped", "runtime-forget", nullptr, nullptr, coded},
    {"event fired early", "runtime-forget", nullptr, nullptr, coded},
    {"work taken relaxed", "work-item-one", "runtime/work_ring.hpp",
     "return place.turn.load_acquire() == full_turn", relaxed},
    {"event reused under a holder", "batch-hold", batch,
     "return (word_.fetch_or_acq_rel(retired_bit) & holder_mask) == 0;", skipped},
    {"hold without comparing", "batch-hold", batch,
     "if (word_.cas_acquire(seen, seen + one_holder)) return true;", blind},
    {"drop relaxed", "batch-hold", batch,
     "const std::uint64_t before = word_.fetch_sub_release(one_holder);", relaxed},
    {"batch opened relaxed", "batch-hold", batch, "word_.fetch_or_release(live_bit);", relaxed},
    {"launch shown relaxed", "board-reuse", "runtime/op_board.hpp",
     "!word.cas_release(seen, make(op.generation, to, batch))) {", relaxed},
    {"compute not waited for", "runtime-forget", nullptr, nullptr, coded},
    {"last copy not waited for", "slot-order", nullptr, nullptr, coded},
    {"ops of a slot unnumbered", "runtime-slot-ranks", nullptr, nullptr, coded},
    {"no look before the sleep", "runtime-sated", nullptr, nullptr, coded},
    {"last tenant not waited for", "runtime-tenants", nullptr, nullptr, coded},
    {"batch never opened", "runtime-forget", nullptr, nullptr, coded},
    {"copy over before its event", "runtime-forget", nullptr, nullptr, coded},
    {"staging reused under a copy", "runtime-cancel", nullptr, nullptr, coded},
    {"slot free relaxed", "deadline-slot", "runtime/op_board.hpp",
     "entries_[slot].fate.fetch_sub_release(one_kept);", relaxed},
    {"slot passed relaxed", "board-slot", "runtime/op_board.hpp",
     "entries_[slot].passed.fetch_add_release(1);", relaxed},
    // ---- how ops end ----
    {"failed copy as success", "slot-poison", nullptr, nullptr, coded},
    {"lost device not told", "device-lost", nullptr, nullptr, coded},
    {"loss told before records go", "device-lost-told", nullptr, nullptr, coded},
    {"checksum ignored", "image-corrupt", nullptr, nullptr, coded},
    {"poison forgotten", "slot-poison-behind", nullptr, nullptr, coded},
    {"waiter for an end unannounced", "wait-finish", nullptr, nullptr, coded},
    {"op reported twice", "runtime-cancel", nullptr, nullptr, coded},
    {"room never comes back", "runtime-close", nullptr, nullptr, coded},
    {"cancelled op runs", "runtime-cancel", nullptr, nullptr, coded},
    {"refused op keeps its turn", "quiet-deadline", nullptr, nullptr, coded},
    {"deadline of a copy missed", "deadline-late", nullptr, nullptr, coded},
    {"deadline of a waiting op missed", "quiet-deadline", nullptr, nullptr, coded},
    {"given up copy forgotten", "deadline-late", nullptr, nullptr, coded},
    {"given up op reported again", "deadline-late", nullptr, nullptr, coded},
    {"slot left to a given up copy", "deadline-late", nullptr, nullptr, coded},
    // ---- the same, met by devices that go wrong as the schedule says ----
    {"failed copy as success", "trouble-one", nullptr, nullptr, coded},
    {"checksum ignored", "trouble-evict", nullptr, nullptr, coded},
    {"failure as success", "trouble-ranks", nullptr, nullptr, coded},
    {"unproven forgotten", "trouble-ranks-evict", nullptr, nullptr, coded},
    {"a rank counts twice", "trouble-ranks-evict", nullptr, nullptr, coded},
    {"given up copy forgotten", "trouble-late", nullptr, nullptr, coded},
    {"slot left to a given up copy", "trouble-late", nullptr, nullptr, coded},
    {"lost device not told", "trouble-lost", nullptr, nullptr, coded},
    {"lost device not told", "trouble-ranks-lost", nullptr, nullptr, coded},
    {"cancelled op runs", "trouble-cancel", nullptr, nullptr, coded},
    {"op reported twice", "trouble-close", nullptr, nullptr, coded},
    // ---- quiet ----
    {"launch under quiet", "quiet-ops", nullptr, nullptr, coded},
    {"quiet with copies in flight", "quiet-ops", nullptr, nullptr, coded},
    {"quiet shown relaxed", "hush", "runtime/quiescence.hpp",
     "if (word_.cas_release(seen, seen | quiet_bit)) return true;", relaxed},
    {"quiet left relaxed", "hush", "runtime/quiescence.hpp",
     "if (word_.cas_release(seen, want)) return;", relaxed},
    {"quiet without comparing", "hush", "runtime/quiescence.hpp",
     "if (word_.cas_release(seen, seen | quiet_bit)) return true;", blind},
    // ---- staging of the HIP backend ----
    {"flight not counted", "staging-one", nullptr, nullptr, coded},
    {"place taken without comparing", "staging-one", "runtime/hip_staging.cpp",
     "return words_[place].cas_acquire(seen, (seen & ~state_mask) | taken_place);", blind},
    {"place given relaxed", "staging-give", "runtime/hip_staging.cpp",
     "words_[place].store_release(flights | free_place);", relaxed},
    // ---- boundaries ----
    {"boundary dropped without comparing", "pending-aba", "runtime/pending_table.cpp",
     "if (!raw.cas_acq_rel(expected, 0)) continue;", blind},
    {"boundary's bit not set", "pending-drop", "runtime/pending_table.cpp",
     "bits_[sequence / bits_per_word].fetch_or_release(std::uint64_t{1} << sequence % "
     "bits_per_word);",
     skipped},
    // ---- progress: found by suspending a thread ----
    {"wait for settlers", "bitmap-empty", nullptr, nullptr, coded, "freeze"},
    {"two units on one credit", "reservation-cleared-first", nullptr, nullptr, coded, "freeze"},
};

}  // namespace

fault_list known_faults() noexcept {
  return {list, sizeof list / sizeof list[0]};
}

}  // namespace cairn::explore
