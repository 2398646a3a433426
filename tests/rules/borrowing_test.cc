#include "common/rules/borrowing.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Hyperparameters kOwn = {{"global_batch_size", 256},
                              {"opt_name", "sgd"},
                              {"opt_base_learning_rate", 0.004},
                              {"opt_learning_rate_warmup_epochs", 4}};
const Hyperparameters kLender = {{"global_batch_size", 512},
                                 {"opt_name", "sgd"},
                                 {"opt_base_learning_rate", 0.008},
                                 {"opt_learning_rate_warmup_epochs", 8},
                                 {"dropout", 0.5}};

BorrowingEntry Entry(const std::string& organization, const Hyperparameters& values) {
  return {.organization = organization,
          .round = "hpc-3.0.0",
          .benchmark = "cosmoflow",
          .division = "closed",
          .configuration = {.system = organization + " machine", .nodes = 16, .backend = "cuda"},
          .values = values};
}

std::vector<std::string> RulesOf(const std::vector<Finding>& findings) {
  std::vector<std::string> rules;
  for (const Finding& finding : findings)
    rules.push_back(finding.rule_id + " " + finding.key);
  return rules;
}

class BorrowingTest : public ::testing::Test {
 protected:
  BorrowingEntry own_ = Entry("CSCS", kOwn);
  BorrowingEntry lender_ = Entry("LBNL", kLender);
  BorrowingEntry proposed_ = Entry("CSCS", BorrowValues(kOwn, kLender));

  std::vector<std::string> Check() { return RulesOf(CheckBorrowing(own_, lender_, proposed_)); }
};

TEST_F(BorrowingTest, TakesTheLendersValuesWithTheOwnBatchSize) {
  EXPECT_EQ(proposed_.values.at("global_batch_size").AsInt64(), 256);
  EXPECT_EQ(proposed_.values.at("opt_base_learning_rate").ToDouble(), 0.008);
  EXPECT_EQ(proposed_.values.count("dropout"), 1U);
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(BorrowingTest, AnyBatchSizeIsAllowed) {
  proposed_.values["global_batch_size"] = 1024;
  proposed_.values["batchnorm_group_size"] = 2;
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(BorrowingTest, RefusesAValueOfNeither) {
  proposed_.values["opt_base_learning_rate"] = 0.006;
  EXPECT_THAT(Check(), ElementsAre("R-BOR-001 opt_base_learning_rate"));
}

TEST_F(BorrowingTest, RefusesAPartOfTheGroup) {
  proposed_.values["opt_learning_rate_warmup_epochs"] = 4;
  proposed_.values.erase("dropout");
  EXPECT_THAT(Check(),
              ElementsAre("R-BOR-001 dropout", "R-BOR-001 opt_learning_rate_warmup_epochs"));
}

TEST_F(BorrowingTest, NothingElseOfTheEntryChanges) {
  proposed_.configuration.nodes = 32;
  proposed_.configuration.labels = {{"rack", "3"}};
  EXPECT_THAT(Check(), ElementsAre("R-BOR-002 nodes", "R-BOR-002 labels"));
}

TEST_F(BorrowingTest, NorDoesItsProgram) {
  own_.configuration.program = {{"command", "python3 train.py"}, {"source", "9f86"}};
  lender_.configuration.program = {{"command", "another"}};
  proposed_.configuration.program = own_.configuration.program;
  EXPECT_THAT(Check(), IsEmpty());
  proposed_.configuration.program["source"] = "60303a";
  proposed_.configuration.program["image"] = "fd61a0";
  EXPECT_THAT(Check(), ElementsAre("R-BOR-002 workload.image", "R-BOR-002 workload.source"));
}

TEST_F(BorrowingTest, WhatHistoryDoesNotSayIsNotCompared) {
  own_.configuration.backend = "";
  own_.configuration.nodes = 0;
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(BorrowingTest, StaysWithinBenchmarkDivisionAndRound) {
  lender_.benchmark = "deepcam";
  proposed_.division = "open";
  EXPECT_THAT(Check(), ElementsAre("R-BOR-003 benchmark", "R-BOR-003 division"));
}

TEST_F(BorrowingTest, NobodyBorrowsFromOneselfOrTwice) {
  lender_.organization = "CSCS";
  EXPECT_THAT(Check(), ElementsAre("R-BOR-004 lender_entry"));

  lender_.organization = "LBNL";
  own_.is_borrowed = true;
  EXPECT_THAT(Check(), ElementsAre("R-BOR-005 own_entry"));

  own_.is_borrowed = false;
  own_.replaced_by = "e-9";
  const std::vector<Finding> findings = CheckBorrowing(own_, lender_, proposed_);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule_id, "R-BOR-005");
  EXPECT_THAT(findings[0].found, HasSubstr("e-9"));
}

TEST_F(BorrowingTest, NothingIsBuiltOnWhatIsWithdrawn) {
  lender_.is_withdrawn = true;
  const std::vector<Finding> findings = CheckBorrowing(own_, lender_, proposed_);
  ASSERT_THAT(RulesOf(findings), ElementsAre("R-BOR-004 lender_entry"));
  EXPECT_THAT(findings[0].found, HasSubstr("withdrawn"));

  lender_.is_withdrawn = false;
  own_.is_withdrawn = true;
  EXPECT_THAT(Check(), ElementsAre("R-BOR-005 own_entry"));
}

TEST_F(BorrowingTest, NeedsALenderThatSaysItsValues) {
  lender_.values.clear();
  proposed_.values = BorrowValues(kOwn, {});
  EXPECT_THAT(Check(), ElementsAre("R-BOR-001 lender_entry"));
}

TEST_F(BorrowingTest, WarnsWhereNothingChanges) {
  lender_.values = kOwn;
  proposed_.values = kOwn;

  const std::vector<Finding> findings = CheckBorrowing(own_, lender_, proposed_);

  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

TEST_F(BorrowingTest, EveryFindingIsOfARuleInTheTable) {
  own_.is_borrowed = true;
  own_.replaced_by = "e-9";
  lender_ = Entry("CSCS", {});
  lender_.benchmark = "deepcam";
  proposed_.configuration.nodes = 1;
  proposed_.values["opt_name"] = "adam";

  std::vector<std::string> known;
  for (const TextRule& rule : BorrowingRules())
    known.emplace_back(rule.id);
  std::set<std::string> found;
  for (const Finding& finding : CheckBorrowing(own_, lender_, proposed_)) {
    found.insert(finding.rule_id);
    EXPECT_NE(finding.remedy, "") << finding.rule_id;
  }

  EXPECT_THAT(found, ::testing::ElementsAreArray(known));
}

TEST_F(BorrowingTest, SaysWhereEachValueComesFrom) {
  proposed_.values["opt_name"] = "adam";

  std::vector<std::string> standings;
  for (const BorrowedValue& value : CompareBorrowing(kOwn, kLender, proposed_.values))
    standings.push_back(value.key + ": " + value.standing);

  EXPECT_THAT(standings,
              ElementsAre("dropout: borrowed", "global_batch_size: same",
                          "opt_base_learning_rate: borrowed",
                          "opt_learning_rate_warmup_epochs: borrowed", "opt_name: refused"));
}

}  // namespace
}  // namespace assay::rules
