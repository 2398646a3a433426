// Who plans a submission hears what who submits it would.

#include "server/core/judgement.h"

#include <algorithm>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;

constexpr uint32_t kSeed = 41;

std::vector<Finding> PlanOf(World* world, const SubmissionSpec& spec) {
  return std::get<PlacementReply>(*world->Do(PlanPlacement{spec, {.sees_all = true}})).findings;
}

bool HasError(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kError; });
}

TEST(JudgementTest, APlanIsRefusedIfAndOnlyIfTheSubmissionIs) {
  World world;
  ASSERT_TRUE(world.Do(AddDataset{{.id = "maps", .benchmark = "deepcam", .path = "/maps"}}).ok());
  std::mt19937 random(kSeed);
  const auto below = [&random](uint32_t end) { return random() % end; };
  int refused_count = 0;
  constexpr int kSpecCount = 2000;
  for (int i = 0; i < kSpecCount; ++i) {
    SubmissionSpec spec = SomeSpec();
    if (below(8) == 0) spec.node_count = static_cast<int32_t>(below(3) * 3000);
    if (below(8) == 0) spec.ranks_per_node = static_cast<int32_t>(below(3));
    if (below(8) == 0) spec.dataset = std::vector<std::string>{"", "none", "maps"}[below(3)];
    if (below(8) == 0) spec.system = std::string(below(2) * 100'000, 's');
    if (below(8) == 0) spec.epoch_count_max = static_cast<int32_t>(below(2)) * 2'000'000;
    if (below(8) == 0) spec.metric = "throughput";
    if (below(8) == 0) spec.replacement_count_max = static_cast<int32_t>(below(3));
    if (below(8) == 0) spec.fleet = "night";
    if (below(4) == 0)
      spec.hyperparameters.push_back({"global_batch_size", absl::StrCat(below(4) * 7)});
    if (below(8) == 0) spec.hyperparameters.push_back({"dropout", below(2) == 0 ? "0.5" : "2"});
    const std::vector<Finding> findings = PlanOf(&world, spec);

    const absl::Status submitted = world.Do(Creation(spec, absl::StrCat("request ", i))).status();

    ASSERT_EQ(HasError(findings), !submitted.ok())
        << "seed " << kSeed << " entry " << i << " " << submitted;
    refused_count += submitted.ok() ? 0 : 1;
    if (submitted.ok())
      ASSERT_TRUE(world.Do(CancelSubmission{SubmissionId{world.state().last_submission}, ""}).ok());
    else
      EXPECT_THAT(std::string(submitted.message()), HasSubstr(findings.front().rule_id));
  }
  EXPECT_GT(refused_count, kSpecCount / 10);
  EXPECT_LT(refused_count, kSpecCount - kSpecCount / 10);
}

TEST(JudgementTest, NodesThatAreNotThereAreAWarning) {
  World world;
  ASSERT_TRUE(world.Sync("w0").ok());
  SubmissionSpec spec = SomeSpec();
  EXPECT_THAT(PlanOf(&world, spec), ::testing::IsEmpty());

  spec.node_count = 20;

  const std::vector<Finding> findings = PlanOf(&world, spec);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-SPC-006");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].found, "20");
  EXPECT_TRUE(world.Do(Creation(spec, "t")).ok()) << "nodes may come";
}

TEST(JudgementTest, ABackendThatDoesNotRunTheBenchmarkIsRefusedWithWhatToChoose) {
  World world;
  ASSERT_TRUE(world.Sync("w0").ok());
  ASSERT_TRUE(world.Do(AddDataset{{.id = "maps", .benchmark = "deepcam", .path = "/maps"}}).ok());
  SubmissionSpec spec = SomeSpec();
  spec.benchmark = "deepcam";
  spec.dataset = "maps";
  spec.workload = TrainerWorkload{.backend = "onednn-bf16"};

  const std::vector<Finding> findings = PlanOf(&world, spec);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-RNK-010");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_THAT(findings[0].remedy, HasSubstr("choose onednn:"));
  EXPECT_THAT(world.Do(Creation(spec, "t")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("onednn-bf16 for deepcam")));
  spec.workload = TrainerWorkload{.backend = "onednn"};
  EXPECT_TRUE(world.Do(Creation(spec, "u")).ok());
}

TEST(JudgementTest, SaysWhatIsMissingByItsCode) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.dataset = "none";
  EXPECT_THAT(world.Do(Creation(spec, "t")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("assay dataset list")));
  spec = SomeSpec();
  spec.benchmark = "deepcam";
  EXPECT_THAT(world.Do(Creation(spec, "u")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is of cosmoflow")));
}

}  // namespace
}  // namespace assay::core
