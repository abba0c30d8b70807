// Sequences of calls on catalog and pool, and on the coordinator over them, against the sequential
// model: the episodes of the differential tests, with the input in place of their dice.
#include "stress/fuzz/tape.hpp"
// The episodes are in the tests' sources; their TESTs are not run here.
#include "tests/differential_catalog_test.cpp"
#include "tests/differential_coordinator_test.cpp"

namespace {

template <class Episode>
void play(const std::function<bool()>& more) {
  history past;
  Episode episode(1, past);
  for (int i = 0; i < 500 && more() && !past.failed(); ++i) episode.step();
  if (cairn::fuzz::planted() && past.operations() > 20 &&
      past.tell().find("clear()") != std::string::npos)
    past.fail("planted: whoever clears after twenty calls finds a bug");
  if (!past.failed()) episode.finish();
  if (!past.failed()) return;
  std::fprintf(stderr, "fuzz: %s\n%s\n", episode.describe().c_str(), past.tell().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 4096) return 0;
  cairn::fuzz::tape from(data, size);
  const bool coordinator = from.take<std::uint8_t>() % 2 != 0;
  const auto draw = [](void* context, std::uint64_t bound) {
    auto& tape = *static_cast<cairn::fuzz::tape*>(context);
    return bound <= 0xffffffff ? std::uint64_t{tape.below(static_cast<std::uint32_t>(bound))}
                               : tape.take<std::uint64_t>() % bound;
  };
  dice::from_outside = {draw, &from};
  const auto more = [&from] { return !from.empty(); };
  coordinator ? play<coordinator_episode>(more) : play<catalog_episode>(more);
  dice::from_outside = {};
  return 0;
}
