// Address space without pages behind it.
#include "bench/harness/hollow_device.hpp"

#include <sys/mman.h>

namespace cairn::bench {
namespace {

class address_space final : public memory_block {
 public:
  address_space(void* at, std::size_t bytes) {
    data_ = static_cast<std::byte*>(at);
    size_ = bytes;
  }
  ~address_space() override { munmap(data_, size_); }
};

}  // namespace

result<std::unique_ptr<memory_block>> hollow_device::allocate(std::size_t bytes) {
  // Readable and writable: a copier keeps its tasks in pinned memory, and these it does touch.
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return error(status::no_room, "no address space");
  return std::unique_ptr<memory_block>(std::make_unique<address_space>(at, bytes));
}

}  // namespace cairn::bench
