// An array of fixed length for tables that are read at random. Large ones ask the system for huge
// pages: a table of many megabytes otherwise misses the translation of its address as often as the
// cache. Begins a pair of cache lines, which processors like to fetch together. Knows nothing of
// what it holds.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace cairn::detail {

template <class T>
class large_array {
  // Nothing to give back half-way through the making of the values.
  static_assert(std::is_nothrow_default_constructible_v<T>);

 public:
  /// `length` values as T() makes them.
  explicit large_array(std::size_t length) : values_(make(length), release{length}) {}

  [[nodiscard]] T* get() const noexcept { return values_.get(); }
  T& operator[](std::size_t i) const noexcept { return values_.get()[i]; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static constexpr std::size_t least = std::max(alignof(T), std::size_t{128});

  static std::align_val_t alignment(std::size_t length) noexcept {
    return std::align_val_t{length * sizeof(T) >= huge_page ? huge_page : least};
  }
  static T* make(std::size_t length) {
    void* const at = ::operator new(length * sizeof(T), alignment(length));
    // Before the first touch. Whole pages only; refused where the system has none, which is no
    // harm.
    if (const std::size_t whole = length * sizeof(T) / huge_page * huge_page; whole != 0)
      (void)madvise(at, whole, MADV_HUGEPAGE);
    T* const values = static_cast<T*>(at);
    std::uninitialized_value_construct_n(values, length);
    return values;
  }
  struct release {
    std::size_t length;
    void operator()(T* values) const noexcept {
      std::destroy_n(values, length);
      ::operator delete(values, alignment(length));
    }
  };

  std::unique_ptr<T[], release> values_;
};

}  // namespace cairn::detail
