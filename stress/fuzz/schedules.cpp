// Schedules: who goes on at which access of the real catalog and pool, read from the input. The
// scenes, and what must hold in them, are the explorer's (stress/explore), here with a search that
// is led by what the code has covered. An input is a scene and pairs (steps until the next switch,
// to whom).
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "stress/explore/arena.hpp"
#include "stress/explore/scene.hpp"
#include "stress/explore/scheduler.hpp"
#include "stress/explore/strategy.hpp"
#include "stress/fuzz/tape.hpp"

namespace {

using namespace cairn::explore;

/// Some of each kind, of several threads: all live in the arena at once, and it is copied back for
/// each input.
constexpr std::array names{"admit-evict",       "cancel-take-restore",   "clear-restore",
                           "evict-evict-evict", "forget-anew-forget",    "forget-restore-restore",
                           "orphan-restore",    "publish-publish-claim", "rank-rank-unproven",
                           "reserve-store",     "restore-restore-evict", "retire-claim",
                           "store-store-store", "unpin-pin-evict"};

class taped final : public strategy {
 public:
  explicit taped(cairn::fuzz::tape from) : from_(from) {}

  bool advance() override { return true; }
  std::uint64_t begin(std::uint32_t) override { return next_ = gap(0); }
  std::uint32_t choose(const situation& at) override {
    const auto count = static_cast<std::uint32_t>(std::popcount(at.ready));
    if (at.current == nobody) return pick(at.ready, from_.empty() ? 0 : from_.below(count));
    if (from_.empty()) {
      next_ = never;
      return at.current;
    }
    const std::uint32_t who = pick(at.ready, from_.below(count));
    next_ = gap(at.step);
    return who;
  }
  [[nodiscard]] std::uint64_t next() const override { return next_; }
  [[nodiscard]] std::uint64_t number() const override { return 0; }

 private:
  std::uint64_t gap(std::uint64_t after) {
    return from_.empty() ? never : after + 1 + from_.take<std::uint8_t>();
  }

  cairn::fuzz::tape from_;
  std::uint64_t next_ = 0;
};

struct stage {
  const char* name;
  std::unique_ptr<scene> what;
};

const std::vector<stage>& stages() {
  static const std::vector<stage> all = [] {
    std::vector<stage> made;
    made.reserve(names.size());
    for (const char* name : names) {
      const scene_entry* entry = find_scene(name);
      if (entry == nullptr) {
        std::fprintf(stderr, "fuzz: no scene '%s'\n", name);
        std::abort();
      }
      made.push_back({name, entry->make(*entry)});
    }
    arena::open();
    for (const stage& each : made) {
      const std::string trouble =
          guarded([](void* s) { static_cast<scene*>(s)->build(); }, each.what.get());
      cairn::fuzz::require(trouble.empty(), trouble.c_str());
    }
    arena::keep();
    arena::leave();
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 512) return 0;
  cairn::fuzz::tape from(data, size);
  const std::vector<stage>& all = stages();
  const stage& chosen = all[from.below(static_cast<std::uint32_t>(all.size()))];
  limits within;
  within.hash_state = false;
  taped by(from);
  recorder log(by);
  outcome seen = run(*chosen.what, log, within);
  if (cairn::fuzz::planted() && log.list().size() == 5) {
    seen.failed = true;
    seen.why = "planted: whoever is switched five times finds a bug";
  }
  if (!seen.failed) return 0;
  std::fprintf(stderr, "fuzz: %s: %s\n  again: explore --scene %s --decisions '%s'\n", chosen.name,
               seen.why.c_str(), chosen.name, to_text(log.list()).c_str());
  std::abort();
}
