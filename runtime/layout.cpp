// The layout on which all ranks and processes must agree: what is a valid one, its fingerprint
// and its JSON form. The JSON library stays inside this file.
#include <algorithm>
#include <array>
#include <cairn/types.hpp>
#include <nlohmann/json.hpp>
#include <optional>

namespace cairn {
namespace {

/// Order of the wire form and of the fingerprint.
constexpr std::array<std::string_view, 4> field_names = {"page_unit_bytes", "slot_bytes",
                                                         "image_bytes", "layout_id"};

error invalid(std::string detail) {
  return error(status::invalid, std::move(detail));
}

/// Well-formed UTF-8, as JSON text needs it: no overlong forms, no surrogates, at most 10FFFF.
bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || text.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
    }
    const auto second = static_cast<unsigned char>(length > 1 ? text[i + 1] : '\0');
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
      return false;
    i += length;
  }
  return true;
}

/// A foreign name as it may stand in a one-line message.
std::string printable(std::string_view name) {
  constexpr std::size_t longest = 40;
  std::string text;
  for (const char c : name.substr(0, longest)) text += c >= ' ' && c <= '~' ? c : '?';
  return name.size() > longest ? text + "..." : text;
}

/// "[a, b, c]", sorted.
std::string list(std::vector<std::string> names) {
  constexpr std::size_t most = 16;
  std::sort(names.begin(), names.end());
  std::string text = "[";
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text.append(i == 0 ? "" : ", ").append(printable(names[i]));
  if (names.size() > most)
    text.append(", and ").append(std::to_string(names.size() - most)).append(" more");
  return text + "]";
}

/// What stood in place of a value.
enum class shape : std::uint8_t { count, text, other };

/// Reads one flat object by events, so that repeated fields are seen and nothing nested is
/// ever built.
class wire_reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct field {
    std::string name;
    shape kind = shape::other;
    std::uint64_t number = 0;
    std::string text;
  };

  [[nodiscard]] const std::vector<field>& fields() const noexcept { return fields_; }
  [[nodiscard]] bool is_object() const noexcept { return object_; }
  [[nodiscard]] std::optional<std::size_t> broken_at() const noexcept { return broken_at_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }  // negative ones only
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (field* at = top(); at != nullptr) {
      at->kind = shape::count;
      at->number = value;
    }
    return true;
  }
  bool string(string_t& value) override {
    if (field* at = top(); at != nullptr) {
      at->kind = shape::text;
      at->text = std::move(value);
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_++ == 0) object_ = true;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) fields_.push_back({std::move(name), shape::other, 0, {}});
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    broken_at_ = position;
    return false;
  }

 private:
  /// The field whose value this is; null for values inside it.
  field* top() noexcept { return object_ && depth_ == 1 ? &fields_.back() : nullptr; }

  std::vector<field> fields_;
  std::size_t depth_ = 0;
  bool object_ = false;
  std::optional<std::size_t> broken_at_;
};

bool exactly_the_fields(const std::vector<wire_reader::field>& fields) {
  if (fields.size() != field_names.size()) return false;
  return std::all_of(field_names.begin(), field_names.end(), [&](std::string_view name) {
    return std::count_if(fields.begin(), fields.end(),
                         [&](const auto& f) { return f.name == name; }) == 1;
  });
}

std::optional<error> size_error(std::string_view name, std::uint64_t value) {
  if (value != 0) return std::nullopt;
  return invalid(std::string(name) + " must be positive, got 0");
}

}  // namespace

result<void> layout::validate() const {
  if (auto bad = size_error("page_unit_bytes", page_unit_bytes)) return *bad;
  if (auto bad = size_error("slot_bytes", slot_bytes)) return *bad;
  if (auto bad = size_error("image_bytes", image_bytes)) return *bad;
  if (image_bytes > slot_bytes)
    return invalid("image_bytes " + std::to_string(image_bytes) + " exceeds slot_bytes " +
                   std::to_string(slot_bytes));
  if ((image_bytes - 1) / page_unit_bytes >= max_index)
    return invalid("image_bytes " + std::to_string(image_bytes) + " needs more than " +
                   std::to_string(max_index) + " units of page_unit_bytes " +
                   std::to_string(page_unit_bytes));
  if (layout_id.empty()) return invalid("layout_id must not be empty");
  if (!is_utf8(layout_id)) return invalid("layout_id must be UTF-8 text");
  return {};
}

std::uint32_t layout::units_per_checkpoint() const noexcept {
  return static_cast<std::uint32_t>((image_bytes - 1) / page_unit_bytes + 1);
}

// FNV-1a (64 bits) over the three sizes and the length of the id, each as 8 bytes, least
// significant first, then the id's bytes; then the 64-bit finaliser of MurmurHash3, so that
// every input bit reaches every output bit.
std::uint64_t layout::fingerprint() const noexcept {
  std::uint64_t hash = 0xCBF29CE484222325U;
  const auto eat = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001B3U; };
  for (const std::uint64_t number :
       {page_unit_bytes, slot_bytes, image_bytes, static_cast<std::uint64_t>(layout_id.size())})
    for (unsigned shift = 0; shift < 64; shift += 8) eat((number >> shift) & 0xFF);
  for (const char c : layout_id) eat(static_cast<unsigned char>(c));
  hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDU;
  hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53U;
  return hash ^ (hash >> 33);
}

std::string layout::to_wire() const {
  nlohmann::ordered_json wire;
  wire["page_unit_bytes"] = page_unit_bytes;
  wire["slot_bytes"] = slot_bytes;
  wire["image_bytes"] = image_bytes;
  wire["layout_id"] = layout_id;
  // `replace`: an id that validate would refuse must not throw here.
  return wire.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

result<layout> layout::from_wire(std::string_view text) {
  wire_reader reader;
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  if (!parsed)
    return invalid("layout is not JSON text: broken at byte " +
                   std::to_string(reader.broken_at().value_or(0)));
  if (!reader.is_object()) return invalid("layout must be a JSON object");
  if (!exactly_the_fields(reader.fields())) {
    std::vector<std::string> got;
    for (const auto& f : reader.fields()) got.push_back(f.name);
    return invalid("layout fields: expected " + list({field_names.begin(), field_names.end()}) +
                   ", got " + list(std::move(got)));
  }
  layout made;
  for (const auto& f : reader.fields()) {
    const bool is_id = f.name == "layout_id";
    if (f.kind != (is_id ? shape::text : shape::count))
      return invalid(f.name +
                     (is_id ? " must be a string" : " must be a positive integer below 2^64"));
    if (is_id) made.layout_id = f.text;
    if (f.name == "page_unit_bytes") made.page_unit_bytes = f.number;
    if (f.name == "slot_bytes") made.slot_bytes = f.number;
    if (f.name == "image_bytes") made.image_bytes = f.number;
  }
  if (auto valid = made.validate(); !valid) return valid.why();
  return made;
}

}  // namespace cairn
