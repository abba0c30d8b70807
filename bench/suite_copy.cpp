// Suite `copy`: images between units and slots on the host backend, against memcpy of the same
// spans by as many threads, in the same memory and order.
//
// cairn's side is what a copy thread does: it launches a batch on a stream, records an event behind
// it and waits for the event's bell, so the hand-over to the backend's threads and the wake-up at
// the end count. memcpy's side has the addresses of its spans computed beforehand. Both go round
// through slots and units that are far larger than the caches, units scattered as in a pool that
// has been in use. Elapsed time.
//
// Of two batches one after another the second counts: memcpy leaves the caches full of lines that
// are still to be written back, and whoever comes next would pay for them. So each pays for its
// own.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/harness/contest.hpp"
#include "bench/harness/keys.hpp"
#include "bench/harness/team.hpp"
#include "bench/replay/geometry.hpp"
#include "bench/suites.hpp"
#include "kernels/scatter_gather.hpp"
#include "runtime/copy_plan.hpp"

namespace cairn::bench {
namespace {

using replay::geometry;

constexpr const char* suite_name = "copy";

/// A unit is four spans, an image four units, and a slot holds an image in one piece.
geometry spans_of(std::uint64_t bytes) {
  geometry made;
  made.name = "spans of " + std::to_string(bytes >> 10) + " KiB";
  made.regions.assign(4, bytes);
  made.slot_bytes = 16 * bytes;
  made.segments = {{0, made.slot_bytes}};
  return made;
}

struct sizes {
  std::uint64_t memory_bytes;  ///< of slots and units together, at least
  std::uint64_t batch_bytes;   ///< of one launch, about
  std::uint32_t images_max;

  explicit sizes(effort how)
      : memory_bytes(std::uint64_t{how == effort::small   ? 1U
                                   : how == effort::quick ? 512U
                                                          : 1024U}
                     << 20),
        batch_bytes(std::uint64_t{how == effort::small ? 1U : 32U} << 20),
        images_max(how == effort::small ? 32 : 1U << 22) {}
};

template <class T>
T value_of(result<T> got) {
  if (!got) throw std::runtime_error(got.why().message());
  return std::move(got).value();
}

void need(status code) {
  if (code != status::ok) throw std::runtime_error("copy: a call of the backend failed");
}

/// One geometry in memory, and both ways of copying its images.
class field {
 public:
  field(const geometry& of, std::uint32_t threads, const sizes& how)
      : threads_(threads), backend_(value_of(make_host_backend({1, threads}))) {
    const layout shape = of.shape();
    const std::uint64_t each = shape.slot_bytes + shape.image_bytes;
    const auto slots =
        std::clamp<std::uint64_t>(how.memory_bytes / each + 1, 2, std::uint64_t{how.images_max});
    images_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        how.batch_bytes / shape.image_bytes, 1, std::min<std::uint64_t>(slots / 2, 4096)));
    slots_ = static_cast<std::uint32_t>(slots) / images_ * images_;
    device& on = backend_->at(0);
    const std::uint32_t per_image = shape.units_per_checkpoint();
    memory_ = replay::place_memory(of, on, slots_ * per_image, slots_);
    plan_ = value_of(make_copy_plan(shape, memory_.addresses));
    loaded_ = value_of(on.load(plan_, memory_.addresses));
    stream_ = value_of(on.create_stream(stream_priority::normal));
    done_ = value_of(on.create_event(&bell_));
    sums_.resize(images_);
    scatter(slots_ * per_image);
    for (slot_id slot = 0; slot < slots_; ++slot)
      tasks_.push_back({slot, units_.data() + std::size_t{slot} * per_image});
    spans_.reserve(std::size_t{slots_} * plan_.spans.size());
    for (const copy_task& task : tasks_)
      for (const copy_span& span : plan_.spans) spans_.push_back(ends_of(span, task));
  }

  [[nodiscard]] std::uint64_t batch_bytes() const { return images_ * plan_.image_bytes; }

  /// Nanoseconds of cairn's next batch.
  double copy(copy_kind kind, bool checksums) {
    const std::size_t first = next();
    report_.checksums = checksums ? sums_.data() : nullptr;
    device& on = backend_->at(0);
    const std::int64_t begin = elapsed_ns();
    need(on.launch(*stream_, *loaded_, kind, {tasks_.data() + first, images_}, &report_));
    need(on.record(*done_, *stream_));
    for (;;) {
      const std::uint32_t seen = bell_.seen();
      if (on.query(*done_) != event_state::pending) break;
      bell_.wait(seen, deadline::max());
    }
    const std::int64_t end = elapsed_ns();
    if (report_.failed.load() || on.query(*done_) != event_state::fired)
      throw std::runtime_error("copy: a batch failed");
    return static_cast<double>(end - begin);
  }

  /// Nanoseconds of memcpy's next batch, its spans shared out among the threads.
  double copy_spans(copy_kind kind, team& by) {
    const std::size_t count = images_ * plan_.spans.size();
    const pair_of_ends* const all = spans_.data() + next() * plan_.spans.size();
    const std::int64_t begin = elapsed_ns();
    (void)by.run_ns([&](std::uint32_t thread) {
      for (std::size_t i = count * thread / threads_; i < count * (thread + 1) / threads_; ++i)
        if (kind == copy_kind::store)
          std::memcpy(all[i].in_units, all[i].in_slot, all[i].bytes);
        else
          std::memcpy(all[i].in_slot, all[i].in_units, all[i].bytes);
    });
    return static_cast<double>(elapsed_ns() - begin);
  }

  /// Whether cairn's store leaves in the units what memcpy's would, and its restore in the slots.
  void check() {
    random_bits bits(7);
    for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
      for (const pair_of_ends& each : spans_) {
        std::memset(each.in_slot, static_cast<int>(bits.below(256)), each.bytes);
        std::memset(each.in_units, static_cast<int>(bits.below(256)), each.bytes);
        const std::uint64_t from = bits();
        std::memcpy(kind == copy_kind::store ? each.in_slot : each.in_units, &from,
                    std::min<std::size_t>(each.bytes, sizeof from));
      }
      for (std::uint32_t done = 0; done < slots_; done += images_) (void)copy(kind, true);
      for (const pair_of_ends& each : spans_)
        if (std::memcmp(each.in_slot, each.in_units, each.bytes) != 0)
          throw std::runtime_error("copy: cairn copied a wrong byte");
    }
  }

 private:
  struct pair_of_ends {
    std::byte* in_units;
    std::byte* in_slot;
    std::size_t bytes;
  };

  std::size_t next() {
    if (next_ + images_ > slots_) next_ = 0;
    return std::exchange(next_, next_ + images_);
  }
  void scatter(std::uint32_t count) {
    units_.resize(count);
    std::iota(units_.begin(), units_.end(), 0U);
    random_bits bits(99);
    for (std::uint32_t i = count; i > 1; --i) std::swap(units_[i - 1], units_[bits.below(i)]);
  }
  [[nodiscard]] pair_of_ends ends_of(const copy_span& span, const copy_task& task) const {
    const kernels::tile_ends ends =
        kernels::locate(span, copy_kind::store, memory_.addresses.regions.data(),
                        memory_.addresses.segments.data(), task.slot, task.units);
    return {ends.to, const_cast<std::byte*>(ends.from), static_cast<std::size_t>(span.bytes)};
  }

  std::uint32_t threads_;
  std::unique_ptr<backend> backend_;
  doorbell bell_;
  replay::device_memory memory_;
  copy_plan plan_;
  std::unique_ptr<device_plan> loaded_;
  batch_report report_;
  std::vector<std::uint64_t> sums_;
  std::vector<unit_id> units_;
  std::vector<copy_task> tasks_;
  std::vector<pair_of_ends> spans_;
  std::unique_ptr<event> done_;
  std::unique_ptr<stream> stream_;  // last: it waits for what uses the rest
  std::uint32_t images_ = 0;        ///< of a batch
  std::uint32_t slots_ = 0;
  std::size_t next_ = 0;
};

struct bars {
  std::optional<double> one;        ///< against memcpy, one thread
  std::optional<double> two;        ///< the same, two threads
  std::optional<double> checksums;  ///< most that a batch with them takes of one without
};

/// How the medians of rounds stand to each other, as GB/s.
row rates(const std::string& what, std::uint32_t threads, double bytes, const standing& ours,
          const standing& theirs, std::optional<double> bar) {
  row made = contest_row(suite_name, what, threads, ours, theirs, bar);
  made.cairn = bytes / ours.ns();
  made.peer_value = bytes / theirs.ns();
  made.unit = "GB/s";
  return made;
}

row price(const std::string& what, std::uint32_t threads, double bytes, const standing& with,
          const standing& without, std::optional<double> most) {
  row made = rates(what, threads, bytes, with, without, {});
  made.ratio = times_faster_in_turn(without, with);  // how much longer a batch takes
  made.bar = most;
  if (most) made.ok = *made.ratio <= *most;
  return made;
}

void measure(const suite_options& how, const geometry& of, std::uint32_t threads, bars at,
             std::vector<row>& into) {
  field on(of, threads, sizes(how.how));
  on.check();
  team by(threads);
  const std::uint32_t rounds = how.small() ? 1 : how.how == effort::quick ? 11 : 31;
  const auto bytes = static_cast<double>(on.batch_bytes());
  for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
    standing spans{"memcpy, span by span", {}};
    standing plain{"without checksums", {}};
    standing summed{"with checksums", {}};
    const auto second = [](auto&& batch) {
      (void)batch();
      return batch();
    };
    for (std::uint32_t i = 0; i < rounds; ++i) {
      plain.rounds_ns.push_back(second([&] { return on.copy(kind, false); }));
      spans.rounds_ns.push_back(second([&] { return on.copy_spans(kind, by); }));
      summed.rounds_ns.push_back(second([&] { return on.copy(kind, true); }));
    }
    const std::string what =
        of.name + (kind == copy_kind::store ? std::string(", store") : std::string(", restore"));
    into.push_back(rates(what, threads, bytes, plain, spans, threads == 1 ? at.one : at.two));
    into.push_back(rates(what + ", checksums", threads, bytes, summed, spans, {}));
    into.push_back(price(what + ", checksums", threads, bytes, summed, plain, at.checksums));
  }
}

}  // namespace

void measure_copy(const suite_options& how, std::vector<row>& into) {
  constexpr double below_64_kib = 1.3;
  constexpr double from_64_kib = 1.1;
  struct entry {
    geometry of;
    bars at;
  };
  const entry all[] = {
      {replay::find_geometry("dsv4_flash"), {1.5, 1.3, below_64_kib}},
      {replay::find_geometry("gdn_36"), {1.4, 1.3, below_64_kib}},
      {replay::find_geometry("replay"), {{}, {}, below_64_kib}},
      {replay::find_geometry("ragged"), {{}, {}, below_64_kib}},
      {replay::find_geometry("tiny"), {{}, {}, below_64_kib}},
      {spans_of(8 << 10), {1.4, 1.3, below_64_kib}},
      {spans_of(16 << 10), {1.4, 1.3, below_64_kib}},
      {spans_of(32 << 10), {1.4, 1.3, below_64_kib}},
      {spans_of(64 << 10), {1.4, 1.3, from_64_kib}},
      {spans_of(256 << 10), {{}, {}, from_64_kib}},
  };
  for (const entry& each : all)
    for (const std::uint32_t threads : {1U, 2U})
      if (!how.small() || threads == 2) measure(how, each.of, threads, each.at, into);
}

}  // namespace cairn::bench
