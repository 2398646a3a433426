// Round v0.7, as published: every number that the paper prints and every figure behind it, against
// the stored recomputation of the paper (official/paper_tables.json), which another program made.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/analysis/entry.h"
#include "common/analysis/published.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "common/rules/score.h"
#include "tests/rules/oracle.h"
#include "tests/support/temp_dir.h"

namespace assay::analysis {
namespace {

using ::assay::testing::OracleDir;
using ::assay::testing::ReadJsonFile;
using ::assay::testing::TempDir;
using ::assay::testing::Text;
using ::assay::testing::Unpack;
using ::testing::SizeIs;

// Sums of at most 150 terms in another order.
constexpr double kTolerance = 1e-9;

double NumberAt(const JsonValue& object, absl::string_view name) {
  const JsonValue* value = object.Find(name);
  CHECK(value != nullptr && value->ToDouble().has_value()) << "no number " << name;
  return *value->ToDouble();
}

struct Judged {
  std::vector<std::string> names;
  Entry entry;
};

Judged ReadEntry(const std::string& root, const JsonValue& submission) {
  const rules::RuleSet& round = *rules::FindRuleSet("v0.7");
  const std::string path = Text(submission, "dir");
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  Judged judged;
  judged.entry = {.organization = parts[0],
                  .system = parts[2],
                  .benchmark = parts[3],
                  .division = Text(submission, "division"),
                  .processors = *submission.Find("processors")->AsInt64(),
                  .accelerators = *submission.Find("accelerators")->AsInt64()};
  std::vector<rules::RunScore> scores;
  for (const JsonValue& run : *submission.Find("runs")->AsList()) {
    judged.names.push_back(Text(run, "file"));
    const std::string log = *ReadFile(JoinPath(JoinPath(root, path), judged.names.back()));
    const rules::CheckResult result = rules::Check(log, round);
    scores.push_back(rules::ScoreOf(result));
    judged.entry.runs.push_back(ReadRunTimes(log, result.facts));
  }
  judged.entry.score_minutes = rules::Score(round.scoring(), scores).minutes;
  return judged;
}

class PaperTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!assay::testing::HasOracle()) return;
    const TempDir target;
    Unpack("hpc_results_v0.7.tar.xz", target.path());
    oracle_ = new JsonValue(ReadJsonFile(OracleDir() + "/official/paper_tables.json"));
    entries_ = new std::map<std::string, Judged>;
    round_ = new std::vector<Characteristics>;
    for (const auto& [subject, submission] : *oracle_->Find("submissions")->AsObject()) {
      const Judged& judged =
          entries_->emplace(subject, ReadEntry(target.Path("hpc_results_v0.7"), submission))
              .first->second;
      round_->push_back(Characterize(judged.entry));
    }
  }
  static void TearDownTestSuite() {
    delete oracle_;
    delete entries_;
    delete round_;
  }
  void SetUp() override { REQUIRE_ORACLE(); }

  static const JsonObject& Submissions() { return *oracle_->Find("submissions")->AsObject(); }

  static JsonValue* oracle_;
  static std::map<std::string, Judged>* entries_;
  static std::vector<Characteristics>* round_;  // in the order of Submissions()
};

JsonValue* PaperTest::oracle_ = nullptr;
std::map<std::string, Judged>* PaperTest::entries_ = nullptr;
std::vector<Characteristics>* PaperTest::round_ = nullptr;

TEST_F(PaperTest, ReadsTheTimesOfEveryRun) {
  int runs = 0;
  for (const auto& [subject, submission] : Submissions()) {
    const JsonList& expected = *submission.Find("runs")->AsList();
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(subject, " ", Text(expected[i], "file")));
      const RunTimes& times = entries_->at(subject).entry.runs[i];
      const bool has_time = !expected[i].Find("T")->is_null();
      ASSERT_EQ(times.run_s.has_value(), has_time);
      if (has_time) {
        EXPECT_NEAR(*times.run_s, NumberAt(expected[i], "T"), kTolerance);
      }
      EXPECT_EQ(times.staging_s.has_value(), *expected[i].Find("has_staging_keys")->AsBool());
      EXPECT_NEAR(times.staging_s.value_or(0), NumberAt(expected[i], "staging"), kTolerance);
      EXPECT_EQ(times.epochs, NumberAt(expected[i], "epochs"));
      EXPECT_EQ(times.closed_epochs, NumberAt(expected[i], "epochs_closed"));
      EXPECT_EQ(times.evaluations, NumberAt(expected[i], "evals"));
      EXPECT_NEAR(times.epoch_s, NumberAt(expected[i], "epoch_time"), 1e-6);
      EXPECT_NEAR(times.evaluation_s, NumberAt(expected[i], "eval_time"), 1e-6);
      EXPECT_NEAR(times.training_s(), NumberAt(expected[i], "train_time"), 1e-6);
      EXPECT_EQ(times.batch_size, NumberAt(expected[i], "gbs"));
      EXPECT_EQ(times.reached_target, *expected[i].Find("converged")->AsBool());
      ++runs;
    }
  }
  EXPECT_EQ(runs, 135);
}

void ExpectMoments(const std::optional<Moments>& actual, const JsonValue& selection,
                   absl::string_view name) {
  const JsonValue* expected = selection.Find(name);
  ASSERT_NE(expected, nullptr) << name;
  ASSERT_TRUE(actual.has_value()) << name;
  const double mean = NumberAt(*expected, "mean");
  const double sd = NumberAt(*expected, "sd");
  EXPECT_NEAR(actual->mean, mean, kTolerance * std::max(1.0, std::abs(mean))) << name;
  EXPECT_NEAR(actual->sd.value_or(NAN), sd, kTolerance * std::max(1.0, std::abs(mean))) << name;
}

TEST_F(PaperTest, CharacterizesEveryEntryToTheLastDigit) {
  for (size_t i = 0; i < Submissions().size(); ++i) {
    const auto& [subject, submission] = Submissions()[i];
    SCOPED_TRACE(subject);
    const JsonValue& wall = *submission.Find("wall");
    const Characteristics& entry = (*round_)[i];
    EXPECT_THAT(entry.runs, SizeIs(wall.Find("files")->AsList()->size()));
    ExpectMoments(entry.minutes, wall, "T_min");
    ExpectMoments(entry.epochs, wall, "epochs");
    ExpectMoments(entry.epoch_s, wall, "T_epoch_s");
    ExpectMoments(entry.train_per_unit, wall, "train_tp_per_unit");
    ExpectMoments(entry.eval_per_unit, wall, "eval_tp_per_unit");
    ExpectMoments(entry.evaluations, wall, "evals");
    if (entry.staging_minutes) {
      ExpectMoments(entry.staging_minutes, wall, "staging_min");
      EXPECT_NEAR(*entry.staging_per_epoch, NumberAt(wall, "staging_over_epoch"), kTolerance);
    }
    EXPECT_NEAR(*entry.budget_h, NumberAt(wall, "budget_h_unit"), 1e-6);
    ASSERT_TRUE(entry.breakdown.has_value());
    EXPECT_NEAR(entry.breakdown->staging, NumberAt(wall, "share_staging"), kTolerance);
    EXPECT_NEAR(entry.breakdown->evaluation, NumberAt(wall, "share_eval"), kTolerance);
    EXPECT_NEAR(entry.breakdown->training, NumberAt(wall, "share_train"), kTolerance);
    EXPECT_NEAR(entry.breakdown->extra, NumberAt(wall, "share_extra"), kTolerance);
    EXPECT_NEAR(*entry.estimated_staging, NumberAt(submission, "eq2_staging_share"), kTolerance);
    EXPECT_NEAR(*entry.entry.score_minutes,
                NumberAt(*submission.Find("conv")->Find("T_min"), "mean"), kTolerance);
  }
}

// "Table 5 CosmoFlow/ABCI-512 staging mean [min]", as the stored checks call it.
std::string PlaceOf(const PublishedNumber& number) {
  if (absl::StartsWith(number.place, "section")) return absl::StrCat("Text: ", number.quantity);
  return absl::StrCat(number.place, " ", number.subject, number.subject.empty() ? "" : " ",
                      number.quantity);
}

TEST_F(PaperTest, EveryPrintedNumberEqualsWhereTheStoredOneDoes) {
  std::map<std::string, const JsonValue*> checks;
  for (const JsonValue& check : *oracle_->Find("checks")->AsList()) {
    const std::string where = Text(check, "where");
    checks[where.substr(0, where.find(" (paper:"))] = &check;
  }

  const std::vector<PublishedNumber> numbers = CompareWithPaper(*round_);

  ASSERT_THAT(numbers, SizeIs(checks.size()));
  int equal = 0;
  for (const PublishedNumber& number : numbers) {
    SCOPED_TRACE(PlaceOf(number));
    ASSERT_EQ(checks.count(PlaceOf(number)), 1U);
    const JsonValue& check = *checks[PlaceOf(number)];
    EXPECT_EQ(number.printed, Text(check, "published"));
    ASSERT_TRUE(number.computed.has_value());
    EXPECT_NEAR(*number.computed, NumberAt(check, "value"),
                1e-8 * std::max(1.0, std::abs(*number.computed)));
    EXPECT_EQ(number.rounded, Text(check, "rounded"));
    EXPECT_EQ(number.is_equal, *check.Find("ok")->AsBool());
    EXPECT_EQ(number.why.empty(), number.is_equal) << "a difference is explained, no equality is";
    equal += number.is_equal ? 1 : 0;
  }
  EXPECT_EQ(numbers.size(), 124U);
  EXPECT_EQ(equal, 118);
}

TEST_F(PaperTest, RowsSayWhereThePaperDiffers) {
  const std::vector<PublishedNumber> numbers = CompareWithPaper(*round_);
  int differing = 0;
  for (const Characteristics& entry : *round_) {
    EXPECT_FALSE(PaperName(entry.entry).empty()) << entry.entry.system;
    EXPECT_EQ(DifferenceFrom("Table 5", entry, numbers), "");
    const std::string why = DifferenceFrom("Table 6", entry, numbers);
    if (why.empty()) continue;
    ++differing;
    EXPECT_EQ(entry.entry.benchmark, "deepcam") << why;
    EXPECT_THAT(why, ::testing::HasSubstr("the paper prints"));
  }
  EXPECT_EQ(differing, 2);
}

TEST_F(PaperTest, ASystemOfALaterRoundIsNotThePapers) {
  Entry later = round_->front().entry;
  ASSERT_NE(PaperName(later), "");

  later.organization = "Another";

  EXPECT_EQ(PaperName(later), "");
}

TEST_F(PaperTest, EntriesThatAreNotThereAreNotCompared) {
  std::vector<Characteristics> some(round_->begin(), round_->begin() + 1);

  int computed = 0;
  for (const PublishedNumber& number : CompareWithPaper(some))
    computed += number.computed.has_value() ? 1 : 0;

  EXPECT_EQ(computed, 1) << "Piz-Daint-128 stands in Table 4 alone";
}

}  // namespace
}  // namespace assay::analysis
