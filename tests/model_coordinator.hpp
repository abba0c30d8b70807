// The sequential model of the coordinator: boundaries of sequences, filed and drained. Written
// from the specification alone; knows sequences and the model of the catalog.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "model_catalog.hpp"

namespace cairn_model {

using sequence_id = std::uint32_t;

struct boundary {
  sequence_id sequence = 0;
  checkpoint_key key;
  slot_id slot = no_slot;
  placement_hint hint = placement_hint::none;
};

class coordinator {
 public:
  /// Tries to store a boundary; ok, or why not.
  using store_function = std::function<status(const boundary&)>;

  coordinator(std::uint32_t max_sequences, catalog& over)
      : slots_(max_sequences, no_slot), catalog_(over) {
    catalog_.units().on_orphan([this](const checkpoint_key& key) { unindex(key); });
  }
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  status set_slot(sequence_id sequence, slot_id slot) {
    if (sequence >= slots_.size()) return status::invalid;
    slots_[sequence] = slot;
    return status::ok;
  }
  slot_id slot_of(sequence_id sequence) const {
    return sequence < slots_.size() ? slots_[sequence] : no_slot;
  }

  /// The newer boundary is what the slot holds: an older one is superseded, the same key too.
  status file(sequence_id sequence, const checkpoint_key& key,
              placement_hint hint = placement_hint::none) {
    if (sequence >= slots_.size()) return status::invalid;
    if (slots_[sequence] == no_slot) return status::ok;
    if (drop_pending(sequence)) ++catalog_.counted().dropped_superseded;
    pending_.push_back({sequence, key, no_slot, hint});
    return status::ok;
  }

  status forget(sequence_id sequence) {
    if (sequence >= slots_.size()) return status::invalid;
    drop_pending(sequence);
    if (slots_[sequence] != no_slot) catalog_.cancel_restores(slots_[sequence]);
    return status::ok;
  }

  /// All pendings are taken first; what happens while they are stored finds none of them.
  std::uint32_t drain(const store_function& store) {
    std::uint32_t began = 0;
    std::list<boundary> taken = std::exchange(pending_, {});
    for (boundary each : taken) {
      each.slot = slots_[each.sequence];
      if (each.slot == no_slot || catalog_.contains_or_copying(each.key)) continue;
      status code = store(each);
      if (code == status::ok) {
        ++began;
      } else {
        count_drop(code);
      }
    }
    return began;
  }

  bool unindex(const checkpoint_key& key) {
    auto names_key = [&](const boundary& each) { return each.key == key; };
    bool dropped = pending_.remove_if(names_key) > 0;
    bool forgotten = catalog_.forget(key);
    if (dropped || forgotten) ++catalog_.counted().orphaned;
    return dropped || forgotten;
  }

  void reset() {
    pending_.clear();
    catalog_.clear();
  }

  std::uint32_t resumable_hit(const std::vector<checkpoint_key>& keys, std::uint32_t hit,
                              bool assume_checkpointed = false) const {
    return catalog_.resumable_hit(keys, hit, assume_checkpointed);
  }
  std::uint32_t pending() const { return static_cast<std::uint32_t>(pending_.size()); }

 private:
  bool drop_pending(sequence_id sequence) {
    auto of_sequence = [&](const boundary& each) { return each.sequence == sequence; };
    return pending_.remove_if(of_sequence) > 0;
  }
  void count_drop(status code) {
    fates& counted = catalog_.counted();
    if (code == status::duplicate) return;
    if (code == status::queue_full) {
      ++counted.dropped_queue_full;
    } else if (code == status::closed) {
      ++counted.dropped_closed;
    } else {
      ++counted.dropped_no_room;
    }
  }

  std::vector<slot_id> slots_;   // by sequence
  std::list<boundary> pending_;  // oldest first
  catalog& catalog_;
};

}  // namespace cairn_model
