// The scenes of the campaign.
#include "stress/histories/scene.hpp"

namespace cairn::histories {

const std::vector<scene>& scenes() {
  static const std::vector<scene> all = {
      // Slow, since copies are real; what they leave of their share is made up by the others.
      {.name = "runtime_kept",
       .whole_runtime = true,
       .keys = 12,
       .images = 12,
       .window = 12,
       .with = {.evicts = false, .ample = true},
       .forget = 60},
      {.name = "runtime_evicted",
       .whole_runtime = true,
       .keys = 12,
       .images = 8,
       .window = 12,
       .with = {.evicts = true, .ample = false},
       .forget = 10},
      // Nothing ever goes: a miss after publication is a violation.
      {.name = "kept",
       .keys = 512,
       .images = 512,
       .window = 6,
       .with = {.evicts = false, .ample = true}},
      // Everybody at one key.
      {.name = "one_key",
       .keys = 1,
       .images = 8,
       .window = 1,
       .with = {.evicts = false, .ample = true},
       .forget = 60,
       .fail = 60},
      {.name = "forgotten",
       .keys = 16,
       .images = 16,
       .window = 16,
       .with = {.evicts = false, .ample = true},
       .forget = 60,
       .clear = 8,
       .fail = 60},
      // Room for a third of the keys.
      {.name = "evicted",
       .keys = 24,
       .images = 8,
       .window = 24,
       .with = {.evicts = true, .ample = false},
       .allocate = 100},
      {.name = "everything",
       .keys = 12,
       .images = 6,
       .window = 12,
       .with = {.evicts = true, .ample = false},
       .forget = 20,
       .clear = 2,
       .fail = 30,
       .allocate = 60},
  };
  return all;
}

}  // namespace cairn::histories
