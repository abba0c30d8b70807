// The wire form of a layout: any text is refused with a message or means the same to another
// reader; what was read is written and read again.
#include <cairn/types.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "stress/fuzz/tape.hpp"

namespace {

using namespace cairn;
using cairn::fuzz::require;
using nlohmann::json;

/// Exactly the four fields, of the right types (a field that comes twice is not seen here).
bool has_the_fields(const json& object) {
  if (!object.is_object() || object.size() != 4) return false;
  for (const char* name : {"page_unit_bytes", "slot_bytes", "image_bytes"}) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_unsigned()) return false;
  }
  const auto id = object.find("layout_id");
  return id != object.end() && id->is_string();
}

layout read(const json& object) {
  layout l;
  l.page_unit_bytes = object["page_unit_bytes"].get<std::uint64_t>();
  l.slot_bytes = object["slot_bytes"].get<std::uint64_t>();
  l.image_bytes = object["image_bytes"].get<std::uint64_t>();
  l.layout_id = object["layout_id"].get<std::string>();
  return l;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto made = layout::from_wire(text);
  if (fuzz::planted() && made && made->layout_id.size() > 5) made->layout_id.resize(5);
  const json other = json::parse(text, nullptr, false);
  if (!made) {
    require(made.code() == status::invalid, "a refusal is `invalid`");
    require(!made.why().message().empty(), "a refusal says why");
    if (!has_the_fields(other)) return 0;
    // Well-formed: then a field comes twice, or the values are impossible.
    const bool valid = read(other).validate().ok();
    const bool twice = made.why().message().find("fields") != std::string::npos;
    require(!valid || twice, "what is valid is accepted");
    return 0;
  }
  require(has_the_fields(other), "another reader finds the same fields");
  require(read(other) == *made, "another reader finds the same values");
  require(made->validate().ok(), "what was accepted is valid");
  require(made->units_per_checkpoint() >= 1, "an image has a unit");
  const auto again = layout::from_wire(made->to_wire());
  require(again.ok() && *again == *made, "what was written is read");
  require(again->fingerprint() == made->fingerprint(), "equal layouts have one fingerprint");
  return 0;
}
