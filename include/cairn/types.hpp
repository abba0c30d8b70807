// Plain values that every part of cairn shares: keys, ids, layouts, copy operations,
// completions, statuses. Nothing here owns memory on a device, takes a lock or knows how a
// checkpoint is kept; everything here may cross a process boundary unless it says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cairn {

using unit_id = std::uint32_t;
using slot_id = std::uint32_t;
using rank_id = std::uint32_t;

inline constexpr unit_id no_unit = ~unit_id{0};
inline constexpr slot_id no_slot = ~slot_id{0};

/// Ranks of one group: one bit each in a completion mask.
inline constexpr std::uint32_t max_ranks = 32;
/// Compute streams that an engine may register per rank (fence tokens name them by index).
inline constexpr std::uint32_t max_compute_streams = 8;
/// Records and units are addressed by 24-bit indices inside lock-free words.
inline constexpr std::uint32_t max_index = (1U << 24) - 2;

using clock = std::chrono::steady_clock;
using deadline = clock::time_point;

// ---------------------------------------------------------------------------------------
// Statuses and results

enum class status : std::uint8_t {
  ok,
  pending,      ///< accepted, not ended yet
  not_found,    ///< no such key, or it is not READY
  duplicate,    ///< the key is READY or COPYING already
  no_room,      ///< not enough units, even by evicting everything evictable
  passed_over,  ///< units could be had, but the eviction policy named no victim
  queue_full,   ///< no room in a rank's submission queue
  limit,        ///< a limit fixed at opening is reached (records, ops in flight, pins)
  busy,         ///< the object is in a state that forbids this for now
  closed,       ///< admissions have stopped
  cancelled,    ///< ended before any device took it
  timed_out,    ///< the deadline passed
  failed,       ///< a copy or launch failed
  device_lost,  ///< the device is gone
  corrupt,      ///< the image's checksum does not match
  poisoned,     ///< a restore into the slot has failed: nobody knows what it holds
  stale,        ///< the handle's generation or the epoch has passed
  invalid,      ///< a caller's mistake; the message says what was expected and what came
  unsupported,  ///< this backend or build cannot do it
};

/// The enumerator's name, e.g. "no_room". Never null.
[[nodiscard]] const char* to_string(status code) noexcept;

/// Why a call was refused: a status, what was wrong, and the numbers that show it.
/// Cheap to make on hot paths (no allocation unless `detail` is used).
class error {
 public:
  error(status code, const char* what) noexcept : code_(code), what_(what) {}
  /// `subject` names the id concerned; `expected` and `got` are what the check compared.
  error(status code, const char* what, std::uint64_t subject, std::uint64_t expected,
        std::uint64_t got) noexcept
      : code_(code),
        numbered_(true),
        what_(what),
        subject_(subject),
        expected_(expected),
        got_(got) {}
  error(status code, std::string detail) : code_(code), detail_(std::move(detail)) {}

  [[nodiscard]] status code() const noexcept { return code_; }
  /// One line: "invalid: unit is not in this place of the reservation (12: expected 3, got 7)".
  [[nodiscard]] std::string message() const;

 private:
  status code_;
  bool numbered_ = false;
  const char* what_ = "";
  std::uint64_t subject_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t got_ = 0;
  std::string detail_;
};

/// A value or an error. `result<void>` carries success or an error.
template <class T>
class [[nodiscard]] result {
 public:
  using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  result() requires std::is_void_v<T> : state_(std::in_place_index<0>) {}
  result(value_type value) requires(!std::is_void_v<T>)
      : state_(std::in_place_index<0>, std::move(value)) {}
  /// A value as value_type() makes it, to be filled where it is.
  explicit result(std::in_place_t) : state_(std::in_place_index<0>) {}
  result(error why) : state_(std::in_place_index<1>, std::move(why)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] status code() const noexcept {
    return ok() ? status::ok : std::get<1>(state_).code();
  }
  /// Precondition: ok().
  [[nodiscard]] value_type& value() & { return std::get<0>(state_); }
  [[nodiscard]] const value_type& value() const& { return std::get<0>(state_); }
  [[nodiscard]] value_type&& value() && { return std::get<0>(std::move(state_)); }
  value_type* operator->() { return &std::get<0>(state_); }
  const value_type* operator->() const { return &std::get<0>(state_); }
  value_type& operator*() & { return std::get<0>(state_); }
  const value_type& operator*() const& { return std::get<0>(state_); }
  value_type&& operator*() && { return std::get<0>(std::move(state_)); }
  /// Precondition: !ok().
  [[nodiscard]] const error& why() const { return std::get<1>(state_); }

 private:
  std::variant<value_type, error> state_;
};

// ---------------------------------------------------------------------------------------
// Keys, handles, fences

/// What a checkpoint or a KV block stands for. All 128 bits identify: they must cover the
/// tokens, adapter, salt, weights version and media that shape the state. Use a truncated
/// SHA-256 or two independent 64-bit hashes; prefix every key domain with a tag of its own so
/// that two domains cannot spell the same bytes.
struct checkpoint_key {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;
  friend bool operator==(const checkpoint_key&, const checkpoint_key&) = default;
};

/// Names one tenancy of one record; never acts on a later tenant of the same record.
struct record_handle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const record_handle&, const record_handle&) = default;
};

/// Names one operation in flight; `index` is below the catalog's `max_ops`.
struct op_id {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const op_id&, const op_id&) = default;
};

/// A position on compute stream `stream`, the same on every rank. Step 0 means "no fence".
/// Each rank resolves it to its own event; a later step of one stream covers an earlier one.
/// `runtime::mark` makes one; without a runtime the engine numbers the steps, from 1, and names
/// each to every copier (`copier::mark`).
struct fence_token {
  std::uint32_t stream = 0;
  std::uint64_t step = 0;
  friend bool operator==(const fence_token&, const fence_token&) = default;
};

/// For each compute stream the latest step that must have passed (0: none).
struct fence_set {
  std::uint64_t steps[max_compute_streams] = {};
  void merge(fence_token token) noexcept {
    if (token.stream < max_compute_streams && token.step > steps[token.stream])
      steps[token.stream] = token.step;
  }
};

/// Why an engine stored a checkpoint: advice for the eviction policy, nothing else.
enum class placement_hint : std::uint8_t { none, anchor, rung, demand };

// ---------------------------------------------------------------------------------------
// Layout

/// The sizes on which all ranks and processes must agree. Units: bytes.
struct layout {
  std::uint64_t page_unit_bytes = 0;  ///< bytes of one unit, all regions together
  std::uint64_t slot_bytes = 0;       ///< bytes of one slot
  std::uint64_t image_bytes = 0;      ///< bytes of a checkpoint image, <= slot_bytes
  std::string layout_id;              ///< names the arrangement of state inside the image

  /// Refuses a zero size, an image larger than a slot, an empty id, more units per
  /// checkpoint than an index can hold; the message names the field.
  [[nodiscard]] result<void> validate() const;
  /// ceil(image_bytes / page_unit_bytes). Precondition: validate().
  [[nodiscard]] std::uint32_t units_per_checkpoint() const noexcept;
  /// 64 bits over all four fields; every op carries it. Equal on every machine.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;
  /// JSON text with exactly the four fields, in the order above.
  [[nodiscard]] std::string to_wire() const;
  /// Inverse of to_wire. A missing, extra or repeated field, a wrong type, a value that is
  /// not valid is refused; the message lists the expected fields and those that came.
  static result<layout> from_wire(std::string_view text);

  friend bool operator==(const layout&, const layout&) = default;
};

/// A strided array of equal pieces: piece `i` starts at `base + i * stride` and holds
/// `bytes`. Strides are signed and in bytes. Not owned.
struct strided {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;
};

/// Where one rank keeps its units (regions) and slots (segments). The order of the segments
/// is the order of the image. Pointers belong to the engine and to one address space. No byte may
/// belong to two of them: units and slots lie apart, and so do the pieces of each; else opening a
/// copier or a runtime is refused.
struct rank_memory {
  std::vector<strided> regions;   ///< one unit = these, in order; bytes sum to page_unit_bytes
  std::uint32_t units = 0;        ///< unit ids are below this
  std::vector<strided> segments;  ///< one image = these, in order; bytes sum to image_bytes
  std::uint32_t slots = 0;        ///< slot ids are below this
};

// ---------------------------------------------------------------------------------------
// Operations and completions

enum class copy_kind : std::uint8_t { store, restore };

/// The fixed part of a copy operation; trivially copyable, followed by its unit ids when
/// packed. `slot_sequence` orders ops on one slot (0: not ordered by the submitter).
struct copy_op_header {
  op_id op;
  std::uint64_t layout_fingerprint = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t begin_stamp = 0;    ///< order in which ops began, from 1
  std::uint64_t slot_sequence = 0;  ///< place among the ops on this slot, from 1
  fence_set fences;                 ///< compute that must have passed before the copy starts
  slot_id slot = no_slot;
  std::uint32_t unit_count = 0;
  std::uint32_t epoch = 0;
  copy_kind kind = copy_kind::store;
  std::uint8_t reserved[3] = {};
};
static_assert(std::is_trivially_copyable_v<copy_op_header>);

/// One operation: a header and a view of its unit ids. From the catalog, the view stays
/// valid until the op has ended (a cancel ends it too: take it before packing it); from an
/// op_buffer, as long as the buffer.
struct copy_op {
  copy_op_header header;
  std::span<const unit_id> units;
};

/// What a rank says about one op when it has ended on that rank. A copy that was given up may still
/// touch memory: it is `unproven`, and when it is over the rank says so in a second completion of
/// the op, which is `proven` and must not overtake the first.
struct completion {
  op_id op;
  rank_id rank = 0;
  std::uint32_t epoch = 0;
  status code = status::ok;  ///< in a proof no success either
  bool unproven = false;
  bool proven = false;
  std::uint8_t reserved[5] = {};
};
static_assert(std::is_trivially_copyable_v<completion>);

/// Ops packed into one flat buffer: header, unit ids, padded to 8 bytes, one after another.
/// Not thread-safe.
class op_buffer {
 public:
  void append(const copy_op& op);
  void clear() noexcept {
    bytes_.clear();
    count_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Takes over bytes that came from elsewhere; refuses a truncated or oversized op.
  static result<op_buffer> from_bytes(std::span<const std::byte> bytes);
  /// All ops, in the order of append; views into this buffer.
  [[nodiscard]] std::vector<copy_op> ops() const;

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_ = 0;
};

}  // namespace cairn
