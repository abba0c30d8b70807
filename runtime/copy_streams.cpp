// Opening the streams of a copier and choosing among them.
#include "runtime/copy_streams.hpp"

#include <memory>
#include <utility>

namespace cairn::detail {

result<std::unique_ptr<copy_streams>> copy_streams::open(const copier_options& opts, device& on,
                                                         doorbell& bell) {
  std::unique_ptr<copy_streams> made(new copy_streams);
  made->count_ = opts.store_streams + opts.restore_streams;
  made->streams_ = std::make_unique<copy_stream[]>(made->count_);
  const std::uint32_t batches = made->count_ * copy_stream::batches_each;
  made->batches_ = std::make_unique<copy_batch[]>(batches);

  const std::size_t tasks = std::size_t{batches} * opts.max_batch;
  auto staging = on.allocate_pinned(tasks * sizeof(copy_task));
  if (!staging) return staging.why();
  made->tasks_ = std::move(staging.value());
  auto* task = reinterpret_cast<copy_task*>(made->tasks_->data());
  std::uninitialized_default_construct_n(task, tasks);
  auto sums = on.allocate_pinned(tasks * sizeof(std::uint64_t));
  if (!sums) return sums.why();
  made->sums_ = std::move(sums.value());
  auto* const sum = reinterpret_cast<std::uint64_t*>(made->sums_->data());

  for (std::uint32_t s = 0; s < made->count_; ++s) {
    copy_stream& each = made->streams_[s];
    each.index = s;
    each.kind = s < opts.store_streams ? copy_kind::store : copy_kind::restore;
    auto handle = on.create_stream(each.kind == copy_kind::restore ? stream_priority::high
                                                                   : stream_priority::normal);
    if (!handle) return handle.why();
    each.handle = std::move(handle.value());
  }
  for (std::uint32_t b = 0; b < batches; ++b) {
    copy_batch& each = made->batches_[b];
    each.index = b;
    each.kind = made->stream_of(each).kind;
    each.tasks = task + std::size_t{b} * opts.max_batch;
    each.sums = sum + std::size_t{b} * opts.max_batch;
    each.report.checksums = opts.checksums ? each.sums : nullptr;
    each.rows.reserve(opts.max_batch);
    each.behind.reserve(opts.max_batch);
    auto done = on.create_event(&bell);
    if (!done) return done.why();
    each.done = std::move(done.value());
  }
  return made;
}

copy_stream* copy_streams::pick(copy_kind kind, bool late) noexcept {
  const std::uint32_t turn = turn_[static_cast<unsigned>(kind)];
  const auto cost = [late](const copy_stream& of) {
    return of.flying_count + (!late && of.stalled() ? copy_stream::batches_each : 0);
  };
  copy_stream* best = nullptr;
  for (std::uint32_t i = 1; i <= count_; ++i) {
    copy_stream& each = streams_[(turn + i) % count_];
    if (each.kind != kind || each.open != nullptr || idle(each) == nullptr) continue;
    if (best == nullptr || cost(each) < cost(*best)) best = &each;
  }
  return best;
}

copy_batch* copy_streams::idle(const copy_stream& of) noexcept {
  copy_batch* first = &batches_[of.index * copy_stream::batches_each];
  for (std::uint32_t b = 0; b < copy_stream::batches_each; ++b)
    if (first[b].stage == batch_stage::idle || sync::mutated("staging reused under a copy"))
      return &first[b];
  return nullptr;
}

}  // namespace cairn::detail
