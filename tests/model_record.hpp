// The values that the model of the catalog takes and gives: records, fates, answers. Plain data;
// what they mean is in model_catalog.hpp.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace cairn_model {

using cairn::checkpoint_key;
using cairn::copy_kind;
using cairn::no_slot;
using cairn::no_unit;
using cairn::placement_hint;
using cairn::slot_id;
using cairn::status;
using cairn::unit_id;

enum class record_state { copying, ready, evicting };

struct record {
  checkpoint_key key;
  std::vector<unit_id> units;
  record_state state = record_state::copying;
  std::uint32_t restore_pins = 0;
  std::uint32_t bare_pins = 0;
  bool writing = true;  // its store has not ended on every rank
  placement_hint hint = placement_hint::none;
};

struct fates {
  std::uint64_t kept = 0;
  std::uint64_t dropped_no_room = 0;
  std::uint64_t dropped_superseded = 0;
  std::uint64_t dropped_queue_full = 0;
  std::uint64_t dropped_closed = 0;
  std::uint64_t evicted = 0;
  std::uint64_t orphaned = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
};

/// One eligible record, as a policy sees it.
struct candidate {
  checkpoint_key key;
  placement_hint hint = placement_hint::none;
};

/// The place of the victim in `eligible` (least recently used first, never empty), or nothing.
using policy_function =
    std::function<std::optional<std::size_t>(const std::vector<candidate>& eligible)>;

struct catalog_config {
  std::uint32_t units_per_checkpoint = 1;
  std::uint32_t slots = 1;
  std::uint32_t ranks = 1;
  std::uint32_t max_ops = 4096;
  std::uint32_t max_pins = 1024;
  policy_function policy;  // none: least recently used
};

/// Every reason that applies to a refusal (which one is told first is not specified); none
/// when the op began.
struct begin_answer {
  std::set<status> refusals;
  std::uint64_t stamp = 0;
  std::vector<unit_id> units;
  bool ok() const { return refusals.empty(); }
};

struct finish_answer {
  bool counted = false;
  bool ended = false;
  status code = status::pending;
  copy_kind kind = copy_kind::store;
};

struct admit_answer {
  std::set<status> refusals;
  std::uint32_t resumed = 0;
  std::uint32_t kv_hit = 0;
  begin_answer restore;  // when resumed > 0
  std::vector<unit_id> units;
  bool ok() const { return refusals.empty(); }
};

struct pin_answer {
  status code = status::ok;
  std::uint64_t pin = 0;
  std::uint32_t length = 0;
};

}  // namespace cairn_model
