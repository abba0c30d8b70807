// Tickets: an op that its runtime's catalog keeps readable for as long as the ticket lives.
#include <cairn/runtime.hpp>
#include <utility>

namespace cairn {

ticket::ticket(ticket&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), op_(std::exchange(other.op_, {})) {}

ticket& ticket::operator=(ticket&& other) noexcept {
  if (this == &other) return *this;
  if (owner_ != nullptr) owner_->records().unobserve(op_);
  owner_ = std::exchange(other.owner_, nullptr);
  op_ = std::exchange(other.op_, {});
  return *this;
}

ticket::~ticket() {
  if (owner_ != nullptr) owner_->records().unobserve(op_);
}

status ticket::code() const noexcept {
  return owner_ != nullptr ? owner_->records().op_status(op_) : status::stale;
}

status ticket::wait(deadline until) const noexcept {
  return owner_ != nullptr ? owner_->records().wait(op_, until) : status::stale;
}

bool ticket::cancel() noexcept {
  return owner_ != nullptr && owner_->cancel(op_);
}

}  // namespace cairn
