// For words whose fields are bit-fields, where masks and sums meet them as bits of an integer: that
// the first field is the lowest needs a little-endian machine. It knows none of these words.
#pragma once

#include <bit>

namespace cairn::detail {

static_assert(std::endian::native == std::endian::little,
              "words of bit-fields are written lowest bits first");

}  // namespace cairn::detail
