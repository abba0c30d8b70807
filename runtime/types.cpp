// The names of statuses, the text of errors, and ops packed into flat buffers. Knows the
// values of types.hpp only: nothing of who makes an op or what it means.
#include <cairn/types.hpp>
#include <cassert>
#include <cstring>

namespace cairn {

const char* to_string(status code) noexcept {
  switch (code) {
    case status::ok:
      return "ok";
    case status::pending:
      return "pending";
    case status::not_found:
      return "not_found";
    case status::duplicate:
      return "duplicate";
    case status::no_room:
      return "no_room";
    case status::passed_over:
      return "passed_over";
    case status::queue_full:
      return "queue_full";
    case status::limit:
      return "limit";
    case status::busy:
      return "busy";
    case status::closed:
      return "closed";
    case status::cancelled:
      return "cancelled";
    case status::timed_out:
      return "timed_out";
    case status::failed:
      return "failed";
    case status::device_lost:
      return "device_lost";
    case status::corrupt:
      return "corrupt";
    case status::poisoned:
      return "poisoned";
    case status::stale:
      return "stale";
    case status::invalid:
      return "invalid";
    case status::unsupported:
      return "unsupported";
  }
  return "unknown";  // a value from another process may be none of these
}

std::string error::message() const {
  std::string text = to_string(code_);
  const std::string_view what = detail_.empty() ? std::string_view(what_) : detail_;
  if (!what.empty()) text.append(": ").append(what);
  if (numbered_) {
    text.append(" (").append(std::to_string(subject_)).append(": expected ");
    text.append(std::to_string(expected_))
        .append(", got ")
        .append(std::to_string(got_))
        .append(")");
  }
  return text;
}

// ---------------------------------------------------------------------------------------
// op_buffer: [header][unit ids][0 or 4 bytes of padding], repeated. Both parts keep the 8-byte
// alignment that the vector's memory starts with, so views into it are aligned.

namespace {

constexpr std::size_t pack_alignment = 8;
static_assert(sizeof(copy_op_header) % pack_alignment == 0);
static_assert(sizeof(copy_op_header) == 120, "the packed form is shared between processes");

/// Bytes that `count` ids take, padding included. 64 bits: no count can overflow it.
constexpr std::uint64_t packed_ids_bytes(std::uint32_t count) noexcept {
  const std::uint64_t raw = std::uint64_t{count} * sizeof(unit_id);
  return (raw + pack_alignment - 1) / pack_alignment * pack_alignment;
}

copy_op_header header_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
  copy_op_header header;
  std::memcpy(&header, bytes.data() + at, sizeof header);
  return header;
}

}  // namespace

void op_buffer::append(const copy_op& op) {
  assert(op.header.unit_count == op.units.size());
  copy_op_header header = op.header;
  header.unit_count = static_cast<std::uint32_t>(op.units.size());  // what is packed is consistent
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof header + packed_ids_bytes(header.unit_count));
  std::memcpy(bytes_.data() + at, &header, sizeof header);
  if (!op.units.empty())
    std::memcpy(bytes_.data() + at + sizeof header, op.units.data(), op.units.size_bytes());
  ++count_;
}

result<op_buffer> op_buffer::from_bytes(std::span<const std::byte> bytes) {
  op_buffer buffer;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t left = bytes.size() - at;
    if (left < sizeof(copy_op_header))
      return error(status::invalid, "packed op is cut off in its header", buffer.count_,
                   sizeof(copy_op_header), left);
    const copy_op_header header = header_at(bytes, at);
    if (header.kind != copy_kind::store && header.kind != copy_kind::restore)
      return error(status::invalid, "packed op has an unknown kind", buffer.count_, 1,
                   static_cast<std::uint64_t>(header.kind));
    const std::uint64_t ids = packed_ids_bytes(header.unit_count);
    if (ids > left - sizeof header)
      return error(status::invalid, "packed op names more unit ids than follow it", buffer.count_,
                   ids, left - sizeof header);
    at += sizeof header + static_cast<std::size_t>(ids);
    ++buffer.count_;
  }
  buffer.bytes_.assign(bytes.begin(), bytes.end());
  return buffer;
}

std::vector<copy_op> op_buffer::ops() const {
  std::vector<copy_op> all;
  all.reserve(count_);
  for (std::size_t at = 0; at < bytes_.size();) {
    const copy_op_header header = header_at(bytes_, at);
    at += sizeof header;
    const auto* ids = reinterpret_cast<const unit_id*>(bytes_.data() + at);
    all.push_back({header, {ids, header.unit_count}});
    at += static_cast<std::size_t>(packed_ids_bytes(header.unit_count));
  }
  return all;
}

}  // namespace cairn
