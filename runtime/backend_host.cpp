// The host backend: devices whose streams are threads of this process. Checks what it is given
// and hands it to lanes; knows nothing of what a copy means.
#include <sys/mman.h>

#include <cairn/backend.hpp>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "runtime/copy_plan.hpp"
#include "runtime/host_copy.hpp"
#include "runtime/host_event.hpp"
#include "runtime/host_stream.hpp"
#include "runtime/sync.hpp"

namespace cairn {
namespace detail {
namespace {

/// Large blocks start on a page of 2 MiB and ask to be backed by such pages: an image is
/// scattered over hundreds of places, and each is a walk of the page tables otherwise.
class host_memory final : public memory_block {
 public:
  explicit host_memory(std::size_t bytes)
      : alignment_{bytes < large_page ? sync::cache_line : large_page} {
    data_ = static_cast<std::byte*>(::operator new(bytes, alignment_));
    size_ = bytes;
    if (bytes >= large_page) madvise(data_, bytes, MADV_HUGEPAGE);  // advice: may be refused
  }
  ~host_memory() override { ::operator delete(data_, alignment_); }
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

 private:
  static constexpr std::size_t large_page = std::size_t{2} << 20;
  std::align_val_t alignment_;
};

/// `which` as a Known, of which nothing is derived, or null. As dynamic_cast, which walks the bases
/// of whatever it meets; this compares one name, on every call.
template <class Known, class Base>
const Known* exactly(const Base& which) noexcept {
  static_assert(std::is_final_v<Known>);
  return typeid(which) == typeid(Known) ? static_cast<const Known*>(&which) : nullptr;
}

status accepted(bool pushed) noexcept {
  return pushed ? status::ok : status::queue_full;
}

class host_device final : public device {
 public:
  host_device(std::shared_ptr<host_shared> shared, std::uint32_t index)
      : shared_(std::move(shared)), index_(index) {}

  [[nodiscard]] std::string name() const override { return "host:" + std::to_string(index_); }

  result<std::unique_ptr<stream>> create_stream(stream_priority) override {
    host_lane* lane = nullptr;
    try {
      lane = shared_->claim_lane();
      if (lane == nullptr)
        return error(status::limit, "too many streams", index_, event_position::max_lanes,
                     event_position::max_lanes + 1);
      return std::unique_ptr<stream>(std::make_unique<host_stream>(shared_, this, *lane));
    } catch (const std::exception& e) {
      if (lane != nullptr) shared_->release_lane(*lane);
      return error(status::limit, std::string("no thread for a stream: ") + e.what());
    }
  }

  result<std::unique_ptr<stream>> wrap_stream(void*) override {
    return error(status::unsupported, "the host backend has no native streams to wrap");
  }

  result<std::unique_ptr<event>> create_event(doorbell* bell) override {
    return std::unique_ptr<event>(std::make_unique<host_event>(shared_, bell));
  }

  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override {
    if (bytes == 0) return error(status::invalid, "memory block has no bytes", index_, 1, 0);
    try {
      return std::unique_ptr<memory_block>(std::make_unique<host_memory>(bytes));
    } catch (const std::bad_alloc&) {
      return error(status::limit, "no memory for " + std::to_string(bytes) + " bytes");
    }
  }

  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override {
    return allocate(bytes);
  }

  status record(event& what, stream& on) override {
    const host_event* const event = ours(what);
    host_lane* const lane = ours(on);
    if (event == nullptr || lane == nullptr) return status::invalid;
    return accepted(lane->record(event->core()));
  }

  status wait(stream& on, event& what) override {
    const host_event* const event = ours(what);
    host_lane* const lane = ours(on);
    if (event == nullptr || lane == nullptr) return status::invalid;
    const event_position at = event->core().latest();
    // Nothing to wait for, or nothing left: what the caller has seen to be over, and what the
    // lane runs first anyway, come before the caller's next call on this lane.
    if (!at.recorded() || at.lane() == lane->index()) return status::ok;
    host_lane& other = shared_->lane(at.lane());
    if (other.query(at.ticket()) != event_state::pending) return status::ok;
    return accepted(lane->wait(other, at.ticket()));
  }

  [[nodiscard]] event_state query(const event& what) noexcept override {
    const host_event* const event = ours(what);
    if (event == nullptr) return event_state::failed;
    const event_position at = event->core().latest();
    return at.recorded() ? shared_->lane(at.lane()).query(at.ticket()) : event_state::fired;
  }

  [[nodiscard]] bool capturing(const stream& which) noexcept override {
    const host_lane* const lane = ours(which);
    return lane != nullptr && lane->capturing();
  }

  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override {
    if (result<void> fits = check_plan_memory(plan, memory); !fits) return fits.why();
    return std::unique_ptr<device_plan>(
        std::make_unique<host_plan>(this, plan, memory, shared_->copy_threads()));
  }

  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override {
    host_lane* const lane = ours(on);
    const auto* const loaded = exactly<host_plan>(plan);
    if (lane == nullptr || loaded == nullptr || loaded->owner() != this) return status::invalid;
    return accepted(lane->copy(host_batch{loaded, tasks, report, kind}));
  }

  status call(stream& on, void (*function)(void* context), void* context) override {
    host_lane* const lane = ours(on);
    if (lane == nullptr || function == nullptr) return status::invalid;
    return accepted(lane->call(function, context));
  }

  [[nodiscard]] bool polls() const noexcept override { return false; }

 private:
  /// The lane of a stream of this device, or null.
  [[nodiscard]] host_lane* ours(const stream& which) const noexcept {
    const auto* const known = exactly<host_stream>(which);
    return known != nullptr && known->owner() == this ? &known->lane() : nullptr;
  }
  /// An event of any device of this backend, or null.
  [[nodiscard]] const host_event* ours(const event& which) const noexcept {
    const auto* const known = exactly<host_event>(which);
    return known != nullptr && known->owner() == shared_.get() ? known : nullptr;
  }

  std::shared_ptr<host_shared> shared_;
  std::uint32_t index_;
};

class host_backend final : public backend {
 public:
  explicit host_backend(const host_options& opts) : shared_(std::make_shared<host_shared>(opts)) {
    for (std::uint32_t i = 0; i < opts.devices; ++i)
      devices_.push_back(std::make_unique<host_device>(shared_, i));
  }

  [[nodiscard]] std::uint32_t device_count() const noexcept override {
    return static_cast<std::uint32_t>(devices_.size());
  }
  [[nodiscard]] device& at(std::uint32_t index) override { return *devices_[index]; }

  bool step() override { return shared_->step(); }
  bool step(stream& on) override {
    const auto* const known = exactly<host_stream>(on);
    return known != nullptr && known->shared() == shared_.get() && shared_->manual() &&
           known->lane().step();
  }

 private:
  std::shared_ptr<host_shared> shared_;
  std::vector<std::unique_ptr<host_device>> devices_;
};

}  // namespace
}  // namespace detail

result<std::unique_ptr<backend>> make_host_backend(const host_options& opts) {
  if (opts.devices == 0 || opts.devices > max_ranks)
    return error(status::invalid, "host_options.devices is out of range", 0, max_ranks,
                 opts.devices);
  if (opts.stream_depth == 0)
    return error(status::invalid, "host_options.stream_depth must be positive", 0, 1, 0);
  return std::unique_ptr<backend>(std::make_unique<detail::host_backend>(opts));
}

}  // namespace cairn
