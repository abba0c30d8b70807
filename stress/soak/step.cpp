// Running and judging steps.
#include "stress/soak/step.hpp"

#include <chrono>
#include <thread>

namespace cairn::soak {

void step::enqueue(std::uint32_t compute) {
  left_.store(in_.opts.ranks, std::memory_order_release);
  for (rank_id r = 0; r < in_.opts.ranks; ++r) {
    parts_[r] = {this, r};
    const auto call = [](void* context) {
      const part& p = *static_cast<part*>(context);
      p.of->run(p.rank);
    };
    status code = in_.own(r).call(in_.compute(r, compute), call, &parts_[r]);
    while (code == status::queue_full) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      code = in_.own(r).call(in_.compute(r, compute), call, &parts_[r]);
    }
    if (code != status::ok) {
      in_.violation(std::string("compute was refused: ") + to_string(code));
      left_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
}

void step::run(rank_id rank) {
  stress::rank_space& space = *in_.spaces[rank];
  if (reads) seen_[rank] = space.read_slot(slot);
  for (const kv_unit& each : claimed)
    if (stress::judge(space.read_unit(each.unit), each.key) != stress::verdict::right)
      wrong_[rank].push_back(each);
  for (const kv_unit& each : fresh) space.write_unit(each.unit, kv_name(each.key));
  if (writes) space.write_slot(slot, *writes);
  left_.fetch_sub(1, std::memory_order_acq_rel);  // last: the step may be gone from here on
}

void step::wait() const {
  while (!over()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void step::judge() {
  for (rank_id r = 0; r < in_.opts.ranks; ++r) {
    in_.count.verified += claimed.size();
    for (const kv_unit& each : wrong_[r])
      in_.mismatch("unit " + std::to_string(each.unit) + " of rank " + std::to_string(r) +
                   " does not hold key " + std::to_string(each.key));
    if (!reads) continue;
    ++in_.count.verified;
    const auto& seen = seen_[r];
    const stress::verdict v = stress::judge(seen, key);
    const std::string where = "slot " + std::to_string(slot) + " of rank " + std::to_string(r) +
                              ", key " + std::to_string(key) + ": ";
    if (v != stress::verdict::right)
      in_.mismatch(where + to_string(v) + " from byte " +
                   std::to_string(seen.odd == ~0ULL ? 0 : seen.odd) + ", first key " +
                   std::to_string(seen.first.key) + " generation " +
                   std::to_string(seen.first.generation));
    else if (seen.first != seen_[0].first)
      in_.mismatch(where + "another generation than on rank 0");
    else if (const char* why = r == 0 ? in_.images.why_not(seen.first, since) : nullptr)
      in_.mismatch(where + why + ", generation " + std::to_string(seen.first.generation));
  }
}

}  // namespace cairn::soak
