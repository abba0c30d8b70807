// One device of the HIP backend.
#pragma once

#include <cairn/backend.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/hip_event.hpp"
#include "runtime/hip_objects.hpp"
#include "runtime/hip_plan.hpp"

namespace cairn::detail {

class hip_device final : public device {
 public:
  explicit hip_device(int ordinal) : on_(std::make_shared<hip_context>(ordinal)) {}

  /// Asks the device what it is and takes the staging ring. Before anything else.
  result<void> open(std::uint32_t copy_groups);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string why_lost() const override;
  result<std::unique_ptr<stream>> create_stream(stream_priority priority) override;
  result<std::unique_ptr<stream>> wrap_stream(void* native) override;
  result<std::unique_ptr<event>> create_event(doorbell* bell) override;
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override;
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override;
  status record(event& what, stream& on) override;
  status wait(stream& on, event& what) override;
  [[nodiscard]] event_state query(const event& what) noexcept override;
  [[nodiscard]] bool capturing(const stream& which) noexcept override;
  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override;
  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override;
  /// A function of the host in a stream would hold up the device: unsupported.
  status call(stream&, void (*)(void*), void*) override { return status::unsupported; }
  void adopt_thread() noexcept override;
  [[nodiscard]] bool polls() const noexcept override { return true; }

 private:
  [[nodiscard]] error refused(const char* what, status code) const;
  /// The stream, when it is one of this device's; else null.
  [[nodiscard]] hip_stream* ours(stream& which) const noexcept;
  /// Within a scope: ok; busy when work enqueued there would become part of a graph; or why that
  /// cannot be told.
  [[nodiscard]] static status takes_work(const hip_stream& which) noexcept;
  [[nodiscard]] result<void> find_kernels() const;
  status launch_inline(hip_stream& to, const hip_plan& plan, copy_kind kind,
                       std::span<const copy_task> tasks, std::uint64_t* checksums) noexcept;
  status launch_staged(hip_stream& to, const hip_plan& plan, copy_kind kind,
                       std::span<const copy_task> tasks, std::uint64_t* checksums) noexcept;

  std::shared_ptr<hip_context> on_;
};

}  // namespace cairn::detail
