// The HIP backend over the runtime's double: the conformance suites, which run on a device as they
// are, and what only a double can show.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "tests/backend_conformance.hpp"
#include "tests/copy_conformance.hpp"
#include "tests/hip_double_tools.hpp"

namespace cairn::tests {
namespace {

[[maybe_unused]] const bool watched = watch_double();

constexpr backend_factory hip_over_double{"double", [] { return make_hip_backend(); },
                                          &call_in_hip_stream};

/// The double's copies read pinned memory only, as far as they know, so this one is the host's.
void copy_across(std::byte* to, const std::byte* from, std::size_t bytes, bool) {
  std::memcpy(to, from, bytes);
}
constexpr backend_factory in_device_memory{
    "memory", [] { return make_hip_backend(); }, &call_in_hip_stream, {&copy_across}};

std::string factory_name(const testing::TestParamInfo<backend_factory>& each) {
  return each.param.name;
}

INSTANTIATE_TEST_SUITE_P(HipDouble, BackendConformance, testing::Values(hip_over_double),
                         factory_name);
INSTANTIATE_TEST_SUITE_P(HipDouble, CopyConformance,
                         testing::Combine(testing::Values(hip_over_double),
                                          testing::ValuesIn(geometries()), testing::Bool()),
                         copy_case_name);

// Waves of several lanes, as devices have them: nothing in the kernels depends on how many.
template <std::uint32_t Lanes, std::uint32_t Crews>
result<std::unique_ptr<backend>> backend_with_waves() {
  hip::set_waves({.lanes = Lanes, .crews = Crews});
  return make_hip_backend({.devices = {0}, .copy_groups = 3});
}
constexpr backend_factory waves_of_4{"Of4", &backend_with_waves<4, 3>, &call_in_hip_stream};
constexpr backend_factory waves_of_32{"Of32", &backend_with_waves<32, 2>, &call_in_hip_stream};
constexpr backend_factory waves_of_64{"Of64", &backend_with_waves<64, 2>, &call_in_hip_stream};

INSTANTIATE_TEST_SUITE_P(HipWaves, CopyConformance,
                         testing::Combine(testing::Values(waves_of_4, waves_of_32, waves_of_64),
                                          testing::Values(geometry_named("tiny"),
                                                          geometry_named("ragged"),
                                                          geometry_named("replay")),
                                          testing::Bool()),
                         [](const testing::TestParamInfo<copy_case>& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  copy_case_name(each);
                         });

INSTANTIATE_TEST_SUITE_P(HipDoubleMemory, CopyConformance,
                         testing::Combine(testing::Values(in_device_memory),
                                          testing::ValuesIn(geometries()), testing::Bool()),
                         copy_case_name);

}  // namespace
}  // namespace cairn::tests
