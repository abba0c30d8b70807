// Jobs are shared by all devices and pooled: a job goes back when its last device has run it, and
// a full house makes the enqueuing thread wait, so that virtual time does not run far ahead of
// the copies.
#include "bench/replay/compute.hpp"

#include <atomic>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/pattern.hpp"

namespace cairn::replay {
namespace {

// Steps enqueued and not run yet. Enough to keep the streams busy.
constexpr std::size_t jobs_max = 64;
constexpr auto patience = std::chrono::seconds(60);

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

void check(status code, const char* what) {
  if (code != status::ok) throw broken_run(std::string(what) + ": " + to_string(code));
}

}  // namespace

/// What one device needs to run a job: the context of its calls.
struct compute::step_on_rank {
  job* what = nullptr;
  lane* on = nullptr;
  std::int64_t arrived_ns = 0;  // when the stream came to the copies that the step waits for
};

struct compute::job {
  compute* owner = nullptr;
  forward_step step;  // its spans point into the vectors below
  std::vector<kv_content> claimed;
  std::vector<kv_content> computed;
  std::vector<step_on_rank> ranks;
  std::atomic<std::uint32_t> left{0};  // devices that have not run it
};

/// One device. Apart from the stream, touched only by what runs on the stream, and read when
/// that is idle.
struct compute::lane {
  const geometry& shape;
  rank_id rank;
  device& on;
  const rank_memory& memory;
  std::byte* slots;
  std::unique_ptr<stream> work;
  compute_figures figures;
  std::int64_t last_end_ns = 0;
  std::vector<compute_span> spans;

  void run(const job& what);
  void mismatch(std::string where);
  void verify_image(slot_id slot, const checkpoint_key& key);
  void write_image(slot_id slot, const checkpoint_key& key);
  void verify_unit(const kv_content& what);
  void write_unit(const kv_content& what);
};

void compute::lane::mismatch(std::string where) {
  ++figures.mismatches;
  if (figures.first_mismatch.empty())
    figures.first_mismatch = std::move(where) + " on device " + std::to_string(rank);
}

void compute::lane::verify_image(slot_id slot, const checkpoint_key& key) {
  ++figures.images_verified;
  for (std::size_t i = 0; i < memory.segments.size(); ++i) {
    const strided& segment = memory.segments[i];
    const std::byte* at = segment.base + segment.stride * static_cast<std::int64_t>(slot);
    figures.bytes_verified += segment.bytes;
    if (has_pattern(at, segment.bytes, pattern_seed(key, rank, piece_kind::segment, i))) continue;
    return mismatch("segment " + std::to_string(i) + " of slot " + std::to_string(slot) +
                    " does not hold the state it should");
  }
}

void compute::lane::write_image(slot_id slot, const checkpoint_key& key) {
  for (std::size_t i = 0; i < memory.segments.size(); ++i) {
    const strided& segment = memory.segments[i];
    std::byte* at = segment.base + segment.stride * static_cast<std::int64_t>(slot);
    write_pattern(at, segment.bytes, pattern_seed(key, rank, piece_kind::segment, i));
    figures.bytes_written += segment.bytes;
  }
  // Nobody may rely on these bytes, and no copy may touch or need them.
  std::byte* base = slots + shape.slot_bytes * slot;
  for (const stretch& gap : shape.gaps)
    std::memset(base + gap.offset, static_cast<int>(key.lo & 0xff), gap.bytes);
}

void compute::lane::verify_unit(const kv_content& what) {
  ++figures.units_verified;
  for (std::size_t i = 0; i < memory.regions.size(); ++i) {
    const strided& region = memory.regions[i];
    const std::byte* at = region.base + region.stride * static_cast<std::int64_t>(what.unit);
    figures.bytes_verified += region.bytes;
    if (has_pattern(at, region.bytes, pattern_seed(what.key, rank, piece_kind::region, i)))
      continue;
    return mismatch("region " + std::to_string(i) + " of unit " + std::to_string(what.unit) +
                    " does not hold the KV it should");
  }
}

void compute::lane::write_unit(const kv_content& what) {
  for (std::size_t i = 0; i < memory.regions.size(); ++i) {
    const strided& region = memory.regions[i];
    std::byte* at = region.base + region.stride * static_cast<std::int64_t>(what.unit);
    write_pattern(at, region.bytes, pattern_seed(what.key, rank, piece_kind::region, i));
    figures.bytes_written += region.bytes;
  }
}

void compute::lane::run(const job& what) {
  if (what.step.continues) verify_image(what.step.slot, what.step.from);
  for (const kv_content& each : what.claimed) verify_unit(each);
  for (const kv_content& each : what.computed) write_unit(each);
  write_image(what.step.slot, what.step.to);
}

compute::compute(const geometry& of, backend& devices, std::vector<device_memory>& memory)
    : shape_(of), devices_(devices) {
  for (rank_id rank = 0; rank < memory.size(); ++rank) {
    device& on = devices_.at(rank);
    auto work = on.create_stream(stream_priority::normal);
    if (!work) throw broken_run("create_stream: " + work.why().message());
    lanes_.push_back(std::unique_ptr<lane>(new lane{shape_,
                                                    rank,
                                                    on,
                                                    memory[rank].addresses,
                                                    memory[rank].slots->data(),
                                                    std::move(work).value(),
                                                    {},
                                                    0,
                                                    {}}));
  }
  for (std::size_t i = 0; i < jobs_max; ++i) {
    jobs_.push_back(std::make_unique<job>());
    job& made = *jobs_.back();
    made.owner = this;
    for (const auto& each : lanes_) made.ranks.push_back({&made, each.get(), 0});
    free_jobs_.push_back(&made);
  }
}

compute::~compute() {
  // Destroying a stream waits for its work, which still uses the jobs.
  for (const auto& each : lanes_) each->work.reset();
}

void compute::attach(runtime& to) {
  runtime_ = &to;
  for (const auto& each : lanes_)
    if (auto attached = to.attach(each->rank, 0, *each->work); !attached)
      throw broken_run("attach: " + attached.why().message());
}

compute::job* compute::take_job() {
  std::unique_lock held(mutex_);
  freed_.wait(held, [this] { return !free_jobs_.empty(); });
  job* taken = free_jobs_.back();
  free_jobs_.pop_back();
  return taken;
}

void compute::give_back(job* done) {
  const std::lock_guard held(mutex_);
  free_jobs_.push_back(done);
  freed_.notify_all();
}

void compute::enqueue(const forward_step& step) {
  job* made = take_job();
  made->claimed.assign(step.claimed.begin(), step.claimed.end());
  made->computed.assign(step.computed.begin(), step.computed.end());
  made->step = step;
  made->left.store(static_cast<std::uint32_t>(lanes_.size()), std::memory_order_relaxed);
  for (step_on_rank& each : made->ranks)
    check(each.on->on.call(*each.on->work, &arrive, &each), "call");
  // Order, not success: whether the restore succeeded was asked before.
  check(runtime_->order_after_slot(0, step.slot, clock::now() + patience), "order_after_slot");
  for (step_on_rank& each : made->ranks)
    check(each.on->on.call(*each.on->work, &execute, &each), "call");
}

void compute::arrive(void* context) {
  static_cast<step_on_rank*>(context)->arrived_ns = now_ns();
}

void compute::execute(void* context) {
  step_on_rank& what = *static_cast<step_on_rank*>(context);
  lane& on = *what.on;
  const std::int64_t begin_ns = now_ns();
  // Time in which the stream ran another thread's step is not waiting.
  const std::int64_t idle_since_ns = std::max(what.arrived_ns, on.last_end_ns);
  on.figures.wait_seconds += static_cast<double>(begin_ns - idle_since_ns) * 1e-9;
  on.run(*what.what);
  on.last_end_ns = now_ns();
  on.figures.busy_seconds += static_cast<double>(on.last_end_ns - begin_ns) * 1e-9;
  on.spans.push_back({on.rank, what.what->step.slot, begin_ns, on.last_end_ns});
  job* done = what.what;
  if (done->left.fetch_sub(1, std::memory_order_acq_rel) == 1) done->owner->give_back(done);
}

void compute::wait_idle() {
  std::unique_lock held(mutex_);
  freed_.wait(held, [this] { return free_jobs_.size() == jobs_.size(); });
}

compute_figures compute::figures() const {
  compute_figures all;
  for (const auto& each : lanes_) {
    const compute_figures& of = each->figures;
    all.mismatches += of.mismatches;
    if (all.first_mismatch.empty()) all.first_mismatch = of.first_mismatch;
    all.images_verified += of.images_verified;
    all.units_verified += of.units_verified;
    all.bytes_verified += of.bytes_verified;
    all.bytes_written += of.bytes_written;
    all.busy_seconds += of.busy_seconds;
    all.wait_seconds += of.wait_seconds;
  }
  return all;
}

std::vector<compute_span> compute::spans() const {
  std::vector<compute_span> all;
  for (const auto& each : lanes_) all.insert(all.end(), each->spans.begin(), each->spans.end());
  return all;
}

}  // namespace cairn::replay
