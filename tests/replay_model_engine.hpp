// The sequential model behind the simulation's engine interface: what cairn_replay should find
// with one thread. Copies end in the order in which they began, whenever settle is called.
#pragma once

#include <map>
#include <vector>

#include "bench/replay/engine.hpp"
#include "tests/model.hpp"

namespace cairn_model {

class replay_engine final : public cairn::replay::engine {
 public:
  replay_engine(std::uint32_t units, std::uint32_t slots, std::uint32_t units_per_checkpoint)
      : pool_(units),
        catalog_({units_per_checkpoint, slots, 1, 1U << 20, 1024, {}}, pool_),
        sequences_(slots, catalog_) {}

  void settle(std::int64_t = 0) override {
    for (std::uint64_t stamp : in_flight_) catalog_.finish(stamp, 0, status::ok);
    in_flight_.clear();
  }
  void quiet(bool) override { settle(); }

  std::optional<cairn::replay::admitted> admit(cairn::replay::run_id, slot_id slot,
                                               std::span<const checkpoint_key> keys,
                                               std::uint32_t fresh,
                                               std::span<unit_id> units) override {
    sequences_.set_slot(slot, slot);
    auto answer = catalog_.admit({keys.begin(), keys.end()}, fresh, slot);
    if (!answer.ok()) return std::nullopt;
    std::copy(answer.units.begin(), answer.units.end(), units.begin());
    if (answer.resumed > 0) in_flight_.push_back(answer.restore.stamp);
    return cairn::replay::admitted{answer.resumed, answer.kv_hit};
  }
  bool has_available_units(std::uint32_t count, const checkpoint_key* protect) override {
    return catalog_.has_available_units(count, protect);
  }
  bool has_kv(const checkpoint_key& key) override { return pool_.lookup(key) != no_unit; }
  bool restored(cairn::replay::run_id, slot_id) override {
    settle();
    return true;
  }
  unit_id grow(cairn::replay::run_id) override {
    auto answer = catalog_.allocate(1);
    return answer.code == status::ok ? answer.ids[0] : no_unit;
  }
  void publish(cairn::replay::run_id, std::uint32_t, unit_id unit,
               const checkpoint_key& key) override {
    pool_.publish(unit, key);
  }
  void reach(cairn::replay::run_id, slot_id slot, const checkpoint_key& key, placement_hint hint,
             std::int64_t) override {
    sequences_.file(slot, key, hint);
    sequences_.drain([this](const boundary& each) {
      auto answer = catalog_.begin_store(each.key, each.slot, each.hint);
      if (!answer.ok()) return *answer.refusals.begin();
      in_flight_.push_back(answer.stamp);
      return status::ok;
    });
  }
  void release(cairn::replay::run_id, slot_id slot, std::span<const unit_id> units,
               bool preempted) override {
    if (preempted) settle();
    sequences_.forget(slot);
    sequences_.set_slot(slot, no_slot);
    for (unit_id unit : units) pool_.free(unit);
  }

  void finish() override { settle(); }
  cairn::replay::engine_counts counts() override {
    cairn::replay::engine_counts found;
    found.total = pool_.total();
    found.vacant = pool_.vacant();
    found.cached = pool_.cached();
    found.live = pool_.live();
    found.checkpoint = pool_.reserved();
    found.unfinished_records =
        catalog_.count(record_state::copying) + catalog_.count(record_state::evicting);
    found.records = catalog_.count(record_state::ready) + found.unfinished_records;
    const fates& counted = catalog_.counted();
    found.fates.kept = counted.kept;
    found.fates.dropped = {counted.dropped_no_room, counted.dropped_superseded,
                           counted.dropped_queue_full, counted.dropped_closed};
    found.fates.evicted = counted.evicted;
    found.fates.orphaned = counted.orphaned;
    found.fates.failed = counted.failed;
    found.fates.cancelled = counted.cancelled;
    return found;
  }

 private:
  pool pool_;
  catalog catalog_;
  coordinator sequences_;
  std::vector<std::uint64_t> in_flight_;  // ops that began and have not ended, oldest first
};

}  // namespace cairn_model
