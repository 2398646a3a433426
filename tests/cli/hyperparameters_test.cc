#include "cli/rules/hyperparameters.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSubmissionFile[] = R"(round = "hpc-3.0.0"
benchmark = "cosmoflow"
division = "closed"
organization = "Example University"
system = "cluster-a"
dataset = "cosmo128"
nodes = 2

[hyperparameters]
global_batch_size = 512
opt_name = "adamw"
dropout = 0.5
)";

nlohmann::json RowOf(const nlohmann::json& rows, const std::string& key) {
  for (const nlohmann::json& row : rows)
    if (row["key"] == key) return row;
  ADD_FAILURE() << "no row " << key << " in " << rows;
  return {};
}

TEST(HyperparametersTest, PlanComparesWithTheReference) {
  testing::FakeCoordinator coordinator;
  testing::Invocation run;
  coordinator.Start();
  run.env.variables["ASSAY_SOCKET"] = coordinator.socket_path();
  run.Write("cosmoflow.toml", kSubmissionFile);

  EXPECT_EQ(run.Run("plan cosmoflow.toml --json"), ExitStatus::kDone) << run.err;
  const nlohmann::json rows = nlohmann::json::parse(run.out)["hyperparameter_diff"];
  EXPECT_EQ(RowOf(rows, "global_batch_size")["standing"], "tuned");
  EXPECT_EQ(RowOf(rows, "global_batch_size")["reference"], 64);
  EXPECT_EQ(RowOf(rows, "opt_name")["standing"], "refused");
  EXPECT_EQ(RowOf(rows, "dropout")["standing"], "same");
  EXPECT_EQ(RowOf(rows, "opt_weight_decay")["standing"], "not given");

  run.Run("plan cosmoflow.toml -o table --color always");
  EXPECT_THAT(run.out, HasSubstr("\033[31mrefused\033[0m"));
  EXPECT_THAT(run.out, HasSubstr("\033[32mtuned\033[0m"));
  EXPECT_THAT(run.out, HasSubstr("opt_learning_rate_decay_boundary_epochs")) << "names are whole";
}

TEST(HyperparametersTest, ARoundHasATableForEachDivision) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("rules hyperparameters v3.0 --benchmark cosmoflow --division closed --json"),
            ExitStatus::kDone)
      << run.err;
  const nlohmann::json closed = nlohmann::json::parse(run.out)["items"];
  EXPECT_EQ(RowOf(closed, "dropout")["allowed"], "at least 0, less than 1");
  EXPECT_EQ(RowOf(closed, "sgd_opt_momentum")["rule"], "R-HP-020");

  run.Run("rules hyperparameters v3.0 --benchmark cosmoflow --division open");
  EXPECT_THAT(run.out, Not(HasSubstr("R-HP-004")));
  EXPECT_EQ(run.Run("rules hyperparameters v0.7 --benchmark openfold"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
