// Statuses, errors, layouts and packed ops.
#include <gtest/gtest.h>

#include <cairn/types.hpp>
#include <cstring>
#include <limits>
#include <set>

namespace cairn {
namespace {

layout tiny() {
  return {10, 40, 25, "tiny"};
}

std::string refusal(std::string_view wire) {
  const auto got = layout::from_wire(wire);
  EXPECT_FALSE(got.ok()) << wire;
  if (got.ok()) return "";
  EXPECT_EQ(got.code(), status::invalid);
  EXPECT_EQ(got.why().message().find('\n'), std::string::npos);
  return got.why().message();
}

TEST(Status, EveryNameIsDistinctAndUnknownValuesHaveOne) {
  std::set<std::string> names;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(status::unsupported); ++i)
    names.insert(to_string(static_cast<status>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(status::unsupported) + 1);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_STREQ(to_string(static_cast<status>(200)), "unknown");
}

TEST(Error, MessageNamesCodeSubjectExpectedAndGot) {
  EXPECT_EQ(error(status::no_room, "nothing to evict").message(), "no_room: nothing to evict");
  EXPECT_EQ(error(status::invalid, "unit is misplaced", 12, 3, 7).message(),
            "invalid: unit is misplaced (12: expected 3, got 7)");
  EXPECT_EQ(error(status::invalid, std::string("x is 4")).message(), "invalid: x is 4");
}

TEST(Result, CarriesAValueOrAnError) {
  result<int> good = 5;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, 5);
  EXPECT_EQ(good.code(), status::ok);
  result<int> bad = error(status::busy, "later");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.code(), status::busy);
  EXPECT_TRUE(result<void>().ok());
}

TEST(Layout, RefusalsNameTheField) {
  EXPECT_TRUE(tiny().validate().ok());
  layout l = tiny();
  l.page_unit_bytes = 0;
  EXPECT_NE(l.validate().why().message().find("page_unit_bytes"), std::string::npos);
  l = tiny();
  l.slot_bytes = 0;
  EXPECT_NE(l.validate().why().message().find("slot_bytes"), std::string::npos);
  l = tiny();
  l.image_bytes = 0;
  EXPECT_NE(l.validate().why().message().find("image_bytes"), std::string::npos);
  l = tiny();
  l.layout_id.clear();
  EXPECT_NE(l.validate().why().message().find("layout_id"), std::string::npos);
  l.layout_id = "\xC0\x80";
  EXPECT_NE(l.validate().why().message().find("layout_id"), std::string::npos);
  l = tiny();
  l.image_bytes = 41;
  EXPECT_NE(l.validate().why().message().find("image_bytes 41 exceeds slot_bytes 40"),
            std::string::npos);
  EXPECT_EQ(l.validate().code(), status::invalid);
}

TEST(Layout, CountsUnitsRoundingUpWithoutOverflow) {
  EXPECT_EQ(tiny().units_per_checkpoint(), 3U);
  layout l = tiny();
  l.image_bytes = 30;
  EXPECT_EQ(l.units_per_checkpoint(), 3U);
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((layout{huge, huge, huge, "x"}).units_per_checkpoint(), 1U);
  EXPECT_EQ((layout{huge - 1, huge, huge, "x"}).units_per_checkpoint(), 2U);
  EXPECT_FALSE((layout{1, huge, huge, "x"}).validate().ok());
  EXPECT_TRUE((layout{1, huge, max_index, "x"}).validate().ok());
  EXPECT_FALSE((layout{1, huge, std::uint64_t{max_index} + 1, "x"}).validate().ok());
}

TEST(Layout, FingerprintCoversEveryFieldAndIsFixed) {
  const layout l = tiny();
  EXPECT_EQ(l.fingerprint(), tiny().fingerprint());
  std::set<std::uint64_t> seen = {l.fingerprint()};
  seen.insert(layout{11, 40, 25, "tiny"}.fingerprint());
  seen.insert(layout{10, 41, 25, "tiny"}.fingerprint());
  seen.insert(layout{10, 40, 26, "tiny"}.fingerprint());
  seen.insert(layout{10, 40, 25, "tinY"}.fingerprint());
  seen.insert(layout{25, 40, 10, "tiny"}.fingerprint());
  EXPECT_EQ(seen.size(), 6U);
  // Computed by an independent implementation: a change of the function breaks peers.
  EXPECT_EQ(l.fingerprint(), 0x4B6566D7EB113AACU);
}

TEST(Layout, WireFormHasTheFourFieldsInOrderAndReturns) {
  EXPECT_EQ(tiny().to_wire(),
            R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25,"layout_id":"tiny"})");
  const layout odd = {std::numeric_limits<std::uint64_t>::max(),
                      std::numeric_limits<std::uint64_t>::max(), 1,
                      std::string("a\"\\\n\0z \xC3\xA9", 9)};
  const auto back = layout::from_wire(odd.to_wire());
  ASSERT_TRUE(back.ok()) << back.why().message();
  EXPECT_EQ(*back, odd);
  const auto shuffled = layout::from_wire(
      R"( { "layout_id" : "tiny", "image_bytes":25, "slot_bytes":40, "page_unit_bytes":10 } )");
  ASSERT_TRUE(shuffled.ok());
  EXPECT_EQ(*shuffled, tiny());
}

TEST(Layout, WireWithMissingExtraOrRepeatedFieldsListsExpectedAndGot) {
  const std::string expected =
      "expected [image_bytes, layout_id, page_unit_bytes, slot_bytes], got ";
  EXPECT_NE(refusal(R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25})")
                .find(expected + "[image_bytes, page_unit_bytes, slot_bytes]"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25,"layout_id":"t",
                        "more":{"a":[1,{"slot_bytes":2}]}})")
                .find(expected + "[image_bytes, layout_id, more, page_unit_bytes, slot_bytes]"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25,"layout_id":"t",
                        "slot_bytes":40})")
                .find("[image_bytes, layout_id, page_unit_bytes, slot_bytes, slot_bytes]"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25,"image_bytes":25})")
                .find("expected"),
            std::string::npos);
  EXPECT_NE(refusal("{}").find("got []"), std::string::npos);
  EXPECT_NE(refusal("{\"a\\nb\":1}").find("[a?b]"), std::string::npos);
}

TEST(Layout, WireWithWrongTypesOrValuesNamesTheField) {
  const auto with = [](const char* value) {
    return std::string(R"({"page_unit_bytes":10,"slot_bytes":)") + value +
           R"(,"image_bytes":25,"layout_id":"tiny"})";
  };
  EXPECT_NE(refusal(with("0")).find("slot_bytes must be positive"), std::string::npos);
  for (const char* bad : {"-1", "40.0", "4e1", "\"40\"", "true", "null", "[]", "{}", "[40]",
                          "{\"slot_bytes\":40}", "18446744073709551616", "-0"})
    EXPECT_NE(refusal(with(bad)).find("slot_bytes must be a positive integer"), std::string::npos)
        << bad;
  EXPECT_NE(refusal(with("24")).find("image_bytes 25 exceeds slot_bytes 24"), std::string::npos);
  const auto named = [](const char* value) {
    return std::string(R"({"page_unit_bytes":10,"slot_bytes":40,"image_bytes":25,"layout_id":)") +
           value + "}";
  };
  EXPECT_NE(refusal(named("\"\"")).find("layout_id must not be empty"), std::string::npos);
  for (const char* bad : {"7", "null", "[\"tiny\"]", "{}"})
    EXPECT_NE(refusal(named(bad)).find("layout_id must be a string"), std::string::npos) << bad;
}

TEST(Layout, WireThatIsNotAnObjectOrNotJsonIsRefused) {
  for (const char* bad : {"null", "7", "\"text\"", "[]", "[{}]"})
    EXPECT_NE(refusal(bad).find("JSON object"), std::string::npos) << bad;
  for (const char* bad :
       {"", " ", "null", "7", "\"text\"", "[]", "[{}]", "{", "}", "{\"a\"}", "{\"a\":1,}",
        "nonsense", "{} {}", "\xff\xfe", "{\"a\":\"\xff\"}", "{\"a\":1e999999}"})
    refusal(bad);
  refusal(std::string(200000, '['));
  refusal(std::string("{\"a\":") + std::string(200000, '[') + std::string(200000, ']') + "}");
  refusal(std::string_view("\0\0\0", 3));
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  many.back() = '}';
  EXPECT_NE(refusal(many).find("and 984 more"), std::string::npos);
  // Every truncation of a good text is refused.
  const std::string good = tiny().to_wire();
  for (std::size_t n = 0; n < good.size(); ++n) refusal(std::string_view(good).substr(0, n));
}

copy_op make_op(std::uint32_t index, std::span<const unit_id> units) {
  copy_op op;
  op.header.op = {index, index + 1};
  op.header.begin_stamp = index + 7U;
  op.header.unit_count = static_cast<std::uint32_t>(units.size());
  op.header.kind = index % 2 == 0 ? copy_kind::store : copy_kind::restore;
  op.units = units;
  return op;
}

TEST(OpBuffer, PacksOpsAndReadsThemBackInOrder) {
  const std::vector<unit_id> ids = {4, 8, 15, 16, 23, 42};
  op_buffer buffer;
  for (std::uint32_t i = 0; i <= 6; ++i) buffer.append(make_op(i, std::span(ids).first(i)));
  EXPECT_EQ(buffer.size(), 7U);
  EXPECT_EQ(buffer.bytes().size() % 8, 0U);

  const std::vector<std::byte> sent(buffer.bytes().begin(), buffer.bytes().end());
  const auto received = op_buffer::from_bytes(sent);
  ASSERT_TRUE(received.ok()) << received.why().message();
  const auto ops = received->ops();
  ASSERT_EQ(ops.size(), 7U);
  for (std::uint32_t i = 0; i <= 6; ++i) {
    EXPECT_EQ(ops[i].header.op.index, i);
    EXPECT_EQ(ops[i].header.begin_stamp, i + 7U);
    EXPECT_EQ(ops[i].header.kind, i % 2 == 0 ? copy_kind::store : copy_kind::restore);
    EXPECT_TRUE(std::equal(ops[i].units.begin(), ops[i].units.end(), ids.begin(), ids.begin() + i));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ops[i].units.data()) % alignof(unit_id), 0U);
  }
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_TRUE(buffer.ops().empty());
}

TEST(OpBuffer, TruncatedOrOversizedBytesAreRefused) {
  const std::vector<unit_id> ids = {1, 2, 3};
  op_buffer buffer;
  buffer.append(make_op(0, ids));
  buffer.append(make_op(1, ids));
  std::vector<std::byte> bytes(buffer.bytes().begin(), buffer.bytes().end());
  const std::size_t one = bytes.size() / 2;
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    const auto got = op_buffer::from_bytes(std::span(bytes).first(n));
    EXPECT_EQ(got.ok(), n % one == 0) << n;
    if (!got.ok()) {
      EXPECT_EQ(got.code(), status::invalid);
    }
  }
  copy_op_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (const std::uint32_t count : {100U, 0x40000000U, 0xFFFFFFFFU}) {
    header.unit_count = count;
    std::memcpy(bytes.data(), &header, sizeof header);
    EXPECT_FALSE(op_buffer::from_bytes(bytes).ok()) << count;
  }
  header.unit_count = 3;
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes[offsetof(copy_op_header, kind)] = std::byte{9};
  EXPECT_FALSE(op_buffer::from_bytes(bytes).ok());
}

}  // namespace
}  // namespace cairn
