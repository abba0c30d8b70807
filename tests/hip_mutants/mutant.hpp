// What a mutated source of the HIP backend asks: whether a fault is on. One at most is, as the
// environment says when the program starts.
#pragma once

#include <cairn/types.hpp>
#include <cstdlib>

namespace cairn::mutants {

inline bool on(int number) noexcept {
  static const int chosen = [] {
    const char* const said = std::getenv("CAIRN_MUTANT");
    return said != nullptr ? std::atoi(said) : 0;
  }();
  return number == chosen;
}

/// The call was made; what it answered is not looked at.
inline status unheard(int number, status answer) noexcept {
  return on(number) ? status::ok : answer;
}

}  // namespace cairn::mutants
