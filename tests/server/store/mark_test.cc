#include "server/store/mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/core/apply.h"
#include "server/store/chain_rows.h"
#include "server/store/checked_vfs.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Mark SomeMark(int64_t seq) {
  return {.identity = std::string(32, 'a'),
          .seq = seq,
          .chain = std::string(32, static_cast<char>(seq)),
          .last_submission = 3,
          .last_run = 4,
          .last_token = 5,
          .wal = {1, 2, 3}};
}

void Flip(const std::string& path, int64_t offset) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  unsigned char byte = 0;
  CHECK(pread(fd.get(), &byte, 1, offset) == 1) << path << " " << offset;
  byte ^= 0x04;
  CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
}

class MarkFileTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.Path("mark");
};

TEST_F(MarkFileTest, SaysWhatWasWrittenLast) {
  EXPECT_EQ(ReadMark(path_)->mark, std::nullopt);
  {
    auto file = *MarkFile::Open(path_, SomeMark(1));
    EXPECT_EQ(ReadMark(path_)->mark, SomeMark(1));
    for (int64_t seq = 2; seq < 6; ++seq) {
      ASSERT_THAT(file->Write(SomeMark(seq)), IsOk());
      const auto reading = ReadMark(path_);
      EXPECT_EQ(reading->mark, SomeMark(seq));
      EXPECT_THAT(reading->problems, IsEmpty());
    }
  }
  auto again = *MarkFile::Open(path_, SomeMark(9));
  EXPECT_EQ(ReadMark(path_)->mark, SomeMark(9));
  EXPECT_EQ(*FileSize(path_), 8192) << "it does not grow";
}

TEST_F(MarkFileTest, ATornWriteLeavesTheOneBefore) {
  {
    auto file = *MarkFile::Open(path_, SomeMark(1));
    ASSERT_THAT(file->Write(SomeMark(2)), IsOk());
    ASSERT_THAT(file->Write(SomeMark(3)), IsOk());
  }
  Flip(path_, 60);  // mark 3 is where mark 1 was

  const auto reading = ReadMark(path_);

  EXPECT_EQ(reading->mark, SomeMark(2));
  EXPECT_THAT(reading->problems, SizeIs(1));
  auto repaired = *MarkFile::Open(path_, *reading->mark);
  EXPECT_THAT(ReadMark(path_)->problems, IsEmpty());
}

// ------------------------------------------------------------------------ a database with its mark

// A world in a directory, which can be copied as a crash would leave it.
class HighWaterTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.Path("data/" + name); }

  absl::Status Open(const OpenOptions& options = {}) {
    store_.reset();
    auto store = Store::Open(Path("assay.db"), options);
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  }

  void SetUp() override {
    ASSERT_THAT(MakeDirectories(dir_.Path("data")), IsOk());
    ASSERT_THAT(Open(), IsOk());
    world_ =
        std::make_unique<World>([this](const core::Outcome& outcome, const core::State& state) {
          CHECK_OK(store_->Commit(outcome, state));
        });
    ASSERT_THAT(world_->Sync("w0"), IsOk());
    for (int i = 0; i < 10; ++i)
      world_->Submit();
  }

  // As if the process had been killed now.
  void Crash() {
    std::map<std::string, std::string> files;
    const auto names = ListDirectory(dir_.Path("data"));
    for (const std::string& name : *names)
      files[name] = *ReadFile(Path(name));
    store_.reset();
    CHECK_OK(RemoveTree(dir_.Path("data")));
    CHECK_OK(MakeDirectories(dir_.Path("data")));
    for (const auto& [name, content] : files)
      CHECK_OK(WriteFileAtomic(Path(name), content));
  }

  core::State Load() {
    auto state = store_->Load();
    CHECK_OK(state.status());
    return *state;
  }

  // Refused; then accepted, and nothing that was given is given again.
  void ExpectLossOf(const std::string& words) {
    EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr(words)));
    EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr("--accept_data_loss")));
    ASSERT_THAT(Open({.is_loss_accepted = true, .now_us = 77}), IsOk());
    const core::State state = Load();
    EXPECT_EQ(state.last_submission, 10);
    EXPECT_EQ(state.last_run, 10);
    EXPECT_GT(state.last_seq, world_->state().last_seq);
    const auto reader = *Reader::Open(Path("assay.db"));
    const std::vector<core::AuditRow> audit =
        *reader->Audit({.is_newest_first = true, .has_bodies = true});
    const core::EventRow& last = audit.front().event;
    EXPECT_EQ(last.type, "DataLossAccepted");
    EXPECT_EQ(last.seq, state.last_seq);
    EXPECT_THAT(last.body_json, HasSubstr(words));
    world_->core().Reset(state);
    world_->Do(core::AddDataset{core::testing::SomeDataset()}).IgnoreError();
    EXPECT_EQ(world_->Submit(), core::SubmissionId{11});
    EXPECT_THAT(Open(), IsOk()) << "once is enough";
  }

  TempDir dir_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<World> world_;
};

TEST_F(HighWaterTest, AnOrderlyEndNeedsNoLog) {
  store_.reset();
  EXPECT_FALSE(FileExists(Path("assay.db-wal")));
  EXPECT_EQ(ReadMark(Path("mark"))->mark->wal, WalExtent{});
}

TEST_F(HighWaterTest, AnOrderlyEndAndACrashAreNoLoss) {
  EXPECT_THAT(Open(), IsOk());
  EXPECT_EQ(Load(), world_->state());
  world_->Submit();
  Crash();
  ASSERT_GT(*FileSize(Path("assay.db-wal")), 0);
  EXPECT_THAT(Open(), IsOk());
  EXPECT_EQ(Load(), world_->state());
  Crash();
  EXPECT_THAT(Open(), IsOk()) << "before the first commit of the new process";
  EXPECT_EQ(Load(), world_->state());
}

// The commit is there, its mark is not: a crash in between. The mark is never ahead.
TEST_F(HighWaterTest, AMarkMayBeBehind) {
  const std::string before = *ReadFile(Path("mark"));
  world_->Submit();
  EXPECT_EQ(ReadMark(Path("mark"))->mark->seq, world_->state().last_seq);
  Crash();
  ASSERT_THAT(WriteFileAtomic(Path("mark"), before), IsOk());

  EXPECT_THAT(Open(), IsOk());

  EXPECT_EQ(Load(), world_->state());
  EXPECT_EQ(ReadMark(Path("mark"))->mark->seq, world_->state().last_seq);
}

TEST_F(HighWaterTest, NoticesAFlippedBitInTheLog) {
  Crash();
  const int64_t frames = (*FileSize(Path("assay.db-wal")) - kWalHeaderBytes) / kFrameBytes;
  Flip(Path("assay.db-wal"), kWalHeaderBytes + frames / 2 * kFrameBytes + 777);
  ExpectLossOf(absl::StrCat("frame ", frames / 2 + 1, " of assay.db-wal"));
}

TEST_F(HighWaterTest, NoticesADamagedHeaderOfTheLog) {
  Crash();
  Flip(Path("assay.db-wal"), 17);
  ExpectLossOf("header of assay.db-wal");
}

TEST_F(HighWaterTest, NoticesALogThatWasCut) {
  Crash();
  const int64_t size = *FileSize(Path("assay.db-wal"));
  ASSERT_EQ(truncate(Path("assay.db-wal").c_str(), size / 2), 0);
  ExpectLossOf("assay.db-wal ends after");
}

TEST_F(HighWaterTest, NoticesALogThatWasRemoved) {
  Crash();
  ASSERT_THAT(RemoveTree(Path("assay.db-wal")), IsOk());
  ExpectLossOf("assay.db-wal is missing");
}

TEST_F(HighWaterTest, NoticesADatabaseThatWasRemoved) {
  ASSERT_THAT(Open(), IsOk());
  store_.reset();
  ASSERT_THAT(RemoveTree(Path("assay.db")), IsOk());
  ExpectLossOf("assay.db is missing or empty; it held events 1 to");
}

TEST_F(HighWaterTest, NoticesAnOlderCopy) {
  store_.reset();
  const std::string older = *ReadFile(Path("assay.db"));
  ASSERT_THAT(Open(), IsOk());
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(world_->Do(core::DrainWorker{"w0", "disk"}), IsOk());
  store_.reset();
  const int64_t seq = world_->state().last_seq;
  ASSERT_THAT(WriteFileAtomic(Path("assay.db"), older), IsOk());
  ExpectLossOf(absl::StrCat("events ", seq, " to ", seq, " are missing"));
}

TEST_F(HighWaterTest, NoticesAnotherDatabase) {
  store_.reset();
  ASSERT_THAT(MakeDirectories(dir_.Path("other")), IsOk());
  ASSERT_THAT(Store::Open(dir_.Path("other/assay.db")), IsOk());
  std::filesystem::rename(dir_.Path("other/assay.db"), Path("assay.db"));
  ExpectLossOf("another database");
}

TEST_F(HighWaterTest, NoticesAnotherHistoryOfTheSameDatabase) {
  store_.reset();
  const std::string older = *ReadFile(Path("assay.db"));
  const std::string older_mark = *ReadFile(Path("mark"));
  const core::State state = world_->state();
  ASSERT_THAT(Open(), IsOk());
  ASSERT_THAT(world_->Do(core::DrainWorker{"w0", "one history"}), IsOk());
  store_.reset();
  const std::string mark = *ReadFile(Path("mark"));
  // From the same start, something else.
  ASSERT_THAT(WriteFileAtomic(Path("assay.db"), older), IsOk());
  ASSERT_THAT(WriteFileAtomic(Path("mark"), older_mark), IsOk());
  ASSERT_THAT(Open(), IsOk());
  world_->core().Reset(state);
  ASSERT_THAT(world_->Do(core::DrainWorker{"w0", "another history"}), IsOk());
  store_.reset();
  ASSERT_THAT(WriteFileAtomic(Path("mark"), mark), IsOk());
  ExpectLossOf("is not the one that was acknowledged");
}

TEST_F(HighWaterTest, NoticesAMissingOrDamagedMark) {
  store_.reset();
  const std::string mark = *ReadFile(Path("mark"));
  ASSERT_THAT(RemoveTree(Path("mark")), IsOk());
  EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr("the file mark is missing")));
  ASSERT_THAT(WriteFileAtomic(Path("mark"), std::string(8192, 'x')), IsOk());
  EXPECT_THAT(Open(), StatusIs(kDataLoss, HasSubstr("line 1 is damaged")));
  ASSERT_THAT(WriteFileAtomic(Path("mark"), mark), IsOk());
  EXPECT_THAT(Open(), IsOk());
  EXPECT_EQ(Load(), world_->state());
}

TEST_F(HighWaterTest, NoticesThatOnlyTheDatabaseIsMissing) {
  TempDir dir;
  EXPECT_THAT(Store::Open(dir.Path("assay.db"), {.is_database_expected = true}),
              StatusIs(kDataLoss, HasSubstr("assay.db is missing")));
  EXPECT_FALSE(FileExists(dir.Path("assay.db"))) << "a refusal makes nothing";
  EXPECT_THAT(Store::Open(dir.Path("assay.db")), IsOk());
}

// ------------------------------------------------------------------------------- the chain of
// hashes

// What migration 0004 does for the events of an older database.
TEST_F(HighWaterTest, ChainingStoredEventsGivesWhatCommitsGave) {
  world_->Executing("w0", core::RunId{1});
  std::vector<core::RunEvent> lines;
  for (int64_t seq = 1; seq <= 500; ++seq)
    lines.push_back({.seq = seq, .text = absl::StrCat("line ", seq), .line = seq});
  ASSERT_THAT(world_->Do(core::AppendRunEvents{core::RunId{1}, 1, 0, lines, "w0"}), IsOk());
  store_.reset();
  Db db = *Db::Open(Path("assay.db"), OpenMode::kReadWriteCreate);
  const auto head = [&]() -> std::string {
    Stmt select =
        *db.Prepare("SELECT HEX(chain) || HEX(lines) FROM events ORDER BY seq DESC LIMIT 1");
    CHECK(*select.Step());
    return std::string(select.Text(0));
  };
  const std::string chain = head();
  ASSERT_THAT(db.Exec("UPDATE events SET chain = x'', lines = x''"), IsOk());

  ASSERT_THAT(db.Transact([&] { return ChainStoredEvents(&db); }), IsOk());

  EXPECT_EQ(head(), chain);
}

}  // namespace
}  // namespace assay::store
