// Scenes on what callers learn of copies on their way: batches held by others, positions of
// compute, boards.
#include <array>
#include <atomic>
#include <cairn/backend.hpp>

#include "runtime/copy_batch.hpp"
#include "runtime/fence_ring.hpp"
#include "runtime/op_board.hpp"
#include "stress/explore/part.hpp"

namespace cairn::explore {

namespace {

// ---- batches ----------------------------------------------------------------------------------

/// The copy thread uses a batch twice; two others order streams behind its event.
struct batch_hold {
  static constexpr std::uint32_t threads = 3;
  detail::batch_word word;
  std::uint64_t event = 0;  // plain: written when it is recorded, read by holders
  quiet_word<std::uint32_t> holders;
  quiet_word<bool> waits;

  void record(std::uint64_t n) {
    require(holders.get() == 0, "an event is recorded anew while somebody holds it");
    event = n;
    word.open();
  }
  bool over() {
    if (word.retire()) {
      word.recycle();
      return true;
    }
    return false;
  }
  void run(std::uint32_t t) {
    if (t == 0) {
      record(1);
      if (!over()) {
        waits.set(true);
        return;
      }
      record(2);
      waits.set(!over());
      return;
    }
    const std::uint32_t turn = 0;
    if (!word.hold(turn)) return;
    holders.add(1);
    require(event == 1, "a hold on one use of a batch sees another");
    holders.add(~std::uint32_t{0});
    static_cast<void>(word.drop());
  }
  void judge() {
    if (waits.get()) {
      require(word.unheld(), "a batch is held although all holders have gone");
      word.recycle();
    }
    require(!word.hold(0), "a use that is over can be held");
  }
};
const bool batch_hold_added = add_part<batch_hold>("batch-hold");

/// Whoever is the last to go tells the copy thread, once.
struct batch_drop {
  static constexpr std::uint32_t threads = 3;
  detail::batch_word word;
  quiet_word<std::uint32_t> told;
  quiet_word<bool> waits;

  batch_drop() { word.open(); }
  void run(std::uint32_t t) {
    if (t == 0) {
      waits.set(!word.retire());
      return;
    }
    if (!word.hold(0)) return;
    if (word.drop()) told.add(1);
  }
  void judge() {
    require(told.get() == (waits.get() ? 1U : 0U), "the copy thread waits and is not told");
  }
};
const bool batch_drop_added = add_part<batch_drop>("batch-drop");

// ---- positions of compute ---------------------------------------------------------------------

/// A device whose events remember what they were recorded for.
class recording_device final : public device {
 public:
  class position final : public cairn::event {
   public:
    std::atomic<std::uint64_t> recorded{0};
  };
  std::string name() const override { return "recording"; }
  result<std::unique_ptr<stream>> create_stream(stream_priority) override { return refuse(); }
  result<std::unique_ptr<stream>> wrap_stream(void*) override { return refuse(); }
  result<std::unique_ptr<cairn::event>> create_event(doorbell*) override {
    return std::unique_ptr<cairn::event>(std::make_unique<position>());
  }
  result<std::unique_ptr<memory_block>> allocate(std::size_t) override { return refuse(); }
  result<std::unique_ptr<memory_block>> allocate_pinned(std::size_t) override { return refuse(); }
  status record(cairn::event& what, stream&) override {
    sync::point();
    static_cast<position&>(what).recorded.store(enqueued.load(std::memory_order_relaxed),
                                                std::memory_order_relaxed);
    return status::ok;
  }
  status wait(stream&, cairn::event&) override { return status::ok; }
  event_state query(const cairn::event&) noexcept override { return event_state::pending; }
  bool capturing(const stream&) noexcept override { return false; }
  result<std::unique_ptr<device_plan>> load(const copy_plan&, const rank_memory&) override {
    return refuse();
  }
  status launch(stream&, device_plan&, copy_kind, std::span<const copy_task>,
                batch_report*) override {
    return status::failed;
  }
  status call(stream&, void (*)(void*), void*) override { return status::failed; }
  bool polls() const noexcept override { return false; }

  std::atomic<std::uint64_t> enqueued{0};  ///< work items on the one stream

 private:
  static error refuse() { return error(status::unsupported, "this device records, no more"); }
};

struct fence_marks {
  static constexpr std::uint32_t threads = 3;
  recording_device on;
  stream compute;
  std::unique_ptr<detail::fence_ring> ring = std::make_unique<detail::fence_ring>();
  sync::atomic<std::uint64_t> step{0};

  fence_marks() {
    static_cast<void>(ring->open(on));
    ring->attach(compute);
  }
  void run(std::uint32_t t) {
    if (t == 2) {
      const std::uint64_t marked = ring->marked();
      for (std::uint64_t s = 1; s <= marked; ++s) {
        const auto at = ring->resolve(s);
        // Step s was drawn after s pieces of work were enqueued.
        require(static_cast<recording_device::position*>(at.what)->recorded.load(
                    std::memory_order_relaxed) >= s,
                "an event that covers a step was recorded before the step's work");
      }
      return;
    }
    on.enqueued.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t mine = step.fetch_add_acq_rel(1) + 1;
    require(ring->mark(on, mine) == status::ok, "a position cannot be marked");
    require(ring->marked() >= mine, "a step that was marked cannot be resolved");
  }
  void judge() { require(ring->marked() == 2, "the last step is not marked"); }
};
const bool fence_marks_added = add_part<fence_marks>("fence-marks");

// ---- boards -----------------------------------------------------------------------------------

/// An index is another op's by the time the copy thread ends the first.
struct board_reuse {
  static constexpr std::uint32_t threads = 3;
  detail::op_board board{1};
  std::uint64_t bytes = 0;  // plain: written before the op is launched

  board_reuse() { board.accept({0, 1}); }
  void run(std::uint32_t t) {
    if (t == 0) {
      bytes = 1;
      board.launch({0, 1}, {3, 4});
      board.end({0, 1});
    } else if (t == 1) {
      board.accept({0, 2});
    } else {
      const auto view = board.look({0, 1});
      if (view.at == detail::op_board::stage::launched)
        require(bytes == 1 && view.batch.batch == 3 && view.batch.turn == 4,
                "an op is launched in another batch than it was");
    }
  }
  void judge() {
    require(board.look({0, 2}).at == detail::op_board::stage::accepted,
            "the end of an op ended its successor");
    require(board.look({0, 1}).at == detail::op_board::stage::ended, "an op that ended has not");
  }
};
const bool board_reuse_added = add_part<board_reuse>("board-reuse");

struct board_slot {
  static constexpr std::uint32_t threads = 2;
  detail::slot_board board{1};
  std::uint64_t recorded = 0;  // plain: the batch's event

  board_slot() { board.admit(0, copy_kind::store); }
  void run(std::uint32_t t) {
    if (t == 0) {
      recorded = 1;
      board.launch(0, {2, 5});
      return;
    }
    if (!board.passed(0)) return;
    const auto last = board.last(0);
    require(last.has_value() && last->batch == 2, "all ops passed and the last batch is unknown");
    require(recorded == 1, "a batch is named before its event is recorded");
  }
  void judge() { require(board.passed(0), "all ops have passed and the board says not"); }
};
const bool board_slot_added = add_part<board_slot>("board-slot");

}  // namespace

}  // namespace cairn::explore
