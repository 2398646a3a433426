#include "server/store/verify.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/artifacts.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::assay::testing::IsOk;
using ::assay::testing::TempDir;
using core::RunId;
using core::testing::World;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Flip(const std::string& path, int64_t offset, unsigned char bit) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  unsigned char byte = 0;
  CHECK(pread(fd.get(), &byte, 1, offset) == 1) << path << " " << offset;
  byte ^= bit;
  CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
}

// A data directory with some of everything, half of it in the database, half in the log.
class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(MakeDirectories(data_));
    Open();
    world_ =
        std::make_unique<World>([this](const core::Outcome& outcome, const core::State& state) {
          CHECK_OK(store_->Commit(outcome, state));
        });
    artifacts_ = *ArtifactStore::Open(JoinPath(data_, "artifacts"));
    CHECK_OK(world_->Sync("w0").status());
    world_->Submit();
    world_->Executing("w0", RunId{1});
    for (int i = 0; i < 10; ++i)
      Write(i);
    store_.reset();
    Open();
    for (int i = 10; i < 20; ++i)
      Write(i);
  }

  void Open() { store_ = *Store::Open(JoinPath(data_, "assay.db")); }

  // Lines of the run, an artifact, and a submission.
  void Write(int i) {
    std::vector<core::RunEvent> lines;
    for (int k = 1; k <= 100; ++k)
      lines.push_back({.seq = i * 100 + k, .text = absl::StrCat("line ", i * 100 + k), .line = k});
    CHECK_OK(world_->Do(core::AppendRunEvents{RunId{1}, 1, 0, lines, "w0"}).status());
    const core::ArtifactRef artifact = *artifacts_->Put(
        absl::StrCat("file_", i), std::string(static_cast<size_t>(3000 * i), 'x') + "end");
    CHECK_OK(world_->Do(core::RecordArtifact{RunId{1}, 1, artifact, "w0"}).status());
    world_->Submit();
  }

  // The directory as a kill would leave it now, for changing it.
  std::string Copy() {
    const std::string copy = dir_.Path("copy");
    fs::remove_all(copy);
    fs::copy(data_, copy, fs::copy_options::recursive);
    fs::remove(JoinPath(copy, "assay.db-shm"));
    return copy;
  }

  static std::vector<std::string> FaultsOf(const std::string& directory) {
    std::vector<std::string> faults;
    Verify(directory, [&](const core::StoredFault& fault) {
      faults.push_back(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem));
    });
    return faults;
  }

  // What an edit of the tables by a program with page checksums comes to.
  std::vector<std::string> FaultsAfter(const std::string& sql) {
    const std::string copy = Copy();
    CHECK_OK(Db::Open(JoinPath(copy, "assay.db"), OpenMode::kReadWriteCreate)->Exec(sql));
    // The edit has taken what the log held into the database.
    std::vector<std::string> faults = FaultsOf(copy);
    std::erase_if(faults, [](const std::string& fault) {
      return absl::StartsWith(fault, "assay.db-wal: the header: assay.db-wal is missing");
    });
    return faults;
  }

  TempDir dir_;
  const std::string data_ = dir_.Path("data");
  std::unique_ptr<Store> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<World> world_;
};

TEST_F(VerifyTest, FindsNothingWhereNothingIsWrong) {
  const auto none = [](const core::StoredFault& fault) {
    ADD_FAILURE() << fault.file << " " << fault.object << " " << fault.problem;
  };
  const core::VerifyCounts counts = Verify(Copy(), none);

  EXPECT_EQ(counts.event_count, world_->state().last_seq);
  EXPECT_EQ(counts.line_count, 2000);
  EXPECT_EQ(counts.artifact_count, 20);
  EXPECT_GT(counts.page_count, 10);
  EXPECT_GT(counts.frame_count, 10);
}

// Any byte of database, log and artifacts, 1,000 times: the fault is named with its file and
// object. Each is put right again before the next. ASSAY_FLIP_SEED repeats a run.
TEST_F(VerifyTest, NamesEveryFlippedByte) {
  const std::string copy = Copy();
  struct File {
    std::string name;
    int64_t size;
  };
  std::vector<File> files;
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    const std::string name = fs::relative(entry.path(), copy).string();
    if (!entry.is_regular_file() || name == "mark") continue;
    files.push_back({name, static_cast<int64_t>(entry.file_size())});
    total += files.back().size;
  }
  const char* const given = std::getenv("ASSAY_FLIP_SEED");
  const uint64_t seed =
      given == nullptr ? std::random_device{}() : std::strtoull(given, nullptr, 10);
  std::cout << "ASSAY_FLIP_SEED=" << seed << " bytes=" << total << "\n";
  std::mt19937_64 random(seed);

  for (int i = 0; i < 1000; ++i) {
    auto at = static_cast<int64_t>(random() % static_cast<uint64_t>(total));
    size_t k = 0;
    for (; at >= files[k].size; ++k)
      at -= files[k].size;
    const std::string path = JoinPath(copy, files[k].name);
    const auto bit = static_cast<unsigned char>(1U << (random() % 8));
    Flip(path, at, bit);

    bool is_named = false;
    Verify(copy, [&](const core::StoredFault& fault) {
      is_named |= fault.file == files[k].name && !fault.object.empty() && !fault.problem.empty();
    });

    ASSERT_TRUE(is_named) << files[k].name << " byte " << at << " bit " << int{bit};
    Flip(path, at, bit);
  }
  EXPECT_THAT(FaultsOf(copy), IsEmpty());
  EXPECT_THAT(Store::Open(JoinPath(copy, "assay.db")), IsOk()) << "looking changes nothing";
}

TEST_F(VerifyTest, NamesTableAndFrame) {
  const std::string copy = Copy();
  Flip(JoinPath(copy, "assay.db"), 4096 + 100, 1);
  Flip(JoinPath(copy, "assay.db-wal"), 32 + 4120 * 3 + 200, 1);

  const std::vector<std::string> faults = FaultsOf(copy);

  EXPECT_THAT(faults, Contains(HasSubstr("assay.db: page 2 (")));
  EXPECT_THAT(faults, Contains(HasSubstr("assay.db-wal: frame 4, page ")));
}

TEST_F(VerifyTest, NamesEditedRemovedAndInsertedEvents) {
  EXPECT_THAT(FaultsAfter("UPDATE events SET principal = 'mallory' WHERE seq = 3"),
              ElementsAre(HasSubstr("assay.db: event 3 (")));
  EXPECT_THAT(FaultsAfter("UPDATE events SET at_us = at_us + 1 WHERE seq = 9"),
              ElementsAre(HasSubstr("assay.db: event 9 (")));
  EXPECT_THAT(FaultsAfter("DELETE FROM events WHERE seq = 11"),
              ElementsAre(HasSubstr("events 11 to 11: they are missing"), HasSubstr("event 12 ("),
                          HasSubstr("lines 101 to 200 of run r-1 (event 14): they do not follow")))
      << "event 11 was about the first 100";
  EXPECT_THAT(FaultsAfter("UPDATE events SET seq = -seq WHERE seq IN (5, 6);"
                          "UPDATE events SET seq = 11 + seq WHERE seq < 0"),
              Contains(HasSubstr("event 5 (")));
  EXPECT_THAT(
      FaultsAfter("INSERT INTO events SELECT MAX(seq) + 1, at_us, type, version, principal, "
                  "submission_id, run_id, is_change, body, lines, chain FROM events"),
      ElementsAre(AllOf(HasSubstr("edited, removed or inserted"))));
  EXPECT_THAT(FaultsAfter("DELETE FROM events WHERE seq > 30"),
              Contains(HasSubstr("they were acknowledged and are missing")));
}

TEST_F(VerifyTest, NamesEditedRemovedAndInsertedLines) {
  EXPECT_THAT(
      FaultsAfter("UPDATE run_events SET text = CAST('forged' AS BLOB) WHERE run_id = 1 AND "
                  "ordinal = 777"),
      ElementsAre(HasSubstr("lines 701 to 800 of run r-1 (event ")));
  EXPECT_THAT(FaultsAfter("DELETE FROM run_events WHERE ordinal = 100"),
              ElementsAre(AllOf(HasSubstr("lines 1 to 100 of run r-1"), HasSubstr("99 of 100"))));
  EXPECT_THAT(
      FaultsAfter(
          "INSERT INTO run_events SELECT run_id, 2001, node_rank, 2001, kind, line, "
          "text, wall_us, mono_ns, receive_us, finding, is_late, is_attributed FROM run_events "
          "WHERE ordinal = 2000"),
      ElementsAre(HasSubstr("lines 2001 to 2001 of run r-1: no event is about them")));
}

TEST_F(VerifyTest, NamesArtifactsAndTheirRuns) {
  const std::string copy = Copy();
  const std::string sha256 = artifacts_->Put("file_3", std::string(9000, 'x') + "end")->sha256;
  const std::string file = absl::StrCat("artifacts/", sha256.substr(0, 2), "/", sha256);
  ASSERT_THAT(RemoveTree(JoinPath(copy, file)), IsOk());

  EXPECT_THAT(FaultsOf(copy),
              ElementsAre(AllOf(HasSubstr(absl::StrCat(file, ": artifact ", sha256)),
                                HasSubstr("file_3 of run r-1"))));

  const auto artifacts = *ArtifactStore::Open(JoinPath(copy, "artifacts"));
  ASSERT_THAT(artifacts->Put("file_3", std::string(9000, 'x') + "end"), IsOk());
  EXPECT_THAT(FaultsOf(copy), IsEmpty()) << "uploaded again";
}

TEST_F(VerifyTest, NamesWhatIsMissing) {
  const std::string copy = Copy();
  ASSERT_THAT(RemoveTree(JoinPath(copy, "mark")), IsOk());
  EXPECT_THAT(FaultsOf(copy), ElementsAre(HasSubstr("mark: the whole file: it is missing")));
  ASSERT_THAT(RemoveTree(JoinPath(copy, "assay.db")), IsOk());
  EXPECT_THAT(FaultsOf(copy), Contains(HasSubstr("assay.db: the whole file: it is missing")));
}

// Steps of a verification between commits and checkpoints of the daemon: nothing looks wrong.
TEST_F(VerifyTest, WorksBesideAWriter) {
  const auto checkpointer = *Checkpointer::Open(JoinPath(data_, "assay.db"));
  for (int round = 20; round < 40; ++round) {
    Verifier verifier(data_);
    while (!verifier.is_done()) {
      for (const core::StoredFault& fault : verifier.Step())
        ADD_FAILURE() << fault.file << " " << fault.object << " " << fault.problem;
      if (round % 3 == 0) {
        EXPECT_THAT(checkpointer->Run(), IsOk());
      }
      if (round % 2 == 0) world_->Submit();
    }
    Write(round);
  }
}

}  // namespace
}  // namespace assay::store
