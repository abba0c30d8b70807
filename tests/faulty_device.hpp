// A device that passes every call on to another one, writes down what was launched where, and
// fails on demand. Knows nothing of who calls it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cairn/backend.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cairn::tests {

class faulty_device final : public device {
 public:
  explicit faulty_device(device& real) : real_(real) {}

  /// The n-th call from now (1: the next) answers `code` and is not passed on.
  class fault {
   public:
    void at(std::uint32_t nth, status code) {
      code_.store(code);
      left_.store(nth);
    }
    /// Every call from now on.
    void always(status code) {
      code_.store(code);
      always_.store(code != status::ok);
    }
    [[nodiscard]] status next() {
      if (always_.load()) return code_.load();
      if (left_.load() == 0 || left_.fetch_sub(1) != 1) return status::ok;
      return code_.load();
    }

   private:
    std::atomic<std::uint32_t> left_{0};
    std::atomic<bool> always_{false};
    std::atomic<status> code_{status::ok};
  };
  fault launches;
  fault records;
  fault waits;
  std::atomic<bool> gone{false};              ///< all calls: device_lost; all queries: failed
  std::atomic<bool> launch_then_fail{false};  ///< a failing launch is passed on nevertheless
  std::atomic<bool> capture{false};
  std::atomic<bool> poll{false};
  std::atomic<bool> withhold{false};      ///< events that have fired look pending
  std::atomic<bool> timeless{false};      ///< nobody writes times
  std::atomic<bool> fail_copies{false};   ///< they run, and the report says that they failed
  std::atomic<bool> fail_events{false};   ///< events that fire have failed
  std::atomic<std::uint32_t> shorten{0};  ///< copies that a launch leaves out, saying nothing
  std::atomic<bool> quiet{false};         ///< write nothing down
  /// record, wait, query and launch, whatever came of them.
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> waits_put{0};
  /// Counts the same calls, in plain memory: ThreadSanitizer sees whether they are ordered.
  std::uint64_t* plain_calls = nullptr;
  /// Runs inside the next wait, before it is passed on. Not while a copy thread runs.
  std::function<void()> in_wait;

  struct launch_note {
    stream* on;
    copy_kind kind;
    std::vector<slot_id> slots;
    const copy_task* staging;
  };
  /// Not while a copy thread runs.
  [[nodiscard]] const std::vector<launch_note>& launched() const { return notes_; }
  /// In the order in which they were created.
  [[nodiscard]] stream& created(std::size_t index) const { return *streams_.at(index); }
  [[nodiscard]] std::size_t created_count() const { return streams_.size(); }

  std::string name() const override { return real_.name(); }
  std::string why_lost() const override { return real_.why_lost(); }
  void adopt_thread() noexcept override { real_.adopt_thread(); }
  result<std::unique_ptr<stream>> create_stream(stream_priority priority) override {
    auto made = real_.create_stream(priority);
    if (made) streams_.push_back(made->get());
    return made;
  }
  result<std::unique_ptr<stream>> wrap_stream(void* native) override {
    return real_.wrap_stream(native);
  }
  result<std::unique_ptr<event>> create_event(doorbell* bell) override {
    return real_.create_event(bell);
  }
  result<std::unique_ptr<memory_block>> allocate(std::size_t bytes) override {
    return real_.allocate(bytes);
  }
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t bytes) override {
    return real_.allocate_pinned(bytes);
  }
  status record(event& what, stream& on) override {
    count();
    if (gone.load()) return status::device_lost;
    const status code = records.next();
    return code == status::ok ? real_.record(what, on) : code;
  }
  status wait(stream& on, event& what) override {
    count();
    ++waits_put;
    if (gone.load()) return status::device_lost;
    if (in_wait) std::exchange(in_wait, nullptr)();
    const status code = waits.next();
    return code == status::ok ? real_.wait(on, what) : code;
  }
  event_state query(const event& what) noexcept override {
    count();
    if (gone.load()) return event_state::failed;
    const event_state real = real_.query(what);
    if (real != event_state::fired) return real;
    if (withhold.load()) return event_state::pending;
    return fail_events.load() ? event_state::failed : real;
  }
  bool capturing(const stream& which) noexcept override {
    return capture.load() || real_.capturing(which);
  }
  result<std::unique_ptr<device_plan>> load(const copy_plan& plan,
                                            const rank_memory& memory) override {
    return real_.load(plan, memory);
  }
  status launch(stream& on, device_plan& plan, copy_kind kind, std::span<const copy_task> tasks,
                batch_report* report) override {
    count();
    if (gone.load()) return status::device_lost;
    const status code = launches.next();
    if (code != status::ok && !launch_then_fail.load()) return code;
    if (!quiet.load()) write_down(on, kind, tasks);
    if (fail_copies.load()) report->failed.store(true);
    const std::size_t left_out = std::min<std::size_t>(shorten.load(), tasks.size());
    const status real = real_.launch(on, plan, kind, tasks.first(tasks.size() - left_out),
                                     timeless.load() ? without_times(report) : report);
    return code == status::ok ? real : code;
  }
  status call(stream& on, void (*function)(void* context), void* context) override {
    return real_.call(on, function, context);
  }
  bool polls() const noexcept override { return poll.load() || real_.polls(); }

 private:
  batch_report* without_times(const batch_report* report) {
    untimed_.push_back(std::make_unique<batch_report>());
    untimed_.back()->checksums = report->checksums;
    return untimed_.back().get();
  }
  void count() noexcept {
    ++calls;
    if (plain_calls != nullptr) ++*plain_calls;
  }
  void write_down(stream& on, copy_kind kind, std::span<const copy_task> tasks) {
    launch_note note{&on, kind, {}, tasks.data()};
    for (const copy_task& each : tasks) note.slots.push_back(each.slot);
    notes_.push_back(std::move(note));
  }

  device& real_;
  std::vector<stream*> streams_;
  std::vector<launch_note> notes_;
  std::vector<std::unique_ptr<batch_report>> untimed_;
};

}  // namespace cairn::tests
