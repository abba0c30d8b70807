// What the engine of an episode does in its steps.
#include <algorithm>
#include <utility>

#include "stress/faults/clock.hpp"
#include "stress/faults/episode.hpp"

namespace cairn::stress {

// Compute that is ordered behind the slot's copies writes it anew.
void episode::write_slot() {
  const slot_id slot = plan_.below(shape_.slots);
  const bool under_way = std::any_of(open_.begin(), open_.end(),
                                     [&](std::size_t each) { return ops_[each].slot == slot; });
  if (runtime_->order_after_slot(0, slot, clock::now()) != status::ok) return;
  // Its copies may not have run: only this order keeps them from what is written now.
  if (under_way && plan_.armed) plan_.met(fault::slot_changes);
  const image_name name{plan_.below(keys), ++generations_};
  for (rank_id r = 0; r < ranks_; ++r) {
    work_.push_back(std::make_unique<std::function<void()>>(
        [space = spaces_[r].get(), slot, name] { space->write_slot(slot, name); }));
    (void)devices_.at(r).call(
        *computes_[r], [](void* f) { (*static_cast<std::function<void()>*>(f))(); },
        work_.back().get());
  }
  contents_.push_back({name, -1, -1});
  slots_[slot] = static_cast<int>(contents_.size()) - 1;
  ++versions_[slot];
  // Without it the stores that follow are refused, or end as poisoned, if the last restore failed.
  if (!plan_.one_in(8)) refuse(runtime_->reset_slot(slot));
}

void episode::store() {
  const slot_id slot = plan_.below(shape_.slots);
  const std::uint32_t key = plan_.below(keys);
  auto made = runtime_->store(key_of(key), slot, 0);
  if (!made) return refuse(made.code());
  op its;
  its.id = made->op();
  its.handle = std::move(*made);
  its.key = key;
  its.slot = slot;
  its.accepted_ns = now_ns();
  its.epoch = runtime_->records().epoch();
  its.source = slots_[slot];
  open_.push_back(ops_.size());
  ops_.push_back(std::move(its));
}

void episode::restore() {
  const slot_id slot = plan_.below(shape_.slots);
  const std::uint32_t key = plan_.below(keys);
  auto made = runtime_->restore(key_of(key), slot, 0);
  if (!made) {
    if (made.code() == status::not_found) keys_[key].reset();  // evicted
    return refuse(made.code());
  }
  if (!keys_[key]) return wrong("a key is READY that nobody stored");
  op its;
  its.id = made->op();
  its.handle = std::move(*made);
  its.kind = copy_kind::restore;
  its.key = key;
  its.slot = slot;
  its.accepted_ns = now_ns();
  its.epoch = runtime_->records().epoch();
  its.source = slots_[slot];
  its.expected = keys_[key]->name;
  its.record = keys_[key]->record;
  its.version = ++versions_[slot];
  contents_.push_back({{}, static_cast<int>(ops_.size()), slots_[slot]});
  slots_[slot] = static_cast<int>(contents_.size()) - 1;
  open_.push_back(ops_.size());
  ops_.push_back(std::move(its));
}

void episode::cancel() {
  const slot_id slot = plan_.below(shape_.slots);
  switch (plan_.below(3)) {
    case 0:
      if (!open_.empty())
        (void)ops_[open_[plan_.below(static_cast<std::uint32_t>(open_.size()))]].handle.cancel();
      break;
    case 1:
      (void)runtime_->release_slot(slot, 0);
      break;
    default:
      (void)runtime_->finish_slot(slot, 0);
  }
}

void episode::forget() {
  const std::uint32_t key = plan_.below(keys);
  (void)runtime_->records().forget(key_of(key));
  keys_[key].reset();
  for (const std::size_t each : open_)
    if (ops_[each].kind == copy_kind::store && ops_[each].key == key) ops_[each].forgotten = true;
}

void episode::flip() {
  if (!plan_.meets(fault::bit_flip, 2)) return;
  spaces_[plan_.below(ranks_)]->flip_unit(plan_.below(shape_.units), plan_.draw());
}

// A rank repeats itself, some time after the op has ended everywhere.
void episode::again() {
  if (ops_.empty()) return;
  const op& which = ops_[plan_.below(static_cast<std::uint32_t>(ops_.size()))];
  if (!which.over || !plan_.meets(fault::completion_again, 1)) return;
  completion what;
  what.op = which.id;
  what.rank = plan_.below(ranks_);
  what.epoch = which.epoch;
  what.code = plan_.one_in(2) ? status::ok : status::failed;
  if (runtime_->records().finish(what).counted) wrong("a repeated completion counted");
}

void episode::pass_time() {
  if (plan_.meets(fault::time_passes, 6)) advance_clock(timeout);
}

}  // namespace cairn::stress
