// The sequential model of the catalog: checkpoints by key, their states, pins, ops and fates.
// Written from the specification alone. An op is named by its place in the order of beginning,
// from 1. Walks over all records are welcome here; threads and devices are unknown.
#pragma once

#include <algorithm>
#include <cairn/types.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model_pool.hpp"
#include "model_record.hpp"

namespace cairn_model {

class catalog {
 public:
  catalog(catalog_config config, pool& units) : config_(std::move(config)), pool_(units) {
    pool_.on_orphan([this](const checkpoint_key& key) { orphan(key); });
  }
  catalog(const catalog&) = delete;
  catalog& operator=(const catalog&) = delete;

  pool& units() { return pool_; }
  std::uint32_t units_per_checkpoint() const { return config_.units_per_checkpoint; }

  // ---- looking up -----------------------------------------------------------------
  bool contains(const checkpoint_key& key) const { return find(key, false) != 0; }
  bool contains_or_copying(const checkpoint_key& key) const { return find(key, true) != 0; }
  std::uint32_t resumable_hit(const std::vector<checkpoint_key>& keys, std::uint32_t hit,
                              bool assume_checkpointed = false) const {
    while (hit > 0 && !assume_checkpointed && !contains(keys[hit - 1])) --hit;
    return hit;
  }

  // ---- storing and restoring ------------------------------------------------------
  begin_answer begin_store(const checkpoint_key& key, slot_id slot,
                           placement_hint hint = placement_hint::none) {
    std::uint32_t needed = config_.units_per_checkpoint;
    begin_answer answer{why_not_begin(slot), 0, {}};
    if (contains_or_copying(key)) answer.refusals.insert(status::duplicate);
    if (!can_have(needed, 0)) answer.refusals.insert(status::no_room);
    if (!answer.ok()) return answer;
    if (!evict_until_free(needed, 0)) return {{status::passed_over}, 0, {}};
    // Taking cached units may orphan checkpoints; this one is not there yet.
    record_id id = ++records_begun_;
    answer.units = pool_.reserve(needed, owner_of(id)).ids;
    records_[id] = {key, answer.units, record_state::copying, 0, 0, true, hint};
    names_[key] = id;
    answer.stamp = begin_op(copy_kind::store, id, slot);
    ++fates_.kept;
    return answer;
  }

  begin_answer begin_restore(const checkpoint_key& key, slot_id slot) {
    record_id id = find(key, false);
    begin_answer answer{why_not_begin(slot), 0, {}};
    if (id == 0) answer.refusals.insert(status::not_found);
    if (!answer.ok()) return answer;
    ++records_[id].restore_pins;
    mark_used(id);
    answer.units = records_[id].units;
    answer.stamp = begin_op(copy_kind::restore, id, slot);
    return answer;
  }

  /// Handed to a device from now on. False when the op has ended.
  bool take(std::uint64_t stamp) {
    auto found = ops_.find(stamp);
    if (found == ops_.end()) return false;
    found->second.taken = true;
    return true;
  }

  /// Ends an op that nobody has taken.
  bool cancel(std::uint64_t stamp) {
    auto found = ops_.find(stamp);
    if (found == ops_.end() || found->second.taken) return false;
    op ended = found->second;
    ops_.erase(found);
    if (ended.kind == copy_kind::restore) {
      drop_restore_pin(ended.record);
    } else {
      ++fates_.cancelled;
      end_store(ended.record, false);
    }
    return true;
  }
  std::uint32_t cancel_restores(slot_id slot) { return cancel_all(copy_kind::restore, slot); }
  std::uint32_t cancel_stores(slot_id slot) { return cancel_all(copy_kind::store, slot); }

  /// One rank has done with the op. Ops are to be finished in the order in which they began.
  finish_answer finish(std::uint64_t stamp, std::uint32_t rank, status code) {
    auto found = ops_.find(stamp);
    if (found == ops_.end() || rank >= config_.ranks) return {};
    op& reported = found->second;
    if (!reported.ranks.insert(rank).second) return {};
    reported.taken = true;
    if (reported.code == status::ok) reported.code = code;
    if (code == status::corrupt) reported.corrupt = true;
    if (reported.ranks.size() < config_.ranks) return {true, false, status::pending, reported.kind};
    op ended = reported;
    ops_.erase(found);
    end_op(ended);
    return {true, true, ended.code, ended.kind};
  }

  // ---- removing -------------------------------------------------------------------
  bool forget(const checkpoint_key& key) {
    record_id id = find(key, true);
    if (id == 0) return false;
    remove_from_view(id);
    return true;
  }
  void clear() {
    for (record_id id : visible()) remove_from_view(id);
  }
  bool orphan(const checkpoint_key& key) {
    bool went = forget(key);
    if (went) ++fates_.orphaned;
    return went;
  }

  // ---- room -----------------------------------------------------------------------
  /// Bare pins are not counted here: the answer is then too hopeful.
  bool has_available_units(std::uint32_t count, const checkpoint_key* protect = nullptr) const {
    record_id spared = protect != nullptr ? find(*protect, false) : 0;
    auto counts = [&](record_id id) { return id != spared && records_.at(id).restore_pins == 0; };
    return reaches(count, counts);
  }
  std::uint32_t evictable() const {
    auto unpinned = [this](record_id id) { return records_.at(id).restore_pins == 0; };
    return static_cast<std::uint32_t>(std::count_if(use_.begin(), use_.end(), unpinned));
  }
  status ensure_free_units(std::uint32_t count) {
    if (!can_have(count, 0)) return status::no_room;
    return evict_until_free(count, 0) ? status::ok : status::passed_over;
  }
  units_answer allocate(std::uint32_t count) {
    if (closed_) return {status::closed, {}};
    if (status code = ensure_free_units(count); code != status::ok) return {code, {}};
    return pool_.allocate(count);
  }

  /// KV hit, longest READY boundary within it, claims, fresh units and the restore, or nothing.
  admit_answer admit(const std::vector<checkpoint_key>& keys, std::uint32_t fresh, slot_id slot) {
    admit_answer answer{why_not_begin(slot), 0, 0, {}, {}};
    std::uint32_t hit = 0;
    while (hit < keys.size() && pool_.lookup(keys[hit]) != no_unit) ++hit;
    std::uint32_t resumed = resumable_hit(keys, hit);
    record_id pinned = resumed > 0 ? find(keys[resumed - 1], false) : 0;
    std::uint32_t needed = static_cast<std::uint32_t>(keys.size()) - resumed + fresh;
    std::set<unit_id> from_cache;
    for (std::uint32_t i = 0; i < resumed; ++i) {
      unit_id id = pool_.lookup(keys[i]);
      if (pool_.inspect(id).where == place::cached) from_cache.insert(id);
    }
    if (!can_have(needed + static_cast<std::uint32_t>(from_cache.size()), pinned))
      answer.refusals.insert(status::no_room);
    if (resumed == 0) answer.refusals.erase(status::limit);  // no op is needed
    if (!answer.ok()) return answer;

    for (std::uint32_t i = 0; i < resumed; ++i) answer.units.push_back(pool_.claim(keys[i]));
    if (!evict_until_free(needed, pinned)) {
      for (std::uint32_t i = resumed; i > 0; --i) pool_.free(answer.units[i - 1]);
      return {{status::passed_over}, 0, 0, {}, {}};
    }
    for (unit_id id : pool_.allocate(needed).ids) answer.units.push_back(id);
    answer.kv_hit = hit;
    answer.resumed = resumed;
    if (resumed > 0) answer.restore = begin_restore(keys[resumed - 1], slot);
    return answer;
  }

  // ---- bare pins ------------------------------------------------------------------
  pin_answer pin_longest(const std::vector<checkpoint_key>& keys, std::uint32_t hit) {
    std::uint32_t length = resumable_hit(keys, hit);
    if (length == 0) return {status::not_found, 0, 0};
    if (pins_.size() >= config_.max_pins) return {status::limit, 0, 0};
    record_id id = find(keys[length - 1], false);
    ++records_[id].bare_pins;
    pins_[++pins_begun_] = id;
    return {status::ok, pins_begun_, length};
  }
  bool release_pin(std::uint64_t pin) {
    auto found = pins_.find(pin);
    if (found == pins_.end()) return false;
    record_id id = found->second;
    pins_.erase(found);
    --records_[id].bare_pins;
    release_if_over(id);
    return true;
  }

  void close() { closed_ = true; }

  // ---- counts ---------------------------------------------------------------------
  std::uint32_t count(record_state state) const {
    auto matches = [state](const auto& each) { return each.second.state == state; };
    return static_cast<std::uint32_t>(std::count_if(records_.begin(), records_.end(), matches));
  }
  std::uint32_t checkpoint_units() const {
    return static_cast<std::uint32_t>(records_.size()) * config_.units_per_checkpoint;
  }
  std::uint32_t ops() const { return static_cast<std::uint32_t>(ops_.size()); }
  std::uint32_t pins() const { return static_cast<std::uint32_t>(pins_.size()); }
  const fates& counted() const { return fates_; }
  fates& counted() { return fates_; }

 private:
  using record_id = std::uint64_t;  // from 1; 0 is none
  struct op {
    copy_kind kind = copy_kind::store;
    record_id record = 0;
    slot_id slot = no_slot;
    bool taken = false;
    std::set<std::uint32_t> ranks;  // that have reported
    status code = status::ok;       // the first failure
    bool corrupt = false;           // some rank found the bytes wrong
  };

  static std::uint64_t owner_of(record_id id) { return (std::uint64_t{1} << 63) + id; }

  record_id find(const checkpoint_key& key, bool copying_too) const {
    auto found = names_.find(key);
    if (found == names_.end()) return 0;
    bool ready = records_.at(found->second).state == record_state::ready;
    return ready || copying_too ? found->second : 0;
  }
  std::vector<record_id> visible() const {
    std::vector<record_id> all;
    for (const auto& [key, id] : names_) all.push_back(id);
    return all;
  }

  // ---- eligibility and policy -----------------------------------------------------
  bool is_evictable(record_id id, record_id protect) const {
    const record& asked = records_.at(id);
    return id != protect && asked.state == record_state::ready && asked.restore_pins == 0 &&
           asked.bare_pins == 0;
  }
  template <class Counts>
  bool reaches(std::uint32_t count, Counts counts) const {
    std::uint64_t have = pool_.free_units();
    for (auto id = use_.begin(); have < count && id != use_.end(); ++id)
      if (counts(*id)) have += config_.units_per_checkpoint;
    return have >= count;
  }
  bool can_have(std::uint32_t count, record_id protect) const {
    return reaches(count, [&](record_id id) { return is_evictable(id, protect); });
  }
  record_id next_victim(record_id protect) const {
    auto eligible = [&](record_id id) { return is_evictable(id, protect); };
    if (!config_.policy) {
      auto first = std::find_if(use_.begin(), use_.end(), eligible);
      return first == use_.end() ? 0 : *first;
    }
    std::vector<record_id> ids;
    std::copy_if(use_.begin(), use_.end(), std::back_inserter(ids), eligible);
    std::vector<candidate> shown;
    for (record_id id : ids) shown.push_back({records_.at(id).key, records_.at(id).hint});
    std::optional<std::size_t> chosen = ids.empty() ? std::nullopt : config_.policy(shown);
    return chosen ? ids[*chosen] : 0;
  }
  bool evict_until_free(std::uint32_t count, record_id protect) {
    while (pool_.free_units() < count) {
      record_id victim = next_victim(protect);
      if (victim == 0) return false;
      ++fates_.evicted;
      remove_from_view(victim);
    }
    return true;
  }

  // ---- ops ------------------------------------------------------------------------
  std::set<status> why_not_begin(slot_id slot) const {
    std::set<status> reasons;
    if (closed_) reasons.insert(status::closed);
    if (slot >= config_.slots) reasons.insert(status::invalid);
    if (ops_.size() >= config_.max_ops) reasons.insert(status::limit);
    return reasons;
  }
  std::uint64_t begin_op(copy_kind kind, record_id id, slot_id slot) {
    ops_[++ops_begun_] = {kind, id, slot, false, {}, status::ok, false};
    return ops_begun_;
  }
  std::uint32_t cancel_all(copy_kind kind, slot_id slot) {
    std::vector<std::uint64_t> stamps;
    for (const auto& [stamp, each] : ops_)
      if (each.kind == kind && each.slot == slot) stamps.push_back(stamp);
    auto cancelled = [this](std::uint64_t stamp) { return cancel(stamp); };
    return static_cast<std::uint32_t>(std::count_if(stamps.begin(), stamps.end(), cancelled));
  }
  void end_op(const op& ended) {
    if (ended.kind == copy_kind::store) {
      if (ended.code != status::ok) ++fates_.failed;
      end_store(ended.record, ended.code == status::ok);
    } else {
      // An image that does not match its checksum is of no use to anyone.
      if (ended.corrupt && records_[ended.record].state == record_state::ready)
        remove_from_view(ended.record);
      drop_restore_pin(ended.record);
    }
  }
  void end_store(record_id id, bool succeeded) {
    record& stored = records_[id];
    stored.writing = false;
    if (stored.state == record_state::evicting) {
      release_if_over(id);
    } else if (succeeded) {
      stored.state = record_state::ready;
      use_.push_back(id);
    } else {
      remove_from_view(id);
    }
  }
  void drop_restore_pin(record_id id) {
    --records_[id].restore_pins;
    release_if_over(id);
  }
  void mark_used(record_id id) {
    use_.remove(id);
    use_.push_back(id);
  }

  // ---- the end of a record --------------------------------------------------------
  void remove_from_view(record_id id) {
    names_.erase(records_[id].key);
    use_.remove(id);
    records_[id].state = record_state::evicting;
    release_if_over(id);
  }
  void release_if_over(record_id id) {
    const record& asked = records_[id];
    if (asked.state != record_state::evicting || asked.writing) return;
    if (asked.restore_pins != 0 || asked.bare_pins != 0) return;
    pool_.release(asked.units, owner_of(id));
    records_.erase(id);
  }

  catalog_config config_;
  pool& pool_;
  std::map<record_id, record> records_;
  std::map<checkpoint_key, record_id, key_less> names_;  // COPYING and READY
  std::list<record_id> use_;                             // READY, least recently used first
  std::map<std::uint64_t, op> ops_;                      // in flight, by order of beginning
  std::map<std::uint64_t, record_id> pins_;              // bare
  std::uint64_t records_begun_ = 0;
  std::uint64_t ops_begun_ = 0;
  std::uint64_t pins_begun_ = 0;
  bool closed_ = false;
  fates fates_;
};

}  // namespace cairn_model
