#include "common/filter.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;

std::string Lower(absl::string_view text) {
  return absl::AsciiStrToLower(text);
}

const FilterSchema& Schema() {
  static const FilterSchema schema = {
      .fields = {{"organization", {}},
                 {"benchmark", {}},
                 {"state", {.choices = {"valid", "invalid"}, .canonical = Lower}},
                 {"minutes", {.type = FilterType::kNumber}},
                 {"created", {.type = FilterType::kTime}},
                 {"imported", {.type = FilterType::kBool}},
                 {"findings", {}},
                 {"hyperparameters", {.type = FilterType::kMap}}},
      .aliases = {{"org", "organization"}}};
  return schema;
}

// 2026-11-23T00:00:00Z.
constexpr absl::Time kNow = absl::FromUnixSeconds(1795392000);

std::string Understood(const std::string& text) {
  const absl::StatusOr<FilterNode> filter = ParseFilter(text, Schema(), kNow);
  return filter.ok() ? FilterText(*filter) : std::string(filter.status().message());
}

FilterValue Record(const std::string& field, const std::string& key) {
  if (field == "organization") return "Example University";
  if (field == "benchmark") return "cosmoflow";
  if (field == "state") return "valid";
  if (field == "minutes") return 8.5;
  if (field == "created") return kNow - absl::Hours(48);
  if (field == "imported") return true;
  if (field == "findings") return std::vector<std::string>{"R-HP-004", "R-TIM-003"};
  if (key == "batch") return 512.0;
  if (key == "optimizer") return "sgd";
  return {};
}

bool IsMatch(const std::string& text) {
  const absl::StatusOr<FilterNode> filter = ParseFilter(text, Schema(), kNow);
  EXPECT_THAT(filter, IsOk()) << text;
  return filter.ok() && Matches(*filter, Record);
}

// The examples of the standard, with fields of ours: "a b AND c" is "(a AND b) AND c", "a AND b OR
// c" is "a AND (b OR c)", "New York Giants OR Yankees" is "New York (Giants OR Yankees)".
TEST(FilterTest, AStarAsksWhetherThereIsAKey) {
  for (const auto& [text, is_match] : std::vector<std::pair<std::string, bool>>{
           {"hyperparameters.batch=*", true}, {"hyperparameters.none=*", false}}) {
    const auto filter = ParseFilter(text, Schema(), kNow);
    ASSERT_THAT(filter, IsOk());
    EXPECT_EQ(Matches(*filter, Record), is_match) << text;
  }
}

// A text that holds the number is not below it.
TEST(FilterTest, OrdersNumbersOnly) {
  const auto filter = ParseFilter("hyperparameters.optimizer<=8", Schema(), kNow);
  ASSERT_THAT(filter, IsOk());
  EXPECT_FALSE(Matches(*filter, [](const std::string&, const std::string&) -> FilterValue {
    return std::string("sgd8");
  }));
}

TEST(FilterTest, BindsAsTheStandardSays) {
  EXPECT_EQ(Understood("org=a benchmark=b AND minutes<3"),
            "((organization=a AND benchmark=b) AND minutes<3)");
  EXPECT_EQ(Understood("org=a AND benchmark=b OR benchmark=c"),
            "(organization=a AND (benchmark=b OR benchmark=c))");
  EXPECT_EQ(Understood("org=new org=york benchmark=g OR benchmark=y"),
            "(organization=new AND organization=york AND (benchmark=g OR benchmark=y))");
  EXPECT_EQ(Understood("NOT (org=a OR benchmark=b)"), "NOT (organization=a OR benchmark=b)");
  EXPECT_EQ(Understood("-org=a minutes>=-3.5"), "(NOT organization=a AND minutes>=-3.5)");
  EXPECT_EQ(Understood(" ( (org = a) ) "), "organization=a");
  EXPECT_EQ(Understood(""), "");
}

TEST(FilterTest, ValuesAreReadAsTheirFieldsAre) {
  EXPECT_EQ(Understood("org='It is \"A\"' state=VALID"),
            "(organization=\"It is \\\"A\\\"\" AND state=valid)");
  EXPECT_EQ(Understood("created>ago(\"90d\")"), "created>\"2026-08-25T00:00:00Z\"");
  EXPECT_EQ(Understood("created>2026-11-23T10:30:00Z"), "created>\"2026-11-23T10:30:00Z\"");
  EXPECT_EQ(Understood("hyperparameters.batch>1024"), "hyperparameters.batch>1024");
  EXPECT_EQ(Understood("org=\"AND\" OR org=\"a\\\\b\""),
            "(organization=\"AND\" OR organization=\"a\\\\b\")");
}

TEST(FilterTest, WhatIsWrongIsSaidWithItsPlace) {
  const struct {
    const char* filter;
    const char* message;
  } kCases[] = {
      {"minuts<3", "at 0: there is no field 'minuts'; fields: benchmark, created, findings"},
      {"org=a minutes<three", "at 14: 'minutes' is a number, and not 'three'"},
      {"state=done", "at 6: 'state' is one of valid, invalid, and not 'done'"},
      {"created>yesterday", "at 8: 'created' is a time: 2026-11-23, 2026-11-23T10:00:00Z or ago"},
      {"imported=yes", "at 9: 'imported' is true or false, and not 'yes'"},
      {"org<a", "at 3: 'organization' is text: use =, != or :"},
      {"imported>true", "at 8: 'imported' cannot be compared by >"},
      {"minutes:3", "at 7: 'minutes' cannot be compared by :"},
      {"hyperparameters.optimizer<sgd", "at 25: 'hyperparameters' is text"},
      {"hyperparameters=3", "at 0: 'hyperparameters' needs a key: hyperparameters.KEY"},
      {"org.name=a", "at 0: 'org' has no keys"},
      {"org", "at 3: one of = != < <= > >= : belongs behind 'org'"},
      {"org=", "at 4: a value is missing"},
      {"org=a AND", "at 9: a field is missing"},
      {"OR org=a", "at 0: there is no field 'OR'"},
      {"(org=a", "at 0: the ')' of this '('"},
      {"org=a)", "at 5: unexpected ')'"},
      {"org=\"a", "at 4: the closing \" is missing"},
      {"!org=a", "at 0: '!' alone; write != or NOT"},
      {"created>ago(3)", "at 11: write ago(\"90d\")"},
      {"minutes>ago(\"3d\")", "at 11: 'minutes' is no time"},
      {"\"a\"=b", "at 0: 'a' is where a field belongs"},
  };
  for (const auto& c : kCases)
    EXPECT_THAT(ParseFilter(c.filter, Schema(), kNow),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.filter;
}

TEST(FilterTest, IsOfASizeThatCanBeRead) {
  const std::vector<std::string> terms(static_cast<size_t>(kFilterTermsMax), "org=a");
  EXPECT_THAT(ParseFilter(absl::StrJoin(terms, " "), Schema(), kNow), IsOk());
  EXPECT_THAT(ParseFilter(absl::StrJoin(terms, " ") + " org=a", Schema(), kNow),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 50 terms")));
  EXPECT_THAT(ParseFilter(std::string(4000, '('), Schema(), kNow),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 50 terms")));
  EXPECT_THAT(ParseFilter(std::string(5000, ' '), Schema(), kNow),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5000 bytes, at most 4096")));
}

TEST(FilterTest, MatchesWhatARecordHas) {
  for (const char* filter : {"",
                             "org=\"Example University\"",
                             "org=Example*",
                             "org=*Uni*ty",
                             "org:versity",
                             "org!=A*",
                             "minutes<10",
                             "minutes<=8.5",
                             "minutes>=8.5",
                             "minutes!=8",
                             "minutes=8.5",
                             "created>ago(\"3d\")",
                             "created<ago(\"36h\")",
                             "created<2026-11-22",
                             "imported=true",
                             "imported!=false",
                             "findings:R-HP-004",
                             "findings:R-TIM-*",
                             "findings!=R-LOG-001",
                             "hyperparameters.batch>256",
                             "hyperparameters.optimizer=s*",
                             "org=A OR benchmark=cosmoflow minutes<10",
                             "-(org=A OR minutes>10)",
                             "NOT state=invalid",
                             "NOT hyperparameters.none=3"})
    EXPECT_TRUE(IsMatch(filter)) << filter;
  for (const char* filter :
       {"org=Example", "org=*Uni", "org!=Example*", "minutes<8.5", "minutes>8.5", "imported=false",
        "created>ago(\"1d\")", "findings:R-HP", "findings!=R-HP-004", "hyperparameters.batch<256",
        "hyperparameters.batch=sgd", "hyperparameters.optimizer=3", "hyperparameters.none!=3",
        "org=A OR benchmark=deepcam", "org=Example* AND minutes>10"})
    EXPECT_FALSE(IsMatch(filter)) << filter;
}

// Any filter, written as it was understood, is the same filter.
TEST(FilterTest, WhatIsPrintedIsReadAsTheSame) {
  constexpr uint64_t kSeed = 20261123;
  SCOPED_TRACE(absl::StrCat("seed=", kSeed));
  std::mt19937_64 random(kSeed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<std::string> restrictions = {"org=a",
                                                 "org!='b c'",
                                                 "org:\"AND\"",
                                                 "state=Valid",
                                                 "minutes<3",
                                                 "minutes>=-1e3",
                                                 "created>2026-01-02",
                                                 "created<ago(\"2h\")",
                                                 "imported!=true",
                                                 "findings:'R-*'",
                                                 "hyperparameters.x=7",
                                                 "hyperparameters.x='7'",
                                                 "hyperparameters.y.z!=w",
                                                 "org=\"\"",
                                                 "org='-3'",
                                                 "org=\"q\\\\\\\"\""};
  const std::function<std::string(int)> make = [&](int depth) -> std::string {
    const size_t kind = depth == 0 ? 0 : below(6);
    if (kind == 1) return absl::StrCat("(", make(depth - 1), ")");
    if (kind == 2) return absl::StrCat("NOT (", make(depth - 1), ")");
    if (kind == 3) return absl::StrCat(make(depth - 1), " OR ", make(depth - 1));
    if (kind == 4) return absl::StrCat(make(depth - 1), " AND ", make(depth - 1));
    if (kind == 5) return absl::StrCat(make(depth - 1), " ", make(depth - 1));
    return restrictions[below(restrictions.size())];
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string text = make(4);
    const absl::StatusOr<FilterNode> filter = ParseFilter(text, Schema(), kNow);
    ASSERT_THAT(filter, IsOk()) << text;
    const absl::StatusOr<FilterNode> again = ParseFilter(FilterText(*filter), Schema(), kNow);
    ASSERT_THAT(again, IsOk()) << text << " printed as " << FilterText(*filter);
    EXPECT_EQ(FilterText(*again), FilterText(*filter)) << text;
    EXPECT_EQ(Matches(*again, Record), Matches(*filter, Record)) << text;
  }
}

// Whatever bytes come, they are refused or read.
TEST(FilterTest, NoBytesEndTheProgram) {
  constexpr uint64_t kSeed = 20261123;
  SCOPED_TRACE(absl::StrCat("seed=", kSeed));
  std::mt19937_64 random(kSeed);
  const std::string letters = "ab=:<>!()\"'\\-*. ORANDNOTorgminutes0123\n\x80";
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text)
      c = letters[random() % letters.size()];
    const absl::StatusOr<FilterNode> filter = ParseFilter(text, Schema(), kNow);
    if (filter.ok()) Matches(*filter, Record);
  }
}

}  // namespace
}  // namespace assay
