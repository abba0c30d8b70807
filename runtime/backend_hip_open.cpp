// Opening the HIP backend: which devices there are, which were asked for, and each of them opened.
// Knows nothing of what a device does.
#include <cairn/backend.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend_hip.hpp"

namespace cairn {
namespace detail {
namespace {

/// What a grid may have on every platform, its threads counted too.
constexpr std::uint32_t groups_max = std::uint32_t{1} << 20;

class hip_backend final : public backend {
 public:
  explicit hip_backend(std::vector<std::unique_ptr<hip_device>> devices) noexcept
      : devices_(std::move(devices)) {}
  [[nodiscard]] std::uint32_t device_count() const noexcept override {
    return static_cast<std::uint32_t>(devices_.size());
  }
  [[nodiscard]] device& at(std::uint32_t index) override { return *devices_[index]; }

 private:
  std::vector<std::unique_ptr<hip_device>> devices_;
};

/// How many devices there are; an error when there is none.
result<int> count_devices() {
  const hip_last_error last_error;
  int count = 0;
  if (const hipError_t code = hipGetDeviceCount(&count); code != hipSuccess)
    return error(status::device_lost, "no HIP device: " + describe(code));
  if (count <= 0) return error(status::device_lost, "no HIP device: the runtime found none");
  return count;
}

result<std::vector<int>> choose_devices(const std::vector<int>& wanted, int count) {
  std::vector<int> chosen = wanted;
  if (chosen.empty())
    for (int i = 0; i < count && i < static_cast<int>(max_ranks); ++i) chosen.push_back(i);
  if (chosen.size() > max_ranks)
    return error(status::invalid, "hip_options.devices are too many", 0, max_ranks, chosen.size());
  std::set<int> seen;
  for (const int each : chosen) {
    if (each < 0 || each >= count)
      return error(status::invalid, "hip_options.devices: expected ordinals from 0 to " +
                                        std::to_string(count - 1) + ", got " +
                                        std::to_string(each));
    if (!seen.insert(each).second)
      return error(status::invalid,
                   "hip_options.devices: ordinal " + std::to_string(each) + " comes twice");
  }
  return chosen;
}

}  // namespace
}  // namespace detail

result<std::unique_ptr<backend>> make_hip_backend(const hip_options& opts) {
  if (opts.copy_groups > detail::groups_max)
    return error(status::invalid, "hip_options.copy_groups: expected at most", 0,
                 detail::groups_max, opts.copy_groups);
  const result<int> count = detail::count_devices();
  if (!count) return count.why();
  const result<std::vector<int>> chosen = detail::choose_devices(opts.devices, count.value());
  if (!chosen) return chosen.why();
  std::vector<std::unique_ptr<detail::hip_device>> devices;
  for (const int ordinal : chosen.value()) {
    auto made = std::make_unique<detail::hip_device>(ordinal);
    if (result<void> opened = made->open(opts.copy_groups); !opened) return opened.why();
    devices.push_back(std::move(made));
  }
  return std::unique_ptr<backend>(std::make_unique<detail::hip_backend>(std::move(devices)));
}

}  // namespace cairn
