#include "common/package/system_description.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/json_value.h"
#include "tests/package/sample_package.h"

namespace assay::package {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The sample description with one member changed; `value` null: without it.
std::string With(const std::string& name, const JsonValue* value) {
  JsonObject changed;
  for (const auto& [member, old] : testing::SampleDescription("sys", "closed")) {
    if (member != name) {
      changed.emplace_back(member, old);
    } else if (value != nullptr) {
      changed.emplace_back(member, *value);
    }
  }
  return DumpJson(changed);
}
std::string With(const std::string& name, JsonValue value) {
  return With(name, &value);
}

std::vector<std::string> RulesOf(const std::string& bytes) {
  std::vector<std::string> rules;
  for (const rules::Finding& finding : CheckSystemDescription(bytes, {"ORG", "sys"}))
    rules.push_back(absl::StrCat(finding.rule_id, " ", finding.key));
  return rules;
}

TEST(SystemDescriptionTest, ACompleteOneIsFine) {
  EXPECT_THAT(RequiredSystemMembers(), SizeIs(33));
  EXPECT_THAT(RulesOf(With("cooling", "")), IsEmpty());
  EXPECT_THAT(RulesOf(With("number_of_nodes", 16)), IsEmpty());
  EXPECT_THAT(RulesOf(With("other_software_stack", JsonObject())), IsEmpty());
}

TEST(SystemDescriptionTest, EveryMemberIsRequired) {
  for (const char* member : RequiredSystemMembers())
    EXPECT_THAT(RulesOf(With(member, nullptr)), ElementsAre(absl::StrCat("R-DESC-002 ", member)));
}

TEST(SystemDescriptionTest, SevenMembersAreTexts) {
  int count = 0;
  for (const char* member : RequiredSystemMembers()) {
    const std::vector<std::string> rules = RulesOf(With(member, JsonList()));
    count += !rules.empty() && rules[0] == absl::StrCat("R-DESC-003 ", member);
  }
  EXPECT_EQ(count, 7);
}

TEST(SystemDescriptionTest, OtherJsonIsRefused) {
  for (const char* bytes : {"", "[]", "\"submitter\"", "3", "null", "{", "{}x"})
    EXPECT_THAT(RulesOf(bytes), ElementsAre("R-DESC-001 ")) << bytes;
}

TEST(SystemDescriptionTest, WarnsOfWhatReviewersWillAsk) {
  EXPECT_THAT(RulesOf(With("number_of_nodes", "16 or so")),
              ElementsAre("R-DESC-004 number_of_nodes"));
  EXPECT_THAT(RulesOf(With("division", "Closed")), ElementsAre("R-DESC-005 division"));
  EXPECT_THAT(RulesOf(With("status", "soon")), ElementsAre("R-DESC-006 status"));
  EXPECT_THAT(RulesOf(With("status", "Available")), IsEmpty());
  EXPECT_THAT(RulesOf(With("framework", " ")), ElementsAre("R-DESC-007 framework"));
  EXPECT_THAT(RulesOf(With("accelerator_model_name", "")),
              ElementsAre("R-DESC-007 accelerator_model_name"));
  EXPECT_THAT(RulesOf(With("system_name", "other")), ElementsAre("R-DESC-008 system_name"));
  EXPECT_THAT(RulesOf(With("submitter", "Other")), ElementsAre("R-DESC-009 submitter"));
  EXPECT_THAT(CheckSystemDescription(With("submitter", "Example University"),
                                     {"Example_University", "sys"}),
              IsEmpty());
  for (const rules::Finding& finding :
       CheckSystemDescription(With("submitter", "Other"), {"ORG", "sys"}))
    EXPECT_EQ(finding.severity, rules::Severity::kWarning);
}

}  // namespace
}  // namespace assay::package
