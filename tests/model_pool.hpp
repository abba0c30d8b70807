// The sequential model of the unit pool: plain containers, one thread, no cleverness. Written
// from the specification alone; it must not know how cairn keeps units, and shares with it only
// the vocabulary of <cairn/types.hpp>.
#pragma once

#include <algorithm>
#include <cairn/types.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model_record.hpp"

namespace cairn_model {

struct key_less {
  bool operator()(const checkpoint_key& a, const checkpoint_key& b) const {
    return std::pair(a.hi, a.lo) < std::pair(b.hi, b.lo);
  }
};

enum class place { absent, vacant, cached, live, reserved, leaving };

struct unit {
  place where = place::absent;
  std::uint32_t shares = 0;
  std::uint64_t owner = 0;
  std::optional<checkpoint_key> key;
  std::uint64_t freed_at = 0;  // of a cached unit: when it became so
};

/// A status and, when it is ok, the units.
struct units_answer {
  status code = status::ok;
  std::vector<unit_id> ids;
};

struct retire_answer {
  status code = status::ok;
  unit_id from = no_unit;
  unit_id to = no_unit;
};

class pool {
 public:
  /// Told of a key whose cached unit was taken for other content; may release reservations.
  using orphan_function = std::function<void(const checkpoint_key&)>;

  explicit pool(std::uint32_t units, std::uint32_t max_units = 0)
      : units_(std::max(units, max_units)) {
    extend(units);
  }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  void on_orphan(orphan_function told) { orphan_ = std::move(told); }

  // ---- what is there --------------------------------------------------------------
  std::uint32_t max_units() const { return static_cast<std::uint32_t>(units_.size()); }
  std::uint32_t total() const { return total_; }
  std::uint32_t free_units() const { return vacant() + cached(); }
  std::uint32_t vacant() const { return static_cast<std::uint32_t>(vacant_.size()); }
  std::uint32_t cached() const { return static_cast<std::uint32_t>(cached_.size()); }
  std::uint32_t live() const { return count(place::live); }
  std::uint32_t reserved() const { return count(place::reserved); }
  std::uint32_t leaving() const { return count(place::leaving); }
  std::uint32_t indexed() const { return static_cast<std::uint32_t>(index_.size()); }
  unit inspect(unit_id id) const { return id < units_.size() ? units_[id] : unit{}; }
  /// The unit that holds the content; one that is leaving cannot be claimed any more.
  unit_id lookup(const checkpoint_key& key) const {
    unit_id id = named(key);
    return is(id, place::leaving) ? no_unit : id;
  }

  // ---- reservations ---------------------------------------------------------------
  units_answer reserve(std::uint32_t count, std::uint64_t owner) {
    if (owner == 0) return {status::invalid, {}};
    if (count > free_units()) return {status::no_room, {}};
    std::vector<unit_id> ids;
    for (std::uint32_t i = 0; i < count; ++i) {
      ids.push_back(take_next());
      units_[ids.back()].where = place::reserved;
      units_[ids.back()].owner = owner;
    }
    reservations_.insert({owner, ids});
    return {status::ok, ids};
  }

  /// Only a whole reservation, in its order, by its owner.
  status release(const std::vector<unit_id>& ids, std::uint64_t owner) {
    auto [first, last] = reservations_.equal_range(owner);
    for (auto held = first; held != last; ++held) {
      if (held->second != ids) continue;
      reservations_.erase(held);
      for (unit_id id : ids) make_free(id);
      return status::ok;
    }
    return status::invalid;
  }

  units_answer replace(const std::vector<unit_id>& given, std::uint64_t giver, std::uint32_t count,
                       std::uint64_t owner) {
    if (owner == 0 || count > given.size()) return {status::invalid, {}};
    if (status code = release(given, giver); code != status::ok) return {code, {}};
    return reserve(count, owner);
  }

  // ---- live KV --------------------------------------------------------------------
  units_answer allocate(std::uint32_t count) {
    if (count > free_units()) return {status::no_room, {}};
    std::vector<unit_id> ids;
    for (std::uint32_t i = 0; i < count; ++i) {
      ids.push_back(take_next());
      make_live(ids.back());
    }
    return {status::ok, ids};
  }

  status allocate_at(unit_id id) {
    if (is(id, place::absent)) return status::invalid;
    if (!is_free(id)) return status::busy;
    take(id);
    make_live(id);
    return status::ok;
  }

  unit_id claim(const checkpoint_key& key) {
    unit_id id = lookup(key);
    if (id == no_unit || claim_unit(id) != status::ok) return no_unit;
    return id;
  }

  /// One more share of what a live or cached unit holds; the content stays.
  status claim_unit(unit_id id) {
    if (is(id, place::cached)) {
      cached_.erase(units_[id].freed_at);
      make_live(id);
      return status::ok;
    }
    if (!is(id, place::live)) return status::invalid;
    ++units_[id].shares;
    return status::ok;
  }

  status free(unit_id id) {
    if (!is(id, place::live)) return status::invalid;
    if (--units_[id].shares == 0) make_free(id);
    return status::ok;
  }

  /// The live unit bears `key` and the index names it; its own former key leaves the index.
  status publish(unit_id id, const checkpoint_key& key) {
    if (!is(id, place::live)) return status::invalid;
    drop_key(id);
    units_[id].key = key;
    index_[key] = id;
    return status::ok;
  }

  void clear_index() {
    index_.clear();
    for (unit& each : units_) each.key.reset();
    for (auto [freed_at, id] : cached_) {
      units_[id].where = place::vacant;
      vacant_.insert(id);
    }
    cached_.clear();
  }

  // ---- size -----------------------------------------------------------------------
  std::uint32_t extend(std::uint32_t count) {
    std::uint32_t added = 0;
    if (leaving() > 0) return 0;  // the top is spoken for
    for (; added < count && total_ < max_units(); ++added) make_free(total_++);
    return added;
  }

  retire_answer begin_retire_top() {
    if (total_ == 0) return {status::invalid, no_unit, no_unit};
    unit_id top = total_ - 1;
    if (leaving() > 0) return {status::busy, no_unit, no_unit};
    if (is_free(top)) {
      --total_;
      take(top);
      return {status::ok, top, no_unit};
    }
    if (!is(top, place::live) || units_[top].shares != 1) return {status::busy, no_unit, no_unit};
    if (free_units() == 0) return {status::no_room, no_unit, no_unit};
    units_[top].where = place::leaving;
    unit_id to = take_next();
    make_live(to);
    return {status::ok, top, to};
  }

  /// Ends a move that begin_retire_top began: the content, under its key, is at `to`, unless
  /// that bears newer content by now.
  status finish_retire(unit_id from, unit_id to) {
    if (!is(from, place::leaving) || !is(to, place::live)) return status::invalid;
    std::optional<checkpoint_key> key = units_[from].key;
    bool indexed = drop_key(from);
    if (key && !units_[to].key) {
      units_[to].key = key;
      if (indexed) index_[*key] = to;
    }
    units_[from] = unit{};
    --total_;
    return status::ok;
  }

 private:
  bool is(unit_id id, place where) const { return inspect(id).where == where; }
  bool is_free(unit_id id) const { return is(id, place::vacant) || is(id, place::cached); }
  std::uint32_t count(place where) const {
    auto matches = [where](const unit& each) { return each.where == where; };
    return static_cast<std::uint32_t>(std::count_if(units_.begin(), units_.end(), matches));
  }

  unit_id named(const checkpoint_key& key) const {
    auto found = index_.find(key);
    return found == index_.end() ? no_unit : found->second;
  }

  /// Vacant units first, lowest id first; then cached ones, least recently freed first.
  unit_id take_next() {
    unit_id id = vacant_.empty() ? cached_.begin()->second : *vacant_.begin();
    take(id);
    return id;
  }

  /// Takes a free unit for other content. The unit has left the free ones before anyone is told.
  void take(unit_id id) {
    vacant_.erase(id);
    if (is(id, place::cached)) cached_.erase(units_[id].freed_at);
    units_[id].where = place::absent;
    std::optional<checkpoint_key> key = units_[id].key;
    bool named = drop_key(id);
    if (named && orphan_) orphan_(*key);
  }

  /// The unit bears no key any more. Returns whether the index named it.
  bool drop_key(unit_id id) {
    std::optional<checkpoint_key> key = std::exchange(units_[id].key, std::nullopt);
    if (!key || named(*key) != id) return false;
    index_.erase(*key);
    return true;
  }

  void make_live(unit_id id) {
    units_[id].where = place::live;
    units_[id].shares = 1;
  }

  void make_free(unit_id id) {
    unit& freed = units_[id];
    freed.shares = 0;
    freed.owner = 0;
    freed.where = freed.key ? place::cached : place::vacant;
    if (freed.key) {
      freed.freed_at = ++frees_;
      cached_[freed.freed_at] = id;
    } else {
      vacant_.insert(id);
    }
  }

  std::vector<unit> units_;
  std::uint32_t total_ = 0;
  std::set<unit_id> vacant_;
  std::map<std::uint64_t, unit_id> cached_;  // by the time freed
  std::uint64_t frees_ = 0;
  std::map<checkpoint_key, unit_id, key_less> index_;
  std::multimap<std::uint64_t, std::vector<unit_id>> reservations_;  // by owner
  orphan_function orphan_;
};

}  // namespace cairn_model
