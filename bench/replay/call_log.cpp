// Writing the order of calls down, and repeating it elsewhere.
#include "bench/replay/call_log.hpp"

#include <iomanip>

namespace cairn::replay {

void call_log::add(logged_call made) {
  const std::lock_guard held(mutex_);
  calls_.push_back(std::move(made));
}

void call_log::settle(std::int64_t now_us) {
  on_.settle(now_us);
  add({call_kind::settle});
}

void call_log::quiet(bool alone) {
  on_.quiet(alone);
  add({call_kind::settle});
}

bool call_log::restored(run_id run, slot_id slot) {
  const bool done = on_.restored(run, slot);
  add({call_kind::settle});
  return done;
}

std::optional<admitted> call_log::admit(run_id run, slot_id slot,
                                        std::span<const checkpoint_key> keys, std::uint32_t fresh,
                                        std::span<unit_id> units) {
  auto holds = on_.admit(run, slot, keys, fresh, units);
  if (holds) {
    logged_call made{call_kind::admit, run, slot};
    made.fresh = fresh;
    made.resumed = holds->resumed;
    made.keys.assign(keys.begin(), keys.end());
    add(std::move(made));
  }
  return holds;
}

unit_id call_log::grow(run_id run) {
  const unit_id grown = on_.grow(run);
  if (grown != no_unit) add({call_kind::grow, run});
  return grown;
}

void call_log::publish(run_id run, std::uint32_t block, unit_id unit, const checkpoint_key& key) {
  on_.publish(run, block, unit, key);
  logged_call made{call_kind::publish, run};
  made.block = block;
  made.key = key;
  add(std::move(made));
}

void call_log::reach(run_id run, slot_id slot, const checkpoint_key& key, placement_hint hint,
                     std::int64_t now_us) {
  on_.reach(run, slot, key, hint, now_us);
  logged_call made{call_kind::reach, run, slot};
  made.key = key;
  made.hint = hint;
  add(std::move(made));
}

void call_log::release(run_id run, slot_id slot, std::span<const unit_id> units, bool preempted) {
  // Written down before the slot can be had by another run.
  logged_call made{call_kind::release, run, slot};
  made.preempted = preempted;
  add(std::move(made));
  on_.release(run, slot, units, preempted);
}

void write_calls(std::ostream& to, const std::vector<logged_call>& calls) {
  static constexpr const char* names[] = {"admit", "grow", "publish", "reach", "release", "settle"};
  auto key = [&](const checkpoint_key& of) {
    to << '"' << std::hex << std::setfill('0') << std::setw(16) << of.hi << std::setw(16) << of.lo
       << std::dec << '"';
  };
  for (const logged_call& each : calls) {
    to << "{\"call\":\"" << names[static_cast<std::size_t>(each.kind)] << '"';
    if (each.run != 0) to << ",\"run\":" << each.run;
    if (each.slot != no_slot) to << ",\"slot\":" << each.slot;
    if (each.kind == call_kind::publish) to << ",\"block\":" << each.block;
    if (each.kind == call_kind::publish || each.kind == call_kind::reach) {
      to << ",\"key\":";
      key(each.key);
    }
    if (each.kind == call_kind::reach) to << ",\"hint\":" << static_cast<int>(each.hint);
    if (each.kind == call_kind::release)
      to << ",\"preempted\":" << (each.preempted ? "true" : "false");
    if (each.kind == call_kind::admit) {
      to << ",\"fresh\":" << each.fresh << ",\"resumed\":" << each.resumed << ",\"keys\":[";
      for (std::size_t i = 0; i < each.keys.size(); ++i) {
        if (i > 0) to << ',';
        key(each.keys[i]);
      }
      to << ']';
    }
    to << "}\n";
  }
}

log_replay_figures replay_calls(const std::vector<logged_call>& calls, engine& on) {
  log_replay_figures found;
  // By run: its units there. A run that was refused there has none and makes no further calls.
  std::unordered_map<run_id, std::vector<unit_id>> runs;
  for (const logged_call& each : calls) {
    if (each.kind == call_kind::settle) {
      on.settle(0);
      continue;
    }
    if (each.kind == call_kind::admit) {
      std::vector<unit_id> units(each.keys.size() + each.fresh, no_unit);
      on.settle(0);
      auto holds = on.admit(each.run, each.slot, each.keys, each.fresh, units);
      if (!holds) {
        ++found.refused;
        continue;
      }
      ++found.admitted;
      found.kv_hit_blocks += holds->kv_hit;
      found.resumed_blocks += holds->resumed;
      runs.emplace(each.run, std::move(units));
      continue;
    }
    auto of = runs.find(each.run);
    if (of == runs.end()) continue;
    std::vector<unit_id>& units = of->second;
    switch (each.kind) {
      case call_kind::grow:
        if (const unit_id grown = on.grow(each.run); grown != no_unit) units.push_back(grown);
        break;
      case call_kind::publish:
        on.publish(each.run, each.block, units[each.block], each.key);
        break;
      case call_kind::reach:
        on.reach(each.run, each.slot, each.key, each.hint, 0);
        break;
      case call_kind::release: {
        const std::vector<unit_id> last_first(units.rbegin(), units.rend());
        on.release(each.run, each.slot, last_first, each.preempted);
        runs.erase(of);
        break;
      }
      case call_kind::admit:
      case call_kind::settle:
        break;
    }
  }
  on.finish();
  return found;
}

}  // namespace cairn::replay
