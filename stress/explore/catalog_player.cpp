// The players' calls. See catalog_world.hpp.
#include <algorithm>
#include <array>
#include <span>

#include "stress/explore/catalog_world.hpp"

namespace cairn::explore {

namespace {

constexpr std::uint64_t live_bytes = 1000;

owner_id owner_of(std::uint32_t player) noexcept {
  return owner_id{1} << 60 | player;
}

}  // namespace

// ---- checkpoints ------------------------------------------------------------------------------

status player::begin_store(std::uint64_t n) {
  auto op = world_->records().begin_store(key_of(n), 0);
  if (!op) {
    if (op.code() == status::duplicate)
      ++duplicates_;
    else
      ++refused_;
    return op.code();
  }
  ++begun_;
  fly(*op, n);
  world_->stored_in[op->header.begin_stamp % 64].store(op->header.epoch, std::memory_order_relaxed);
  return status::ok;
}

status player::begin_restore(std::uint64_t n, slot_id slot) {
  auto op = world_->records().begin_restore(key_of(n), slot);
  if (!op) return op.code();
  ++begun_;
  fly(*op, n);
  return status::ok;
}

void player::fly(const copy_op& op, std::uint64_t key) {
  require(flights_ < most, "the scene has too many ops");
  flight& f = flying_[flights_++];
  f = {};
  f.header = op.header;
  f.key = key;
  std::copy(op.units.begin(), op.units.end(), f.units.begin());
  if (!world_->options.cancels) touch(f);
}

/// The op begins to use its units. (Its copy does; here that is one moment, as early as can be.)
void player::touch(flight& f) {
  const std::span<const unit_id> units = std::span(f.units).first(f.header.unit_count);
  if (f.header.kind == copy_kind::store) {
    f.value = f.header.begin_stamp * 16 + f.key;
    for (unit_id id : units) world_->take(id, f.value);
    return;
  }
  f.value = world_->content[units.front()];
  require(f.value >= 16 && f.value % 16 == f.key, "a restore reads another key's bytes");
  for (unit_id id : units) world_->read(id, f.value);
}

player::flight player::pop() {
  const flight f = flying_[0];
  for (std::uint32_t i = 1; i < flights_; ++i) flying_[i - 1] = flying_[i];
  --flights_;
  return f;
}

/// The op no longer uses its units: before the call that says so.
void player::land(flight& f) {
  if (std::exchange(f.landed, true)) return;
  if (world_->options.cancels) touch(f);
  for (std::uint32_t i = 0; i < f.header.unit_count; ++i) {
    world_->verify(f.units[i], f.value);
    if (f.header.kind == copy_kind::store)
      world_->give(f.units[i]);
    else
      world_->unread(f.units[i]);
  }
}

void player::tell(flight& f, rank_id rank, status code) {
  completion c;
  c.op = f.header.op;
  c.rank = rank;
  c.epoch = f.header.epoch;
  c.code = code;
  const bool first = (f.reported >> rank & 1) == 0;
  f.reported |= 1U << rank;
  const finish_outcome outcome = world_->records().finish(c);
  if (outcome.counted && !first) fail("a rank counted twice");
  if (world_->options.cancels && first && !outcome.counted)
    fail("an op that was taken was cancelled");
}

void player::finish(status code) {
  if (flights_ == 0) return;
  flight f = pop();
  // Cancelled: its units are not its own any more.
  if (!world_->records().take(f.header.op)) return;
  land(f);
  for (rank_id rank = 0; rank < world_->options.ranks; ++rank)
    if ((f.reported >> rank & 1) == 0) tell(f, rank, code);
}

void player::finish_rank(rank_id rank, status code) {
  if (flights_ == 0) return;
  flight& f = flying_[0];
  if ((f.reported >> rank & 1) != 0) return;
  if (std::uint32_t after = f.reported | 1U << rank; after == (1U << world_->options.ranks) - 1) {
    finish(code);
    return;
  }
  if (!world_->records().take(f.header.op)) return;
  tell(f, rank, code);
}

status player::store(std::uint64_t n) {
  const status began = begin_store(n);
  if (began == status::ok) {
    // The newest: what began before it may not be over.
    std::swap(flying_[0], flying_[flights_ - 1]);
    finish();
    if (flights_ > 1) std::rotate(flying_.begin(), flying_.begin() + 1, flying_.begin() + flights_);
  }
  return began;
}

void player::restore(std::uint64_t n) {
  if (begin_restore(n) == status::ok) {
    std::swap(flying_[0], flying_[flights_ - 1]);
    finish();
  }
}

void player::cancel() {
  if (flights_ == 0) return;
  flight f = pop();
  // Nobody else cancels: the op is this player's until the call.
  if (!world_->options.cancels) land(f);
  require(world_->records().cancel(f.header.op), "a queued op could not be cancelled");
}

void player::forget(std::uint64_t n) {
  static_cast<void>(world_->records().forget(key_of(n)));
}

void player::clear() {
  world_->records().clear();
}

void player::cancel_slot(slot_id slot) {
  world_->records().cancel_restores(slot);
  world_->records().cancel_stores(slot);
}

void player::lose_rank(rank_id rank) {
  world_->records().lose_rank(rank);
}

void player::look(std::uint64_t n) {
  catalog& c = world_->records();
  static_cast<void>(c.contains(key_of(n)));
  static_cast<void>(c.contains_or_copying(key_of(n)));
  const checkpoint_key protect = key_of(n);
  static_cast<void>(c.has_available_units(world_->options.units, &protect));
}

// ---- pins -------------------------------------------------------------------------------------

void player::pin_key(std::uint64_t n, std::int64_t for_ns) {
  const checkpoint_key keys[] = {key_of(n)};
  auto held =
      world_->records().pin_longest(keys, 1, deadline(std::chrono::nanoseconds(now_ns() + for_ns)));
  if (!held || pin_count_ == pins_.size()) return;
  lasting_[pin_count_] = for_ns > 1'000'000'000;
  pins_[pin_count_++] = *held;
}

void player::use_pinned(std::uint64_t n) {
  if (pin_count_ == 0) return;
  require(begin_restore(n) == status::ok, "a pinned record is gone");
  finish();
}

void player::unpin() {
  if (pin_count_ == 0) return;
  --pin_count_;
  const bool fell = world_->records().release_pin(pins_[pin_count_]);
  require(fell || !lasting_[pin_count_], "a pin fell before its owner let go");
}

void player::expire(std::int64_t after_ns) {
  world_->records().expire(deadline(std::chrono::nanoseconds(now_ns() + after_ns)));
}

// ---- units ------------------------------------------------------------------------------------

void player::took(unit_id id) {
  world_->take(id, live_bytes + self_);
  require(share_count_ < most, "the scene has too many units");
  shares_[share_count_++] = {id, true, live_bytes + self_};
}

void player::allocate(std::uint32_t count) {
  std::array<unit_id, most> ids{};
  if (!world_->records().allocate(std::span(ids).first(count))) {
    ++refused_;
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) took(ids[i]);
}

void player::reserve(std::uint32_t count) {
  if (reserved_count_ != 0) return;
  if (!world_->pool().reserve(std::span(reserved_).first(count), owner_of(self_))) {
    ++refused_;
    return;
  }
  reserved_count_ = count;
  for (std::uint32_t i = 0; i < count; ++i) world_->take(reserved_[i], live_bytes + self_);
}

void player::wait_reserve(std::uint32_t count, std::int64_t for_ns) {
  if (reserved_count_ != 0) return;
  const deadline until(std::chrono::nanoseconds(now_ns() + for_ns));
  if (!world_->records().wait_reserve(std::span(reserved_).first(count), owner_of(self_), until)) {
    ++refused_;
    return;
  }
  reserved_count_ = count;
  for (std::uint32_t i = 0; i < count; ++i) world_->take(reserved_[i], live_bytes + self_);
}

void player::release() {
  if (reserved_count_ == 0) return;
  const std::uint32_t count = std::exchange(reserved_count_, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    world_->verify(reserved_[i], live_bytes + self_);
    world_->give(reserved_[i]);
  }
  require(world_->pool().release(std::span(reserved_).first(count), owner_of(self_)).ok(),
          "a reservation is not its owner's to release");
}

void player::free_one() {
  if (share_count_ == 0) return;
  const share s = shares_[--share_count_];
  const unit_id to = world_->moved_to[s.id].load(std::memory_order_relaxed);
  if (to != 0) {
    world_->unread(to - 1);
    require(world_->pool().free(to - 1).ok(), "a share that was moved cannot be freed");
    return;
  }
  world_->verify(s.id, s.key);
  if (s.sole)
    world_->give(s.id);
  else
    world_->unread(s.id);
  require(world_->pool().free(s.id).ok(), "a share is not its holder's to free");
}

void player::publish(std::uint64_t n) {
  if (share_count_ == 0) return;
  share& s = shares_[share_count_ - 1];
  if (!s.sole) {
    // Others may hold it: its bytes stay, the key is another.
    require(world_->pool().publish(s.id, key_of(n)).ok(), "a live unit could not be published");
    return;
  }
  // From the naming on others may claim it: written before, a reader from now on.
  world_->give(s.id);
  world_->take(s.id, 100 + n);
  world_->give(s.id);
  world_->read(s.id, 100 + n);
  s.sole = false;
  s.key = 100 + n;
  require(world_->pool().publish(s.id, key_of(n)).ok(), "a live unit could not be published");
}

void player::claim(std::uint64_t n) {
  const unit_id id = world_->pool().claim(key_of(n));
  if (id == no_unit) return;
  // Moved before this call could say so.
  if (world_->moved_to[id].load(std::memory_order_relaxed) == 0) world_->read(id, 100 + n);
  require(share_count_ < most, "the scene has too many units");
  shares_[share_count_++] = {id, false, 100 + n};
}

void player::admit(std::uint64_t n, std::uint32_t fresh) {
  const checkpoint_key keys[] = {key_of(n)};
  std::array<unit_id, most> ids{};
  auto made = world_->records().admit(keys, fresh, 2, std::span(ids).first(1 + fresh));
  if (!made) {
    ++refused_;
    return;
  }
  for (std::uint32_t i = 0; i < 1 + fresh; ++i) {
    if (i >= made->resumed) {
      took(ids[i]);
      continue;
    }
    world_->read(ids[i], 100 + n);
    require(share_count_ < most, "the scene has too many units");
    shares_[share_count_++] = {ids[i], false, 100 + n};
  }
  if (!made->restore) return;
  fly(*made->restore, n);
}

void player::cache(std::uint64_t n) {
  const std::uint32_t before = share_count_;
  allocate();
  if (share_count_ == before) return;
  publish(n);
  free_one();
}

void player::clear_index() {
  world_->pool().clear_index();
}

void player::extend() {
  static_cast<void>(world_->pool().extend(1));
}

void player::retire_top() {
  auto move = world_->pool().begin_retire_top();
  if (!move || move->to == no_unit) return;
  world_->move(move->from, move->to);
  require(world_->pool().finish_retire(*move).ok(), "a move could not be finished");
}

void player::look_unit(std::uint64_t n) {
  const unit_id id = world_->pool().lookup(key_of(n));
  require(id == no_unit || id < world_->options.units, "the index names a unit that is none");
}

// ---- one op whose ranks are different threads ---------------------------------------------------

player::view player::newest() const {
  require(flights_ > 0, "the scene has no op");
  const flight& f = flying_[flights_ - 1];
  return {f.header.op, std::span(f.units).first(f.header.unit_count)};
}

void player::hand_to_device() {
  require(world_->records().take(newest().op), "a new op cannot be handed to its device");
}

void player::tell_from(rank_id rank, status code) {
  flight& f = flying_[flights_ - 1];
  completion c;
  c.op = f.header.op;
  c.rank = rank;
  c.epoch = f.header.epoch;
  c.code = code;
  c.unproven = code == status::timed_out;  // its copy was given up
  // A rank's copy is over when it reports; the units are the op's until the last rank has.
  const std::uint32_t all = (1U << world_->options.ranks) - 1;
  const std::uint32_t over = landing_.fetch_or(1U << rank, std::memory_order_relaxed);
  if (over != all && (over | 1U << rank) == all) land(f);
  const finish_outcome outcome = world_->records().finish(c);
  if (!outcome.counted) return;
  const std::uint32_t before = told_.fetch_or(1U << rank, std::memory_order_relaxed);
  require((before >> rank & 1) == 0, "a rank counted twice");
  if (outcome.ended) ends_.fetch_add(1, std::memory_order_relaxed);
}

void player::prove_from(rank_id rank) {
  const flight& f = flying_[flights_ - 1];
  completion c;
  c.op = f.header.op;
  c.rank = rank;
  c.epoch = f.header.epoch;
  c.proven = true;
  static_cast<void>(world_->records().finish(c));
}

void player::check_ready(std::uint64_t n) {
  require(begin_restore(n) == status::ok, "a READY key cannot be restored");
  flight& f = flying_[flights_ - 1];
  if (world_->options.cancels) touch(f);
  const std::uint32_t stored = world_->stored_in[f.value / 16 % 64].load(std::memory_order_relaxed);
  require(stored == world_->records().epoch(), "a READY record has lost a shard");
  if (world_->options.cancels)
    for (unit_id id : std::span(f.units).first(f.header.unit_count)) world_->unread(id);
  finish();
}

void player::wind_up() {
  while (flights_ > 0) finish();
  while (share_count_ > 0) free_one();
  release();
  while (pin_count_ > 0) unpin();
}

void player::take_over(player& other) {
  while (other.flights_ > 0) flying_[flights_++] = other.pop();
  while (other.pin_count_ > 0) {
    --other.pin_count_;
    lasting_[pin_count_] = other.lasting_[other.pin_count_];
    pins_[pin_count_++] = other.pins_[other.pin_count_];
  }
  while (other.share_count_ > 0) shares_[share_count_++] = other.shares_[--other.share_count_];
}

}  // namespace cairn::explore
