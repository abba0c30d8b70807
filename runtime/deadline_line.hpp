// Which op must end next: rows in the order of the times by which their ops must have ended. The
// copy thread's alone: nothing here is atomic. Knows no ops and no clock.
//
// All ops of a copier have the same time, so they come nearly in order: a row goes in at the end,
// or a few places before it. Every step is of constant time then, and the first row is the first
// to be late.
#pragma once

#include <cairn/types.hpp>
#include <cstdint>
#include <vector>

namespace cairn::detail {

class deadline_line {
 public:
  explicit deadline_line(std::uint32_t rows) : nodes_(rows) {}

  [[nodiscard]] bool empty() const noexcept { return first_ == none; }
  /// Precondition: not empty.
  [[nodiscard]] std::int64_t first_ns() const noexcept { return nodes_[first_].at_ns; }
  /// Whether the row is in line with a time that has come.
  [[nodiscard]] bool due(std::uint32_t row, std::int64_t now_ns) const noexcept {
    return nodes_[row].linked && nodes_[row].at_ns <= now_ns;
  }

  /// Precondition: the row is not in line.
  void add(std::uint32_t row, std::int64_t at_ns) noexcept {
    std::uint32_t before = last_;
    while (before != none && nodes_[before].at_ns > at_ns) before = nodes_[before].before;
    node& added = nodes_[row];
    added = {at_ns, before, before == none ? first_ : nodes_[before].after, true};
    (before == none ? first_ : nodes_[before].after) = row;
    (added.after == none ? last_ : nodes_[added.after].before) = row;
  }
  /// A row that is not in line stays so.
  void remove(std::uint32_t row) noexcept {
    node& gone = nodes_[row];
    if (!gone.linked) return;
    (gone.before == none ? first_ : nodes_[gone.before].after) = gone.after;
    (gone.after == none ? last_ : nodes_[gone.after].before) = gone.before;
    gone.linked = false;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct node {
    std::int64_t at_ns = 0;
    std::uint32_t before = none;
    std::uint32_t after = none;
    bool linked = false;
  };

  std::vector<node> nodes_;
  std::uint32_t first_ = none;
  std::uint32_t last_ = none;
};

}  // namespace cairn::detail
