// Runs the items of a lane; the essay is in the header.
#include "runtime/host_lane.hpp"

#include <chrono>

namespace cairn::detail {
namespace {

/// How long a thread sleeps when only a ring will wake it.
deadline far_off() {
  return clock::now() + std::chrono::hours(1);
}

}  // namespace

host_lane::host_lane(std::uint32_t index, std::uint32_t depth, helper_budget* budget, bool stepped)
    : index_(index), stepped_(stepped), ring_(depth), runner_(budget) {}

template <class Fill>
bool host_lane::push(Fill&& fill) noexcept {
  if (!ring_.push(fill)) return false;
  work_.ring();
  return true;
}

bool host_lane::record(event_core& what) noexcept {
  if (std::uint64_t next = 0; !stepped_ && ring_.idle(next) && next > 0) {
    what.move_to(event_position(index_, next - 1));
    what.ring();
    return true;
  }
  // The event moves before the item can run, so that whoever is woken by the item's ring finds
  // the event where the item put it.
  return push([this, &what](work& item, std::uint64_t ticket) {
    what.add_reference();
    what.move_to(event_position(index_, ticket));
    item = record_work{&what};
  });
}

bool host_lane::wait(host_lane& other, std::uint64_t ticket) noexcept {
  if (sync::mutated("stream wait dropped")) return true;
  return push([&other, ticket](work& item, std::uint64_t) { item = wait_work{&other, ticket}; });
}

bool host_lane::copy(const host_batch& batch) noexcept {
  return push([&batch](work& item, std::uint64_t) { item = batch; });
}

bool host_lane::call(void (*function)(void*), void* context) noexcept {
  return push([function, context](work& item, std::uint64_t) {
    item = call_work{function, context};
  });
}

event_state host_lane::query(std::uint64_t ticket) const noexcept {
  if (ring_.done() > ticket || sync::mutated("event fired early")) return event_state::fired;
  // (1) acquire: pairs with (2); a lane whose items were dropped has no consumer any more.
  return discarded_.load_acquire() ? event_state::failed : event_state::pending;
}

void host_lane::sleep_past(std::uint64_t ticket) noexcept {
  for (;;) {
    const std::uint32_t seen = fired_.seen();
    if (query(ticket) != event_state::pending) return;
    fired_.wait(seen, far_off());
  }
}

void host_lane::run(work& item) noexcept {
  if (const auto* wait = std::get_if<wait_work>(&item)) {
    wait->other->sleep_past(wait->ticket);
  } else if (const auto* batch = std::get_if<host_batch>(&item)) {
    runner_.run(*batch);
  } else if (const auto* call = std::get_if<call_work>(&item)) {
    call->function(call->context);
  }
}

void host_lane::finish(work& item) noexcept {
  const auto* record = std::get_if<record_work>(&item);
  event_core* const what = record != nullptr ? record->what : nullptr;
  ring_.pop();  // the item is gone, and an event recorded here has fired
  if (what == nullptr) return;
  fired_.ring();
  what->ring();
  what->drop_reference();
}

void host_lane::run_until_closed() noexcept {
  for (;;) {
    const std::uint32_t seen = work_.seen();
    if (work* item = ring_.front()) {
      run(*item);
      finish(*item);
    } else if (closing_.load_acquire() && ring_.drained()) {  // (3) acquire: pairs with (4)
      return;
    } else {
      work_.wait(seen, far_off());
    }
  }
}

bool host_lane::step() noexcept {
  work* item = ring_.front();
  if (item == nullptr) return false;
  const auto* wait = std::get_if<wait_work>(item);
  if (wait != nullptr && wait->other->query(wait->ticket) == event_state::pending) return false;
  run(*item);
  finish(*item);
  return true;
}

void host_lane::discard() noexcept {
  discarded_.store_release(true);  // (2) release: pairs with (1)
  while (work* item = ring_.front()) {
    if (auto* record = std::get_if<record_work>(item)) {
      record->what->ring();
      record->what->drop_reference();
    }
    ring_.skip();
  }
  fired_.ring();
}

void host_lane::close() noexcept {
  closing_.store_release(true);  // (4) release: pairs with (3)
  work_.ring();
}

}  // namespace cairn::detail
