// The world's bookkeeping and the scenes made of scripts. See catalog_world.hpp.
#include "stress/explore/catalog_world.hpp"

#include <cassert>
#include <string>

namespace cairn::explore {

checkpoint_key key_of(std::uint64_t n) {
  return {n * 0x9e3779b97f4a7c15ULL + 1, n};
}

catalog_world::catalog_world(const world_options& opts) : options(opts) {
  pool_ = std::move(*unit_pool::open({opts.units, opts.units + opts.extra_units, 1}));
  catalog_options c;
  c.shape = {10, 40, std::uint64_t{opts.per_image} * 10 - 5, "tiny"};
  c.ranks = opts.ranks;
  c.slots = 4;
  c.max_ops = opts.max_ops;
  c.max_pins = 4;
  c.max_threads = 4;
  c.staged = opts.staged;
  records_ = std::move(*catalog::open(std::move(c), *pool_));
  for (std::uint32_t t = 0; t <= players_max; ++t) players_[t].open(*this, t);
}

void catalog_world::take(unit_id id, std::uint64_t value) {
  require(id < options.units + options.extra_units, "a unit that the pool does not have");
  if (users_[id].exchange(exclusive, std::memory_order_relaxed) != 0)
    fail("unit " + std::to_string(id) + " is handed out while somebody uses it");
  content[id] = value;
}

void catalog_world::read(unit_id id, std::uint64_t value) {
  if (users_[id].fetch_add(1, std::memory_order_relaxed) >= exclusive)
    fail("unit " + std::to_string(id) + " is shared while somebody writes it");
  verify(id, value);
}

void catalog_world::unread(unit_id id) {
  users_[id].fetch_sub(1, std::memory_order_relaxed);
}

void catalog_world::give(unit_id id) {
  if (users_[id].exchange(0, std::memory_order_relaxed) != exclusive)
    fail("unit " + std::to_string(id) + " has had another user");
}

void catalog_world::move(unit_id from, unit_id to) {
  if (users_[to].fetch_add(1, std::memory_order_relaxed) != 0)
    fail("unit " + std::to_string(to) + " is handed out while somebody uses it");
  moved_to[from].store(to + 1, std::memory_order_relaxed);
}

void catalog_world::verify(unit_id id, std::uint64_t value) const {
  if (content[id] != value)
    fail("unit " + std::to_string(id) + " holds " + std::to_string(content[id]) + ", not " +
         std::to_string(value));
}

void catalog_world::judge() {
  for (player& p : players_) p.wind_up();
  const catalog_counts c = records_->counts();
  const pool_counts p = pool_->counts();
  const std::uint32_t kept = quarantined / options.per_image;
  require(c.copying == 0 && c.evicting == kept, "a record is neither READY nor gone");
  require(c.ops == 0, "an op has not ended");
  require(c.pins == 0, "a pin has not fallen");
  require(p.live == 0, "a live unit is left");
  require(c.quarantine_units == quarantined, "the wrong units are in quarantine");
  require(p.reserved == c.checkpoint_units + quarantined,
          "the pool and the catalog differ on checkpoint units");
  require(p.vacant + p.cached + p.reserved == p.total, "the ledger of units does not close");
  require(pool_->free_units() == p.vacant + p.cached, "the count of free units is wrong");
  require(records_->evictable() == c.ready, "the count of evictable records is wrong");
  std::uint32_t visible = 0;
  for (std::uint64_t n = 0; n < 8; ++n) {
    if (!records_->contains(key_of(n))) continue;
    ++visible;
    if (!closed) host().check_ready(n);
  }
  require(visible == c.ready, "a key has two records, or a record no key");
  if (closed) return;
  std::array<unit_id, 16> all{};
  require(records_->allocate(std::span(all).first(p.total - quarantined)).ok(),
          "what is counted as evictable cannot be had");
}

// ---- scenes from scripts ----------------------------------------------------------------------

namespace {

class catalog_scene final : public scene {
 public:
  explicit catalog_scene(const catalog_script& script) : script_(script) {}
  void build() override {
    world_ = new catalog_world(script_.options);
    if (script_.setting != nullptr) script_.setting(*world_);
  }
  [[nodiscard]] std::uint32_t threads() const override {
    return static_cast<std::uint32_t>(script_.parts.size());
  }
  void run(std::uint32_t thread) override {
    script_.parts.begin()[thread](*world_, world_->at(thread));
  }
  void judge() override {
    if (script_.expect != nullptr) script_.expect(*world_);
    world_->judge();
  }

 private:
  const catalog_script& script_;
  catalog_world* world_ = nullptr;  // lives in the arena
};

}  // namespace

void add_catalog_scenes(const char* group, const catalog_script* list, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    add_scene({list[i].name, group, list[i].waits,
               [](const scene_entry& self) -> std::unique_ptr<scene> {
                 return std::make_unique<catalog_scene>(
                     *static_cast<const catalog_script*>(self.data));
               },
               &list[i]});
}

}  // namespace cairn::explore
