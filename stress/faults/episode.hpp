// One runtime and one engine in one thread, from opening to the end, while faults come to pass as a
// seed says. The engine knows what every slot and every checkpoint should hold, and checks after
// each step that each accepted op ends once and in time, that no failure looks like a success, that
// what is restored is what was stored, and that no unit is lost. Knows the runtime's public side
// only.
#pragma once

#include <cairn/runtime.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stress/faults/planned_device.hpp"
#include "stress/world/rank_space.hpp"

namespace cairn::stress {

/// What ended how, over episodes.
struct tally {
  std::uint64_t steps = 0;
  std::uint64_t ended[32] = {};      ///< ops, by status
  std::uint64_t refused[32] = {};    ///< calls, by status
  std::uint64_t verified = 0;        ///< images read back and found right
  std::uint64_t given_up_units = 0;  ///< most units in quarantine at once
  std::uint64_t losses = 0;          ///< episodes in which a device was lost
};

class episode final : public trace_sink {
 public:
  episode(std::uint64_t seed, fault_counts& met, tally& sum);
  ~episode() override;

  /// Empty when all is well, else what is not.
  std::string run();

  void on_batch(const batch_span& span) noexcept override;

 private:
  static constexpr std::uint32_t keys = 10;
  static constexpr std::chrono::milliseconds timeout{1};
  static checkpoint_key key_of(std::uint32_t n) { return {mixed(n + 1), n}; }
  static std::int64_t now_ns() { return clock::now().time_since_epoch().count(); }

  struct op {
    ticket handle;  ///< until it is over
    op_id id;
    copy_kind kind = copy_kind::store;
    std::uint32_t key = 0;
    slot_id slot = 0;
    std::int64_t accepted_ns = 0;
    std::uint32_t epoch = 0;
    bool forgotten = false;     ///< its key was, while it ran
    std::uint64_t version = 0;  ///< of the slot, once the restore is what wrote it last
    int source = -1;            ///< stores: what the slot held. Restores: what it held before
    image_name expected;        ///< restores
    std::uint64_t record = 0;   ///< restores: the store that it reads
    bool over = false;
    status code = status::pending;
  };
  /// What a slot holds: an image, or whatever came of a restore.
  struct content {
    image_name name;
    int restore = -1;
    int before = -1;  ///< what it holds if the restore was cancelled
  };
  struct kept {
    image_name name;
    std::uint64_t record = 0;
  };
  enum class known : std::uint8_t { yes, no, not_yet };

  bool open();
  void step();
  void write_slot();
  void store();
  void restore();
  void cancel();
  void forget();
  void flip();
  void again();
  void pass_time();
  void turn();
  void pump();
  void run_devices(std::uint32_t steps);
  void look();
  void end(std::size_t which, status code);
  void verify(const op& restored);
  known resolve(int what, image_name& name) const;
  void ledger();
  void finish();
  void wrong(const std::string& what);
  [[nodiscard]] bool lost() const;
  void refuse(status code);

  const std::uint64_t seed_;
  tally& sum_;
  fault_plan plan_;
  std::uint32_t ranks_;
  planned_backend devices_;
  space_shape shape_;
  std::vector<std::unique_ptr<rank_space>> spaces_;
  std::vector<std::unique_ptr<stream>> computes_;
  std::vector<std::vector<std::size_t>> spans_;  ///< batches seen, by rank and stream
  std::vector<std::unique_ptr<std::function<void()>>> work_;
  std::unique_ptr<runtime> runtime_;
  std::vector<op> ops_;
  std::vector<std::size_t> open_;  ///< ops that have not ended
  std::vector<content> contents_;
  std::vector<int> slots_;               ///< what each holds, in contents_
  std::vector<std::uint64_t> versions_;  ///< of the slots
  std::vector<std::optional<kept>> keys_;
  std::vector<std::uint32_t> stalled_;  ///< passes that a rank's copy thread misses
  std::uint32_t generations_ = 0;
  std::string wrong_;
};

}  // namespace cairn::stress
