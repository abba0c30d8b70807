// Tickets: an op that its catalog keeps readable for as long as the ticket lives. They know
// neither copiers nor the runtime.
#include <cairn/runtime.hpp>
#include <utility>

namespace cairn {

ticket::ticket(ticket&& other) noexcept
    : catalog_(std::exchange(other.catalog_, nullptr)), op_(std::exchange(other.op_, {})) {}

ticket& ticket::operator=(ticket&& other) noexcept {
  if (this == &other) return *this;
  if (catalog_ != nullptr) catalog_->unobserve(op_);
  catalog_ = std::exchange(other.catalog_, nullptr);
  op_ = std::exchange(other.op_, {});
  return *this;
}

ticket::~ticket() {
  if (catalog_ != nullptr) catalog_->unobserve(op_);
}

status ticket::code() const noexcept {
  return catalog_ != nullptr ? catalog_->op_status(op_) : status::stale;
}

status ticket::wait(deadline until) const noexcept {
  return catalog_ != nullptr ? catalog_->wait(op_, until) : status::stale;
}

bool ticket::cancel() noexcept {
  return catalog_ != nullptr && catalog_->cancel(op_);
}

}  // namespace cairn
