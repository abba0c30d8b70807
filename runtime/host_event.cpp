// Transitions of event_core; the essay is in the header.
#include "runtime/host_event.hpp"

#include <chrono>

namespace cairn::detail {

void event_core::move_to(event_position now) noexcept {
  std::uint64_t seen = latest_.load_relaxed();
  for (;;) {
    const event_position old = event_position::from_word(seen);
    if (old.recorded() && old.lane() == now.lane() && old.ticket() > now.ticket()) return;
    // (1) release: pairs with (2), and carries the lane that the position names.
    if (latest_.cas_release(seen, now.word())) return;
  }
}

event_position event_core::latest() const noexcept {
  return event_position::from_word(latest_.load_acquire());  // (2) acquire: pairs with (1)
}

void event_core::add_reference() noexcept {
  references_.fetch_add_relaxed(1);  // the caller holds the event, hence a reference
}

void event_core::drop_reference() noexcept {
  // (3) acq_rel: pairs with itself; the last holder has what the others did.
  if (references_.fetch_sub_acq_rel(1) == 1) delete this;
}

void event_core::ring() noexcept {
  if (bell_ == nullptr) return;
  // (4) acq_rel: before (5) in the word's order it holds close up; after it, it sees closed.
  if ((ringers_.fetch_add_acq_rel(one_ringer) & closed) == 0) bell_->ring();
  // (6) release: pairs with (5) and (7), so that the ring is over when close returns.
  if (ringers_.fetch_sub_release(one_ringer) == (closed | one_ringer)) quiet_.ring();
}

void event_core::close() noexcept {
  if (bell_ == nullptr) return;
  std::uint32_t seen = quiet_.seen();
  std::uint32_t now = ringers_.fetch_or_acq_rel(closed) | closed;  // (5) pairs with (4), (6)
  while (now != closed) {
    quiet_.wait(seen, clock::now() + std::chrono::hours(1));
    seen = quiet_.seen();
    now = ringers_.load_acquire();  // (7) acquire: pairs with (6)
  }
}

}  // namespace cairn::detail
