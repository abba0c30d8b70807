#include "stress/explore/fiber.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

// This file is compiled without the sanitizer; the library's target says which build it is.
#if defined(CAIRN_EXPLORE_ON_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace cairn::explore {

namespace {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr std::size_t guard_bytes = 4096;
[[maybe_unused]] constexpr unsigned no_sync = 1;  // __tsan_switch_to_fiber_no_sync

struct passage {
  boost::context::detail::fcontext_t* from;  ///< where the one who leaves is to be kept
  fiber::entry run;
};

void enter(transfer_t came) {
  const auto* p = static_cast<const passage*>(came.data);
  *p->from = came.fctx;
  fiber::entry run = p->run;
  run();  // never returns
  std::abort();
}

}  // namespace

fiber::~fiber() {
  if (stack_ == nullptr) return;
  munmap(stack_, stack_bytes);
#if defined(CAIRN_EXPLORE_ON_TSAN)
  if (tool_ != nullptr) __tsan_destroy_fiber(tool_);
#endif
}

void fiber::adopt() {
#if defined(CAIRN_EXPLORE_ON_TSAN)
  tool_ = __tsan_get_current_fiber();
#endif
}

namespace {
fiber::entry begins;  // read by the first switch to a new stack
}

void fiber::begin(entry run) {
  if (stack_ == nullptr) {
    void* at = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (at == MAP_FAILED) {
      std::perror("explore: a stack");
      std::abort();
    }
    stack_ = static_cast<std::byte*>(at);
    mprotect(stack_, guard_bytes, PROT_NONE);
  }
#if defined(CAIRN_EXPLORE_ON_TSAN)
  if (tool_ != nullptr) __tsan_destroy_fiber(tool_);
  tool_ = __tsan_create_fiber(0);
#endif
  begins = run;
  context_ = make_fcontext(stack_ + stack_bytes, stack_bytes - guard_bytes, enter);
}

void fiber::resume(fiber& from) noexcept {
#if defined(CAIRN_EXPLORE_ON_TSAN)
  __tsan_switch_to_fiber(tool_, no_sync);
#endif
  passage p{&from.context_, begins};
  const transfer_t back = jump_fcontext(context_, &p);
  *static_cast<const passage*>(back.data)->from = back.fctx;
}

void fiber::give_up(fiber& from) noexcept {
#if defined(CAIRN_EXPLORE_ON_TSAN)
  int token = 0;
  __tsan_switch_to_fiber(tool_, no_sync);
  __tsan_release(&token);
  __tsan_switch_to_fiber(from.tool_, no_sync);
  __tsan_acquire(&token);
#else
  static_cast<void>(from);
#endif
}

void tool_release(void* token) noexcept {
#if defined(CAIRN_EXPLORE_ON_TSAN)
  __tsan_release(token);
#else
  static_cast<void>(token);
#endif
}

void tool_acquire(void* token) noexcept {
#if defined(CAIRN_EXPLORE_ON_TSAN)
  __tsan_acquire(token);
#else
  static_cast<void>(token);
#endif
}

}  // namespace cairn::explore
