// A copier over a device that copies nothing, and ops for it: one per slot, with units of its own.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cairn/copier.hpp>
#include <cairn/unit_pool.hpp>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/hollow_device.hpp"
#include "bench/harness/keys.hpp"
#include "bench/replay/geometry.hpp"

namespace cairn::bench {

/// How the ids of an op's units follow one another.
enum class id_order : std::uint8_t {
  rising,    ///< as a pool hands out units that bear no key: the lowest first
  used,      ///< as it does after a while: some such units, then cached ones, in the order of frees
  shuffled,  ///< at random
};

/// `count` ids below `units`, in groups of `per_image`.
inline std::vector<unit_id> drawn_ids(id_order order, std::uint32_t units, std::uint32_t count,
                                      std::uint32_t per_image) {
  std::vector<unit_id> ids(units);
  std::iota(ids.begin(), ids.end(), 0U);
  if (order == id_order::shuffled) std::shuffle(ids.begin(), ids.end(), std::mt19937_64(41));
  ids.resize(count);
  if (order != id_order::used) return ids;
  random_bits random(41);
  unit_pool::options options;
  options.units = units;
  const auto pool = std::move(unit_pool::open(options)).value();
  // Requests of up to 100 blocks, 16 at a time; a prompt's blocks get keys, those of the answer
  // none; who ends frees its last block first.
  std::vector<std::vector<unit_id>> requests(16);
  std::uint64_t blocks = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<unit_id>& one = requests[random.below(requests.size())];
    for (auto unit = one.rbegin(); unit != one.rend(); ++unit) (void)pool->free(*unit);
    one.resize(1 + random.below(100));
    if (!pool->allocate(one)) std::abort();
    for (std::size_t b = 0; b < one.size() * 3 / 4; ++b)
      (void)pool->publish(one[b], key_of(++blocks));
  }
  for (std::uint32_t i = 0; i < count; i += per_image)
    if (!pool->reserve({ids.data() + i, per_image}, 1 + i)) std::abort();
  return ids;
}

class hollow_copier {
 public:
  static constexpr std::uint32_t slots = 64;

  hollow_copier(const std::string& geometry_name, bool threaded,
                id_order order = id_order::rising) {
    const replay::geometry of = replay::find_geometry(geometry_name);
    const layout shape = of.shape();
    const std::uint32_t per_image = shape.units_per_checkpoint();
    const std::uint32_t units = 2 * slots * per_image + 1600;
    memory_ = replay::place_memory(of, device_, units, slots, [](std::byte*, std::uint64_t) {});
    copier_options options;
    options.shape = shape;
    options.memory = memory_.addresses;
    options.threaded = threaded;
    options.on_completion = [](void* context, const completion&) {
      auto& on = *static_cast<hollow_copier*>(context);
      constexpr sched_param none{};
      if (on.give_way_.exchange(false, std::memory_order_acq_rel) &&
          sched_setscheduler(0, SCHED_BATCH, &none) != 0)
        std::abort();
      on.ended_.fetch_add(1, std::memory_order_release);
    };
    options.context = this;
    copier_ = std::move(copier::open(options, device_)).value();

    ids_ = drawn_ids(order, units, slots * per_image, per_image);
    for (slot_id slot = 0; slot < slots; ++slot) {
      copy_op op;
      op.units = {ids_.data() + std::size_t{slot} * per_image, per_image};
      op.header.op = {slot, 1};
      op.header.layout_fingerprint = shape.fingerprint();
      op.header.image_bytes = shape.image_bytes;
      op.header.slot = slot;
      op.header.unit_count = per_image;
      ops_.push_back(op);
    }
  }

  /// The op on this slot, under a number that it had not before.
  const copy_op& next(slot_id slot) {
    ++ops_[slot].header.op.generation;
    return ops_[slot];
  }
  void submit(slot_id slot) {
    const copy_op& op = next(slot);
    if (!copier_->submit({&op, 1})) std::abort();
    ++sent_;
  }
  /// From the next op that ends on, the copy thread does not take the processor of who wakes it.
  void give_way() { give_way_.store(true, std::memory_order_release); }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }  ///< of one submitting thread
  [[nodiscard]] std::uint64_t ended() const { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] copier& get() { return *copier_; }
  [[nodiscard]] hollow_device& device() { return device_; }

 private:
  hollow_device device_;
  replay::device_memory memory_;
  std::vector<unit_id> ids_;
  std::vector<copy_op> ops_;
  std::uint64_t sent_ = 0;
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> give_way_{false};
  std::unique_ptr<copier> copier_;
};

}  // namespace cairn::bench
