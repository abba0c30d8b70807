// A pool that does not tell anyone when it takes a cached unit for other content, so that
// checkpoints outlive the KV without which they are useless. It shows what the link is worth, and
// how an engine puts a pool of its own behind the catalog.
#pragma once

#include <cairn/unit_pool.hpp>

namespace cairn::replay {

class unlinked_pool final : public unit_source {
 public:
  explicit unlinked_pool(unit_pool& inner) : inner_(inner) {}

  [[nodiscard]] std::uint32_t max_units() const noexcept override { return inner_.max_units(); }
  [[nodiscard]] std::uint32_t free_units() const noexcept override { return inner_.free_units(); }
  void set_orphan_hook(orphan_hook, void*) noexcept override {}
  result<void> reserve(std::span<unit_id> out, owner_id owner) override {
    return inner_.reserve(out, owner);
  }
  result<void> release(std::span<const unit_id> ids, owner_id owner) override {
    return inner_.release(ids, owner);
  }
  result<void> replace(std::span<const unit_id> given, owner_id giver, std::span<unit_id> out,
                       owner_id owner) override {
    return inner_.replace(given, giver, out, owner);
  }
  void collect_fences(std::span<const unit_id> ids, fence_set& set) const noexcept override {
    inner_.collect_fences(ids, set);
  }
  result<void> allocate(std::span<unit_id> out) override { return inner_.allocate(out); }
  [[nodiscard]] unit_id lookup(const checkpoint_key& key) const noexcept override {
    return inner_.lookup(key);
  }
  [[nodiscard]] unit_id claim(const checkpoint_key& key) noexcept override {
    return inner_.claim(key);
  }
  result<void> free(unit_id id, fence_token fence) override { return inner_.free(id, fence); }

 private:
  unit_pool& inner_;
};

}  // namespace cairn::replay
