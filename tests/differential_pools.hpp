// A unit_pool of cairn and its model side by side, with the shares and reservations that the test
// holds in both, and random operations on them that compare every answer. Knows no checkpoints.
#pragma once

#include <cairn/unit_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "differential.hpp"
#include "model_pool.hpp"

namespace differential {

using cairn::checkpoint_key;
using cairn::no_unit;
using cairn::status;
using cairn::unit_id;

/// The n-th key of a test; n is small, and many collide in a hash of few bits.
inline checkpoint_key key_of(std::uint32_t n) {
  return {n * 0x9e3779b97f4a7c15U, n + 1U};
}

class pool_pair {
 public:
  pool_pair(std::uint32_t units, std::uint32_t max_units, std::uint32_t keys, dice& random,
            history& past)
      : model(units, max_units), keys_(keys), random_(random), past_(past) {
    cairn::unit_pool::options opts;
    opts.units = units;
    opts.max_units = max_units;
    auto opened = cairn::unit_pool::open(opts);
    if (opened.ok()) {
      cairn = std::move(opened.value());
    } else {
      past_.fail("open: " + opened.why().message());
    }
  }

  std::unique_ptr<cairn::unit_pool> cairn;
  cairn_model::pool model;

  // ---- live KV --------------------------------------------------------------------
  void allocate(std::uint32_t count) {
    past_.note("allocate(%u)", count);
    std::vector<unit_id> ids(count, no_unit);
    auto answer = cairn->allocate(ids);
    keep_allocated(answer.code(), ids, model.allocate(count));
  }
  /// Compares the answers of an allocation by whatever way, and holds the shares.
  void keep_allocated(status code, const std::vector<unit_id>& ids,
                      const cairn_model::units_answer& expected) {
    past_.same("allocate", code, expected.code);
    if (code == status::ok) past_.same("allocated", ids, expected.ids);
    shares_.insert(shares_.end(), expected.ids.begin(), expected.ids.end());
  }
  void allocate_at(unit_id id) {
    past_.note("allocate_at(%u)", id);
    status expected = model.allocate_at(id);
    past_.same("allocate_at", cairn->allocate_at(id).code(), expected);
    if (expected == status::ok) shares_.push_back(id);
  }
  void claim(const checkpoint_key& key) {
    past_.note("claim(%u)", number(key));
    unit_id expected = model.claim(key);
    past_.same("claim", cairn->claim(key), expected);
    if (expected != no_unit) shares_.push_back(expected);
  }
  void claim_unit(unit_id id) {
    past_.note("claim_unit(%u)", id);
    status expected = model.claim_unit(id);
    past_.same("claim_unit", cairn->claim_unit(id).code(), expected);
    if (expected == status::ok) shares_.push_back(id);
  }
  void free(unit_id id) {
    past_.note("free(%u)", id);
    past_.same("free", cairn->free(id).code(), model.free(id));
  }
  void free_share() {
    if (shares_.empty()) return;
    std::swap(random_.pick(shares_), shares_.back());
    unit_id id = shares_.back();
    if (moving_ && id == moving_->to) return;
    shares_.pop_back();
    free(id);
  }
  void publish(unit_id id, const checkpoint_key& key) {
    past_.note("publish(%u, %u)", id, number(key));
    past_.same("publish", cairn->publish(id, key).code(), model.publish(id, key));
  }
  void clear_index() {
    past_.note("clear_index()");
    cairn->clear_index();
    model.clear_index();
  }

  // ---- size -----------------------------------------------------------------------
  void extend(std::uint32_t count) {
    past_.note("extend(%u)", count);
    past_.same("extend", cairn->extend(count), model.extend(count));
  }
  void begin_retire_top() {
    past_.note("begin_retire_top()");
    auto answer = cairn->begin_retire_top();
    auto expected = model.begin_retire_top();
    past_.same("begin_retire_top", answer.code(), expected.code);
    if (!answer.ok() || past_.failed()) return;
    past_.same("retired", std::pair(answer->from, answer->to),
               std::pair(expected.from, expected.to));
    if (expected.to == no_unit) return;
    moving_ = *answer;
    for (unit_id& share : shares_)
      if (share == expected.from) share = expected.to;
  }
  void finish_retire() {
    if (!moving_) return;
    past_.note("finish_retire(%u, %u)", moving_->from, moving_->to);
    past_.same("finish_retire", cairn->finish_retire(*moving_).code(),
               model.finish_retire(moving_->from, moving_->to));
    moving_.reset();
  }

  /// One random operation of an engine on its live KV; now and then a mistake.
  void live_step() {
    if (moving_ && random_.one_in(4)) return finish_retire();
    if (model.free_units() == 0 && !random_.one_in(3)) return free_share();
    switch (random_.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return allocate(random_.one_in(8) ? random_.below(model.total() + 2) : random_.below(4));
      case 4:
        return random_.one_in(3) ? allocate_at(any_unit()) : claim_unit(any_unit());
      case 5:
      case 6:
      case 7:
        return claim(any_key());
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
        return free_share();
      case 13:
        return mistake();
      case 14:
        return rare_step();
      default:
        if (!shares_.empty()) publish(random_.pick(shares_), any_key());
    }
  }

  // ---- comparing ------------------------------------------------------------------
  /// Every count and every unit. `owners`: the holders of reservations too.
  void compare(bool owners) {
    auto counts = cairn->counts();
    past_.same("free units", cairn->free_units(), model.free_units());
    past_.same("total", counts.total, model.total());
    past_.same("vacant", counts.vacant, model.vacant());
    past_.same("cached", counts.cached, model.cached());
    past_.same("live", counts.live, model.live() + model.leaving());
    past_.same("reserved", counts.reserved, model.reserved());
    past_.same("indexed", cairn->indexed(), model.indexed());
    for (unit_id id = 0; id < model.max_units() + 1; ++id) compare_unit(id, owners);
    for (std::uint32_t n = 0; n < keys_; ++n)
      past_.same("lookup", cairn->lookup(key_of(n)), model.lookup(key_of(n)));
  }

  std::uint32_t keys() const { return keys_; }
  std::vector<unit_id>& shares() { return shares_; }
  checkpoint_key any_key() { return key_of(random_.below(keys_)); }
  unit_id any_unit() { return random_.one_in(50) ? no_unit : random_.below(model.max_units() + 2); }
  static std::uint32_t number(const checkpoint_key& key) {
    return static_cast<std::uint32_t>(key.lo - 1);
  }

 private:
  /// What a caller must not do; both refuse, and nothing changes.
  void mistake() {
    unit_id id = any_unit();
    bool live = model.inspect(id).where == cairn_model::place::live;
    if (live) return allocate_at(id);
    return random_.one_in(2) ? free(id) : publish(id, any_key());
  }
  void rare_step() {
    switch (random_.below(8)) {
      case 0:
        return clear_index();
      case 1:
      case 2:
      case 3:
        return extend(random_.below(4));
      default:
        return begin_retire_top();
    }
  }

  void compare_unit(unit_id id, bool owners) {
    if (moving_ && id == moving_->from) return;
    cairn::unit_info info = cairn->inspect(id);
    cairn_model::unit expected = model.inspect(id);
    auto where = static_cast<cairn_model::place>(info.place);
    if (where == expected.where && info.shares == expected.shares &&
        info.has_key == expected.key.has_value() && (!info.has_key || info.key == *expected.key) &&
        (!owners || info.owner == expected.owner))
      return;
    std::ostringstream text;
    text << "unit " << id << ": cairn place " << static_cast<int>(info.place) << " shares "
         << info.shares << " key " << (info.has_key ? number(info.key) : ~0U) << " owner "
         << info.owner << ", model place " << static_cast<int>(expected.where) << " shares "
         << expected.shares << " key " << (expected.key ? number(*expected.key) : ~0U) << " owner "
         << expected.owner;
    past_.fail(text.str());
  }

  std::uint32_t keys_;
  dice& random_;
  history& past_;
  std::vector<unit_id> shares_;  // one entry per share that the test holds
  std::optional<cairn::retirement> moving_;
};

}  // namespace differential
