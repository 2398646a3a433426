#include "cli/entry/borrow.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "cli/entry/submission_file.h"
#include "common/sha256.h"
#include "common/source/source_archive.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Submission Entry(const std::string& name, const std::string& organization,
                     const std::string& batch, const std::string& learning_rate) {
  v1::Submission entry;
  entry.set_name(name);
  v1::SubmissionSpec* spec = entry.mutable_spec();
  spec->set_organization(organization);
  spec->set_system(organization + " machine");
  spec->set_round("hpc-3.0.0");
  spec->set_benchmark("cosmoflow");
  spec->set_division("closed");
  spec->set_dataset("cosmo128");
  spec->set_node_count(16);
  spec->set_staging("none");
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"global_batch_size", batch}, {"opt_base_learning_rate", learning_rate}}) {
    v1::Hyperparameter* parameter = spec->add_hyperparameters();
    parameter->set_key(key);
    parameter->set_json_value(value);
  }
  return entry;
}

class BorrowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.entries = {Entry("submissions/e-12", "LBNL", "512", "0.008"),
                            Entry("submissions/e-11", "CSCS", "256", "0.004")};
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(BorrowTest, WritesASubmissionThatRecordsItsLender) {
  ASSERT_EQ(run_.Run("entry borrow e-11 --from e-12 --file borrowed.toml"), ExitStatus::kDone)
      << run_.err;

  const cli::SubmissionFile file = cli::ParseSubmissionFile(
      ReadFile(run_.home.Path("borrowed.toml")).value_or(""), "borrowed.toml");
  EXPECT_THAT(file.problems, IsEmpty());
  EXPECT_EQ(file.spec.organization(), "CSCS");
  EXPECT_EQ(file.spec.staging(), "none");
  EXPECT_EQ(file.spec.borrowing().own_entry(), "submissions/e-11");
  EXPECT_EQ(file.spec.borrowing().lender_entry(), "submissions/e-12");
  EXPECT_THAT(file.text, HasSubstr("# Hyperparameters borrowed from e-12 (LBNL, LBNL machine, "));
  EXPECT_THAT(file.text, HasSubstr("# in place of those of e-11"));
  EXPECT_THAT(file.text, HasSubstr("#   opt_base_learning_rate: 0.004 -> 0.008 (borrowed)"));
  for (const v1::Hyperparameter& parameter : file.spec.hyperparameters())
    EXPECT_EQ(parameter.json_value(), parameter.key() == "global_batch_size" ? "256" : "0.008");
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-12 --file borrowed.toml"), ExitStatus::kConflict)
      << "a file is never overwritten";
}

TEST_F(BorrowTest, AProgramStaysAndItsSourceComesAlong) {
  CHECK_OK(MakeDirectories(run_.home.Path("new")));
  run_.Write("train/train.py", "print()\n");
  const std::string source = *PackSource(run_.home.Path("train"));
  coordinator_.artifacts[Sha256Hex(source)] = source;
  v1::CommandWorkload* const program = coordinator_.entries[1].mutable_spec()->mutable_command();
  program->add_command("${ASSAY_CODE}/train.py");
  program->set_launcher("per-rank");
  program->mutable_source()->set_sha256(Sha256Hex(source));

  ASSERT_EQ(run_.Run("entry borrow e-11 --from e-12 --file new/borrowed.toml"), ExitStatus::kDone)
      << run_.err;

  EXPECT_EQ(ReadFile(run_.home.Path("new/source/train.py")).value_or(""), "print()\n");
  EXPECT_THAT(ReadFile(run_.home.Path("new/borrowed.toml")).value_or(""),
              HasSubstr("source = \"source\""));
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-12 --file new/again.toml"), ExitStatus::kConflict);
}

TEST_F(BorrowTest, ShowsWhereEachValueComesFrom) {
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-12 --set global_batch_size=1024 --json"),
            ExitStatus::kDone);

  const nlohmann::json json = nlohmann::json::parse(run_.out);
  EXPECT_EQ(json["is_allowed"], true);
  EXPECT_EQ(json["values"][0]["standing"], "batch size");
  EXPECT_EQ(json["values"][0]["borrowed"], 1024);
  EXPECT_EQ(json["values"][1]["standing"], "borrowed");
  EXPECT_EQ(json["values"][1]["own"], 0.004);
}

TEST_F(BorrowTest, ARefusalOfTheCoordinatorPointsIntoTheFile) {
  ASSERT_EQ(run_.Run("entry borrow e-11 --from e-12 --file borrowed.toml"), ExitStatus::kDone);
  v1::Finding finding;
  finding.set_rule("R-BOR-005");
  finding.set_severity(v1::Finding::ERROR);
  finding.set_key("own_entry");
  finding.set_expected("one borrowing for each entry");
  finding.set_remedy("name another");
  coordinator_.plan_findings.push_back(finding);

  EXPECT_EQ(run_.Run("submit borrowed.toml"), ExitStatus::kRuleViolation);

  EXPECT_THAT(run_.err, HasSubstr("error R-BOR-005: borrowing.own, expected one borrowing"));
  EXPECT_THAT(run_.err, HasSubstr("| own = \"e-11\"\n"));
  EXPECT_THAT(run_.err, HasSubstr("fix: name another"));
}

TEST_F(BorrowTest, AnEntryShowsWhatItBorrowed) {
  v1::Submission& entry = coordinator_.entries[1];
  entry.mutable_create_time()->set_seconds(1'800'000'000);
  entry.mutable_spec()->mutable_borrowing()->set_own_entry("submissions/e-7");
  entry.mutable_spec()->mutable_borrowing()->set_lender_entry("submissions/e-12");
  v1::BorrowingRecord* record = entry.mutable_borrowing();
  record->mutable_lender_create_time()->set_seconds(1'700'000'000);
  v1::BorrowedHyperparameter* change = record->add_changes();
  change->set_key("opt_base_learning_rate");
  change->set_own_json("0.004");
  change->set_json_value("0.008");
  change->set_standing("borrowed");

  EXPECT_EQ(run_.Run("entry show e-11 --json"), ExitStatus::kDone);
  const nlohmann::json json = nlohmann::json::parse(run_.out);
  EXPECT_EQ(json["borrowed_from"], "e-12");
  EXPECT_EQ(json["borrowed_from_created"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["borrowed_for"], "e-7");
  EXPECT_EQ(json["borrowed"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(json["borrowed_values"][0]["own"], 0.004);
  EXPECT_EQ(json["borrowed_values"][0]["value"], 0.008);

  EXPECT_EQ(run_.Run("entry show e-11 -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("borrowed from"));
  EXPECT_THAT(run_.out, HasSubstr("Borrowed hyperparameters"));
}

TEST_F(BorrowTest, RefusesWhatTheRulesForbid) {
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-11"), ExitStatus::kRuleViolation);
  EXPECT_THAT(run_.err, HasSubstr("e-11: error R-BOR-004"));
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-12 --set opt_name=\"lamb\""), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("entry borrow e-11 --from e-12 --set global_batch_size=many"),
            ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("entry borrow e-11"), ExitStatus::kUsage);
}

}  // namespace
}  // namespace assay
