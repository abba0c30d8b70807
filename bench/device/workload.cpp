// Laying a geometry out on the device, and copying its images in every way that is measured.
#include "bench/device/workload.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

namespace cairn::bench {
namespace {

constexpr std::uint32_t fill_groups_per_unit = 8;

/// `count` numbers in an order without runs.
std::vector<unit_id> scattered(std::uint32_t count) {
  std::vector<unit_id> ids(count);
  std::iota(ids.begin(), ids.end(), 0U);
  std::uint64_t state = 99;
  for (std::uint32_t i = count - 1; i > 0; --i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::swap(ids[i], ids[(state >> 33) % (i + 1)]);
  }
  return ids;
}

/// A few pieces of the same kind, none of them large.
void shrink(geometry& of) {
  constexpr std::size_t regions_max = 1;
  constexpr std::size_t segments_max = 3;
  constexpr std::uint64_t piece_bytes_max = 48 << 10;
  of.regions.resize(std::min(of.regions.size(), regions_max));
  of.segments.resize(std::min(of.segments.size(), segments_max));
  for (std::uint64_t& each : of.regions) each = std::min(each, piece_bytes_max);
  std::uint64_t at = 0;
  for (replay::stretch& each : of.segments) {
    each.bytes = std::min(each.bytes, piece_bytes_max);
    each.offset = at;
    at += each.bytes;
  }
  of.gaps.clear();
  of.slot_bytes = at;
}

std::uint32_t slots_for(const rig& on, std::uint64_t image_bytes, std::uint32_t images_max) {
  const std::uint64_t round_trip = on.options().small ? 0 : std::uint64_t{768} << 20;
  const std::uint64_t rounds = round_trip / (image_bytes * images_max) + 1;
  return images_max * static_cast<std::uint32_t>(std::min<std::uint64_t>(rounds, 32));
}

}  // namespace

std::unique_ptr<memory_block> upload(rig& on, const void* from, std::size_t bytes) {
  auto to = check(on.dev().allocate(bytes), "allocate");
  auto pinned = check(on.dev().allocate_pinned(bytes), "allocate_pinned");
  std::memcpy(pinned->data(), from, bytes);
  check(hipMemcpyAsync(to->data(), pinned->data(), bytes, hipMemcpyHostToDevice, on.native(0)),
        "hipMemcpyAsync");
  check(hipStreamSynchronize(on.native(0)), "hipStreamSynchronize");
  return to;
}

resident_pieces::resident_pieces(rig& on, const std::vector<copy_span>& pieces,
                                 std::uint32_t units_per_image, const rank_memory& memory) {
  const std::size_t piece_bytes = pieces.size() * sizeof(copy_span);
  const std::size_t region_bytes = memory.regions.size() * sizeof(strided);
  const std::size_t segment_bytes = memory.segments.size() * sizeof(strided);
  std::vector<std::byte> all(piece_bytes + region_bytes + segment_bytes);
  std::memcpy(all.data(), pieces.data(), piece_bytes);
  std::memcpy(all.data() + piece_bytes, memory.regions.data(), region_bytes);
  std::memcpy(all.data() + piece_bytes + region_bytes, memory.segments.data(), segment_bytes);
  block_ = upload(on, all.data(), all.size());
  tables_.tiles = reinterpret_cast<const copy_span*>(block_->data());
  tables_.regions = reinterpret_cast<const strided*>(block_->data() + piece_bytes);
  tables_.segments = reinterpret_cast<const strided*>(block_->data() + piece_bytes + region_bytes);
  tables_.tiles_per_image = static_cast<std::uint32_t>(pieces.size());
  tables_.units_per_image = units_per_image;
}

workload::workload(rig& on, const geometry& of, std::uint32_t images_max) : on_(on), shape_(of) {
  const layout sizes = shape_.shape();
  const std::uint32_t per_image = sizes.units_per_checkpoint();
  slots_ = slots_for(on, sizes.image_bytes, images_max);
  const std::uint32_t unit_count = slots_ * per_image;
  memory_ = replay::place_memory(shape_, on.dev(), unit_count, slots_,
                                 [](std::byte*, std::uint64_t) {});  // filled when compared
  plan_ = check(make_copy_plan(sizes, memory_.addresses), "make_copy_plan");
  loaded_ = check(on.dev().load(plan_, memory_.addresses), "load");
  for (auto& each : ended_) each = check(on.dev().create_event(nullptr), "create_event");
  for (auto& each : checksums_)
    each = check(on.dev().allocate_pinned(images_max * sizeof(std::uint64_t)), "allocate_pinned");
  units_ = scattered(unit_count);

  const std::uint32_t per = words_per_image(per_image);
  std::vector<std::uint32_t> words(std::size_t{3} * slots_ * per);
  for (std::uint32_t list = 0; list < 3; ++list)
    for (slot_id slot = 0; slot < slots_; ++slot) {
      const copy_kind kind =
          list == 0 || (list == 2 && slot % 2 == 0) ? copy_kind::store : copy_kind::restore;
      std::uint32_t* const to = words.data() + (std::size_t{list} * slots_ + slot) * per;
      to[0] = slot_word(kind, slot);
      std::copy_n(units_.begin() + std::ptrdiff_t{slot} * per_image, per_image, to + 1);
    }
  words_ = upload(on, words.data(), words.size() * sizeof(std::uint32_t));
  counter_ = check(on.dev().allocate(sizeof(unsigned long long)), "allocate");
  counted_ = check(on.dev().allocate_pinned(sizeof(unsigned long long)), "allocate_pinned");
  whole_spans_ = std::make_unique<resident_pieces>(on, plan_.spans, plan_.units, memory_.addresses);
}

std::uint64_t workload::span_bytes_min() const noexcept {
  std::uint64_t least = plan_.image_bytes;
  for (const copy_span& each : plan_.spans) least = std::min(least, each.bytes);
  return least;
}

bool workload::fits_inline(std::uint32_t images) const noexcept {
  return std::uint64_t{images} * words_per_image(plan_.units) <= inline_words;
}

std::uint32_t workload::repetitions(std::uint32_t images) const noexcept {
  if (on_.options().small) return 1;
  const std::uint64_t bytes = image_bytes() * images;
  const std::uint64_t wanted = (std::uint64_t{512} << 20) / bytes;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(wanted, 2, fits_inline(images) ? 32 : 6));
}

double workload::rate(std::uint32_t images, double us) const noexcept {
  return us > 0.0 ? 2.0 * static_cast<double>(image_bytes() * images) / us * 1e-3 : 0.0;
}

std::uint32_t workload::next(std::uint32_t images) noexcept {
  if (next_ + images > slots_) next_ = 0;
  const std::uint32_t first = next_;
  next_ += images;
  return first;
}

void workload::copy(std::uint32_t stream, copy_kind kind, std::uint32_t images, bool checksums) {
  const std::uint32_t first = next(images);
  tasks_.clear();
  for (std::uint32_t i = 0; i < images; ++i)
    tasks_.push_back({first + i, units_.data() + std::size_t{first + i} * plan_.units});
  batch_report& report = reports_[stream];
  report.checksums =
      checksums ? reinterpret_cast<std::uint64_t*>(checksums_[stream]->data()) : nullptr;
  // A full ring of staging: the copy thread would come back later, too.
  status code = on_.dev().launch(on_.on(stream), *loaded_, kind, tasks_, &report);
  for (; code == status::queue_full; std::this_thread::yield())
    code = on_.dev().launch(on_.on(stream), *loaded_, kind, tasks_, &report);
  check(code, "launch");
  check(on_.dev().record(*ended_[stream], on_.on(stream)), "record");
}

void workload::copy_with(const resident_pieces& pieces, std::uint32_t groups, std::uint32_t stream,
                         copy_kind kind, std::uint32_t images, bool mixed) {
  const std::uint32_t list = mixed ? 2 : kind == copy_kind::store ? 0 : 1;
  const auto* const all = reinterpret_cast<const std::uint32_t*>(words_->data());
  const std::size_t at = (std::size_t{list} * slots_ + next(images)) * words_per_image(plan_.units);
  staged_batch batch;
  batch.tables = pieces.tables();
  batch.images = images;
  batch.words = all + at;
  check(launch_copy(batch, groups, on_.native(stream)), "launch_copy");
}

void workload::copy_contiguous(std::uint32_t stream, copy_kind kind, std::uint32_t images) {
  const std::uint64_t bytes = image_bytes() * images;
  const std::uint64_t room = std::min(memory_.slots->size(), memory_.units->size());
  const std::uint64_t step = (bytes + 255) / 256 * 256;  // as an allocation would be aligned
  const std::uint64_t places = std::max<std::uint64_t>(1, room / step);
  const std::uint64_t at = next(images) / images % places * step;
  std::byte* const slots = memory_.slots->data() + at;
  std::byte* const units = memory_.units->data() + at;
  const bool store = kind == copy_kind::store;
  check(hipMemcpyAsync(store ? units : slots, store ? slots : units, bytes, hipMemcpyDeviceToDevice,
                       on_.native(stream)),
        "hipMemcpyAsync");
}

const std::vector<span_copy>& workload::spans(copy_kind kind, std::uint32_t images) {
  const std::uint32_t first = next(images);
  spans_.clear();
  for (std::uint32_t slot = first; slot < first + images; ++slot)
    for (const copy_span& each : plan_.spans) {
      const tile_ends ends =
          locate(each, kind, memory_.addresses.regions.data(), memory_.addresses.segments.data(),
                 slot, units_.data() + std::size_t{slot} * plan_.units);
      spans_.push_back({ends.to, ends.from, each.bytes});
    }
  return spans_;
}

void workload::fill(std::uint64_t seed) {
  const std::uint32_t groups = fill_groups_per_unit * on_.compute_units();
  check(
      launch(fill_work{memory_.slots->data(), memory_.slots->size(), seed}, groups, on_.native(0)),
      "launch");
}

std::uint64_t workload::differing(std::uint32_t first, std::uint32_t images) {
  auto* const counter = reinterpret_cast<unsigned long long*>(counter_->data());
  std::memset(counted_->data(), 0, sizeof(unsigned long long));
  check(hipMemcpyAsync(counter, counted_->data(), sizeof *counter, hipMemcpyHostToDevice,
                       on_.native(0)),
        "hipMemcpyAsync");
  compare_work work;
  work.tables = whole_spans_->tables();
  work.words = reinterpret_cast<const std::uint32_t*>(words_->data()) +
               std::size_t{first} * words_per_image(plan_.units);
  work.images = images;
  work.differing = counter;
  check(launch(work, fill_groups_per_unit * on_.compute_units(), on_.native(0)), "launch");
  check(hipMemcpyAsync(counted_->data(), counter, sizeof *counter, hipMemcpyDeviceToHost,
                       on_.native(0)),
        "hipMemcpyAsync");
  check(hipStreamSynchronize(on_.native(0)), "hipStreamSynchronize");
  unsigned long long found = 0;
  std::memcpy(&found, counted_->data(), sizeof found);
  return found;
}

std::vector<std::uint64_t> workload::checksums(std::uint32_t images) const {
  std::vector<std::uint64_t> found(images);
  std::memcpy(found.data(), checksums_[0]->data(), images * sizeof(std::uint64_t));
  return found;
}

void workload::verify(std::uint32_t images) {
  verify(images, [&](copy_kind kind) { copy(0, kind, images); });
  // A restore moves what a store has put away, so the sums that it leaves are the store's.
  const std::vector<std::uint64_t> restored = checksums(images);
  next_ = 0;
  copy(0, copy_kind::store, images);
  on_.synchronise();
  if (checksums(images) != restored) throw broken_case("a restore's checksums are not the store's");
}

void workload::verify(std::uint32_t images, const std::function<void(copy_kind)>& enqueue) {
  on_.synchronise();
  const std::uint32_t groups = fill_groups_per_unit * on_.compute_units();
  check(launch(fill_work{memory_.units->data(), memory_.units->size(), 1}, groups, on_.native(0)),
        "launch");
  std::uint64_t seed = 2;
  for (const copy_kind kind : {copy_kind::store, copy_kind::restore}) {
    // New bytes in the slots: neither direction leaves equal ends unless it copies.
    fill(seed++);
    next_ = 0;
    if (differing(0, images) == 0) throw broken_case("the comparison sees no difference");
    next_ = 0;
    enqueue(kind);
    if (const std::uint64_t found = differing(0, images); found != 0)
      throw broken_case(std::to_string(found) + " bytes are wrong after a " +
                        (kind == copy_kind::store ? "store" : "restore"));
  }
}

std::unique_ptr<resident_pieces> workload::cut(std::uint64_t tile_bytes) const {
  std::vector<copy_span> tiles;
  for (copy_span rest : plan_.spans)
    while (rest.bytes > 0) {
      copy_span tile = rest;
      tile.bytes = std::min(rest.bytes, tile_bytes);
      tiles.push_back(tile);
      rest.image_offset += tile.bytes;
      rest.segment_offset += tile.bytes;
      rest.region_offset += tile.bytes;
      rest.bytes -= tile.bytes;
    }
  return std::make_unique<resident_pieces>(on_, tiles, plan_.units, memory_.addresses);
}

geometry spans_of_8_kib() {
  geometry made;
  made.name = "spans_8k";
  made.regions.assign(64, 8192);
  made.segments = {{0, std::uint64_t{8} << 20}};
  made.slot_bytes = std::uint64_t{8} << 20;
  return made;
}

std::vector<geometry> measured_geometries(bool small) {
  std::vector<geometry> all;
  for (const char* name : {"tiny", "ragged", "replay", "dsv4_flash", "gdn_36"})
    all.push_back(replay::find_geometry(name));
  all.push_back(spans_of_8_kib());
  if (small)
    for (geometry& each : all) shrink(each);
  return all;
}

}  // namespace cairn::bench
