// A catalog of cairn over a unit_pool, and its model over the model's pool, with the ops in flight
// and the pins that the test holds in both. Each operation compares every answer.
#pragma once

#include <algorithm>
#include <cairn/catalog.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "differential.hpp"
#include "differential_pools.hpp"
#include "differential_shape.hpp"
#include "model_catalog.hpp"

namespace differential {

using cairn::copy_kind;
using cairn::placement_hint;
using cairn::slot_id;

class catalog_pair {
 public:
  catalog_pair(const catalog_shape& shape, dice& random, history& past)
      : pools(shape.units, shape.max_units, shape.keys, random, past),
        model({shape.per_image, shape.slots, shape.ranks, shape.max_ops, shape.max_pins,
               model_policy(shape.policy)},
              pools.model),
        shape_(shape),
        random_(random),
        past_(past) {
    if (past_.failed()) return;
    cairn::catalog_options opts;
    opts.shape = {10, shape.per_image * 10ULL + 7, shape.per_image * 10ULL - 5, "differential"};
    opts.ranks = shape.ranks;
    opts.slots = shape.slots;
    opts.max_ops = shape.max_ops;
    opts.max_pins = shape.max_pins;
    opts.policy = cairn_policy(shape.policy);
    auto opened = cairn::catalog::open(std::move(opts), *pools.cairn);
    if (opened.ok()) {
      cairn = std::move(opened.value());
    } else {
      past_.fail("open: " + opened.why().message());
    }
  }

  pool_pair pools;
  std::unique_ptr<cairn::catalog> cairn;
  cairn_model::catalog model;

  // ---- stores and restores --------------------------------------------------------
  /// Returns the status that both agree on.
  status begin_store(const checkpoint_key& key, slot_id slot, placement_hint hint) {
    past_.note("begin_store(%u, slot %u, hint %d)", pool_pair::number(key), slot,
               static_cast<int>(hint));
    auto answer = cairn->begin_store(key, slot, hint);
    compare_begun(answer, model.begin_store(key, slot, hint), copy_kind::store, slot);
    return answer.code();
  }
  void begin_restore(const checkpoint_key& key, slot_id slot) {
    past_.note("begin_restore(%u, slot %u)", pool_pair::number(key), slot);
    auto answer = cairn->begin_restore(key, slot);
    compare_begun(answer, model.begin_restore(key, slot), copy_kind::restore, slot);
  }
  void take(std::size_t place) {
    flight& op = flights_[place];
    past_.note("take(op %u)", number(op));
    op.taken = true;
    past_.same("take", cairn->take(op.id), model.take(op.stamp));
  }
  void cancel(std::size_t place) {
    flight op = flights_[place];
    past_.note("cancel(op %u)", number(op));
    bool expected = model.cancel(op.stamp);
    past_.same("cancel", cairn->cancel(op.id), expected);
    if (expected) land(place);
  }
  void cancel_slot(copy_kind kind, slot_id slot) {
    bool store = kind == copy_kind::store;
    past_.note("cancel_%s(slot %u)", store ? "stores" : "restores", slot);
    std::uint32_t expected = store ? model.cancel_stores(slot) : model.cancel_restores(slot);
    past_.same("cancelled", store ? cairn->cancel_stores(slot) : cairn->cancel_restores(slot),
               expected);
    land_cancelled(kind, slot);
  }
  /// Ops that a cancel by slot has ended.
  void land_cancelled(copy_kind kind, slot_id slot) {
    for (std::size_t i = flights_.size(); i > 0; --i) {
      const flight& op = flights_[i - 1];
      if (op.kind == kind && op.slot == slot && !op.taken) land(i - 1);
    }
  }

  /// The latest op was cancelled by whoever began it.
  void land_latest() { land(flights_.size() - 1); }

  /// The next completion in the order in which the ops began; all ranks may take turns.
  void complete_one() {
    if (flights_.empty()) return;
    flight& op = flights_.front();
    if (!op.taken) take(0);
    std::uint32_t rank = random_.below(shape_.ranks);
    status code = status::ok;
    if (random_.one_in(12)) code = status::failed;
    if (op.kind == copy_kind::restore && random_.one_in(12)) code = status::corrupt;
    if (finish(op, rank, code)) land(0);
  }
  void complete_all() {
    while (!flights_.empty() && !past_.failed()) complete_one();
  }
  /// A completion that must not count: of an op that is over, of a rank or an epoch that is not.
  void complete_wrongly() {
    if (landed_.empty()) return;
    flight op = random_.pick(landed_);
    switch (random_.below(4)) {
      case 0:
        past_.note("take(op %u), which is over", number(op));
        return past_.same("take", cairn->take(op.id), false);
      case 1:
        past_.note("cancel(op %u), which is over", number(op));
        return past_.same("cancel", cairn->cancel(op.id), false);
      case 2:
        if (flights_.empty()) return;
        finish(flights_.front(), shape_.ranks + random_.below(40), status::ok);
        return;
      default:
        finish(op, random_.below(shape_.ranks), status::ok);
    }
  }

  // ---- removing and room ----------------------------------------------------------
  void forget(const checkpoint_key& key) {
    past_.note("forget(%u)", pool_pair::number(key));
    past_.same("forget", cairn->forget(key), model.forget(key));
  }
  void orphan(const checkpoint_key& key) {
    past_.note("orphan(%u)", pool_pair::number(key));
    past_.same("orphan", cairn->orphan(key), model.orphan(key));
  }
  void clear() {
    past_.note("clear()");
    cairn->clear();
    model.clear();
  }
  void ensure_free_units(std::uint32_t count) {
    past_.note("ensure_free_units(%u)", count);
    same_room_status("ensure_free_units", cairn->ensure_free_units(count).code(),
                     model.ensure_free_units(count));
  }
  void allocate(std::uint32_t count) {
    past_.note("catalog allocate(%u)", count);
    std::vector<unit_id> ids(count, no_unit);
    status code = cairn->allocate(ids).code();
    auto expected = model.allocate(count);
    same_room_status("allocate", code, expected.code);
    if (code == status::ok && !past_.failed()) pools.keep_allocated(code, ids, expected);
  }
  /// Returns the units, or none when both refuse.
  std::vector<unit_id> admit(const std::vector<checkpoint_key>& keys, std::uint32_t fresh,
                             slot_id slot) {
    past_.note("admit(%s, fresh %u, slot %u)", tell(keys).c_str(), fresh, slot);
    std::vector<unit_id> ids(keys.size() + fresh, no_unit);
    auto answer = cairn->admit(keys, fresh, slot, ids);
    auto expected = model.admit(keys, fresh, slot);
    same_refusal("admit", answer.code(), expected.refusals);
    if (past_.failed() || !answer.ok()) return {};
    past_.same("kv_hit", answer->kv_hit, expected.kv_hit);
    past_.same("resumed", answer->resumed, expected.resumed);
    past_.same("admitted", ids, expected.units);
    pools.shares().insert(pools.shares().end(), ids.begin(), ids.end());
    past_.same("restore", answer->restore.has_value(), expected.resumed > 0);
    if (answer->restore && !past_.failed())
      compare_op(*answer->restore, expected.restore, copy_kind::restore, slot);
    return ids;
  }
  /// A request from its admission to the KV that it leaves behind, and perhaps a store.
  void run_request() {
    std::vector<checkpoint_key> keys = any_keys();
    std::vector<unit_id> ids = admit(keys, random_.below(3), any_slot());
    if (ids.empty() || random_.one_in(6)) return;
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (pools.model.lookup(keys[i]) != ids[i]) pools.publish(ids[i], keys[i]);
    if (!keys.empty() && !random_.one_in(3)) begin_store(random_.pick(keys), any_slot(), {});
    if (random_.one_in(2)) complete_all();
    while (random_.below(4) > 0) pools.free_share();
  }

  // ---- bare pins ------------------------------------------------------------------
  void pin_longest(const std::vector<checkpoint_key>& keys, std::uint32_t hit) {
    past_.note("pin_longest(%s, hit %u)", tell(keys).c_str(), hit);
    auto answer = cairn->pin_longest(keys, hit, cairn::clock::now() + std::chrono::hours(100));
    auto expected = model.pin_longest(keys, hit);
    past_.same("pin_longest", answer.code(), expected.code);
    if (!answer.ok() || past_.failed()) return;
    past_.same("pinned length", answer->length, expected.length);
    pins_.emplace_back(*answer, expected.pin);
  }
  void release_pin() {
    if (pins_.empty()) return;
    std::swap(random_.pick(pins_), pins_.back());
    auto [pin, expected] = pins_.back();
    if (!random_.one_in(8)) pins_.pop_back();  // else it will be released again, in vain
    past_.note("release_pin(%u)", static_cast<unsigned>(expected));
    past_.same("release_pin", cairn->release_pin(pin), model.release_pin(expected));
  }
  void release_pins() {
    while (!pins_.empty()) release_pin();
  }

  // ---- comparing ------------------------------------------------------------------
  void compare() {
    pools.compare(false);
    for (std::uint32_t n = 0; n < shape_.keys; ++n) {
      past_.same("contains", cairn->contains(key_of(n)), model.contains(key_of(n)));
      past_.same("contains_or_copying", cairn->contains_or_copying(key_of(n)),
                 model.contains_or_copying(key_of(n)));
    }
    compare_counts();
    compare_fates();
    compare_room();
  }

  std::vector<checkpoint_key> any_keys() {
    std::vector<checkpoint_key> keys;
    bool chain = !random_.one_in(4);  // most prompts share their prefix
    std::uint32_t first = random_.below(2);
    std::uint32_t length = random_.below(std::min(6U, shape_.keys - first) + 1);
    for (std::uint32_t i = 0; i < length; ++i) {
      checkpoint_key key = chain ? key_of(first + i) : pools.any_key();
      bool twice = std::find(keys.begin(), keys.end(), key) != keys.end();
      if (!twice) keys.push_back(key);  // a prompt has no key twice
    }
    return keys;
  }
  slot_id any_slot() {
    return random_.one_in(60) ? shape_.slots + random_.below(2) : random_.below(shape_.slots);
  }
  std::size_t in_flight() const { return flights_.size(); }
  const catalog_shape& shape() const { return shape_; }

  /// Compares the answers of a begin; the op is in flight from here on.
  void compare_begun(const cairn::result<cairn::copy_op>& answer,
                     const cairn_model::begin_answer& expected, copy_kind kind, slot_id slot) {
    same_refusal("begin", answer.code(), expected.refusals);
    if (answer.ok() && !past_.failed()) compare_op(answer.value(), expected, kind, slot);
  }
  /// `code` must be one of the reasons that apply; none apply when the call succeeds.
  void same_refusal(const char* what, status code, const std::set<status>& reasons) {
    if (reasons.empty()) return past_.same(what, code, status::ok);
    if (reasons.count(code) != 0) return;
    if (code != status::ok) {
      for (status reason : reasons)
        if (both_room(code, reason)) return;
    }
    past_.same(what, code, *reasons.begin());
  }

 private:
  struct flight {
    cairn::op_id id;
    std::uint64_t stamp = 0;
    std::uint32_t epoch = 0;
    slot_id slot = 0;
    copy_kind kind = copy_kind::store;
    bool taken = false;
  };

  static unsigned number(const flight& op) { return static_cast<unsigned>(op.stamp); }
  static std::string tell(const std::vector<checkpoint_key>& keys) {
    std::string text = "{";
    for (const auto& key : keys) text += ' ' + std::to_string(pool_pair::number(key));
    return text + " }";
  }

  /// With bare pins and a policy that passes over, both refusals describe the same want of units.
  bool both_room(status a, status b) const {
    auto room = [](status s) { return s == status::no_room || s == status::passed_over; };
    return model.pins() > 0 && shape_.policy == policy_kind::spare_anchors && room(a) && room(b);
  }
  void same_room_status(const char* what, status code, status expected) {
    if (!both_room(code, expected)) past_.same(what, code, expected);
  }

  void compare_op(const cairn::copy_op& op, const cairn_model::begin_answer& expected,
                  copy_kind kind, slot_id slot) {
    const auto& header = op.header;
    past_.same("begin_stamp", header.begin_stamp, expected.stamp);
    past_.same("units", std::vector<unit_id>(op.units.begin(), op.units.end()), expected.units);
    past_.same("unit_count", header.unit_count, shape_.per_image);
    past_.same("kind", header.kind, kind);
    past_.same("slot", header.slot, slot);
    past_.same("image_bytes", header.image_bytes, cairn->shape().image_bytes);
    past_.same("fingerprint", header.layout_fingerprint, cairn->shape().fingerprint());
    flights_.push_back({header.op, header.begin_stamp, header.epoch, slot, kind, false});
  }
  bool finish(const flight& op, std::uint32_t rank, status code) {
    past_.note("finish(op %u, rank %u, %s)", number(op), rank, cairn::to_string(code));
    cairn::completion what;
    what.op = op.id;
    what.rank = rank;
    what.epoch = op.epoch;
    what.code = code;
    auto outcome = cairn->finish(what);
    auto expected = model.finish(op.stamp, rank, code);
    past_.same("counted", outcome.counted, expected.counted);
    past_.same("ended", outcome.ended, expected.ended);
    if (!expected.counted) return false;
    past_.same("outcome", outcome.code, expected.code);
    past_.same("outcome's kind", outcome.kind, expected.kind);
    return expected.ended;
  }
  void land(std::size_t place) {
    landed_.push_back(flights_[place]);
    if (landed_.size() > 8) landed_.pop_front();
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  void compare_counts() {
    auto counts = cairn->counts();
    past_.same("copying", counts.copying, model.count(cairn_model::record_state::copying));
    past_.same("ready", counts.ready, model.count(cairn_model::record_state::ready));
    past_.same("evicting", counts.evicting, model.count(cairn_model::record_state::evicting));
    past_.same("checkpoint_units", counts.checkpoint_units, model.checkpoint_units());
    past_.same("quarantine_units", counts.quarantine_units, 0U);
    past_.same("ops", counts.ops, model.ops());
    past_.same("pins", counts.pins, model.pins());
  }
  void compare_fates() {
    auto fates = cairn->fates();
    const cairn_model::fates& expected = model.counted();
    auto dropped = [&](cairn::drop_reason why) {
      return fates.dropped[static_cast<std::size_t>(why)];
    };
    past_.same("kept", fates.kept, expected.kept);
    past_.same("no_room", dropped(cairn::drop_reason::no_room), expected.dropped_no_room);
    past_.same("superseded", dropped(cairn::drop_reason::superseded), expected.dropped_superseded);
    past_.same("queue_full", dropped(cairn::drop_reason::queue_full), expected.dropped_queue_full);
    past_.same("closed", dropped(cairn::drop_reason::closed), expected.dropped_closed);
    past_.same("evicted", fates.evicted, expected.evicted);
    past_.same("orphaned", fates.orphaned, expected.orphaned);
    past_.same("failed", fates.failed, expected.failed);
    past_.same("cancelled", fates.cancelled, expected.cancelled);
  }
  void compare_room() {
    past_.same("evictable", cairn->evictable(), model.evictable());
    checkpoint_key protect = pools.any_key();
    std::uint32_t near = model.evictable() * shape_.per_image + pools.model.free_units();
    for (std::uint32_t count : {0U, pools.model.free_units() + 1, near, near + 1,
                                near - std::min(near, shape_.per_image), random_.below(near + 4)}) {
      past_.same("has_available_units", cairn->has_available_units(count),
                 model.has_available_units(count));
      past_.same("has_available_units but", cairn->has_available_units(count, &protect),
                 model.has_available_units(count, &protect));
    }
  }

  catalog_shape shape_;
  dice& random_;
  history& past_;
  std::deque<flight> flights_;  // in the order in which they began
  std::deque<flight> landed_;   // the last few that are over
  std::vector<std::pair<cairn::pin, std::uint64_t>> pins_;
};

}  // namespace differential
