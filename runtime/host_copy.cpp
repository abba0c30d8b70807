// Batches on CPU threads. Workers claim runs of tiles by one index:
//
//   claims      acq_rel  a worker that joins sees the job, and TBB's own task, which the
//                        launching thread made before (1); pairs with (2)
//   copied      release  each worker, after its own store fence; (3) pairs with (4)
//
// TBB joins the workers too, but neither its synchronisation nor a non-temporal store is
// visible to a checking tool, so the order is made here.
#include "runtime/host_copy.hpp"

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace cairn::detail {
namespace {

/// A claim is worth some tens of microseconds of copying.
constexpr std::uint64_t claim_bytes = 256 * 1024;
/// Below this, waking a helper costs more than it brings.
constexpr std::uint64_t shared_bytes_min = 1024 * 1024;

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

/// Tiles whose addresses are found at a time: of one image or of several, so that the kernel has
/// others to fetch while it ends one.
constexpr std::size_t placed_max = 64;

/// One batch while it runs.
struct job {
  const host_batch& batch;
  std::size_t total;    ///< tiles of all images
  std::uint64_t* sums;  ///< of each image, or null
  sync::atomic<std::size_t> claims{0};
  sync::atomic<std::size_t> copied{0};

  explicit job(const host_batch& b) noexcept
      : batch(b),
        total(b.tasks.size() * b.plan->tiles()),
        sums(b.report != nullptr ? b.report->checksums : nullptr) {}

  [[nodiscard]] std::size_t runs() const noexcept {
    return (total + batch.plan->claim_tiles() - 1) / batch.plan->claim_tiles();
  }

  /// Copies tiles [first, last) of the batch.
  void copy(std::size_t first, std::size_t last) const noexcept {
    const host_plan& plan = *batch.plan;
    const std::size_t per_image = plan.tiles();
    const kernels::tiles_copy copy_tiles =
        sums == nullptr ? plan.tile_copy().copy : plan.tile_copy().copy_and_sum;
    std::array<kernels::placed_tile, placed_max> placed;
    // What these tiles add to the image amid which they begin, and to that amid which they end.
    // Nobody else adds to an image that lies wholly among them.
    std::uint64_t at_begin = 0;
    std::uint64_t at_end = 0;
    const auto sum_of = [&](std::size_t image) noexcept -> std::uint64_t* {
      if (sums == nullptr) return nullptr;
      if (image * per_image < first) return &at_begin;
      return (image + 1) * per_image > last ? &at_end : &sums[image];
    };
    std::size_t image = first / per_image;
    std::size_t tile = first % per_image;
    std::uint64_t* sum = sum_of(image);
    for (std::size_t next = first; next < last;) {
      std::size_t count = 0;
      for (; count < placed.size() && next < last; ++count, ++next) {
        placed[count] = plan.place(batch.kind, batch.tasks[image], tile, sum);
        if (++tile < per_image) continue;
        tile = 0;
        sum = sum_of(++image);
      }
      copy_tiles({placed.data(), count});
    }
    if (sums == nullptr) return;
    if (first % per_image != 0) add(first / per_image, at_begin);
    if (last % per_image != 0) add(last / per_image, at_end);
  }

  void add(std::size_t image, std::uint64_t sum) const noexcept {
    // Relaxed: (3) and the event that is recorded behind the batch publish the sums.
    std::atomic_ref(sums[image]).fetch_add(sum, std::memory_order_relaxed);
  }

  /// Takes part until no tile is left to claim.
  void work() noexcept {
    const std::size_t step = batch.plan->claim_tiles();
    std::size_t mine = 0;
    for (;;) {
      // (2) acq_rel: acquire pairs with (1).
      const std::size_t first = claims.fetch_add_acq_rel(step);
      if (first >= total) break;
      const std::size_t last = std::min(first + step, total);
      copy(first, last);
      mine += last - first;
    }
    kernels::settle();
    copied.fetch_add_release(mine);  // (3) release: pairs with (4)
  }
};

/// What a helper is handed. TBB keeps it in memory of its own; the release and the acquire make
/// the handing over visible to checking tools, and cost nothing.
class invitation {
 public:
  explicit invitation(job& shared) noexcept { job_.store_release(&shared); }  // (5) pairs with (6)
  invitation(const invitation& other) noexcept { job_.store_release(other.job_.load_acquire()); }
  invitation& operator=(const invitation&) = delete;
  void operator()() const noexcept { job_.load_acquire()->work(); }  // (6) pairs with (5)

 private:
  sync::atomic<job*> job_{nullptr};
};

}  // namespace

host_plan::host_plan(const void* owner, const copy_plan& plan, const rank_memory& memory,
                     std::uint32_t threads)
    : owner_(owner),
      tiles_(plan.tiles),
      regions_(memory.regions),
      segments_(memory.segments),
      image_bytes_(plan.image_bytes),
      units_per_image_(plan.units),
      units_(memory.units),
      slots_(memory.slots),
      claim_tiles_(std::max<std::size_t>(
          1, static_cast<std::size_t>(claim_bytes * plan.tiles.size() / plan.image_bytes))),
      images_max_(static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(claim_bytes * threads / plan.image_bytes, 1, 1U << 20))),
      tile_copy_(kernels::tile_copies().front()) {}

bool host_plan::in_range(const copy_task& task) const noexcept {
  if (task.slot >= slots_ || task.units == nullptr) return false;
  return std::all_of(task.units, task.units + units_per_image_,
                     [this](unit_id unit) { return unit < units_; });
}

std::uint32_t helper_budget::take(std::uint32_t most) noexcept {
  std::uint32_t free = free_.load_relaxed();  // relaxed: helpers are ordered by their job
  for (;;) {
    const std::uint32_t taken = std::min(free, most);
    if (taken == 0 || free_.cas_relaxed(free, free - taken)) return taken;
  }
}

void helper_budget::give(std::uint32_t helpers) noexcept {
  if (helpers > 0) free_.fetch_add_relaxed(helpers);  // as in take
}

struct batch_runner::helpers {
  oneapi::tbb::task_arena arena;

  void run(job& shared, std::uint32_t count) {
    arena.execute([&shared, count] {
      oneapi::tbb::task_group group;
      for (std::uint32_t i = 0; i < count; ++i) {
        oneapi::tbb::task_handle helper = group.defer(invitation(shared));
        shared.claims.fetch_add_release(0);  // (1) release: pairs with (2); the task is made
        group.run(std::move(helper));
      }
      shared.work();
      group.wait();
    });
  }
};

batch_runner::batch_runner(helper_budget* budget) : budget_(budget) {
  if (budget_ != nullptr) helpers_ = std::make_unique<helpers>();
}

batch_runner::~batch_runner() = default;

void batch_runner::run(const host_batch& batch) noexcept {
  batch_report unread;
  batch_report& report = batch.report != nullptr ? *batch.report : unread;
  // Relaxed: the event that is recorded behind the batch publishes the report.
  report.begin_ns.store(now_ns(), std::memory_order_relaxed);

  if (report.checksums != nullptr) std::fill_n(report.checksums, batch.tasks.size(), 0);

  const host_plan& plan = *batch.plan;
  bool done = std::all_of(batch.tasks.begin(), batch.tasks.end(),
                          [&plan](const copy_task& task) { return plan.in_range(task); });
  if (done && !batch.tasks.empty()) {
    job shared(batch);
    std::uint32_t taken = 0;
    if (budget_ != nullptr && plan.image_bytes() >= shared_bytes_min / batch.tasks.size())
      taken = budget_->take(
          static_cast<std::uint32_t>(std::min<std::size_t>(shared.runs() - 1, ~std::uint32_t{0})));
    if (taken == 0) {
      shared.work();
    } else {
      try {
        helpers_->run(shared, taken);
      } catch (...) {
        done = false;  // TBB could not start or join its tasks
      }
      budget_->give(taken);
    }
    done = done && shared.copied.load_acquire() == shared.total;  // (4) acquire: pairs with (3)
  }

  if (!done) report.failed.store(true, std::memory_order_relaxed);
  report.end_ns.store(now_ns(), std::memory_order_relaxed);
}

}  // namespace cairn::detail
