#include "common/package/json_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::package {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(absl::string_view bytes) {
  const absl::StatusOr<JsonValue> json = ParseJsonFile(bytes);
  return json.ok() && json->AsString() != nullptr ? *json->AsString() : "(no text)";
}

TEST(JsonFileTest, TextIsUtf8) {
  EXPECT_EQ(TextOf("\"Jülich\""), "Jülich");
  EXPECT_EQ(TextOf("\"10\u20131\""), "10\u20131");
  EXPECT_EQ(TextOf("\"\xF0\x9F\x98\x80\""), "\xF0\x9F\x98\x80");
  EXPECT_EQ(TextOf(R"("J\u00fclich")"), "Jülich");
  EXPECT_EQ(TextOf("\"\\\\ü\""), "\\ü");
}

TEST(JsonFileTest, RefusesWhatPythonRefuses) {
  const std::pair<std::string, const char*> kCases[] = {
      {"", "syntax"},
      {"{", "syntax"},
      {"{} x", "syntax"},
      {std::string("{}\0", 3), "syntax"},
      {"\xEF\xBB\xBF{}", "syntax"},        // byte order mark
      {"\"\\ü\"", "syntax"},               // no such escape
      {"\"a\nb\"", "syntax"},              // a control character in a string
      {"\"\xFC\"", "byte 1"},              // latin-1
      {"\"\xC0\x80\"", "byte 1"},          // a longer form of NUL
      {"\"\xED\xA0\x80\"", "byte 1"},      // a surrogate
      {"\"\xF4\x90\x80\x80\"", "byte 1"},  // beyond Unicode
      {"\"\xE2\x82\"", "byte 1"},          // cut off
      {std::string(5000, '9'), "digits"},
      {std::string(2000, '['), "deep"}};
  for (const auto& [bytes, why] : kCases)
    EXPECT_THAT(ParseJsonFile(bytes), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << bytes.substr(0, 20);
}

TEST(JsonFileTest, TakesPythonsDialect) {
  EXPECT_THAT(ParseJsonFile("{\"a\": NaN, \"a\": -Infinity}"), IsOk());
  EXPECT_THAT(ParseJsonFile(std::string(4300, '9')), IsOk());
}

TEST(ScalingFactorTest, IsANumberOfAtLeastOne) {
  EXPECT_THAT(ParseScalingFactor("{\"scaling_factor\": 1.015625}\n"), IsOkAndHolds(1.015625));
  EXPECT_THAT(ParseScalingFactor("{\"scaling_factor\": 1}"), IsOkAndHolds(1.0));
  for (const char* bytes :
       {"", "1.5", "[]", "{}", "{\"scaling_factor\": \"1.5\"}", "{\"scaling_factor\": true}",
        "{\"scaling_factor\": 0.5}", "{\"scaling_factor\": NaN}", "{\"scaling_factor\": Infinity}"})
    EXPECT_THAT(ParseScalingFactor(bytes), Not(IsOk())) << bytes;
}

}  // namespace
}  // namespace assay::package
