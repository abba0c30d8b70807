// A catalog over a small pool, the bytes of its units, and players who call it, one per logical
// thread. After each call the world looks whether what it was given can be true; at the end it
// looks at everything. Knows the catalog by its public header only.
#pragma once

#include <array>
#include <atomic>
#include <cairn/catalog.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "stress/explore/scene.hpp"

namespace cairn::explore {

checkpoint_key key_of(std::uint64_t n);

struct world_options {
  std::uint32_t units = 4;
  std::uint32_t extra_units = 0;  ///< that extend may add
  std::uint32_t per_image = 2;
  std::uint32_t ranks = 1;
  std::uint32_t max_ops = 8;
  bool staged = false;
  /// Others may cancel a player's ops: it uses an op's units from `take` on, not from its
  /// beginning.
  bool cancels = false;
};

class catalog_world;

/// What one logical thread holds, and its calls. Methods with a number take a key's number.
class player {
 public:
  void open(catalog_world& in, std::uint32_t self) noexcept {
    world_ = &in;
    self_ = self;
  }

  // ---- checkpoints ----
  status begin_store(std::uint64_t n);
  status begin_restore(std::uint64_t n, slot_id slot = 1);
  /// Reports this player's oldest op on all ranks, or on one.
  void finish(status code = status::ok);
  void finish_rank(rank_id rank, status code = status::ok);
  status store(std::uint64_t n);
  void restore(std::uint64_t n);
  void cancel();
  void forget(std::uint64_t n);
  void clear();
  void cancel_slot(slot_id slot);
  void lose_rank(rank_id rank);
  void look(std::uint64_t n);
  // ---- pins ----
  void pin_key(std::uint64_t n, std::int64_t for_ns = 3'600'000'000'000LL);
  /// What the latest pin is for: its record is there. For scenes in which nobody forgets it.
  void use_pinned(std::uint64_t n);
  void unpin();
  void expire(std::int64_t after_ns);
  // ---- units ----
  void allocate(std::uint32_t count = 1);
  void reserve(std::uint32_t count);
  void wait_reserve(std::uint32_t count, std::int64_t for_ns);
  void release();
  void free_one();
  void publish(std::uint64_t n);
  void claim(std::uint64_t n);
  void admit(std::uint64_t n, std::uint32_t fresh);
  /// A unit that bears the key and is free.
  void cache(std::uint64_t n);
  void clear_index();
  void extend();
  void retire_top();

  void look_unit(std::uint64_t n);

  // ---- one op whose ranks are different threads ----
  struct view {
    op_id op;
    std::span<const unit_id> units;
  };
  /// The player's latest op.
  [[nodiscard]] view newest() const;
  /// The op is a device's: it cannot be cancelled any more.
  void hand_to_device();
  /// What rank `rank` says of the op; any thread.
  void tell_from(rank_id rank, status code);
  /// The copy that `rank` had given up is over now.
  void prove_from(rank_id rank);
  /// How often an op of the player's has ended by such a report.
  [[nodiscard]] std::uint32_t ends() const noexcept {
    return ends_.load(std::memory_order_relaxed);
  }
  /// Ranks whose report has counted, as a mask.
  [[nodiscard]] std::uint32_t told() const noexcept {
    return told_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::span<const unit_id> reserved() const {
    return std::span(reserved_).first(reserved_count_);
  }

  /// The image under a READY key is one store's, of this epoch.
  void check_ready(std::uint64_t n);
  /// Gives back everything, quietly.
  void wind_up();
  /// Takes over what another player has in flight.
  void take_over(player& other);

  [[nodiscard]] std::uint32_t flying() const noexcept { return flights_; }
  [[nodiscard]] std::uint32_t begun() const noexcept { return begun_; }
  [[nodiscard]] std::uint32_t duplicates() const noexcept { return duplicates_; }
  [[nodiscard]] std::uint32_t refused() const noexcept { return refused_; }

 private:
  friend class catalog_world;
  static constexpr std::uint32_t most = 8;
  struct flight {
    copy_op_header header;
    std::array<unit_id, 4> units{};
    std::uint64_t key = 0;
    std::uint64_t value = 0;     ///< what its units hold: tells images of one key apart
    std::uint32_t reported = 0;  ///< mask of ranks
    bool landed = false;         ///< its units are in use no more
  };
  struct share {
    unit_id id = no_unit;
    bool sole = false;  ///< nobody else knows it
    std::uint64_t key = 0;
  };

  void fly(const copy_op& op, std::uint64_t key);
  flight pop();
  void touch(flight& f);
  void tell(flight& f, rank_id rank, status code);
  void land(flight& f);
  void took(unit_id id);

  catalog_world* world_ = nullptr;
  std::uint32_t self_ = 0;
  std::array<flight, most> flying_{};
  std::uint32_t flights_ = 0;
  std::array<share, most> shares_{};
  std::uint32_t share_count_ = 0;
  std::array<unit_id, most> reserved_{};
  std::uint32_t reserved_count_ = 0;
  std::array<pin, 2> pins_{};
  std::array<bool, 2> lasting_{};  ///< the pin does not expire in this scene
  std::uint32_t pin_count_ = 0;
  std::uint32_t begun_ = 0;
  std::uint32_t duplicates_ = 0;
  std::uint32_t refused_ = 0;
  std::atomic<std::uint32_t> ends_{0};
  std::atomic<std::uint32_t> told_{0};     ///< ranks that have counted
  std::atomic<std::uint32_t> landing_{0};  ///< ranks whose copy is over
};

class catalog_world {
 public:
  static constexpr std::uint32_t players_max = 8;  ///< a scene's threads

  explicit catalog_world(const world_options& opts);

  /// Ends everything, then looks at the ledger of units, at one record per key, and that
  /// what is counted as free or evictable can be had (3.9).
  void judge();
  player& at(std::uint32_t thread) noexcept { return players_[thread]; }
  /// Who sets the scene.
  player& host() noexcept { return players_[players_max]; }

  catalog& records() noexcept { return *records_; }
  unit_pool& pool() noexcept { return *pool_; }

  // ---- for players ----
  /// The unit is this holder's alone from now on; it writes `content`.
  void take(unit_id id, std::uint64_t content);
  /// One more reader of what lies there.
  void read(unit_id id, std::uint64_t content);
  void unread(unit_id id);
  void give(unit_id id);
  /// The share of `from`, wherever its holder is, is one of `to`.
  void move(unit_id from, unit_id to);
  void verify(unit_id id, std::uint64_t content) const;

  const world_options options;
  /// The bytes: plain, so that ThreadSanitizer sees who is not ordered.
  std::array<std::uint64_t, 16> content{};
  std::atomic<std::uint32_t> orphans{0};
  /// Epoch in which a store began, by its stamp.
  std::array<std::atomic<std::uint32_t>, 64> stored_in{};
  /// Where a unit's share has been moved to, and 1; 0: nowhere.
  std::array<std::atomic<unit_id>, 16> moved_to{};
  bool closed = false;
  std::uint32_t quarantined = 0;  ///< units that are to be in quarantine at the end

 private:
  // What the world believes. Atomic and relaxed: it neither orders anything nor is a race.
  static constexpr std::uint32_t exclusive = 1000;
  std::array<std::atomic<std::uint32_t>, 16> users_{};
  std::unique_ptr<unit_pool> pool_;
  std::unique_ptr<catalog> records_;
  std::array<player, players_max + 1> players_{};
};

using play = void (*)(catalog_world&, player&);

/// A scene of calls on a catalog: a setting, and what each thread does.
struct catalog_script {
  const char* name;
  world_options options;
  void (*setting)(catalog_world&);
  std::initializer_list<play> parts;
  /// Beside the world's own; null: nothing more.
  void (*expect)(catalog_world&) = nullptr;
  bool waits = false;
};

void add_catalog_scenes(const char* group, const catalog_script* list, std::size_t count);

}  // namespace cairn::explore
