// Scenes on one part of the library: a struct with what it works on, `threads` and run(thread), and
// judge(). Made anew in the arena for each process.
#pragma once

#include <atomic>
#include <memory>

#include "stress/explore/scene.hpp"

namespace cairn::explore {

/// Passed between threads outside the library: no step, no order.
template <class T>
struct quiet_word {
  std::atomic<T> value{};
  void set(T v) { value.store(v, std::memory_order_relaxed); }
  void add(T v) { value.fetch_add(v, std::memory_order_relaxed); }
  [[nodiscard]] T get() const { return value.load(std::memory_order_relaxed); }
};

template <class Part>
class part_scene final : public scene {
 public:
  void build() override { part_ = new Part; }
  [[nodiscard]] std::uint32_t threads() const override { return Part::threads; }
  void run(std::uint32_t thread) override { part_->run(thread); }
  void judge() override { part_->judge(); }

 private:
  Part* part_ = nullptr;  // lives in the arena
};

template <class Part>
bool add_part(const char* name, bool waits = false, const char* group = "parts") {
  add_scene({name, group, waits,
             [](const scene_entry&) -> std::unique_ptr<scene> {
               return std::make_unique<part_scene<Part>>();
             },
             nullptr});
  return true;
}

}  // namespace cairn::explore
