// Scenes on pending boundaries: filed, replaced, taken by a drain, dropped by key or with their
// sequence, while stores begin and restores are cancelled.
#include <cairn/coordinator.hpp>

#include "runtime/pending_table.hpp"
#include "stress/explore/catalog_world.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

// ---- the table --------------------------------------------------------------------------------

struct table_part {
  detail::pending_table table{2, 4};
  quiet_word<std::uint32_t> filed;
  quiet_word<std::uint32_t> out;  ///< replaced, taken or dropped

  void put(std::uint32_t sequence, std::uint64_t n) {
    const auto got = table.put(sequence, key_of(n), placement_hint::none);
    require(got != detail::pending_table::put_outcome::no_entry,
            "there is an entry for each thread");
    filed.add(1);
    if (got == detail::pending_table::put_outcome::replaced) out.add(1);
  }
  void take(std::uint32_t sequence) {
    detail::pending_table::item got;
    if (!table.take(sequence, &got)) return;
    require(got.key == key_of(1) || got.key == key_of(2), "a boundary has a key that nobody filed");
    out.add(1);
  }
  void collect() {
    std::vector<detail::pending_table::item> got;
    got.reserve(2);
    table.collect(got);
    for (const auto& each : got)
      require(each.key == key_of(1) || each.key == key_of(2),
              "a boundary has a key that nobody filed");
    out.add(static_cast<std::uint32_t>(got.size()));
  }
  void drop(std::uint64_t n) { out.add(table.drop(key_of(n))); }
  void judge() {
    require(table.size() == filed.get() - out.get(), "a boundary ended twice, or was lost");
    const std::uint32_t left = table.size();
    const std::uint32_t before = out.get();
    collect();
    require(out.get() - before == left && table.size() == 0, "a boundary cannot be found");
    // Nothing hangs on: all entries are there again.
    for (int i = 0; i < 8; ++i) put(0, 1);
    require(table.drop(key_of(1)) == 1, "a boundary cannot be found by its key");
  }
};

struct pending_drop : table_part {
  static constexpr std::uint32_t threads = 3;
  void run(std::uint32_t t) {
    if (t == 0) {
      put(0, 1);
      put(0, 2);
    } else if (t == 1) {
      drop(1);
      drop(2);
    } else {
      collect();
    }
  }
};
const bool pending_drop_added = add_part<pending_drop>("pending-drop", false, "boundaries");

/// An entry is filed again, for another key, while a dropper looks at the key that it had.
struct pending_aba : table_part {
  static constexpr std::uint32_t threads = 2;
  pending_aba() { put(0, 1); }
  void run(std::uint32_t t) {
    if (t == 0) {
      drop(1);
      return;
    }
    take(0);
    put(0, 2);
    take(0);
    put(0, 2);
  }
  void judge() {
    require(table.size() == 1, "a boundary of another key was dropped");
    table_part::judge();
  }
};
const bool pending_aba_added = add_part<pending_aba>("pending-aba", false, "boundaries");

struct pending_takers : table_part {
  static constexpr std::uint32_t threads = 4;
  pending_takers() {
    put(0, 1);
    put(1, 1);
  }
  void run(std::uint32_t t) {
    if (t == 0)
      take(0);
    else if (t == 1)
      collect();
    else if (t == 2)
      drop(1);
    else
      put(1, 2);
  }
};
const bool pending_takers_added = add_part<pending_takers>("pending-takers", false, "boundaries");

// ---- with a catalog ---------------------------------------------------------------------------

struct sequences_part {
  catalog_world world{{.cancels = true}};
  std::unique_ptr<coordinator> sequences =
      std::move(*coordinator::open({.max_sequences = 2, .max_threads = 4}, world.records()));

  sequences_part() {
    require(sequences->set_slot(0, 1).ok() && sequences->set_slot(1, 2).ok(),
            "a sequence is known");
  }
  static status begin(void* at, const boundary& what) {
    auto& p = *static_cast<player*>(at);
    return p.begin_store(what.key.lo);
  }
  void file(sequence_id sequence, std::uint64_t n) {
    require(sequences->file(sequence, key_of(n)).ok(), "a boundary was not filed");
  }
  void drain(std::uint32_t t) {
    sequences->drain(begin, &world.at(t));
    while (world.at(t).flying() != 0) world.at(t).finish();
  }
  void drain_own(std::uint32_t t, sequence_id sequence) {
    static_cast<void>(sequences->drain_sequence(sequence, begin, &world.at(t)));
    while (world.at(t).flying() != 0) world.at(t).finish();
  }
  void judge() {
    sequences->reset();
    require(sequences->pending() == 0, "a boundary is left");
    world.judge();
  }
};

/// A drain, the end of the sequence, and the end of the key's content.
struct drain_forget : sequences_part {
  static constexpr std::uint32_t threads = 3;
  void run(std::uint32_t t) {
    if (t == 0) {
      file(0, 1);
      drain_own(0, 0);
    } else if (t == 1) {
      require(sequences->forget(0).ok(), "a sequence is known");
    } else {
      static_cast<void>(sequences->unindex(key_of(1)));
    }
  }
};
const bool drain_forget_added = add_part<drain_forget>("drain-forget", false, "boundaries");

/// A queued restore is cancelled with its sequence, while its device takes it and another thread
/// drains.
struct cancel_drain : sequences_part {
  static constexpr std::uint32_t threads = 3;
  cancel_drain() {
    world.host().store(1);
    world.host().begin_restore(1, 1);
    world.at(2).take_over(world.host());
    file(0, 2);
    file(1, 3);
  }
  void run(std::uint32_t t) {
    if (t == 0)
      drain(0);
    else if (t == 1)
      require(sequences->forget(0).ok(), "a sequence is known");
    else
      world.at(2).finish();
  }
};
const bool cancel_drain_added = add_part<cancel_drain>("cancel-drain", false, "boundaries");

/// Two drains, a filing that replaces, and a reset.
struct drain_drain : sequences_part {
  static constexpr std::uint32_t threads = 4;
  drain_drain() {
    file(0, 1);
    file(1, 1);
  }
  void run(std::uint32_t t) {
    if (t < 2)
      drain(t);
    else if (t == 2)
      file(0, 2);
    else
      sequences->reset();
  }
};
const bool drain_drain_added = add_part<drain_drain>("drain-drain", false, "boundaries-plain");

}  // namespace

}  // namespace cairn::explore
