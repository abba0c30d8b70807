// A device that goes wrong as a plan says, and remembers which of its launches must not be reported
// as well done. Passes everything else on. Knows streams and events, no ops. One thread.
#pragma once

#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "stress/faults/plan.hpp"

namespace cairn::stress {

class planned_device final : public device {
 public:
  planned_device(device& real, fault_plan& plan) : real_(real), plan_(plan) {}

  bool gone = false;
  /// The n-th of the calls that take memory from now on fails; 0: none.
  std::uint32_t fail_memory_at = 0;

  /// Streams that are created from now on carry copies, and are numbered as the copier does.
  void watch() { watching_ = true; }
  /// Everything that was held back is seen from now on.
  void release() {
    for (auto& [which, its] : fates_) {
      its.lost = false;
      its.unseen = 0;
    }
  }
  /// Whether the nth launch on a stream has gone wrong, so that its batch must not end well.
  [[nodiscard]] bool went_wrong(std::uint32_t stream_index, std::size_t nth) const {
    return copies_.at(stream_index).wrong.at(nth);
  }

  std::string name() const override { return real_.name(); }
  std::string why_lost() const override { return real_.why_lost(); }
  result<std::unique_ptr<stream>> create_stream(stream_priority priority) override;
  result<std::unique_ptr<stream>> wrap_stream(void* native) override {
    return real_.wrap_stream(native);
  }
  result<std::unique_ptr<event>> create_event(doorbell* bell) override;
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override;
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override;
  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override;
  status record(event& what, stream& on) override;
  status wait(stream& on, event& what) override;
  event_state query(const event& what) noexcept override;
  bool capturing(const stream& which) noexcept override { return real_.capturing(which); }
  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override;
  status call(stream& on, void (*function)(void* context), void* context) override {
    return real_.call(on, function, context);
  }
  bool polls() const noexcept override { return real_.polls(); }

 private:
  struct copy_stream {
    const stream* which = nullptr;
    std::vector<bool> wrong;  ///< by launch; each gets its event before the next
  };
  struct fate {
    std::uint32_t unseen = 0;  ///< looks that find it pending
    bool lost = false;
    bool fails = false;
  };
  copy_stream* of(const stream& which);
  bool no_memory();
  status lose();

  device& real_;
  fault_plan& plan_;
  bool watching_ = false;
  std::vector<copy_stream> copies_;
  std::unordered_map<const event*, fate> fates_;
};

/// Devices of one manual host backend.
class planned_backend final : public backend {
 public:
  planned_backend(std::uint32_t devices, fault_plan& plan);
  [[nodiscard]] std::uint32_t device_count() const noexcept override {
    return static_cast<std::uint32_t>(devices_.size());
  }
  [[nodiscard]] device& at(std::uint32_t index) override { return *devices_.at(index); }
  [[nodiscard]] planned_device& planned(std::uint32_t index) { return *devices_.at(index); }
  bool step() override { return real_->step(); }
  bool step(stream& on) override { return real_->step(on); }

 private:
  std::unique_ptr<backend> real_;
  std::vector<std::unique_ptr<planned_device>> devices_;
};

}  // namespace cairn::stress
