// Looks at everything while nothing moves: is every unit somewhere, is every image right that could
// be restored, are the bytes between pieces untouched. Knows the world, not who made it so.
#pragma once

#include <vector>

#include "stress/soak/scheduler.hpp"

namespace cairn::soak {

/// Precondition: all schedulers are parked and wound up, troubles are off. `lost`: a device is, so
/// that nothing can be restored and units may be in quarantine.
void audit(world& in, const std::vector<scheduler*>& who, bool lost);

/// Gives up the highest unit, if it can be, and takes another back. Same precondition.
void resize(world& in, const std::vector<scheduler*>& who);

}  // namespace cairn::soak
