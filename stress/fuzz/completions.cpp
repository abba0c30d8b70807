// Completions that a catalog gets from elsewhere: arbitrary ids, generations, ranks, epochs and
// codes, between stores, restores and cancels. Which of them counts is decided independently; at
// the end every unit is back.
#include <cairn/catalog.hpp>
#include <memory>
#include <vector>

#include "stress/fuzz/tape.hpp"

namespace {

using namespace cairn;
using cairn::fuzz::require;
using cairn::fuzz::tape;

constexpr std::uint32_t ranks = 3;
constexpr std::uint32_t units = 9;

class bench {
 public:
  explicit bench(tape& from) : from_(from) {
    pool_ = std::move(unit_pool::open({units, units, 1})).value();
    catalog_options o;
    o.shape = {8, 16, 16, "completions"};
    o.ranks = ranks;
    o.slots = 2;
    o.max_ops = 6;
    o.max_pins = 2;
    o.max_threads = 2;
    records_ = std::move(catalog::open(std::move(o), *pool_)).value();
  }

  void run() {
    for (int i = 0; i < 400 && !from_.empty(); ++i) act();
    for (const flight& each : flights_)
      for (std::uint32_t r = 0; r < ranks; ++r)
        if (!each.over && (each.reported >> r & 1) == 0) report({each.op, r, each.epoch});
    for (const flight& each : flights_)
      for (std::uint32_t r = 0; r < ranks; ++r)
        if ((each.owed >> r & 1) != 0) report({each.op, r, each.epoch, status::ok, false, true});
    records_->clear();
    const catalog_counts c = records_->counts();
    require(c.copying + c.ready + c.evicting + c.ops + c.quarantine_units == 0,
            "nothing is under way");
    require(pool_->free_units() == units, "every unit is back");
  }

 private:
  struct flight {
    op_id op;
    std::uint32_t epoch = 0;
    std::uint32_t reported = 0;
    std::uint32_t owed = 0;  ///< ranks that gave their copy up and must prove that it is over
    copy_kind kind = copy_kind::store;
    bool well = true;
    bool over = false;
    bool taken = false;
  };

  static checkpoint_key key(std::uint32_t n) { return {n + 1, n * 77}; }

  void act() {
    switch (from_.below(8)) {
      case 0:
      case 1:
        return begin(records_->begin_store(key(from_.below(4)), from_.below(3)));
      case 2:
        return begin(records_->begin_restore(key(from_.below(4)), from_.below(3)));
      case 3:
        if (flights_.empty()) return;
        return cancel(flights_[from_.below(256) % flights_.size()]);
      case 4:
        (void)records_->forget(key(from_.below(4)));
        return;
      default:
        return report(any());
    }
  }
  void begin(const result<copy_op>& op) {
    if (!op) return;
    flights_.push_back({op->header.op, op->header.epoch, 0, 0, op->header.kind});
  }
  void cancel(flight& f) {
    if (from_.one_in(2)) {
      require(records_->take(f.op) == !f.over, "what is under way can be taken");
      f.taken = f.taken || !f.over;
    }
    const bool possible = !f.over && !f.taken && f.reported == 0;
    require(records_->cancel(f.op) == possible, "what nobody has taken can be cancelled");
    f.over = f.over || possible;
  }

  completion any() {
    completion c;
    if (!flights_.empty()) {
      const flight& f = flights_[from_.below(256) % flights_.size()];
      c.op = f.op;
      c.epoch = f.epoch;
    }
    c.rank = from_.below(ranks);
    for (std::uint32_t twists = from_.below(3); twists > 0; --twists) switch (from_.below(7)) {
        case 0:
          c.op.index = from_.take<std::uint32_t>();
          break;
        case 1:
          c.op.generation = from_.take<std::uint32_t>();
          break;
        case 2:
          c.rank = from_.take<std::uint32_t>();
          break;
        case 3:
          c.epoch = from_.take<std::uint32_t>();
          break;
        case 4:
          c.code = static_cast<status>(from_.take<std::uint8_t>());
          break;
        case 5:
          c.proven = true;
          break;
        default:
          c.unproven = true;
      }
    return c;
  }

  void report(const completion& c) {
    if (c.proven) return prove(c);
    flight* found = nullptr;
    for (flight& f : flights_)
      if (!f.over && f.op == c.op && f.epoch == c.epoch) found = &f;
    const bool counts = found != nullptr && c.rank < ranks && (found->reported >> c.rank & 1) == 0;
    const finish_outcome outcome = records_->finish(c);
    const bool lie = fuzz::planted() && counts && c.code >= status::stale;
    require(outcome.counted == (counts && !lie), "a completion counts once, if it is meant");
    if (!counts) return require(!outcome.ended, "what does not count ends nothing");
    found->reported |= 1U << c.rank;
    if (c.unproven) found->owed |= 1U << c.rank;
    found->well = found->well && c.code == status::ok && !c.unproven;
    require(outcome.kind == found->kind, "the outcome names the kind");
    require(outcome.ended == (found->reported == (1U << ranks) - 1), "the last rank ends it");
    found->over = outcome.ended;
    if (outcome.ended)
      require((outcome.code == status::ok) == found->well, "one failure is the op's");
  }
  void prove(const completion& c) {
    flight* found = nullptr;
    for (flight& f : flights_)
      if (f.op == c.op && f.epoch == c.epoch && c.rank < ranks && (f.owed >> c.rank & 1) != 0)
        found = &f;
    const finish_outcome outcome = records_->finish(c);
    require(outcome.counted == (found != nullptr) && !outcome.ended,
            "a proof counts if it is owed");
    if (found != nullptr) found->owed &= ~(1U << c.rank);
  }

  tape& from_;
  std::unique_ptr<unit_pool> pool_;
  std::unique_ptr<catalog> records_;
  std::vector<flight> flights_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  tape from(data, size);
  bench(from).run();
  return 0;
}
