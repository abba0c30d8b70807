// How ops end in a copy thread: as their batch says, as their slot says, because their time is up,
// or because the copier gives up. Knows nothing of launching.
#include <algorithm>
#include <limits>

#include "runtime/copy_thread.hpp"

namespace cairn::detail {

completion copy_thread::about(const copy_op_header& header, status code) const noexcept {
  completion what;
  what.op = header.op;
  what.rank = core_.opts.rank;
  what.epoch = header.epoch;
  what.code = code;
  return what;
}

// False: the op was cancelled and is gone without a completion. Asked once per op.
bool copy_thread::take(std::uint32_t row) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  if (core_.opts.on_take == nullptr || core_.opts.on_take(core_.opts.context, header.op) ||
      sync::mutated("cancelled op runs"))
    return true;
  const copy_kind kind = header.kind;
  deadlines_.remove(row);
  if (kind == copy_kind::restore) health_.dropped(header.slot);
  core_.ops.end(header.op);
  core_.rows->put(row);
  core_.gate.give(kind, 1);
  core_.ended.fetch_add_release(1);  // (3)
  return false;
}

// The op in this row has come in: from now on its time runs.
void copy_thread::await_end(std::uint32_t row) noexcept {
  const std::int64_t most = core_.opts.op_timeout.count();
  if (most == 0) return;
  const std::int64_t begun = core_.rows->accepted_ns(row);
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  deadlines_.add(row, begun > never - most ? never : begun + most);
}

// Reports a taken op. `unproven`: a copy may still run. Then its row stays, which the copy reads,
// and order_after must still find the batch; so its room stays too, unless nobody can take it any
// more. Otherwise the room comes back first, so that who sees the completion finds it free.
void copy_thread::end_op(std::uint32_t row, status code, bool unproven) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  row_note& note = notes_[row];
  completion what = about(header, code);
  what.unproven = unproven && !sync::mutated("given up copy forgotten");
  const copy_kind kind = header.kind;
  deadlines_.remove(row);
  if (kind == copy_kind::restore) {
    if (note.launched)
      health_.restored(row, header.slot, code == status::ok);
    else
      health_.spoiled(header.slot);
  }
  if (unproven) {
    if (!sync::mutated("slot left to a given up copy")) health_.keep(header.slot);
    note.given_up = true;
    note.room = giving_up_ == status::ok;
  } else {
    core_.ops.end(what.op);
    core_.rows->put(row);
  }
  if ((!unproven || !note.room) && !sync::mutated("room never comes back"))
    core_.gate.give(kind, 1);
  core_.opts.on_completion(core_.opts.context, what);
  if (sync::mutated("op reported twice")) core_.opts.on_completion(core_.opts.context, what);
  core_.ended.fetch_add_release(1);  // (3) after the callback: none is running when all have ended
}

// The copy of an op that was given up is over.
void copy_thread::prove(std::uint32_t row) noexcept {
  const copy_op_header& header = core_.rows->header(row);
  completion what = about(header, status::timed_out);
  what.proven = true;
  const copy_kind kind = header.kind;
  const bool room = notes_[row].room;
  health_.prove(header.slot);
  core_.ops.end(what.op);
  core_.rows->put(row);
  if (room) core_.gate.give(kind, 1);
  core_.opts.on_completion(core_.opts.context, what);
}

// Ends an op that is in no batch and was not taken. Its lane goes on without it.
void copy_thread::refuse(std::uint32_t row, status code) noexcept {
  const slot_id slot = core_.rows->header(row).slot;
  if (take(row)) end_op(row, code);
  if (!sync::mutated("refused op keeps its turn")) core_.slots.pass(slot);
}

// The copies of the batch are over: its rows may be written again.
void copy_thread::release_rows(copy_batch& batch, status code) noexcept {
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::uint32_t row = batch.rows[i];
    if (notes_[row].given_up && !sync::mutated("given up op reported again"))
      prove(row);
    else
      end_op(row, code == status::ok ? judge(batch, i) : code);
  }
  batch.rows.clear();
}

// How the batch's i-th op ends, whose copy has run as it should.
status copy_thread::judge(const copy_batch& batch, std::size_t i) noexcept {
  const std::uint32_t row = batch.rows[i];
  const slot_id slot = core_.rows->header(row).slot;
  if (batch.kind == copy_kind::store && !health_.clean(row, slot) &&
      !sync::mutated("poison forgotten"))
    return status::poisoned;
  return verify(batch, i);
}

// What the checksum of the batch's i-th image says. A store's is kept by the image's first unit:
// while an image is there, no other image holds that unit, and what else does never comes here.
status copy_thread::verify(const copy_batch& batch, std::size_t i) noexcept {
  if (!core_.opts.checksums || sync::mutated("checksum ignored")) return status::ok;
  if (batch.sums[i] == no_sum) return status::failed;  // the device has not copied it
  std::uint64_t& kept = sums_[core_.rows->units(batch.rows[i])[0]];
  const std::uint64_t sum = batch.sums[i] == unknown_sum ? unknown_sum + 1 : batch.sums[i];
  if (batch.kind == copy_kind::store) kept = sum;
  return kept == sum || kept == unknown_sum ? status::ok : status::corrupt;
}

// The device has nothing of the stream's open batch: the ops of which `leaves` is true end.
template <class Leaves>
void copy_thread::end_described(copy_stream& on, status code, Leaves leaves) noexcept {
  copy_batch& batch = *on.open;
  std::size_t left = 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::uint32_t row = batch.rows[i];
    if (!leaves(row)) {
      batch.tasks[left] = batch.tasks[i];
      batch.rows[left++] = row;
      continue;
    }
    const slot_id slot = core_.rows->header(row).slot;
    end_op(row, code);
    lanes_.pass(row);
    core_.slots.pass(slot);
  }
  batch.rows.resize(left);
  if (left != 0) return;
  batch.stage = batch_stage::idle;
  on.open = nullptr;
}

void copy_thread::end_described(copy_stream& on, status code) noexcept {
  end_described(on, code, [](std::uint32_t) { return true; });
}

// Ends or gives up the ops whose time is up. Calls no device. Looks at everything that waits or
// flies, but only when there is such an op.
bool copy_thread::expire() noexcept {
  if (deadlines_.empty()) return false;
  const std::int64_t now_ns = steady_ns();
  if (deadlines_.first_ns() > now_ns) return false;
  if (!sync::mutated("deadline of a waiting op missed"))
    lanes_.drop([&](std::uint32_t row) { return deadlines_.due(row, now_ns); },
                [&](std::uint32_t row) { refuse(row, status::timed_out); });
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    for (std::uint32_t i = 0; i < each.flying_count; ++i) expire_handed(*each.flying[i], now_ns);
    if (each.open == nullptr) continue;
    if (each.open->stage == batch_stage::described)
      end_described(each, status::timed_out,
                    [&](std::uint32_t row) { return deadlines_.due(row, now_ns); });
    else
      expire_handed(*each.open, now_ns);
  }
  return true;
}

void copy_thread::expire_handed(const copy_batch& batch, std::int64_t now_ns) noexcept {
  for (const std::uint32_t row : batch.rows)
    if (deadlines_.due(row, now_ns) && !sync::mutated("deadline of a copy missed"))
      end_op(row, status::timed_out, true);
}

bool copy_thread::give_up(status never_handed, status handed) noexcept {
  if (giving_up_ != status::ok) return false;
  giving_up_ = never_handed;
  lanes_.take_all([&](std::uint32_t row) { refuse(row, never_handed); });
  for (std::uint32_t s = 0; s < core_.streams->size(); ++s) {
    copy_stream& each = core_.streams->at(s);
    if (each.open != nullptr && each.open->stage == batch_stage::described)
      end_described(each, never_handed);
    else if (each.open != nullptr)
      give_up_handed(*each.open, handed);
    for (std::uint32_t i = 0; i < each.flying_count; ++i) give_up_handed(*each.flying[i], handed);
  }
  return true;
}

// Rooms come back too: nobody can take them any more, and the gate waits for them.
void copy_thread::give_up_handed(const copy_batch& batch, status code) noexcept {
  for (const std::uint32_t row : batch.rows) {
    row_note& note = notes_[row];
    if (!note.given_up) {
      end_op(row, code, true);
    } else if (note.room) {
      note.room = false;
      core_.gate.give(batch.kind, 1);
    }
  }
}

}  // namespace cairn::detail
