// A copier on the host backend with modelled memory, for tests of copiers. In manual mode copies
// complete only when the test steps the backend.
#pragma once

#include <gtest/gtest.h>

#include <cairn/copier.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/backend_tools.hpp"
#include "tests/faulty_device.hpp"
#include "tests/geometries.hpp"

namespace cairn::tests {

inline deadline now() {
  return clock::now();
}

struct bench_options {
  std::string geometry = "ragged";
  bool manual = true;
  bool threaded = false;
  std::uint32_t units = 96;
  std::uint32_t slots = 12;
  std::uint32_t store_depth = 64;
  std::uint32_t restore_depth = 64;
  std::uint32_t max_batch = 16;
  std::uint32_t compute_streams = 2;
  std::uint32_t store_streams = 2;
  std::uint32_t stream_depth = 4096;
  bool negative = false;
  bool checksums = true;
  std::chrono::nanoseconds op_timeout = copier_options().op_timeout;
};

/// Compute streams are the first streams of the backend, then come the stores', then the
/// restores'. One thread at a time, except `link`.
class copier_bench {
 public:
  explicit copier_bench(bench_options opts = {})
      : opts_(std::move(opts)),
        geometry_(geometry_named(opts_.geometry)),
        backend_(std::move(make_host_backend({1, 2, opts_.manual, opts_.stream_depth})).value()),
        device_(backend_->at(0)),
        rank_(device_, geometry_, opts_.units, opts_.slots, opts_.negative),
        images_(scattered_units(opts_.units, geometry_.units_per_image,
                                opts_.units / geometry_.units_per_image)) {
    for (std::uint32_t c = 0; c < opts_.compute_streams; ++c)
      computes_.push_back(std::move(device_.create_stream(stream_priority::normal)).value());
    copier_ = std::move(copier::open(options(), device_)).value();
    for (std::uint32_t c = 0; c < opts_.compute_streams; ++c)
      EXPECT_TRUE(copier_->attach(c, *computes_[c]));
  }

  copier_options options() {
    copier_options o;
    o.shape = geometry_.shape();
    o.memory = rank_.memory();
    o.rank = 3;
    o.max_ops = 1024;
    o.store_depth = opts_.store_depth;
    o.restore_depth = opts_.restore_depth;
    o.max_batch = opts_.max_batch;
    o.compute_streams = opts_.compute_streams;
    o.store_streams = opts_.store_streams;
    o.threaded = opts_.threaded;
    o.checksums = opts_.checksums;
    o.op_timeout = opts_.op_timeout;
    o.on_take = [](void* self, op_id op) {
      auto& b = *static_cast<copier_bench*>(self);
      return !b.on_take || b.on_take(op);
    };
    o.on_cancelled = [](void* self, op_id op) {
      auto& b = *static_cast<copier_bench*>(self);
      return b.on_cancelled && b.on_cancelled(op);
    };
    o.on_completion = [](void* self, const completion& what) {
      auto& b = *static_cast<copier_bench*>(self);
      (what.proven ? b.proofs : b.completions).push_back(what);
      if (b.on_completion && !what.proven) b.on_completion(what);
    };
    o.context = this;
    return o;
  }

  /// An op on image `image` (a list of units), with an index of its own.
  copy_op op(copy_kind kind, slot_id slot, std::size_t image, std::uint64_t sequence = 0) {
    copy_op made;
    made.header.op = {next_index_++ % 1024, 7};
    made.header.layout_fingerprint = geometry_.shape().fingerprint();
    made.header.image_bytes = geometry_.shape().image_bytes;
    made.header.slot_sequence = sequence;
    made.header.slot = slot;
    made.header.unit_count = geometry_.units_per_image;
    made.header.epoch = 5;
    made.header.kind = kind;
    made.units = images_.at(image);
    return made;
  }
  copy_op store(slot_id slot, std::size_t image, std::uint64_t sequence = 0) {
    return op(copy_kind::store, slot, image, sequence);
  }
  copy_op restore(slot_id slot, std::size_t image, std::uint64_t sequence = 0) {
    return op(copy_kind::restore, slot, image, sequence);
  }
  void model(const copy_op& op) {
    if (op.header.kind == copy_kind::store)
      rank_.model_store(op.header.slot, op.units);
    else
      rank_.model_restore(op.header.slot, op.units);
  }
  status submit(const copy_op& op) { return copier_->submit({&op, 1}).code(); }
  status submit(const std::vector<copy_op>& ops) { return copier_->submit(ops).code(); }

  /// Until nobody can do anything.
  void settle() {
    bool did = true;
    while (did) {
      did = copier_->pump();
      while (backend_->step()) did = true;
    }
  }
  void pump() {
    while (copier_->pump()) {
    }
  }
  bool step(stream& on) { return backend_->step(on); }
  /// All that can run on this stream now; returns how many pieces did.
  int run(stream& on) {
    int n = 0;
    while (backend_->step(on)) ++n;
    return n;
  }

  stream& compute(std::size_t index = 0) { return *computes_[index]; }
  /// Streams of the copier: stores first.
  stream& copy_stream(std::size_t index) { return device_.created(opts_.compute_streams + index); }
  stream& restore_stream() { return copy_stream(opts_.store_streams); }

  /// Enqueues compute that runs `what`, which must outlive it.
  void enqueue(stream& on, std::function<void()>& what) {
    ASSERT_EQ(device_.call(
                  on, [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &what),
              status::ok);
  }

  /// Codes of the completions of `op`.
  std::vector<status> codes(const copy_op& op) const {
    std::vector<status> found;
    for (const completion& each : completions)
      if (each.op == op.header.op) found.push_back(each.code);
    return found;
  }

  /// Whether each completion of `op` was given up while a copy might run.
  std::vector<bool> unproven(const copy_op& op) const {
    std::vector<bool> found;
    for (const completion& each : completions)
      if (each.op == op.header.op) found.push_back(each.unproven);
    return found;
  }

  copier& get() { return *copier_; }
  void destroy_copier() { copier_.reset(); }
  faulty_device& faults() { return device_; }
  modelled_rank& rank() { return rank_; }
  backend& host() { return *backend_; }
  const geometry& shape() const { return geometry_; }
  std::size_t images() const { return images_.size(); }
  const std::vector<unit_id>& units(std::size_t image) const { return images_[image]; }

  std::function<bool(op_id)> on_take;                    ///< in the copy thread
  std::function<bool(op_id)> on_cancelled;               ///< in the copy thread
  std::function<void(const completion&)> on_completion;  ///< in the copy thread
  std::vector<completion> completions;                   ///< in the order of reports
  std::vector<completion> proofs;                        ///< of copies that were given up

 private:
  bench_options opts_;
  const geometry& geometry_;
  std::unique_ptr<backend> backend_;
  faulty_device device_;
  modelled_rank rank_;
  std::vector<std::vector<unit_id>> images_;
  std::vector<std::unique_ptr<stream>> computes_;
  std::unique_ptr<copier> copier_;
  std::uint32_t next_index_ = 0;
};

}  // namespace cairn::tests
