// The sequential catalog as seen through one key: absent, COPYING
// or READY with one image, pinned so many times. checker_test.cpp drives it against the catalog's
// own model in tests/. Knows nothing of time and threads.
#pragma once

#include <cstdint>

#include "stress/histories/history.hpp"

namespace cairn::histories {

/// What may happen to a key besides the calls in its history.
struct rules {
  bool evicts = false;  ///< an unpinned READY image may go at any moment
  bool ample = false;   ///< there is room for everything: no store may be refused for want of it
};

struct key_state {
  enum class phase : std::uint8_t { absent, copying, ready };

  std::uint64_t image = 0;        ///< of the store that COPYING or READY goes back to
  std::uint64_t handle = 0;       ///< of this tenancy; 0 until a call has brought it
  std::uint64_t last_handle = 0;  ///< of the latest earlier tenancy that is known
  std::uint32_t pins = 0;
  phase now = phase::absent;

  friend bool operator==(const key_state&, const key_state&) = default;
};

namespace detail {

inline void leave(key_state& s) noexcept {
  if (s.handle != 0) s.last_handle = s.handle;
  s.image = 0;
  s.handle = 0;
  s.pins = 0;
  s.now = key_state::phase::absent;
}

/// The tenancy's handle, as a call has brought it; false when it is another's.
inline bool names(key_state& s, std::uint64_t handle) noexcept {
  if (s.handle == 0 && handle != s.last_handle) s.handle = handle;
  return s.handle == handle;
}

inline bool become_absent(key_state& s, const rules& r) noexcept {
  if (s.now == key_state::phase::absent) return true;
  // An eviction, now at the latest. Earlier would do as well: nothing in between told them apart,
  // for a pin would have failed.
  if (s.now != key_state::phase::ready || s.pins != 0 || !r.evicts) return false;
  leave(s);
  return true;
}

inline bool not_ready(key_state& s, const rules& r) noexcept {
  return s.now == key_state::phase::copying || become_absent(s, r);
}

}  // namespace detail

/// Applies the call; false when its answer is wrong in this state (which is then spoilt).
/// `crowded`: another store of the key, which got further, overlaps this one. A refusal is advice
/// then (catalog.hpp), as that store may hold the key before it has taken effect.
inline bool apply(key_state& s, const entry& e, const rules& r, bool crowded) noexcept {
  using phase = key_state::phase;
  switch (e.what) {
    case call::store:
      if (e.said == answer::duplicate) return crowded || s.now != phase::absent;
      if (e.said == answer::refused) return !r.ample;
      if (!detail::become_absent(s, r)) return false;
      s.now = phase::copying;
      s.image = e.image;
      return true;
    case call::publish:
      if (s.now != phase::copying || s.image != e.image) return true;  // it was forgotten
      if (e.said == answer::ok)
        s.now = phase::ready;
      else
        detail::leave(s);
      return true;
    case call::restore:
    case call::pin:
    case call::lookup:
    case call::contains:
      if (e.said == answer::refused) return !r.ample;
      if (e.said == answer::no) return detail::not_ready(s, r);
      if (s.now != phase::ready) return false;
      if (e.image != 0 && e.image != s.image) return false;
      if (e.handle != 0 && !detail::names(s, e.handle)) return false;
      if (e.what == call::restore || e.what == call::pin) ++s.pins;
      return true;
    case call::unpin: {
      const bool here = e.image != 0 ? e.image == s.image : e.handle == s.handle;
      if (!here || s.now != phase::ready) return true;      // of a tenancy that is over
      if (s.pins == 0) return detail::become_absent(s, r);  // of a tenancy that went before
      --s.pins;
      return true;
    }
    case call::occupied:
      if (e.said == answer::ok) return s.now != phase::absent;
      return detail::become_absent(s, r);
    case call::forget:
      if (e.said == answer::no) return detail::become_absent(s, r);
      if (s.now == phase::absent) return false;
      detail::leave(s);
      return true;
    case call::clear:
      detail::leave(s);
      return true;
  }
  return false;
}

}  // namespace cairn::histories
