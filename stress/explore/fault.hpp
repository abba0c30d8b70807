// The one fault that may be switched on in the explored library: an atomic access that is weakened
// or left out, or a place in the code that asks `mutated`. Knows neither scenes nor schedules.
//
// An access is named by a piece of its source line, which is looked up in the source when the
// fault is armed: a name that no longer fits is an error, not a fault that nobody meets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace cairn::explore {

enum class fault_kind : std::uint8_t {
  none,
  relaxed,  ///< the access orders nothing
  skipped,  ///< the write does not happen; a CAS claims that it did
  blind,    ///< a CAS that does not compare
  nothing,  ///< a load that returns zero
  kept,     ///< a CAS that leaves the low half of the word, its generation, as it was
  stale,    ///< a load that returns what this thread saw before: a recheck that finds no change
  coded,    ///< the code asks `mutated`
};

/// Where an access stands in the source.
struct place {
  const char* file;
  unsigned line;

  static constexpr place here(const char* f = __builtin_FILE(),
                              unsigned l = __builtin_LINE()) noexcept {
    return {f, l};
  }
};

struct fault {
  const char* name = nullptr;
  const char* scene = nullptr;  ///< that finds it
  const char* file = nullptr;   ///< from the root of the repository; null when coded
  const char* text = nullptr;   ///< part of the line
  fault_kind kind = fault_kind::none;
  const char* strategy = nullptr;  ///< that finds it; null: the one asked for
};

/// All faults that the explorer knows. Those that only weaken an order need ThreadSanitizer.
struct fault_list {
  const fault* begin;
  std::size_t count;
};
fault_list known_faults() noexcept;

extern bool faults_armed;

/// Empty, or why the fault cannot be armed.
std::string arm(const fault& which);
void disarm() noexcept;
/// How often the armed fault was met.
std::uint64_t fault_hits() noexcept;

/// For the environment.
fault_kind fault_at(const place& at) noexcept;
bool fault_is(const char* name) noexcept;
void remember_bits(const void* word, std::uint64_t bits) noexcept;
bool recall_bits(const void* word, std::uint64_t& bits) noexcept;
/// Forgets what was seen: a schedule begins.
void forget_seen() noexcept;

template <class T>
void remember(const void* word, const T& value) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  remember_bits(word, bits);
}
template <class T>
void keep_low_half(const T& from, T& to) noexcept {
  std::memcpy(static_cast<void*>(&to), &from, sizeof(T) / 2);
}
template <class T>
void recall(const void* word, T& value) noexcept {
  std::uint64_t bits = 0;
  if (recall_bits(word, bits)) std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
}

}  // namespace cairn::explore
