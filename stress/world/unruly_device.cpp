// The misbehaving device.
#include "stress/world/unruly_device.hpp"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "stress/world/image.hpp"

namespace cairn::stress {

const char* to_string(trouble what) noexcept {
  constexpr const char* names[] = {"launch_fails", "launch_fails_late", "launch_full", "copy_fails",
                                   "copy_short",   "record_fails",      "record_full", "wait_fails",
                                   "wait_full",    "event_late",        "event_lost",  "stalled",
                                   "bit_flips",    "device_lost"};
  return names[static_cast<std::size_t>(what)];
}

class unruly_device final : public device {
 public:
  unruly_device(device& real, unruly_backend& plan, std::uint32_t index)
      : real_(real), plan_(plan), index_(index) {}

  std::atomic<bool> gone{false};

  /// Before anything is opened on the device.
  void revive() {
    gone.store(false);
    copies_.clear();
  }
  bool next_batch(std::uint32_t nth, bool& wrong) {
    if (gone.load() || nth >= copies_.size() || copies_[nth].wrong.empty()) return false;
    wrong = copies_[nth].wrong.front();
    copies_[nth].wrong.pop_front();
    return true;
  }

  std::string name() const override { return real_.name(); }
  std::string why_lost() const override { return real_.why_lost(); }
  result<std::unique_ptr<stream>> create_stream(stream_priority priority) override {
    auto made = real_.create_stream(priority);
    if (made) copies_.push_back({made->get(), {}});
    return made;
  }
  result<std::unique_ptr<stream>> wrap_stream(void* native) override {
    return real_.wrap_stream(native);
  }
  result<std::unique_ptr<event>> create_event(doorbell* bell) override {
    auto made = real_.create_event(bell);
    if (made) plan_.made(made->get(), bell);
    return made;
  }
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override {
    return real_.allocate(bytes);
  }
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override {
    return real_.allocate_pinned(bytes);
  }
  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override {
    return real_.load(plan, memory);
  }

  status record(event& what, stream& on) override {
    if (lost()) return status::device_lost;
    // The engine marks its own streams far more often than copies end.
    copy_stream* copies = of(on);
    if (copies == nullptr && plan_.draw() % 16 != 0) return real_.record(what, on);
    if (plan_.meets(trouble::record_full)) return status::queue_full;
    if (plan_.meets(trouble::record_fails)) {
      if (copies != nullptr) copies->wrong.back() = true;
      return status::failed;
    }
    if (plan_.meets(trouble::event_late)) sleep_on(on, plan_.draw() % plan_.plan().late_us_max);
    // Before it can fire: who sleeps for it is not to be told.
    plan_.recorded(&what);
    return real_.record(what, on);
  }
  status wait(stream& on, event& what) override {
    if (lost()) return status::device_lost;
    if (plan_.meets(trouble::wait_full)) return status::queue_full;
    if (plan_.meets(trouble::wait_fails)) return status::failed;
    return real_.wait(on, what);
  }
  event_state query(const event& what) noexcept override {
    if (gone.load()) return event_state::failed;
    const event_state real = real_.query(what);
    return real == event_state::fired && plan_.is_lost(&what) ? event_state::pending : real;
  }
  bool capturing(const stream& which) noexcept override { return real_.capturing(which); }

  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override {
    if (lost() || (plan_.meets(trouble::device_lost) && !gone.exchange(true)))
      return status::device_lost;
    if (plan_.meets(trouble::launch_full)) return status::queue_full;
    std::deque<bool>& wrong = of(on)->wrong;
    if (plan_.meets(trouble::launch_fails)) {
      wrong.push_back(true);
      return status::failed;
    }
    if (plan_.meets(trouble::stalled)) {
      const std::uint64_t half = plan_.plan().stall_us / 2;
      sleep_on(on, half + plan_.draw() % half);
    }
    std::size_t most = tasks.size();
    if (plan_.meets(trouble::copy_short)) most = plan_.draw() % tasks.size();
    const status code = real_.launch(on, plan, kind, tasks.first(most), report);
    if (code == status::queue_full) return code;
    wrong.push_back(code != status::ok);
    if (code != status::ok) return code;
    if (plan_.meets(trouble::copy_fails)) {
      report->failed.store(true);
      wrong.back() = true;
    }
    if (kind == copy_kind::store && plan_.flip() && plan_.meets(trouble::bit_flips))
      flip_on(on, tasks[plan_.draw() % tasks.size()].units[0]);
    if (!plan_.meets(trouble::launch_fails_late)) return status::ok;
    wrong.back() = true;
    return status::failed;
  }
  status call(stream& on, void (*function)(void* context), void* context) override {
    return real_.call(on, function, context);
  }
  bool polls() const noexcept override { return real_.polls(); }

 private:
  /// A stream that carries copies, which are those that were created here.
  struct copy_stream {
    const stream* which = nullptr;
    std::deque<bool> wrong;  ///< launches that no batch was reported for yet
  };
  copy_stream* of(const stream& which) {
    for (copy_stream& each : copies_)
      if (each.which == &which) return &each;
    return nullptr;
  }
  [[nodiscard]] bool lost() const noexcept { return gone.load(); }

  struct nap {
    std::chrono::microseconds time;
  };
  struct change {
    unruly_backend* plan;
    std::uint32_t device;
    unit_id unit;
    std::uint64_t where;
  };

  void sleep_on(stream& on, std::uint64_t us) {
    auto* made = new nap{std::chrono::microseconds(us)};
    const auto sleep = [](void* context) {
      const std::unique_ptr<nap> mine(static_cast<nap*>(context));
      std::this_thread::sleep_for(mine->time);
    };
    if (real_.call(on, sleep, made) != status::ok) delete made;
  }
  void flip_on(stream& on, unit_id unit) {
    auto* made = new change{&plan_, index_, unit, plan_.draw()};
    const auto flip = [](void* context) {
      const std::unique_ptr<change> mine(static_cast<change*>(context));
      mine->plan->flip()(mine->device, mine->unit, mine->where);
    };
    if (real_.call(on, flip, made) != status::ok) delete made;
  }

  device& real_;
  unruly_backend& plan_;
  const std::uint32_t index_;
  std::vector<copy_stream> copies_;  ///< the copy thread's, once it runs
};

unruly_backend::unruly_backend(const host_options& opts, const trouble_plan& plan,
                               std::uint64_t seed)
    : plan_(plan), seed_(seed), real_(std::move(make_host_backend(opts)).value()) {
  for (std::uint32_t i = 0; i < real_->device_count(); ++i)
    devices_.push_back(std::make_unique<unruly_device>(real_->at(i), *this, i));
}

unruly_backend::~unruly_backend() = default;

std::uint32_t unruly_backend::device_count() const noexcept {
  return real_->device_count();
}
device& unruly_backend::at(std::uint32_t index) {
  return *devices_[index];
}
void unruly_backend::revive() {
  for (auto& each : devices_) each->revive();
  const std::lock_guard held(mutex_);
  events_.clear();
  lost_events_.store(0);
}

void unruly_backend::release() {
  const std::lock_guard held(mutex_);
  for (auto& [which, its] : events_)
    if (std::exchange(its.lost, false)) its.bell->ring();
  lost_events_.store(0);
}

void unruly_backend::made(const event* which, doorbell* bell) {
  const std::lock_guard held(mutex_);
  if (bell == nullptr)
    events_.erase(which);
  else
    events_[which] = {bell, false};
}

void unruly_backend::recorded(const event* which) {
  const bool lost = drawn(trouble::event_lost);
  if (!lost && lost_events_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard held(mutex_);
  const auto found = events_.find(which);
  if (found == events_.end() || found->second.lost == lost) return;
  found->second.lost = lost;
  lost ? ++lost_events_ : --lost_events_;
  if (lost) count(trouble::event_lost);
}

bool unruly_backend::is_lost(const event* which) noexcept {
  if (lost_events_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard held(mutex_);
  const auto found = events_.find(which);
  return found != events_.end() && found->second.lost;
}
bool unruly_backend::next_batch(std::uint32_t device, std::uint32_t stream, bool& wrong) {
  return devices_[device]->next_batch(stream, wrong);
}
bool unruly_backend::any_lost() const noexcept {
  for (const auto& each : devices_)
    if (each->gone.load()) return true;
  return false;
}

std::uint64_t unruly_backend::draw() noexcept {
  return mixed(seed_ * 0x9e3779b97f4a7c15ULL + drawn_.fetch_add(1, std::memory_order_relaxed));
}

bool unruly_backend::drawn(trouble what) noexcept {
  const std::uint32_t chance = plan_.chance[static_cast<std::size_t>(what)];
  if (chance == 0 || !armed_.load(std::memory_order_relaxed)) return false;
  return draw() % (1U << 20) < chance;
}

}  // namespace cairn::stress
