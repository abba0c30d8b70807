// Eviction policies for the differential tests, each twice: as cairn's replaceable part and as the
// model's function. Single-threaded. Knows nothing of pools and ops.
#pragma once

#include <algorithm>
#include <cairn/catalog.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "differential.hpp"
#include "model_record.hpp"

namespace differential {

enum class policy_kind { least_recently_used, most_recently_used, spare_anchors };

inline policy_kind any_policy(dice& random) {
  return random.one_in(2) ? policy_kind::most_recently_used : policy_kind::spare_anchors;
}
inline const char* name_of(policy_kind kind) {
  switch (kind) {
    case policy_kind::most_recently_used:
      return "most_recently_used";
    case policy_kind::spare_anchors:
      return "spare_anchors";
    default:
      return "least_recently_used";
  }
}

/// Names the latest use, or the earliest that is no anchor: it passes over anchors for ever.
class test_policy final : public cairn::eviction_policy {
 public:
  explicit test_policy(policy_kind kind) : kind_(kind) {}
  void bind(std::uint32_t) override {}
  void place(std::uint32_t record, const cairn::use_info& use) noexcept override {
    places_[record] = use;
  }
  void drop(std::uint32_t record) noexcept override { places_.erase(record); }
  std::uint32_t next() noexcept override {
    std::uint32_t best = none;
    for (const auto& [record, use] : places_)
      if (may_go(use) && (best == none || goes_before(use, places_.at(best)))) best = record;
    return best;
  }

 private:
  bool may_go(const cairn::use_info& use) const {
    return kind_ != policy_kind::spare_anchors || use.hint != cairn::placement_hint::anchor;
  }
  bool goes_before(const cairn::use_info& a, const cairn::use_info& b) const {
    return kind_ == policy_kind::most_recently_used ? a.stamp > b.stamp : a.stamp < b.stamp;
  }

  policy_kind kind_;
  std::map<std::uint32_t, cairn::use_info> places_;
};

inline std::unique_ptr<cairn::eviction_policy> cairn_policy(policy_kind kind) {
  if (kind == policy_kind::least_recently_used) return nullptr;
  return std::make_unique<test_policy>(kind);
}

inline cairn_model::policy_function model_policy(policy_kind kind) {
  using candidates = std::vector<cairn_model::candidate>;
  switch (kind) {
    case policy_kind::most_recently_used:
      return [](const candidates& all) { return std::optional(all.size() - 1); };
    case policy_kind::spare_anchors:
      return [](const candidates& all) -> std::optional<std::size_t> {
        auto no_anchor = [](const auto& one) { return one.hint != cairn::placement_hint::anchor; };
        auto first = std::find_if(all.begin(), all.end(), no_anchor);
        if (first == all.end()) return std::nullopt;
        return static_cast<std::size_t>(first - all.begin());
      };
    default:
      return nullptr;
  }
}

}  // namespace differential
