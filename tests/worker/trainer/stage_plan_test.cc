#include "worker/trainer/stage_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/manifest.h"
#include "common/dataset/pack.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/worker/trainer/run_specs.h"

namespace assay {
namespace {

using testing::IsOk;

constexpr int kNodes = 2;
constexpr int kRanksPerNode = 2;

// A dataset of 16 and 8 files, packed, and four ranks on two nodes.
class StagePlanTest : public ::testing::Test {
 protected:
  StagePlanTest() {
    for (int i = 0; i < 24; ++i) {
      const std::string name =
          i < 16 ? absl::StrCat("train/", 10 + i, ".x") : absl::StrCat("validation/", 10 + i, ".x");
      EXPECT_THAT(MakeDirectories(dir_.Path(i < 16 ? "train" : "validation")), IsOk());
      testing::WriteFile(dir_.Path(name), name);
      manifest_.files.push_back(
          {.path = name, .bytes = std::ssize(name), .sha256 = Sha256Hex(name)});
    }
    manifest_.train_samples = 16;
    manifest_.validation_samples = 8;
    EXPECT_THAT(dataset::SaveManifest(dir_.path(), manifest_), IsOk());
  }

  struct Planned {
    StagePlan plan;
    std::set<std::string> node_files;  // by the samplers
  };

  Planned PlanOf(int rank, const std::string& path, const std::string& grid = "") const {
    v1::RunSpec run = testing::SmallRun();
    if (!grid.empty()) {
      testing::SetCubeEdge(&run, "64");
      testing::SetHyperparameter(&run, "spatial_grid", grid);
      run.set_is_staging_timed(true);
    }
    run.set_node_count(kNodes);
    run.set_ranks_per_node(kRanksPerNode);
    run.set_node_rank(rank / kRanksPerNode);
    run.set_local_rank(rank % kRanksPerNode);
    run.set_rendezvous_address("127.0.0.1:1");
    run.set_rendezvous_token("secret");
    run.mutable_dataset()->set_path(path);
    run.mutable_dataset()->set_is_staged(true);
    run.set_stage_directory(dir_.Path("stage"));
    const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
    EXPECT_THAT(spec, IsOk());
    const absl::StatusOr<std::optional<ShardedDataset>> sharded = OpenSharded(*spec);
    EXPECT_THAT(sharded, IsOk());
    const ShardedDataset* const set = sharded->has_value() ? &**sharded : nullptr;
    const dataset::Manifest* const manifest = set == nullptr ? nullptr : &set->manifest;
    const DataPlan data{.suffix = ".x"};
    const absl::StatusOr<DataSplit> train =
        OpenSplit(*spec, data, dataset::Split::kTrain, manifest);
    const absl::StatusOr<DataSplit> validation =
        OpenSplit(*spec, data, dataset::Split::kValidation, manifest);
    EXPECT_THAT(train, IsOk());
    EXPECT_THAT(validation, IsOk());
    const absl::StatusOr<StagePlan> plan = PlanStaging(*spec, *train, *validation, {}, set);
    EXPECT_THAT(plan, IsOk());
    Planned planned{.plan = *plan};
    for (const DataSplit* split : {&*train, &*validation})
      for (const uint32_t sample : split->sampler->NodeSamples())
        planned.node_files.insert(split->files[sample]);
    return planned;
  }

  const testing::TempDir dir_;
  dataset::Manifest manifest_ = {.name = "n", .benchmark = "plain", .generator = "imported"};
};

std::set<std::string> NamesOf(const std::vector<data::FileToStage>& files) {
  std::set<std::string> names;
  for (const data::FileToStage& file : files)
    names.insert(file.name);
  return names;
}

// Of the node's archives each is read by one rank, and all that the node trains on is staged once.
TEST_F(StagePlanTest, RanksOfANodeShareItsArchives) {
  ASSERT_THAT(dataset::PackDataset(dir_.path(), dir_.Path("packed"), {.shard_bytes = 40}), IsOk());
  for (int node = 0; node < kNodes; ++node) {
    std::set<std::string> staged;
    std::set<std::string> archives;
    size_t files = 0;
    size_t read = 0;
    for (int local = 0; local < kRanksPerNode; ++local) {
      const Planned one = PlanOf(node * kRanksPerNode + local, dir_.Path("packed"));
      const std::set<std::string> names = NamesOf(one.plan.job.files);
      EXPECT_FALSE(names.empty());
      files += names.size();
      read += one.plan.archives.size();
      staged.insert(names.begin(), names.end());
      archives.insert(one.plan.archives.begin(), one.plan.archives.end());
      std::set<std::string> both = NamesOf(one.plan.of_others);
      both.insert(names.begin(), names.end());
      EXPECT_EQ(both, one.node_files);
      for (const data::FileToStage& file : one.plan.job.files)
        EXPECT_EQ(file.sha256, Sha256Hex(file.name)) << "staging is off the clock";
    }
    EXPECT_EQ(files, staged.size());
    EXPECT_EQ(read, archives.size());
    EXPECT_EQ(staged, PlanOf(node * kRanksPerNode, dir_.Path("packed")).node_files);
  }
}

// A group of four ranks is spread over both nodes: each archive is read by one of them, and what
// comes of it goes to the rank that stands at the same place of the other node.
TEST_F(StagePlanTest, NodesOfAGroupShareItsArchives) {
  ASSERT_THAT(dataset::PackDataset(dir_.path(), dir_.Path("packed"), {.shard_bytes = 40}), IsOk());
  std::multiset<std::string> read;
  size_t part_files = 0;
  for (int local = 0; local < kRanksPerNode; ++local) {
    const Planned here = PlanOf(local, dir_.Path("packed"), "[2, 2]");
    const Planned there = PlanOf(kRanksPerNode + local, dir_.Path("packed"), "[2, 2]");
    ASSERT_EQ(here.plan.parts.size(), static_cast<size_t>(kNodes));
    for (size_t peer = 0; peer < here.plan.parts.size(); ++peer) {
      EXPECT_FALSE(here.plan.parts[peer].empty());
      EXPECT_EQ(NamesOf(here.plan.parts[peer]), NamesOf(there.plan.parts[peer]));
      part_files += here.plan.parts[peer].size();
    }
    for (const Planned& one : {here, there}) {
      read.insert(one.plan.archives.begin(), one.plan.archives.end());
      std::set<std::string> both = NamesOf(one.plan.of_others);
      both.merge(NamesOf(one.plan.job.files));
      EXPECT_EQ(both, one.node_files);
    }
  }
  EXPECT_EQ(part_files, manifest_.files.size());
  EXPECT_EQ(read.size(), std::set<std::string>(read.begin(), read.end()).size());
}

// Packed for four ranks, every archive is read by one node.
TEST_F(StagePlanTest, PartsKeepNodesApart) {
  ASSERT_THAT(dataset::PackDataset(dir_.path(), dir_.Path("packed"), {.parts = 4}), IsOk());
  std::map<std::string, int> readers;
  for (int rank = 0; rank < kNodes * kRanksPerNode; ++rank)
    for (const std::string& archive : PlanOf(rank, dir_.Path("packed")).plan.archives)
      ++readers[archive];
  EXPECT_EQ(readers.size(), 8U);
  for (const auto& [archive, count] : readers)
    EXPECT_EQ(count, 1) << archive;
}

TEST_F(StagePlanTest, FilesAreDividedAmongRanks) {
  std::set<std::string> staged;
  for (int rank = 0; rank < kNodes * kRanksPerNode; ++rank) {
    const StagePlan plan = PlanOf(rank, dir_.path()).plan;
    EXPECT_THAT(plan.archives, ::testing::IsEmpty());
    EXPECT_EQ(plan.job.files.size(), 6U);
    staged.merge(NamesOf(plan.job.files));
  }
  EXPECT_EQ(staged.size(), manifest_.files.size());
}

}  // namespace
}  // namespace assay
