// What the HIP backend hands out of one device: streams and memory (events: hip_event.hpp). Each
// keeps the device's context alive and enters the device to be destroyed. Knows no copies.
#pragma once

#include <cairn/backend.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/scatter_gather_hip.hpp"
#include "runtime/hip_call.hpp"
#include "runtime/hip_staging.hpp"

namespace cairn::detail {

/// One device of one backend.
struct hip_context {
  explicit hip_context(int which) noexcept : ordinal(which) {}
  ~hip_context() {
    const hip_scope scope(ordinal, health);
    if (scope.entered() == status::ok)
      staging.reset();
    else if (staging != nullptr)
      staging->abandon();
  }
  hip_context(const hip_context&) = delete;
  hip_context& operator=(const hip_context&) = delete;

  int ordinal;
  hip_health health;
  std::uint32_t groups = 0;  ///< of one launch at most
  int lowest_priority = 0;
  int highest_priority = 0;
  std::unique_ptr<hip_staging> staging;
};

class hip_stream final : public stream {
 public:
  /// `board`: all zeros, of a stream that is owned; else null.
  hip_stream(std::shared_ptr<hip_context> on, hipStream_t native,
             std::unique_ptr<memory_block> board) noexcept
      : on_(std::move(on)), native_(native), board_(std::move(board)) {}
  ~hip_stream() override {
    if (!owned()) return;
    hip_health& health = on_->health;
    const hip_scope scope(on_->ordinal, health);
    // The runtime's own destroy does not wait. What cannot be waited for may still run, and use
    // whatever is freed after this.
    if (scope.entered() != status::ok) {
      scope.lose();
      return;
    }
    const hipError_t over = when_allowed([this] { return hipStreamSynchronize(native_); });
    if (over != hipSuccess) {
      health.lose("hipStreamSynchronize", over);
      return;
    }
    on_->staging->forgive(debts_, native_);
    judge_when_allowed(health, "hipStreamDestroy", [this] { return hipStreamDestroy(native_); });
  }
  hip_stream(const hip_stream&) = delete;
  hip_stream& operator=(const hip_stream&) = delete;

  [[nodiscard]] void* native() const noexcept override { return native_; }
  [[nodiscard]] hipStream_t handle() const noexcept { return native_; }
  [[nodiscard]] hip_context& on() const noexcept { return *on_; }
  /// What a call said that named the stream. The engine may have destroyed its own: a mistake of
  /// its caller's, for which runtimes have several words, and no news about the device.
  [[nodiscard]] status judge(const char* call, hipError_t code) const noexcept {
    if (!owned() && (code == hipErrorInvalidHandle || code == hipErrorContextIsDestroyed))
      return status::invalid;
    return on_->health.judge(call, code);
  }
  /// Of the staging ring.
  [[nodiscard]] hip_debts& debts() noexcept { return debts_; }
  /// The engine's streams may capture; no other stream of ours ever does.
  [[nodiscard]] bool owned() const noexcept { return board_ != nullptr; }
  /// Precondition: owned().
  [[nodiscard]] kernels::sum_board board() const noexcept {
    auto* const sums = reinterpret_cast<unsigned long long*>(board_->data());
    return {sums, reinterpret_cast<unsigned*>(sums + kernels::board_images)};
  }

 private:
  std::shared_ptr<hip_context> on_;
  hipStream_t native_;
  std::unique_ptr<memory_block> board_;
  hip_debts debts_;
};

class hip_memory final : public memory_block {
 public:
  hip_memory(std::shared_ptr<hip_context> on, void* memory, std::size_t bytes, bool pinned) noexcept
      : on_(std::move(on)), pinned_(pinned) {
    data_ = static_cast<std::byte*>(memory);
    size_ = bytes;
  }
  ~hip_memory() override {
    const hip_scope scope(on_->ordinal, on_->health);
    if (scope.entered() != status::ok) return;
    judge_when_allowed(on_->health, pinned_ ? "hipHostFree" : "hipFree",
                       [this] { return pinned_ ? hipHostFree(data_) : hipFree(data_); });
  }
  hip_memory(const hip_memory&) = delete;
  hip_memory& operator=(const hip_memory&) = delete;

 private:
  std::shared_ptr<hip_context> on_;
  bool pinned_;
};

}  // namespace cairn::detail
