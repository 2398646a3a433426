#include "cli/terminal/document.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "yaml-cpp/yaml.h"

namespace assay::cli {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// A reader of YAML 1.1 takes yes, 1e3 and ~ for something else than text unless they are quoted.
TEST(YamlTest, ReadsBackAsTheSameValues) {
  const Json document = {{"state", "yes"},     {"name", "1e3"},
                         {"none", "~"},        {"empty", ""},
                         {"path", "a: b # c"}, {"lines", "one\ntwo"},
                         {"nodes", {1, 2.5}},  {"is_ok", true},
                         {"missing", nullptr}, {"nested", {{"key", "value"}}}};

  const YAML::Node node = YAML::Load(ToYaml(document));

  for (const char* field : {"state", "name", "none", "empty", "path", "lines"})
    EXPECT_EQ(node[field].as<std::string>(), document[field].get<std::string>()) << field;
  for (const char* field : {"state", "name", "none", "empty"})
    EXPECT_EQ(node[field].Tag(), "!") << field << " is not quoted";
  EXPECT_EQ(node["nodes"][1].as<double>(), 2.5);
  EXPECT_EQ(node["nodes"][1].Tag(), "?") << "a number is not quoted";
  EXPECT_TRUE(node["is_ok"].as<bool>());
  EXPECT_TRUE(node["missing"].IsNull());
  EXPECT_EQ(node["nested"]["key"].as<std::string>(), "value");
}

TEST(JqTest, PrintsStringsBareAndTheRestAsJson) {
  const Json document = {{"items", {{{"id", "r-1"}, {"n", 3}}, {{"id", "r-2"}, {"n", 4}}}}};

  EXPECT_THAT(FilterWithJq(".items[].id", document), IsOkAndHolds("r-1\nr-2\n"));
  EXPECT_THAT(FilterWithJq("[.items[].n] | add, {a: .}", document),
              IsOkAndHolds("7\n{\"a\":[3,4]}\n"));
  EXPECT_THAT(FilterWithJq("empty", document), IsOkAndHolds(""));
}

TEST(JqTest, SaysWhatIsWrongWithAProgram) {
  EXPECT_THAT(FilterWithJq(".items[", Json::object()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("syntax error")));
  EXPECT_THAT(FilterWithJq(".a.b", Json{{"a", "text"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Cannot index string")));
}

}  // namespace
}  // namespace assay::cli
