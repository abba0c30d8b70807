// Settings that scenes on a catalog begin with, and counts that they end with.
#pragma once

#include "stress/explore/catalog_world.hpp"

namespace cairn::explore {

inline void one_ready(catalog_world& w) {
  w.host().store(1);
}
inline void full(catalog_world& w) {
  w.host().store(1);
  w.host().store(2);
}
inline void one_copying(catalog_world& w) {
  w.host().begin_store(1);
  w.at(0).take_over(w.host());
}
inline void one_restoring(catalog_world& w) {
  w.host().store(1);
  w.host().begin_restore(1);
  w.at(0).take_over(w.host());
}
inline void full_pinned(catalog_world& w) {
  full(w);
  w.host().pin_key(1);
  w.at(0).take_over(w.host());
}
inline void cached(catalog_world& w) {
  w.host().cache(1);
}
/// Key 1 is READY and its KV is cached.
inline void boundary(catalog_world& w) {
  w.host().store(1);
  w.host().cache(1);
}

inline std::uint32_t refused(catalog_world& w) {
  return w.at(0).refused() + w.at(1).refused() + w.at(2).refused();
}

}  // namespace cairn::explore
