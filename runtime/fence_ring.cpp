// Marking and resolving positions; the essay is in the header.
#include "runtime/fence_ring.hpp"

#include <cassert>
#include <utility>

namespace cairn::detail {

result<void> fence_ring::open(device& on) {
  for (entry& each : ring_) {
    auto made = on.create_event(nullptr);  // nobody sleeps for compute
    if (!made) return made.why();
    each.what = std::move(made.value());
  }
  return {};
}

void fence_ring::raise(sync::atomic<std::uint64_t>& word, std::uint64_t step) noexcept {
  std::uint64_t seen = word.load_relaxed();
  while (seen < step && !word.cas_release(seen, step)) {  // (2), (3), (9)
  }
}

status fence_ring::mark(device& on, std::uint64_t step) noexcept {
  entry& at = ring_[step % positions];
  if (sync::mutated("mark before the event")) {
    raise(at.covers, step);
    raise(marked_, step);
  }
  const status recorded = on.record(*at.what, *compute());
  if (recorded != status::ok) return recorded;
  raise(at.covers, step);  // (2) release: pairs with (5); the event is recorded
  raise(marked_, step);    // (3) release: pairs with (4), (6); there is a position for step
  return status::ok;
}

fence_ring::position fence_ring::resolve(std::uint64_t step) const noexcept {
  const entry& usual = ring_[step % positions];
  const std::uint64_t covers = usual.covers.load_acquire();  // (5) acquire: pairs with (2)
  if (covers >= step) return {usual.what.get(), covers};
  // Its own mark is still under way, but a later one has ended: the nearest of those.
  position best;
  for (const entry& each : ring_) {
    const std::uint64_t c = each.covers.load_acquire();  // (5)
    if (c >= step && (best.what == nullptr || c < best.covers)) best = {each.what.get(), c};
  }
  assert(best.what != nullptr);
  return best;
}

}  // namespace cairn::detail
