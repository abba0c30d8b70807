// The independent sequential model of cairn: what every answer should be when calls do not
// overlap and copies complete in the order in which they began. Differential tests and
// cairn_replay compare cairn with it. Nothing here may include anything of runtime/.
#pragma once

#include "model_catalog.hpp"
#include "model_coordinator.hpp"
#include "model_pool.hpp"
