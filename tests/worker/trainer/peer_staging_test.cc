#include "worker/trainer/peer_staging.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/pack.h"
#include "common/dataset/shards.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/worker/comm/memory_world.h"
#include "tests/worker/comm/world.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kFiles = 19;
constexpr int64_t kLarge = int64_t{1} << 25;

// Empty, of one byte, larger than a message, and of any size.
const std::string& Content(size_t i) {
  static const auto contents = [] {
    std::vector<std::string> made;
    std::mt19937 random(1);
    for (size_t file = 0; file < kFiles; ++file) {
      made.emplace_back(file == 3   ? 0
                        : file == 4 ? 1
                        : file == 5 ? (size_t{17} << 20) + 3
                                    : 1000 * file + 7,
                        '\0');
      std::generate(made.back().begin(), made.back().end(),
                    [&] { return static_cast<char>(random()); });
    }
    return made;
  }();
  return contents[i];
}

// Nodes with storage of their own, and one rank on each.
class PeerStagingTest : public ::testing::Test {
 protected:
  static data::FileToStage File(size_t i) {
    return {.name = absl::StrCat(i % 2 == 0 ? "train/" : "validation/", i),
            .bytes = std::ssize(Content(i)),
            .sha256 = Sha256Hex(Content(i))};
  }

  std::string SourceOf(int rank) const { return dir_.Path(absl::StrCat("source_", rank)); }
  std::string TargetOf(int rank) const { return dir_.Path(absl::StrCat("target_", rank)); }

  // A job of each rank, with all files, whose source only has what `has` says.
  void MakeJobs(int ranks, const std::function<bool(int rank, size_t i)>& has) {
    for (int rank = 0; rank < ranks; ++rank) {
      jobs_.push_back({.source_dir = SourceOf(rank), .target_dir = TargetOf(rank)});
      for (const char* split : {"/train", "/validation"})
        ASSERT_THAT(MakeDirectories(SourceOf(rank) + split), IsOk());
      for (size_t i = 0; i < kFiles; ++i) {
        jobs_.back().files.push_back(File(i));
        if (has(rank, i)) WriteFile(JoinPath(SourceOf(rank), File(i).name), Content(i));
      }
    }
  }

  // What each rank's StageWithPeers says. A rank whose staging fails is gone, as its process would
  // be.
  std::vector<absl::StatusOr<data::Staged>> StageAll() {
    const int ranks = static_cast<int>(jobs_.size());
    std::vector<std::unique_ptr<comm::Collective>> world = comm::OpenMemoryWorld(ranks, &clock_);
    std::vector<absl::StatusOr<data::Staged>> results(jobs_.size());
    comm::testing::OnEveryRank(world, [&](comm::Collective* comm) {
      Peers peers;
      for (int rank = 0; rank < ranks; ++rank)
        peers.ranks.push_back(rank);
      const auto rank = static_cast<size_t>(comm->rank());
      peers.own = rank;
      results[rank] = StageWithPeers(jobs_[rank], peers, comm, comm::testing::Soon, &clock_);
      if (!results[rank].ok()) world[rank].reset();
    });
    return results;
  }

  void ExpectWhole(int rank) const {
    for (size_t i = 0; i < kFiles; ++i)
      EXPECT_TRUE(ReadFile(JoinPath(TargetOf(rank), File(i).name), kLarge).value_or("none") ==
                  Content(i))
          << "rank " << rank << ", file " << i;
  }

  const RealClock clock_{};
  const TempDir dir_;
  std::vector<data::StagingJob> jobs_;
};

TEST_F(PeerStagingTest, EachNodeReadsItsPartAloneAndAllHaveEverything) {
  int64_t bytes = 0;
  for (size_t i = 0; i < kFiles; ++i)
    bytes += std::ssize(Content(i));
  for (const int ranks : {2, 3}) {
    for (const bool is_cold : {false, true}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", is_cold ? "cold" : "not cold"));
      jobs_.clear();
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_THAT(RemoveTree(SourceOf(rank)), IsOk());
        ASSERT_THAT(RemoveTree(TargetOf(rank)), IsOk());
      }
      // What another node reads is not even there.
      MakeJobs(ranks, [ranks](int rank, size_t i) { return static_cast<int>(i) % ranks == rank; });
      for (data::StagingJob& job : jobs_)
        job.is_cold = is_cold;

      const std::vector<absl::StatusOr<data::Staged>> results = StageAll();

      int64_t peer_bytes = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const absl::StatusOr<data::Staged>& staged = results[static_cast<size_t>(rank)];
        ASSERT_THAT(staged, IsOk());
        ExpectWhole(rank);
        EXPECT_EQ(staged->files, std::ssize(jobs_.front().files));
        EXPECT_EQ(staged->bytes, bytes);
        peer_bytes += staged->peer_bytes;
      }
      EXPECT_EQ(peer_bytes, (ranks - 1) * bytes) << "each byte was read by one node alone";
    }
  }
}

TEST_F(PeerStagingTest, WhereANodeHasFilesAlreadyAllReadForThemselves) {
  MakeJobs(3, [](int, size_t) { return true; });
  jobs_[1].files.erase(jobs_[1].files.begin() + 2);  // of its cache

  const std::vector<absl::StatusOr<data::Staged>> results = StageAll();

  for (const absl::StatusOr<data::Staged>& staged : results) {
    ASSERT_THAT(staged, IsOk());
    EXPECT_EQ(staged->peer_bytes, 0);
  }
  ExpectWhole(0);
  ExpectWhole(2);
}

TEST_F(PeerStagingTest, FilesOfUnknownSizeAreReadByEachNode) {
  MakeJobs(2, [](int, size_t) { return true; });
  for (data::StagingJob& job : jobs_)
    job.files[7] = {.name = job.files[7].name};

  for (const absl::StatusOr<data::Staged>& staged : StageAll()) {
    ASSERT_THAT(staged, IsOk());
    EXPECT_EQ(staged->peer_bytes, 0);
  }
  ExpectWhole(0);
  ExpectWhole(1);
}

// The node that reads it says which file it is; the others that it is gone.
TEST_F(PeerStagingTest, AFileThatIsNotThereEndsAllNodes) {
  MakeJobs(2, [](int rank, size_t i) { return static_cast<int>(i) % 2 == rank && i != 6; });

  const std::vector<absl::StatusOr<data::Staged>> results = StageAll();

  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kNotFound, HasSubstr("train/6")));
  EXPECT_EQ(ExitCodeOf(results[0].status()), ExitCode::kDisk);
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(ExitCodeOf(results[1].status()), ExitCode::kCommLost);
}

TEST_F(PeerStagingTest, AFileThatChangedOnTheWayIsNoCopy) {
  MakeJobs(2, [](int rank, size_t i) { return static_cast<int>(i) % 2 == rank; });
  // The node that reads file 8 does not know its digest, so it sends what it has found.
  std::string changed = Content(8);
  changed[99] ^= 1;
  WriteFile(JoinPath(SourceOf(0), File(8).name), changed);
  jobs_[0].files[8].sha256.clear();

  const std::vector<absl::StatusOr<data::Staged>> results = StageAll();

  EXPECT_THAT(results[1],
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("train/8, sent by a peer, has the")));
  EXPECT_EQ(ExitCodeOf(results[1].status()), ExitCode::kBadData);
  EXPECT_FALSE(FileExists(JoinPath(TargetOf(1), File(8).name)));
}

// What another node unpacks is not even there.
TEST_F(PeerStagingTest, ArchivesAreUnpackedByOneNodeEach) {
  constexpr int kRanks = 2;
  MakeJobs(1, [](int, size_t) { return true; });
  dataset::Manifest manifest = {.name = "n", .benchmark = "plain", .generator = "imported"};
  for (const data::FileToStage& file : jobs_.front().files)
    manifest.files.push_back({.path = file.name, .bytes = file.bytes, .sha256 = file.sha256});
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  manifest.train_samples = (kFiles + 1) / 2;
  manifest.validation_samples = kFiles / 2;
  ASSERT_THAT(dataset::SaveManifest(SourceOf(0), manifest), IsOk());
  ASSERT_THAT(dataset::PackDataset(SourceOf(0), dir_.Path("packed"), {.parts = 4}), IsOk());
  const absl::StatusOr<std::vector<dataset::Shard>> shards =
      dataset::LoadShardIndex(dir_.Path("packed"), dataset::DatasetDigest(manifest));
  ASSERT_THAT(shards, IsOk());
  // The first archives are node 0's, however many bytes they have.
  std::vector<StagePlan> plans(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    StagePlan& plan = plans[static_cast<size_t>(rank)];
    plan.job = {.source_dir = SourceOf(rank), .target_dir = TargetOf(rank)};
    plan.parts.resize(kRanks);
    ASSERT_THAT(RemoveTree(SourceOf(rank)), IsOk());
    ASSERT_THAT(MakeDirectories(JoinPath(SourceOf(rank), dataset::kShardFolder)), IsOk());
    for (size_t i = 0; i < shards->size(); ++i) {
      const dataset::Shard& shard = (*shards)[i];
      const int reader = i < 3 ? 0 : 1;
      for (const data::FileToStage& file : jobs_.front().files) {
        if (std::find(shard.files.begin(), shard.files.end(), file.name) == shard.files.end())
          continue;
        plan.parts[static_cast<size_t>(reader)].push_back(file);
        plan.job.files.push_back(file);
      }
      if (reader != rank) continue;
      plan.archives.push_back(shard.name);
      ASSERT_THAT(
          WriteFileAtomic(dataset::ShardPath(SourceOf(rank), shard.name),
                          *ReadFile(dataset::ShardPath(dir_.Path("packed"), shard.name), kLarge)),
          IsOk());
    }
  }
  const auto stage = [&] {
    std::vector<std::unique_ptr<comm::Collective>> world = comm::OpenMemoryWorld(kRanks, &clock_);
    std::vector<absl::StatusOr<data::Staged>> results(kRanks);
    comm::testing::OnEveryRank(world, [&](comm::Collective* comm) {
      const auto rank = static_cast<size_t>(comm->rank());
      const Peers peers = {.ranks = {0, 1}, .own = rank};
      results[rank] =
          StageArchivesWithPeers(plans[rank], manifest, peers, comm, comm::testing::Soon, &clock_);
      if (!results[rank].ok()) world[rank].reset();
    });
    return results;
  };

  for (const absl::StatusOr<data::Staged>& staged : stage()) {
    ASSERT_THAT(staged, IsOk());
    EXPECT_EQ(staged->files, std::ssize(manifest.files));
    EXPECT_GT(staged->peer_bytes, 0);
  }
  ExpectWhole(0);
  ExpectWhole(1);

  plans[1].parts[0].pop_back();
  for (const absl::StatusOr<data::Staged>& staged : stage()) {
    EXPECT_THAT(staged, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("is not the same on all nodes")));
    EXPECT_EQ(ExitCodeOf(staged.status()), ExitCode::kBadData);
  }
}

TEST(PeersTest, AreTheRanksOfAGroupThatStandAtTheSamePlaceOfTheirNodes) {
  TrainerSpec spec;
  spec.world_size = 16;
  spec.grid.parts = {4, 2};
  spec.run.set_ranks_per_node(4);
  spec.rank = 14;
  // Else the first read of the copies is the run's first touch, which sending would be.
  EXPECT_THAT(PeersOf(spec).ranks, ElementsAre(14));
  spec.run.set_is_staging_timed(true);
  const Peers peers = PeersOf(spec);
  EXPECT_THAT(peers.ranks, ElementsAre(10, 14));
  EXPECT_EQ(peers.own, 1U);

  spec.run.set_ranks_per_node(8);  // the group is on one node
  EXPECT_THAT(PeersOf(spec).ranks, ElementsAre(14));
  spec.grid = {};
  EXPECT_THAT(PeersOf(spec).ranks, ElementsAre(14));
}

}  // namespace
}  // namespace assay
