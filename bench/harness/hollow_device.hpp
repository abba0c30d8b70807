// A device that copies nothing: what is launched has happened, and its events have fired. So that
// what a copier itself costs can be measured. Its memory is address space; nobody touches it.
#pragma once

#include <atomic>
#include <cairn/backend.hpp>
#include <cstdint>
#include <memory>

namespace cairn::bench {

class hollow_device final : public device {
 public:
  hollow_device() = default;

  /// While it holds, a launch keeps its caller busy, as a driver does for a while.
  void hold(bool on) { held_.store(on, std::memory_order_release); }
  /// Launches that were entered.
  [[nodiscard]] std::uint64_t entered() const { return entered_.load(std::memory_order_acquire); }

  /// Images that were launched.
  [[nodiscard]] std::uint64_t launched() const { return launched_.load(std::memory_order_relaxed); }

  std::string name() const override { return "hollow"; }
  result<std::unique_ptr<stream>> create_stream(stream_priority) override {
    return std::unique_ptr<stream>(std::make_unique<hollow_stream>());
  }
  result<std::unique_ptr<stream>> wrap_stream(void*) override {
    return error(status::unsupported, "no native streams");
  }
  result<std::unique_ptr<event>> create_event(doorbell*) override {
    return std::unique_ptr<event>(std::make_unique<hollow_event>());
  }
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override;
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override {
    return allocate(bytes);
  }
  status record(event&, stream&) override { return status::ok; }
  status wait(stream&, event&) override { return status::ok; }
  event_state query(const event&) noexcept override { return event_state::fired; }
  bool capturing(const stream&) noexcept override { return false; }
  result<std::unique_ptr<device_plan>> load(const copy_plan&, const rank_memory&) override {
    return std::unique_ptr<device_plan>(std::make_unique<hollow_plan>());
  }
  status launch(stream&, device_plan&, copy_kind, std::span<const copy_task> tasks,
                batch_report*) override {
    entered_.fetch_add(1, std::memory_order_release);
    while (held_.load(std::memory_order_acquire)) {
    }
    launched_.fetch_add(tasks.size(), std::memory_order_relaxed);
    return status::ok;
  }
  status call(stream&, void (*)(void*), void*) override { return status::unsupported; }
  bool polls() const noexcept override { return false; }

 private:
  class hollow_stream final : public stream {};
  class hollow_event final : public event {};
  class hollow_plan final : public device_plan {};

  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> entered_{0};
  std::atomic<std::uint64_t> launched_{0};
};

}  // namespace cairn::bench
