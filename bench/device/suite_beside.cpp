// How much slower a neighbour's kernel runs while copies run beside it, for several limits on the
// copies' work groups and beside contiguous copies. The neighbour stands for a running forward: one
// that lives on memory bandwidth, one that lives on arithmetic.
#include <algorithm>
#include <limits>

#include "bench/device/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite = "beside";
constexpr std::uint32_t neighbour = 2;  // its stream

/// Buffers of the one, turns of the other: each runs for about a millisecond alone.
class kernels_beside {
 public:
  explicit kernels_beside(rig& on) : on_(on) {
    count_ = on.options().small ? 1 << 12 : 1 << 25;
    block_ = check(on.dev().allocate(3 * count_ * sizeof(float)), "allocate");
    check(launch(fill_work{block_->data(), block_->size(), 0}, 8 * on.compute_units(),
                 on.native(neighbour)),
          "launch");
  }
  void bandwidth() {
    auto* const at = reinterpret_cast<float*>(block_->data());
    check(launch(stream_work{at, at + count_, at + 2 * count_, count_, 8}, 8 * on_.compute_units(),
                 on_.native(neighbour)),
          "launch");
  }
  void arithmetic() {
    const double us = on_.options().small ? 10.0 : 1000.0;
    check(launch(burn_work{static_cast<std::uint64_t>(us * on_.turns_per_us()) + 1,
                           std::numeric_limits<float>::quiet_NaN(), on_.sink()},
                 8 * on_.compute_units(), on_.native(neighbour)),
          "launch");
  }

 private:
  rig& on_;
  std::uint64_t count_ = 0;
  std::unique_ptr<memory_block> block_;
};

struct beside_result {
  double neighbour_us = 0.0;
  double copy_us = 0.0;  ///< per batch, while the neighbour ran and a little after
  bool covered = true;   ///< the copies outlasted the neighbour
};

/// The neighbour begins when the copies begin; they go on until it has ended.
beside_result run_beside(rig& on, const std::function<void()>& kernel, std::uint32_t batches,
                         const repetition& copy) {
  timed_event go;
  timed_event begun;
  timed_event ended;
  timed_event copied;
  on.hold(0, on.options().small ? 20.0 : 300.0);
  go.record(on.native(0));
  go.make_wait(on.native(neighbour));
  begun.record(on.native(neighbour));
  kernel();
  ended.record(on.native(neighbour));
  for (std::uint32_t i = 0; i < batches; ++i) copy(i);
  copied.record(on.native(0));
  on.synchronise();
  beside_result found;
  found.neighbour_us = ended.us_since(begun);
  found.copy_us = batches > 0 ? copied.us_since(go) / batches : 0.0;
  found.covered = batches == 0 || copied.us_since(go) >= found.neighbour_us;
  return found;
}

struct copies {
  std::string name;
  repetition enqueue;
};

void measure_one(rig& on, const std::string& what, const std::function<void()>& kernel,
                 const copies& by, findings& into) {
  constexpr const char* peer = "the same kernel alone";
  into.attempt(on, suite, what, peer, [&] {
    const double batch_us = std::max(on.on_stream(2, by.enqueue), 1.0);
    bool covered = true;
    const double alone_us = run_beside(on, kernel, 0, by.enqueue).neighbour_us;
    // Both may slow each other down; what is left over of the copies costs only time.
    constexpr double margin = 2.5;
    constexpr double batches_max = 400.0;
    const auto batches = static_cast<std::uint32_t>(
        std::min(batches_max, on.options().small ? 2.0 : margin * alone_us / batch_us + 1.0));
    std::vector<double> alone;
    std::vector<double> beside;
    for (std::uint32_t round = 0; round < on.options().rounds; ++round) {
      alone.push_back(run_beside(on, kernel, 0, by.enqueue).neighbour_us);
      const beside_result found = run_beside(on, kernel, batches, by.enqueue);
      covered = covered && found.covered;
      beside.push_back(found.neighbour_us);
    }
    row found = less_is_better(suite, what, median(beside), peer, median(alone), "us");
    if (!covered) found.note = "the copies ended first";
    into.rows.push_back(std::move(found));
  });
}

}  // namespace

void measure_beside(rig& on, workload& of, findings& into) {
  const std::uint32_t images = batch_sizes()[1];
  std::unique_ptr<kernels_beside> kernels;
  std::unique_ptr<resident_pieces> tiles;
  into.attempt(on, suite, of.shape().name, "", [&] {
    kernels = std::make_unique<kernels_beside>(on);
    tiles = of.cut(copy_plan::tile_bytes);
  });
  if (!kernels || !tiles) return;

  std::vector<copies> all = {
      {"as shipped", [&](std::uint32_t) { of.copy(0, copy_kind::store, images); }},
      {"contiguous", [&](std::uint32_t) { of.copy_contiguous(0, copy_kind::store, images); }}};
  for (const std::uint32_t groups : on.group_limits())
    all.push_back({std::to_string(groups) + " groups", [&, groups](std::uint32_t) {
                     of.copy_with(*tiles, groups, 0, copy_kind::store, images);
                   }});
  const std::string shape = of.shape().name + " x" + std::to_string(images);
  for (const copies& each : all) {
    measure_one(
        on, "bandwidth kernel, " + shape + " " + each.name, [&] { kernels->bandwidth(); }, each,
        into);
    measure_one(
        on, "arithmetic kernel, " + shape + " " + each.name, [&] { kernels->arithmetic(); }, each,
        into);
  }
}

}  // namespace cairn::bench
