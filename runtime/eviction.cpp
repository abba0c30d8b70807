// The default eviction policy: exact least recently used. It knows indices and stamps, nothing of
// keys, pins or units; the catalog decides what is evictable.
#include <cairn/catalog.hpp>
#include <memory>

#include "runtime/order.hpp"

namespace cairn {

namespace {

class lru_policy final : public eviction_policy {
 public:
  void bind(std::uint32_t records) override { order_ = std::make_unique<detail::order>(records); }
  void place(std::uint32_t record, const use_info& use) noexcept override {
    order_->set(record, use.stamp);
  }
  void drop(std::uint32_t record) noexcept override { order_->clear(record); }
  std::uint32_t next() noexcept override {
    const std::uint32_t first = order_->first();
    return first == detail::order::none ? none : first;
  }
  // The tree may lag behind its leaves while another thread is held up in it.
  std::uint32_t search() noexcept override {
    const std::uint32_t first = order_->first_by_scan();
    return first == detail::order::none ? none : first;
  }

 private:
  std::unique_ptr<detail::order> order_;
};

}  // namespace

std::unique_ptr<eviction_policy> make_lru_policy() {
  return std::make_unique<lru_policy>();
}

}  // namespace cairn
