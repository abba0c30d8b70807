// Lanes change hands here, and stream threads start and end.
#include "runtime/host_stream.hpp"

#include <algorithm>
#include <utility>

namespace cairn::detail {
namespace {

std::uint32_t thread_count(const host_options& opts) {
  if (opts.manual) return 1;
  if (opts.copy_threads != 0) return opts.copy_threads;
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

host_shared::host_shared(const host_options& opts)
    : manual_(opts.manual),
      depth_(opts.stream_depth),
      copy_threads_(thread_count(opts)),
      helpers_(copy_threads_ - 1),
      use_helpers_(copy_threads_ > 1) {}

host_shared::~host_shared() {
  for (entry& e : entries_) delete e.lane.load_acquire();  // (1) acquire: pairs with (2)
}

host_lane& host_shared::lane(std::uint32_t index) const noexcept {
  return *entries_[index].lane.load_acquire();  // (3) acquire: pairs with (2)
}

host_lane* host_shared::claim_lane() {
  for (std::uint32_t i = 0; i < event_position::max_lanes; ++i) {
    entry& e = entries_[i];
    bool owned = false;
    if (!e.owned.cas_acq_rel(owned, true)) continue;  // (4) acquire: pairs with (5)
    host_lane* lane = e.lane.load_relaxed();          // written by an earlier owner, see (4)
    if (lane == nullptr) {
      try {
        lane = new host_lane(i, depth_, use_helpers_ ? &helpers_ : nullptr, manual_);
      } catch (...) {
        e.owned.store_release(false);
        throw;
      }
      e.lane.store_release(lane);  // (2) release: pairs with (1), (3), (6)
    } else {
      lane->reopen();
    }
    return lane;
  }
  return nullptr;
}

void host_shared::release_lane(host_lane& lane) noexcept {
  if (!manual_) entries_[lane.index()].owned.store_release(false);  // (5) release: pairs with (4)
}

bool host_shared::step() noexcept {
  if (!manual_) return false;
  for (entry& e : entries_) {
    host_lane* const lane = e.lane.load_acquire();  // (6) acquire: pairs with (2)
    if (lane == nullptr) return false;
    if (lane->step()) return true;
  }
  return false;
}

host_stream::host_stream(std::shared_ptr<host_shared> shared, const void* owner, host_lane& lane)
    : shared_(std::move(shared)), owner_(owner), lane_(lane) {
  if (!shared_->manual()) thread_ = std::thread([&lane] { lane.run_until_closed(); });
}

host_stream::~host_stream() {
  if (thread_.joinable()) {
    lane_.close();
    thread_.join();
  } else {
    lane_.discard();
  }
  shared_->release_lane(lane_);
}

void set_capturing(stream& which, bool on) noexcept {
  dynamic_cast<host_stream&>(which).lane().set_capturing(on);
}

}  // namespace cairn::detail
