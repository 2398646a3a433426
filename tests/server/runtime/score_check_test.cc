#include "server/runtime/score_check.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "common/rules/registry.h"
#include "server/runtime/rule_book.h"
#include "server/store/artifacts.h"
#include "server/store/store.h"
#include "server/store/verify.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::runtime {
namespace {

using ::assay::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string LogLine(const std::string& key, int64_t time_ms) {
  return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                      ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                      "\", \"value\": 1, \"metadata\": {\"epoch_num\": 1}}\n");
}

// A store of imported entries, of which each test files one that says of its logs what it wants.
class ScoreCheckTest : public ::testing::Test {
 protected:
  ScoreCheckTest() {
    CHECK_OK(MakeDirectories(data_));
    store_ = *store::Store::Open(JoinPath(data_, "assay.db"));
    artifacts_ = *store::ArtifactStore::Open(JoinPath(data_, "artifacts"));
    world_ = std::make_unique<core::testing::World>(
        [this](const core::Outcome& outcome, const core::State& state) {
          CHECK_OK(store_->Commit(outcome, state));
        });
  }

  // One run of 2 s, with what the rules say of it.
  core::ImportSubmission SomeImport() {
    core::ImportSubmission import{.spec = core::testing::SomeSpec(), .source_path = "a/b"};
    import.rules.digest = rules::FindRuleSet(import.spec.round)->digest();
    const std::string log = LogLine("run_start", 1000) + LogLine("run_stop", 3000);
    core::Submission submission;
    submission.spec = import.spec;
    submission.rules = import.rules;
    submission.is_imported = true;
    import.runs.push_back({.log = *artifacts_->Put("result_0.txt", log),
                           .facts = *rules_->CheckLog(log, submission, core::Run()),
                           .file_name = "result_0.txt"});
    return import;
  }

  std::vector<std::string> FaultsWith(core::ImportSubmission import) {
    CHECK_OK(world_->Do(std::move(import)).status());
    std::vector<std::string> faults;
    counts_ = store::Verify(
        data_,
        [&](const core::StoredFault& fault) {
          faults.push_back(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem));
        },
        MakeScoreCheck());
    return faults;
  }

  TempDir dir_;
  const std::string data_ = dir_.Path("data");
  const std::unique_ptr<RuleBook> rules_ = *LoadRuleBook({});
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::ArtifactStore> artifacts_;
  std::unique_ptr<core::testing::World> world_;
  core::VerifyCounts counts_;
};

TEST_F(ScoreCheckTest, WhatFollowsFromTheLogsIsNoFault) {
  EXPECT_THAT(FaultsWith(SomeImport()), IsEmpty());
  EXPECT_EQ(counts_.score_count, 1);
  EXPECT_EQ(counts_.uncomputed_score_count, 0);
}

TEST_F(ScoreCheckTest, ATimeThatTheLogDoesNotGiveIsNamedByRunAndSubmission) {
  core::ImportSubmission import = SomeImport();
  import.runs[0].facts.run_stop_ms = 2999;

  EXPECT_THAT(FaultsWith(std::move(import)),
              ElementsAre(AllOf(HasSubstr("assay.db: run r-1 of submission e-1: "),
                                HasSubstr("its time in ms is 1999, by result_0.txt it is 2000"))));
}

TEST_F(ScoreCheckTest, AScoreThatItsRunsDoNotGiveIsNamed) {
  core::ImportSubmission import = SomeImport();
  import.score_minutes = 1.5;

  EXPECT_THAT(FaultsWith(std::move(import)),
              ElementsAre(HasSubstr("score of submission e-1: the score in minutes is 1.5, by the "
                                    "logs of its runs it is none")));
}

TEST_F(ScoreCheckTest, ALogThatIsGoneLeavesItsRunUnproven) {
  core::ImportSubmission import = SomeImport();
  CHECK_OK(artifacts_->Remove(import.runs[0].log.sha256));

  EXPECT_THAT(FaultsWith(std::move(import)),
              ElementsAre(HasSubstr("there is no artifact"),
                          HasSubstr("run r-1 of submission e-1: it cannot be judged again")));
  EXPECT_EQ(counts_.score_count, 0);
}

TEST_F(ScoreCheckTest, WhatWasImportedWithoutRulesIsCountedAndNoFault) {
  core::ImportSubmission import = SomeImport();
  import.rules.digest = std::string(64, '0');
  import.score_minutes = 1.5;

  EXPECT_THAT(FaultsWith(std::move(import)), IsEmpty());
  EXPECT_EQ(counts_.score_count, 0);
  EXPECT_EQ(counts_.uncomputed_score_count, 1);
}

}  // namespace
}  // namespace assay::runtime
