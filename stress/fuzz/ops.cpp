// Ops that a copier gets from elsewhere: arbitrary headers and unit lists, packed and not, between
// passes of the copy thread, steps of the device, marks, skips and a close at any moment. An
// independent reading of the header decides what must be accepted; each accepted op is reported
// once; no byte outside the pieces is written.
#include <array>
#include <cairn/copier.hpp>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "stress/fuzz/tape.hpp"
#include "stress/world/rank_space.hpp"

namespace {

using namespace cairn;
using cairn::fuzz::require;
using cairn::fuzz::tape;

constexpr std::uint32_t max_ops = 16;
constexpr std::uint32_t streams = 2;

class bench {
 public:
  explicit bench(tape& from)
      : from_(from),
        shape_(make_shape()),
        layout_(shape_.shape()),
        space_(shape_, 0),
        backend_(std::move(make_host_backend({1, 1, true, 64})).value()) {
    for (auto& each : computes_)
      each = std::move(backend_->at(0).create_stream(stream_priority::normal)).value();
    copier_options o;
    o.shape = layout_;
    o.memory = space_.memory();
    o.max_ops = max_ops;
    o.store_depth = 4;
    o.restore_depth = 4;
    o.max_batch = 3;
    o.compute_streams = streams;
    o.threaded = false;
    o.on_take = [](void* self, op_id op) { return static_cast<bench*>(self)->take(op); };
    o.on_completion = [](void* self, const completion& what) {
      static_cast<bench*>(self)->completed(what);
    };
    o.context = this;
    copier_ = std::move(copier::open(o, backend_->at(0))).value();
    for (std::uint32_t c = 0; c < streams; ++c) (void)copier_->attach(c, *computes_[c]);
  }

  void run() {
    for (int i = 0; i < 200 && !from_.empty(); ++i) act();
    finish();
  }

 private:
  static stress::space_shape make_shape() {
    stress::space_shape s;
    s.region_bytes = {33, 7, 24};
    s.segment_bytes = {41, 3, 100};
    s.units = 12;
    s.slots = 4;
    return s;
  }

  void act() {
    switch (from_.below(12)) {
      case 0:
      case 1:
      case 2:
        return submit();
      case 3:
        return enqueue();
      case 4:
        return unpack();
      case 5:
      case 6:
        (void)copier_->pump();
        return;
      case 7:
      case 8:
        (void)backend_->step();
        return;
      case 9:
        return mark();
      case 10:
        return order();
      default:
        copier_->skip(from_.below(6), from_.below(5));
    }
  }

  // ---- ops ----
  struct made_op {
    copy_op_header header;
    std::vector<unit_id> units;
    [[nodiscard]] copy_op view() const { return {header, units}; }
  };

  made_op any_op() {
    made_op op;
    op.header.op = {from_.below(max_ops), 1};
    op.header.layout_fingerprint = layout_.fingerprint();
    op.header.image_bytes = layout_.image_bytes;
    op.header.slot = from_.below(4);
    op.header.unit_count = layout_.units_per_checkpoint();
    op.header.kind = from_.one_in(2) ? copy_kind::restore : copy_kind::store;
    const std::uint32_t first = from_.below(12);
    for (std::uint32_t i = 0; i < op.header.unit_count; ++i) op.units.push_back((first + i) % 12);
    for (std::uint32_t twists = from_.below(4); twists > 0; --twists) twist(op);
    return op;
  }
  void twist(made_op& op) {
    switch (from_.below(11)) {
      case 0:
        op.header.op = from_.take<op_id>();
        return;
      case 1:
        op.header.layout_fingerprint = from_.take<std::uint64_t>();
        return;
      case 2:
        op.header.image_bytes = from_.take<std::uint64_t>();
        return;
      case 3:
        op.header.slot_sequence = from_.below(4);
        return;
      case 4:
        op.header.fences.steps[from_.below(max_compute_streams)] = from_.below(6);
        return;
      case 5:
        op.header.slot = from_.take<slot_id>();
        return;
      case 6:
        op.header.unit_count = from_.below(8);
        return;
      case 7:
        op.units.resize(from_.below(8), from_.below(14));
        return;
      case 8:
        if (!op.units.empty()) op.units[from_.below(3) % op.units.size()] = from_.below(14);
        return;
      case 9:
        op.header.kind = static_cast<copy_kind>(from_.take<std::uint8_t>());
        return;
      default:
        op.header.epoch = from_.take<std::uint32_t>();
    }
  }

  /// As types.hpp and copier.hpp say it.
  [[nodiscard]] bool acceptable(const copy_op& op) const {
    const copy_op_header& h = op.header;
    if (h.op.index >= max_ops || h.slot >= shape_.slots) return false;
    if (h.kind != copy_kind::store && h.kind != copy_kind::restore) return false;
    if (h.layout_fingerprint != layout_.fingerprint() || h.image_bytes != layout_.image_bytes)
      return false;
    if (h.unit_count != layout_.units_per_checkpoint() || op.units.size() != h.unit_count)
      return false;
    for (const unit_id u : op.units)
      if (u >= shape_.units) return false;
    for (std::uint32_t c = 0; c < max_compute_streams; ++c)
      if (h.fences.steps[c] > (c < streams ? marked_[c] : fuzz::planted() ? 9U : 0U)) return false;
    return true;
  }
  static bool distinct(const copy_op& op) {
    return std::set<unit_id>(op.units.begin(), op.units.end()).size() == op.units.size();
  }
  /// An op of this index is on its way: a caller must not send another.
  [[nodiscard]] bool in_flight(const op_id& op) const {
    for (const auto& [key, seen] : ops_)
      if (key.first == op.index && (seen.over < seen.accepted || seen.owed)) return true;
    return false;
  }
  struct fate {
    std::uint32_t accepted = 0;
    std::uint32_t over = 0;
    bool good = false;  ///< might end well
    bool owed = false;  ///< its copy was given up, and a proof must come
  };
  fate& fate_of(op_id op) { return ops_[{op.index, op.generation}]; }
  void accepted(const copy_op& op, bool good) {
    fate& f = fate_of(op.header.op);
    ++f.accepted;
    f.good = good;
  }

  void submit() {
    std::vector<made_op> made;
    std::vector<copy_op> views;
    for (std::uint32_t n = 1 + from_.below(3); n > 0; --n) made.push_back(any_op());
    for (const made_op& each : made) views.push_back(each.view());
    offer(views);
  }
  void offer(const std::vector<copy_op>& views) {
    std::set<std::uint32_t> indices;
    bool all = true;
    for (const copy_op& each : views) {
      const bool fine = acceptable(each);
      const auto answer = copier_->check(each);
      require(answer.ok() == fine, "check refuses what it must, and nothing else");
      require(answer.ok() || answer.code() == status::invalid, "then it says invalid");
      all = all && fine;
      if (in_flight(each.header.op) || !indices.insert(each.header.op.index).second) return;
    }
    const auto answer = copier_->submit(views);
    require(all || answer.code() == status::invalid, "submit refuses all or none");
    require(!all || answer.ok() || answer.code() == status::queue_full ||
                answer.code() == status::closed,
            "what is valid is taken if there is room");
    if (!answer) return;
    for (const copy_op& each : views) accepted(each, distinct(each));
  }
  void enqueue() {
    made_op op = any_op();
    op.header.op.index %= max_ops;
    op.header.slot %= shape_.slots;
    if (op.header.kind != copy_kind::store) op.header.kind = copy_kind::restore;
    if (in_flight(op.header.op) || !copier_->try_room(op.header.kind, 1)) return;
    if (from_.one_in(8)) return copier_->give_room(op.header.kind, 1);
    // Its units alone decide: the rest is the caller's to check, and a fence may still be marked.
    bool good = op.units.size() == layout_.units_per_checkpoint() && distinct(op.view());
    for (const unit_id u : op.units) good = good && u < shape_.units;
    accepted(op.view(), good);
    copier_->enqueue(op.view());
  }
  void unpack() {
    std::vector<std::byte> bytes;
    if (from_.one_in(2)) {
      op_buffer packed;
      for (std::uint32_t n = from_.below(3); n > 0; --n) {
        made_op op = any_op();
        op.header.unit_count = static_cast<std::uint32_t>(op.units.size());
        packed.append(op.view());
      }
      bytes.assign(packed.bytes().begin(), packed.bytes().end());
      if (!bytes.empty() && from_.one_in(2))
        bytes[from_.below(600) % bytes.size()] = from_.take<std::byte>();
      if (from_.one_in(4)) bytes.resize(from_.below(600));
    } else {
      for (std::uint32_t n = from_.below(256); n > 0; --n) bytes.push_back(from_.take<std::byte>());
    }
    const auto buffer = op_buffer::from_bytes(bytes);
    if (!buffer) return require(buffer.code() == status::invalid, "a broken buffer is invalid");
    const std::vector<copy_op> ops = buffer->ops();
    require(ops.size() == buffer->size(), "a buffer knows how many ops it holds");
    op_buffer again;
    for (const copy_op& each : ops) again.append(each);
    require(again.size() == ops.size() && again.bytes().size() == bytes.size(),
            "packing is the inverse of unpacking");
    if (!ops.empty() && ops.size() <= 4) offer(ops);
  }

  // ---- the rest of an engine ----
  void mark() {
    fence_token token{from_.below(3), from_.below(6)};
    const status code = copier_->mark(token);
    if (code == status::ok && token.stream < streams)
      marked_[token.stream] = std::max(marked_[token.stream], token.step);
  }
  void order() {
    const op_id op{from_.below(max_ops + 1), from_.below(3)};
    switch (from_.below(6)) {
      case 0:
        (void)copier_->order_after(from_.below(3), {&op, 1}, clock::now());
        return;
      case 1:
        (void)copier_->order_after_slot(from_.below(3), from_.below(5), clock::now());
        return;
      case 2:
        (void)copier_->drain(clock::now());
        return;
      case 3:
        copier_->drop_cancelled();
        return;
      case 4:
        if (quiet_ == 0 && copier_->quiesce(clock::now()) == status::ok) ++quiet_;
        return;
      default:
        if (quiet_ == 0) return;
        --quiet_;
        copier_->resume();
    }
  }

  bool take(op_id op) {
    if (!from_.one_in(16)) return true;
    over(op);
    return false;
  }
  void completed(const completion& what) {
    fate& f = fate_of(what.op);
    require(what.rank == 0, "a completion names its rank");
    if (what.proven) {  // a second word on a copy that was given up
      require(std::exchange(f.owed, false), "a proof is given once, and only when it is owed");
      return;
    }
    f.owed = what.unproven;
    require(!what.unproven || what.code != status::ok, "what was given up has not ended well");
    if (what.proven) return;  // not the end, but the news that the copy is over
    require(f.good || what.code != status::ok, "what is not valid does not end well");
    over(what.op);
  }
  void over(op_id op) {
    fate& f = fate_of(op);
    ++f.over;
    require(f.over <= f.accepted, "an op is reported once");
  }

  void finish() {
    if (from_.one_in(2))
      for (bool any = true; any;) {
        any = copier_->pump();
        while (backend_->step()) any = true;
      }
    (void)copier_->close(clock::now());
    while (backend_->step()) {
    }
    while (copier_->pump()) {
    }
    for (const auto& [op, f] : ops_)
      require(f.over == f.accepted && !f.owed, "every accepted op is reported, also at the end");
    require(copier_->outstanding() == 0, "nothing is left");
    copier_.reset();
    while (backend_->step()) {
    }
    require(space_.broken_guards() == 0, "no byte between the pieces was written");
  }

  tape& from_;
  const stress::space_shape shape_;
  const layout layout_;
  stress::rank_space space_;
  std::unique_ptr<backend> backend_;
  std::array<std::unique_ptr<stream>, streams> computes_;
  std::unique_ptr<copier> copier_;
  std::array<std::uint64_t, streams> marked_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, fate> ops_;
  std::uint32_t quiet_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  tape from(data, size);
  bench(from).run();
  return 0;
}
