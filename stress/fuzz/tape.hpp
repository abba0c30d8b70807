// What fuzz targets share: the input read as choices, what must hold, and bugs on purpose. Knows
// nothing of what is tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace cairn::fuzz {

/// The input, front to back; then the same numbers in every run.
class tape {
 public:
  tape(const std::uint8_t* data, std::size_t size) noexcept : left_(data, size) {}

  [[nodiscard]] bool empty() const noexcept { return left_.empty(); }
  template <class T>
  T take() noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (left_.size() < sizeof(T)) {
      left_ = {};
      // Not zeros: who draws until something comes must not draw for ever.
      spare_ = spare_ * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t high = spare_ >> 33;
      std::memcpy(&value, &high, sizeof(T) < 4 ? sizeof(T) : 4);
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof(T));
    left_ = left_.subspan(sizeof(T));
    return value;
  }
  /// Below `n`, by as few bytes as that needs.
  std::uint32_t below(std::uint32_t n) noexcept {
    if (n <= 1) return 0;
    return (n <= 256     ? take<std::uint8_t>()
            : n <= 65536 ? take<std::uint16_t>()
                         : take<std::uint32_t>()) %
           n;
  }
  bool one_in(std::uint32_t n) noexcept { return below(n) == n - 1; }
  [[nodiscard]] std::span<const std::uint8_t> rest() const noexcept { return left_; }

 private:
  std::span<const std::uint8_t> left_;
  std::uint64_t spare_ = 1;
};

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: must hold: %s\n", what);
  std::abort();
}

/// Whether the target shall behave as if the library had a certain bug, which must be found.
inline bool planted() noexcept {
  static const bool is = std::getenv("CAIRN_FUZZ_PLANT") != nullptr;
  return is;
}

/// One line of text without control characters, as it may stand in a log.
inline bool one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos &&
         text.find('\0') == std::string::npos;
}

}  // namespace cairn::fuzz
