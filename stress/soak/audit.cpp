// The looks.
#include "stress/soak/audit.hpp"

#include <set>
#include <string>
#include <thread>

namespace cairn::soak {
namespace {

deadline soon() {
  return clock::now() + std::chrono::seconds(60);
}

std::string n(std::uint64_t number) {
  return std::to_string(number);
}

/// Where the units are.
struct ledger {
  catalog_counts c;
  pool_counts p;

  explicit ledger(runtime& rt) : c(rt.records().counts()), p(rt.own_pool()->counts()) {}
  [[nodiscard]] std::uint64_t sum() const { return p.vacant + p.cached + p.live + p.reserved; }
  [[nodiscard]] bool closes() const {
    return sum() == p.total && p.reserved == c.checkpoint_units + c.quarantine_units;
  }
};

/// With a device lost copies still end, and units move while they are counted; and a proof that a
/// copy is over gives units back before it gives up its op. They are counted again until all is in
/// its place.
ledger closed_ledger(runtime& rt, bool lost) {
  const deadline until = clock::now() + std::chrono::seconds(20);
  ledger now(rt);
  while (!(now.closes() && (lost || now.c.ops == 0)) && clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = ledger(rt);
  }
  return now;
}

void look_at_ledger(world& in, const std::vector<scheduler*>& who, bool lost) {
  runtime& rt = in.rt();
  const ledger now = closed_ledger(rt, lost);
  const catalog_counts& c = now.c;
  const pool_counts& p = now.p;
  std::set<unit_id> held;
  std::size_t pins = 0;
  for (scheduler* each : who) {
    pins += each->pins();
    for (const kv_unit& u : each->units()) held.insert(u.unit);
  }
  if (const std::uint64_t sum = now.sum(); sum != p.total) {
    in.count.units_lost += sum < p.total ? p.total - sum : 0;
    in.violation("units: " + n(sum) + " in some place, of " + n(p.total));
  }
  if (p.live != held.size()) {
    in.count.units_lost += p.live > held.size() ? p.live - held.size() : 0;
    in.violation("live units: " + n(p.live) + ", held: " + n(held.size()));
  }
  if (p.reserved != c.checkpoint_units + c.quarantine_units) {
    in.count.units_lost += p.reserved;
    in.violation("reserved units: " + n(p.reserved) + ", of records " + n(c.checkpoint_units) +
                 ", quarantine " + n(c.quarantine_units));
  }
  if (c.pins > pins) in.violation("bare pins: " + n(c.pins) + ", held: " + n(pins));
  if (lost) return;
  if (c.copying != 0 || c.ops != 0)
    in.violation("nothing is under way, but COPYING " + n(c.copying) + ", ops " + n(c.ops));
  if (c.evicting > c.pins) in.violation("EVICTING " + n(c.evicting) + " with pins " + n(c.pins));
  if (c.quarantine_units != 0) {
    in.count.units_lost += c.quarantine_units;
    in.violation("in quarantine without a cause: " + n(c.quarantine_units));
  }
  // A copier counts an op as ended when its report, which ended the op, has returned.
  for (rank_id r = 0; r < in.opts.ranks; ++r)
    if (rt.rank(r).drain(soon()) != status::ok)
      in.violation("a copier has ops that nobody waits for");
}

void look_at_bytes(world& in, const std::vector<scheduler*>& who) {
  for (rank_id r = 0; r < in.opts.ranks; ++r) {
    if (const std::uint64_t broken = in.spaces[r]->broken_guards(); broken != 0)
      in.mismatch(n(broken) + " bytes between the pieces of rank " + n(r) + " were written");
    for (scheduler* each : who)
      for (const kv_unit& u : each->units())
        if (stress::judge(in.spaces[r]->read_unit(u.unit), u.key) != stress::verdict::right)
          in.mismatch("live unit " + n(u.unit) + " of rank " + n(r) + " was overwritten");
  }
}

/// Whatever is READY must be right.
void look_at_images(world& in) {
  runtime& rt = in.rt();
  const auto slot = in.take_slot();
  if (!slot) return;
  for (std::uint32_t key = 0; key < in.keys(); ++key) {
    const std::uint64_t since = in.images.now();
    const auto op = rt.restore(key_of(key), *slot, 0);
    if (!op) {
      if (op.code() != status::not_found)
        in.violation(std::string("a restore in peace answered ") + to_string(op.code()));
      continue;
    }
    if (in.settled()) (void)rt.settle(soon());
    const status how = op->wait(soon());
    in.state_of(*slot) = how == status::ok ? slot_state::known : slot_state::unknown;
    if (how == status::corrupt && in.devices.met(stress::trouble::bit_flips) != 0) continue;
    if (how == status::timed_out && in.hurries()) {
      in.release();
      continue;
    }
    if (how != status::ok) {
      in.violation(std::string("a restore in peace ended ") + to_string(how));
      continue;
    }
    ++in.count.restores;
    step look(in);
    look.slot = *slot;
    look.reads = true;
    look.key = key;
    look.since = since;
    look.enqueue(0);
    look.wait();
    look.judge();
  }
  in.give_slot(*slot);
}

}  // namespace

void audit(world& in, const std::vector<scheduler*>& who, bool lost) {
  runtime& rt = in.rt();
  in.release();
  const status idle = rt.drain(soon());
  if (idle != status::ok && !lost) in.violation("the runtime does not become idle");
  if (in.settled()) (void)rt.settle(soon());
  look_at_ledger(in, who, lost);
  if (lost) return;
  look_at_bytes(in, who);
  look_at_images(in);
  in.images.tidy();
}

void resize(world& in, const std::vector<scheduler*>& who) {
  unit_pool& pool = *in.rt().own_pool();
  const auto move = pool.begin_retire_top();
  ++in.count.operations;
  if (!move) return;
  if (move->to != no_unit) {
    for (auto& space : in.spaces) space->copy_unit(move->from, move->to);
    for (scheduler* each : who)
      for (kv_unit& u : each->units())
        if (u.unit == move->from) u.unit = move->to;
    if (auto done = pool.finish_retire(*move); !done)
      in.violation("finish_retire: " + done.why().message());
  }
  if (pool.extend(1) != 1) in.violation("what was retired does not come back");
}

}  // namespace cairn::soak
