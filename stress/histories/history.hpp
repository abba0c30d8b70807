// What is written down of a call: what was asked, what came back, and when it began and ended.
// Plain values; knows neither the catalog nor the model.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::histories {

enum class call : std::uint8_t {
  store,    ///< begin_store; `image` is what the store will write
  publish,  ///< a store is over: ok, or failed (cancelled too); by itself, or by finish
  restore,  ///< begin_restore; ok pins, and `image` is what the pinned units hold
  pin,      ///< pin_longest on one key; ok pins
  unpin,    ///< one pin of `image` or of `handle` falls
  lookup,   ///< ok brings `handle`
  contains,
  occupied,  ///< contains_or_copying
  forget,
  clear,  ///< of one key; no answer
};

enum class answer : std::uint8_t {
  ok,         ///< done; or true, or found
  no,         ///< not found; or false
  duplicate,  ///< of a store
  refused,    ///< of a call that was not carried out for want of room: says nothing of the key
  failed,     ///< of a store that is over
};

struct entry {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t image = 0;   ///< names one store; 0: not known
  std::uint64_t handle = 0;  ///< names one tenancy of a record; 0: not known
  std::uint32_t key = 0;
  std::uint16_t thread = 0;
  call what = call::lookup;
  answer said = answer::ok;
};

using journal = std::vector<entry>;

const char* to_string(call what) noexcept;
const char* to_string(answer said) noexcept;

}  // namespace cairn::histories
