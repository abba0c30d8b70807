// Where the planned device goes wrong.
#include "stress/faults/planned_device.hpp"

#include <algorithm>
#include <utility>

namespace cairn::stress {

planned_device::copy_stream* planned_device::of(const stream& which) {
  const auto found = std::find_if(copies_.begin(), copies_.end(),
                                  [&](const copy_stream& each) { return each.which == &which; });
  return found == copies_.end() ? nullptr : &*found;
}

bool planned_device::no_memory() {
  if (fail_memory_at == 0 || --fail_memory_at != 0) return false;
  plan_.met(fault::no_memory);
  return true;
}

status planned_device::lose() {
  gone = true;
  return status::device_lost;
}

result<std::unique_ptr<stream>> planned_device::create_stream(stream_priority priority) {
  if (no_memory()) return error(status::failed, "no memory for a stream");
  auto made = real_.create_stream(priority);
  if (made && watching_) copies_.push_back({made->get(), {}});
  return made;
}
result<std::unique_ptr<event>> planned_device::create_event(doorbell* bell) {
  if (no_memory()) return error(status::failed, "no memory for an event");
  return real_.create_event(bell);
}
result<std::unique_ptr<memory_block>> planned_device::allocate(std::size_t bytes) {
  if (no_memory()) return error(status::failed, "no memory");
  return real_.allocate(bytes);
}
result<std::unique_ptr<memory_block>> planned_device::allocate_pinned(std::size_t bytes) {
  if (no_memory()) return error(status::failed, "no pinned memory");
  return real_.allocate_pinned(bytes);
}
result<std::unique_ptr<device_plan>> planned_device::load(const copy_plan& plan,
                                                          const rank_memory& memory) {
  if (no_memory()) return error(status::failed, "no memory for a plan");
  return real_.load(plan, memory);
}

status planned_device::record(event& what, stream& on) {
  if (gone) return status::device_lost;
  copy_stream* const copies = of(on);
  // Compute's, or the look at a stream whose event has failed.
  const auto before = fates_.find(&what);
  if (copies == nullptr || (before != fates_.end() && before->second.fails)) {
    fates_.erase(&what);
    return real_.record(what, on);
  }
  if (plan_.meets(fault::device_lost, plan_.odds * 400)) return lose();
  if (plan_.meets(fault::record_full, plan_.odds)) return status::queue_full;
  if (plan_.meets(fault::record_fails, plan_.odds)) {
    copies->wrong.back() = true;
    return status::failed;
  }
  const status code = real_.record(what, on);
  if (code != status::ok) return code;
  fate its;
  if (plan_.meets(fault::event_lost, plan_.odds * 6)) {
    its.lost = true;
  } else if (plan_.meets(fault::event_late, plan_.odds / 2)) {
    its.unseen = 1 + plan_.below(40);
  } else if (plan_.meets(fault::event_fails, plan_.odds)) {
    its.fails = true;
    copies->wrong.back() = true;
  }
  fates_[&what] = its;
  return status::ok;
}

status planned_device::wait(stream& on, event& what) {
  if (gone) return status::device_lost;
  if (plan_.meets(fault::wait_full, plan_.odds)) return status::queue_full;
  if (plan_.meets(fault::wait_fails, plan_.odds)) return status::failed;
  return real_.wait(on, what);
}

event_state planned_device::query(const event& what) noexcept {
  if (gone) return event_state::failed;
  const event_state real = real_.query(what);
  const auto found = fates_.find(&what);
  if (real != event_state::fired || found == fates_.end()) return real;
  fate& its = found->second;
  if (its.lost) return event_state::pending;
  if (its.unseen != 0) {
    --its.unseen;
    return event_state::pending;
  }
  return its.fails ? event_state::failed : real;
}

status planned_device::launch(stream& on, device_plan& plan, copy_kind kind,
                              std::span<const copy_task> tasks, batch_report* report) {
  if (gone) return status::device_lost;
  if (plan_.meets(fault::device_lost, plan_.odds * 400)) return lose();
  if (plan_.meets(fault::launch_full, plan_.odds)) return status::queue_full;
  copy_stream& copies = *of(on);
  if (plan_.meets(fault::launch_fails, plan_.odds)) {
    copies.wrong.push_back(true);
    return status::failed;
  }
  std::size_t left_out = 0;
  if (plan_.meets(fault::copy_short, plan_.odds))
    left_out = 1 + plan_.below(static_cast<std::uint32_t>(tasks.size()));
  const status code = real_.launch(on, plan, kind, tasks.first(tasks.size() - left_out), report);
  if (code == status::queue_full) return code;
  bool wrong = code != status::ok;
  if (plan_.meets(fault::copy_fails, plan_.odds)) {
    report->failed.store(true);
    wrong = true;
  }
  const bool late = plan_.meets(fault::launch_fails_late, plan_.odds);
  copies.wrong.push_back(wrong || late);
  return late ? status::failed : code;
}

planned_backend::planned_backend(std::uint32_t devices, fault_plan& plan)
    : real_(std::move(make_host_backend({devices, 1, true, 4096})).value()) {
  for (std::uint32_t i = 0; i < devices; ++i)
    devices_.push_back(std::make_unique<planned_device>(real_->at(i), plan));
}

}  // namespace cairn::stress
