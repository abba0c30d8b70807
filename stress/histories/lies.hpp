// Bugs on purpose: what stands between the driver and the catalog may lie now and then, and the
// checker must notice. Knows calls by name only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::histories {

enum class lie : std::uint8_t {
  none,
  stale_handle,       ///< lookup brings the handle of the tenancy before
  stale_image,        ///< a restore brings the image of the store before
  lost_publication,   ///< a store that ended well is not there
  double_success,     ///< two stores of one key begin
  false_miss,         ///< lookup overlooks a READY key
  undead,             ///< forget only says that it did
  weak_pin,           ///< a pin that holds nothing
  early_publication,  ///< a store is READY before its copy has ended
  count
};

inline const char* to_string(lie which) noexcept {
  constexpr const char* names[] = {
      "none",       "stale_handle", "stale_image", "lost_publication", "double_success",
      "false_miss", "undead",       "weak_pin",    "early_publication"};
  return names[static_cast<std::size_t>(which)];
}

inline std::vector<std::string> lie_names() {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(lie::count); ++i)
    all.emplace_back(to_string(static_cast<lie>(i)));
  return all;
}

/// Tells the lie once in a while, and counts.
class liar {
 public:
  explicit liar(lie which) noexcept : which_(which) {}
  /// Whether to tell this lie now; asked where it would make a difference.
  bool now(lie which) noexcept {
    if (which != which_) return false;
    return asked_.fetch_add(1, std::memory_order_relaxed) % 256 == 200;
  }
  void told() noexcept { told_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] bool lies() const noexcept { return which_ != lie::none; }
  [[nodiscard]] std::uint64_t count() const noexcept { return told_.load(); }

 private:
  const lie which_;
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<std::uint64_t> told_{0};
};

}  // namespace cairn::histories
