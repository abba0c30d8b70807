// Steps as functions on a stream of the host backend. A step is verified and written by one call;
// a short one before it notes when the stream came to the copies in front of the step.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/compute_lane.hpp"
#include "bench/replay/pattern.hpp"

namespace cairn::replay {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
      .count();
}

/// Apart from the stream, touched only by what runs on the stream, and read when that is idle.
class host_lane final : public compute_lane {
 public:
  explicit host_lane(const lane_setup& from)
      : shape_(from.shape),
        rank_(from.rank),
        on_(from.on),
        memory_(from.memory.addresses),
        slots_(from.memory.slots->data()),
        pool_(from.pool),
        work_(from.work),
        calls_(from.jobs) {}

  void arrive(compute_job& job) override {
    calls_[job.index].lane = this;
    calls_[job.index].job = &job;
    call(&arrived, job);
  }
  void run(compute_job& job) override { call(&execute, job); }
  [[nodiscard]] compute_figures figures() const override { return figures_; }
  [[nodiscard]] std::vector<compute_span> spans() const override { return spans_; }

 private:
  /// The context of a job's calls.
  struct call_context {
    host_lane* lane = nullptr;
    compute_job* job = nullptr;
    std::int64_t arrived_ns = 0;  // when the stream came to the copies that the step waits for
  };

  void call(void (*function)(void*), const compute_job& job) {
    const status code = on_.call(work_, function, &calls_[job.index]);
    if (code != status::ok) throw broken_run(std::string("call: ") + to_string(code));
  }
  static void arrived(void* context) { static_cast<call_context*>(context)->arrived_ns = now_ns(); }
  static void execute(void* context) {
    const call_context& call = *static_cast<call_context*>(context);
    host_lane& lane = *call.lane;
    const std::int64_t begin_ns = now_ns();
    // Time in which the stream ran another thread's step is not waiting.
    const std::int64_t idle_since_ns = std::max(call.arrived_ns, lane.last_end_ns_);
    lane.figures_.wait_seconds += static_cast<double>(begin_ns - idle_since_ns) * 1e-9;
    lane.step(*call.job);
    lane.last_end_ns_ = now_ns();
    lane.figures_.busy_seconds += static_cast<double>(lane.last_end_ns_ - begin_ns) * 1e-9;
    lane.spans_.push_back({lane.rank_, call.job->step.slot, begin_ns, lane.last_end_ns_});
    lane.pool_.ended(*call.job);
  }

  void step(const compute_job& what);
  void spoil(const forward_step& step);
  void mismatch(std::string where);
  void verify_image(slot_id slot, const checkpoint_key& key);
  void write_image(slot_id slot, const checkpoint_key& key);
  void verify_unit(const kv_content& what);
  void write_unit(const kv_content& what);

  const geometry& shape_;
  const rank_id rank_;
  device& on_;
  const rank_memory& memory_;
  std::byte* const slots_;
  job_pool& pool_;
  stream& work_;
  std::vector<call_context> calls_;  // by job
  compute_figures figures_;
  std::int64_t last_end_ns_ = 0;
  std::vector<compute_span> spans_;
};

std::byte* piece(const strided& array, std::uint32_t id) {
  return array.base + array.stride * static_cast<std::int64_t>(id);
}

void host_lane::mismatch(std::string where) {
  ++figures_.mismatches;
  if (figures_.first_mismatch.empty()) figures_.first_mismatch = std::move(where);
}

void host_lane::verify_image(slot_id slot, const checkpoint_key& key) {
  ++figures_.images_verified;
  for (std::size_t i = 0; i < memory_.segments.size(); ++i) {
    const strided& segment = memory_.segments[i];
    figures_.bytes_verified += segment.bytes;
    if (has_pattern(piece(segment, slot), segment.bytes,
                    pattern_seed(key, rank_, piece_kind::segment, i)))
      continue;
    return mismatch(wrong_segment(i, slot, rank_));
  }
}

void host_lane::write_image(slot_id slot, const checkpoint_key& key) {
  for (std::size_t i = 0; i < memory_.segments.size(); ++i) {
    const strided& segment = memory_.segments[i];
    write_pattern(piece(segment, slot), segment.bytes,
                  pattern_seed(key, rank_, piece_kind::segment, i));
    figures_.bytes_written += segment.bytes;
  }
  // Nobody may rely on these bytes, and no copy may touch or need them.
  std::byte* base = slots_ + shape_.slot_bytes * slot;
  for (const stretch& gap : shape_.gaps)
    std::memset(base + gap.offset, static_cast<int>(key.lo & 0xff), gap.bytes);
}

void host_lane::verify_unit(const kv_content& what) {
  ++figures_.units_verified;
  for (std::size_t i = 0; i < memory_.regions.size(); ++i) {
    const strided& region = memory_.regions[i];
    figures_.bytes_verified += region.bytes;
    if (has_pattern(piece(region, what.unit), region.bytes,
                    pattern_seed(what.key, rank_, piece_kind::region, i)))
      continue;
    return mismatch(wrong_region(i, what.unit, rank_));
  }
}

void host_lane::write_unit(const kv_content& what) {
  for (std::size_t i = 0; i < memory_.regions.size(); ++i) {
    const strided& region = memory_.regions[i];
    write_pattern(piece(region, what.unit), region.bytes,
                  pattern_seed(what.key, rank_, piece_kind::region, i));
    figures_.bytes_written += region.bytes;
  }
}

void host_lane::spoil(const forward_step& step) {
  const strided& array = step.claimed.empty() ? memory_.segments.back() : memory_.regions.back();
  const std::uint32_t id = step.claimed.empty() ? step.slot : step.claimed.front().unit;
  piece(array, id)[array.bytes - 1] ^= std::byte{1};
}

void host_lane::step(const compute_job& what) {
  if (what.spoil && rank_ == 0) spoil(what.step);
  if (what.step.continues) verify_image(what.step.slot, what.step.from);
  for (const kv_content& each : what.claimed) verify_unit(each);
  for (const kv_content& each : what.computed) write_unit(each);
  write_image(what.step.slot, what.step.to);
}

}  // namespace

std::unique_ptr<compute_lane> make_host_lane(const lane_setup& from) {
  return std::make_unique<host_lane>(from);
}

}  // namespace cairn::replay
