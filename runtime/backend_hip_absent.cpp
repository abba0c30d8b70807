// make_hip_backend of a build without HIP. Knows that there is none.
#include <cairn/backend.hpp>

namespace cairn {

result<std::unique_ptr<backend>> make_hip_backend(const hip_options&) {
  return error(status::unsupported, "this build of cairn has no HIP backend");
}

}  // namespace cairn
