#include "server/store/artifacts.h"

#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/status.h"
#include "server/store/data_directory.h"
#include "server/store/store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ArtifactsTest : public ::testing::Test {
 protected:
  static core::ArtifactRef Announce(const std::string& bytes) {
    return {"result_1.txt", Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
  }

  absl::StatusOr<std::string> ReadVerified(const std::string& sha256) const {
    std::string bytes;
    RETURN_IF_ERROR(store_->ReadVerified(
        sha256, [&bytes](absl::string_view piece) { bytes.append(piece.data(), piece.size()); }));
    return bytes;
  }

  TempDir dir_;
  std::unique_ptr<ArtifactStore> store_ = *ArtifactStore::Open(dir_.Path("artifacts"));
};

TEST_F(ArtifactsTest, KeepsBytesUnderTheirDigest) {
  const core::ArtifactRef announced = Announce("hello world");
  auto writer = *store_->Begin(announced);
  ASSERT_THAT(writer->Append("hello "), IsOk());
  ASSERT_THAT(writer->Append("world"), IsOk());

  EXPECT_THAT(writer->Finish(), IsOkAndHolds(announced));

  EXPECT_THAT(ReadVerified(announced.sha256), IsOkAndHolds("hello world"));
  EXPECT_THAT(store_->Put("again.txt", "hello world"), IsOk()) << "the same bytes once more";
}

TEST_F(ArtifactsTest, RefusesWhatWasNotAnnounced) {
  auto other = *store_->Begin(Announce("hello"));
  ASSERT_THAT(other->Append("jello"), IsOk());
  EXPECT_THAT(other->Finish(), StatusIs(absl::StatusCode::kDataLoss));
  auto longer = *store_->Begin(Announce("hello"));
  EXPECT_THAT(longer->Append("hello!"), StatusIs(absl::StatusCode::kInvalidArgument));
  auto shorter = *store_->Begin(Announce("hello"));
  EXPECT_THAT(shorter->Finish(), StatusIs(absl::StatusCode::kDataLoss));

  EXPECT_THAT(ReadVerified(Sha256Hex("hello")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ArtifactsTest, RefusesNamesThatCouldLeadElsewhere) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(store_->Begin({"x", "../../etc/passwd", 1}), StatusIs(kInvalid));
  EXPECT_THAT(store_->Begin({"x", std::string(64, 'A'), 1}), StatusIs(kInvalid));
  EXPECT_THAT(store_->Begin({"", Sha256Hex(""), 1}), StatusIs(kInvalid));
  EXPECT_THAT(store_->Begin({"x", Sha256Hex(""), -1}), StatusIs(kInvalid));
  EXPECT_THAT(store_->Begin({"x", Sha256Hex(""), kArtifactBytesMax + 1}), StatusIs(kInvalid));
  EXPECT_THAT(store_->OpenReader(".."), StatusIs(kInvalid));
  EXPECT_THAT(store_->OpenReader(Sha256Hex("none")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ArtifactsTest, LeavesNothingOfAnUploadThatEndsEarly) {
  {
    auto writer = *store_->Begin(Announce("hello"));
    ASSERT_THAT(writer->Append("he"), IsOk());
  }
  EXPECT_THAT(ListDirectory(dir_.Path("artifacts/partial")), IsOkAndHolds(IsEmpty()));

  auto crashed = *store_->Begin(Announce("hello"));
  store_ = *ArtifactStore::Open(dir_.Path("artifacts"));
  EXPECT_THAT(ListDirectory(dir_.Path("artifacts/partial")), IsOkAndHolds(IsEmpty()));
}

TEST_F(ArtifactsTest, NoticesChangedBytes) {
  const core::ArtifactRef ref = *store_->Put("x", "hello");
  const std::string path = dir_.Path("artifacts/" + ref.sha256.substr(0, 2) + "/" + ref.sha256);
  ASSERT_THAT(WriteFileAtomic(path, "jello"), IsOk());

  EXPECT_THAT(ReadVerified(ref.sha256), StatusIs(absl::StatusCode::kDataLoss));
}

// Whoever stops at the error has not got all, and whoever gets all has got it right.
TEST_F(ArtifactsTest, HoldsTheLastPieceBackUntilAllIsRight) {
  const std::string bytes(3 * ArtifactReader::kPieceBytes + 100, 'x');
  const core::ArtifactRef ref = *store_->Put("x", bytes);
  const std::string path = dir_.Path("artifacts/" + ref.sha256.substr(0, 2) + "/" + ref.sha256);
  const auto read_all = [&](std::string* all) -> absl::Status {
    const auto reader = *store_->OpenReader(ref.sha256);
    while (true) {
      const absl::StatusOr<std::string> piece = reader->Next();
      if (!piece.ok() || piece->empty()) return piece.status();
      *all += *piece;
    }
  };
  std::string all;
  EXPECT_THAT(read_all(&all), IsOk());
  EXPECT_EQ(all, bytes);

  for (const size_t size : {size_t{0}, size_t{100}, bytes.size() - 1, bytes.size()}) {
    std::string changed = bytes.substr(0, size);
    if (size == bytes.size()) changed[70000] = 'y';
    ASSERT_THAT(WriteFileAtomic(path, changed), IsOk());
    all.clear();
    EXPECT_THAT(read_all(&all), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("(artifacts/")));
    EXPECT_LT(all.size(), std::max(changed.size(), size_t{1}));
  }

  ASSERT_THAT(store_->Put("x", bytes), IsOk());
  all.clear();
  EXPECT_THAT(read_all(&all), IsOk());
  EXPECT_EQ(all, bytes) << "the upload of the same bytes has repaired it";
}

// Lines as logs have them, with numbers that no compressor knows beforehand.
std::string SomeLog(int line_count) {
  std::mt19937 random(1);
  std::string log;
  for (int i = 0; i < line_count; ++i)
    absl::StrAppend(&log, ":::MLLOG {\"key\": \"eval_error\", \"value\": ", random(), "}\n");
  return log;
}

TEST_F(ArtifactsTest, WhatIsCompressedIsReadAsItWas) {
  for (const int line_count : {100, 1300, 1311, 20000}) {  // of pieces, whole and not
    const std::string log = SomeLog(line_count);
    const core::ArtifactRef ref = *store_->Put("x", log);

    const absl::StatusOr<int64_t> saved = store_->Compress(ref.sha256);
    ASSERT_THAT(saved, IsOk());

    EXPECT_GT(*saved, std::ssize(log) / 2);
    EXPECT_EQ(store_->StoredBytes(ref.sha256), std::ssize(log) - *saved);
    EXPECT_TRUE(store_->IsCompressed(ref.sha256));
    EXPECT_FALSE(FileExists(dir_.Path(FileOfArtifact(ref.sha256)))) << "the old file is gone";
    EXPECT_TRUE(store_->Has(ref.sha256));
    EXPECT_THAT(store_->SizeOf(ref.sha256), IsOkAndHolds(std::ssize(log)));
    EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(log));
    EXPECT_THAT(store_->Compress(ref.sha256), IsOkAndHolds(0)) << "once more";
    ASSERT_THAT(store_->Remove(ref.sha256), IsOk());
    EXPECT_FALSE(store_->Has(ref.sha256));
  }
}

TEST_F(ArtifactsTest, WhatWouldNotBeSmallerStays) {
  std::mt19937 random(1);
  std::string noise(100'000, '\0');
  for (char& byte : noise)
    byte = static_cast<char>(random());
  for (const std::string& bytes : {noise, std::string("short, short, short, short")}) {
    const core::ArtifactRef ref = *store_->Put("x", bytes);
    EXPECT_THAT(store_->Compress(ref.sha256), IsOkAndHolds(0));
    EXPECT_FALSE(store_->IsCompressed(ref.sha256));
    EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(bytes));
  }
  EXPECT_THAT(ListDirectory(dir_.Path("artifacts/partial")), IsOkAndHolds(IsEmpty()));
}

TEST_F(ArtifactsTest, DamagedBytesAreNotCompressed) {
  const core::ArtifactRef ref = *store_->Put("x", SomeLog(1000));
  ASSERT_THAT(WriteFileAtomic(dir_.Path(FileOfArtifact(ref.sha256)), SomeLog(999)), IsOk());

  EXPECT_THAT(store_->Compress(ref.sha256), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_FALSE(store_->IsCompressed(ref.sha256));
}

TEST_F(ArtifactsTest, ADamagedCompressedOneIsNeverReadAsAnother) {
  const std::string log = SomeLog(100);
  const core::ArtifactRef ref = *store_->Put("x", log);
  ASSERT_THAT(store_->Compress(ref.sha256), IsOk());
  const std::string path = dir_.Path(store_->FileOf(ref.sha256));
  const std::string stored = *ReadFile(path);

  size_t tried_count = 0;
  size_t noticed_count = 0;
  for (size_t at = 0; at < stored.size(); at += 7, ++tried_count) {
    std::string changed = stored;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    ASSERT_THAT(WriteFileAtomic(path, changed), IsOk());
    const absl::StatusOr<std::string> read = ReadVerified(ref.sha256);
    // Some bits of a frame fill it up, and mean nothing for what is read.
    if (read.ok()) {
      EXPECT_EQ(*read, log) << at;
    } else {
      ++noticed_count;
      EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(".zst)")));
    }
    ASSERT_THAT(WriteFileAtomic(path, stored.substr(0, at)), IsOk());
    EXPECT_THAT(ReadVerified(ref.sha256), StatusIs(absl::StatusCode::kDataLoss)) << at;
  }

  EXPECT_GT(noticed_count, tried_count * 9 / 10);

  ASSERT_THAT(store_->Put("x", log), IsOk());
  EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(log)) << "the same bytes repair it";
  ASSERT_THAT(store_->Compress(ref.sha256), IsOk());
  EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(log));
}

// A crash may leave what was written, both files, or the compressed one alone; then all is there,
// and the next try comes to the same.
TEST_F(ArtifactsTest, ACrashWhileCompressingLosesNothing) {
  const std::string log = SomeLog(1000);
  const core::ArtifactRef ref = *store_->Put("x", log);
  const std::string path = dir_.Path(FileOfArtifact(ref.sha256));
  ASSERT_THAT(store_->Compress(ref.sha256), IsOk());
  const std::string compressed = *ReadFile(path + kCompressedSuffix);
  const auto leave = [&](bool is_raw_there, bool is_compressed_there, size_t partial_bytes) {
    ASSERT_THAT(store_->Remove(ref.sha256), IsOk());
    if (is_raw_there) {
      ASSERT_THAT(WriteFileAtomic(path, log), IsOk());
    }
    if (is_compressed_there) {
      ASSERT_THAT(WriteFileAtomic(path + kCompressedSuffix, compressed), IsOk());
    }
    const std::string partial = dir_.Path("artifacts/partial/compressed_x");
    ASSERT_THAT(WriteFileAtomic(partial, compressed.substr(0, partial_bytes)), IsOk());
    store_ = *ArtifactStore::Open(dir_.Path("artifacts"));
  };
  for (const auto& [is_raw_there, is_compressed_there, partial_bytes] :
       {std::tuple{true, false, size_t{0}},
        {true, false, size_t{100}},
        {true, true, size_t{0}},
        {false, true, size_t{0}}}) {
    leave(is_raw_there, is_compressed_there, partial_bytes);
    EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(log));
    ASSERT_THAT(store_->Compress(ref.sha256), IsOk());
    EXPECT_FALSE(FileExists(path));
    EXPECT_THAT(ReadVerified(ref.sha256), IsOkAndHolds(log));
    EXPECT_THAT(ListDirectory(dir_.Path("artifacts/partial")), IsOkAndHolds(IsEmpty()));
  }
}

TEST_F(ArtifactsTest, AReaderThatHasBegunIsNotDisturbed) {
  const std::string log = SomeLog(20000);
  const core::ArtifactRef ref = *store_->Put("x", log);
  const auto reader = *store_->OpenReader(ref.sha256);
  std::string read = *reader->Next();

  ASSERT_THAT(store_->Compress(ref.sha256), IsOk());

  for (std::string piece = *reader->Next(); !piece.empty(); piece = *reader->Next())
    read += piece;
  EXPECT_EQ(read, log);
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

// Whatever the umask: nobody but the owner reads submissions, hashes of tokens or logs.
TEST(DataDirectoryTest, FilesAreTheOwnersAlone) {
  TempDir dir;
  const std::string data = dir.Path("data");
  const mode_t before = umask(0);
  const auto directory = DataDirectory::Open(data);
  const auto artifacts = ArtifactStore::Open(directory->artifacts_path());
  const auto ref = (*artifacts)->Put("x", "hello");
  const auto store = Store::Open(directory->database_path());
  umask(before);
  ASSERT_THAT(store, IsOk());
  ASSERT_THAT(ref, IsOk());

  int file_count = 0;
  EXPECT_EQ(ModeOf(data), 0700U);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    ++file_count;
    EXPECT_EQ(ModeOf(entry.path()), entry.is_directory() ? 0700U : 0600U) << entry.path();
  }
  EXPECT_GE(file_count, 9) << "lock, secret, three of the database, four of the artifact";
}

TEST(DataDirectoryTest, TightensWhatAnOlderProgramLeftOpen) {
  TempDir dir;
  const std::string data = dir.Path("data");
  const mode_t before = umask(0);
  ASSERT_THAT(MakeDirectories(dir.Path("data/artifacts/ab")), IsOk());
  ASSERT_THAT(MakeDirectories(dir.Path("data/w0/run")), IsOk());
  for (const char* name : {"assay.db", "assay.db-wal", "assay.db-shm", "assay.db.v1.bak", "secret",
                           "address", "lock", "artifacts/ab/abcd"})
    ASSERT_THAT(WriteFileAtomic(JoinPath(data, name), ""), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("data/address.tmp3"), ""), IsOk());
  umask(before);

  const auto directory = DataDirectory::Open(data);

  ASSERT_THAT(directory, IsOk());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().filename() == "run") continue;  // below an agent's directory: not ours
    EXPECT_EQ(ModeOf(entry.path()) & 077U, 0U) << entry.path();
  }
  EXPECT_EQ(ModeOf(data), 0700U);
  EXPECT_FALSE(FileExists(dir.Path("data/address.tmp3")));
}

TEST(DataDirectoryTest, AdmitsOneDaemonAndKeepsItsSecret) {
  TempDir dir;
  std::string secret;
  {
    auto first = DataDirectory::Open(dir.Path("data"));
    ASSERT_THAT(first, IsOk());
    secret = *first->Secret();
    EXPECT_EQ(secret.size(), 64u);
    EXPECT_THAT(DataDirectory::Open(dir.Path("data")),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("in use")));
  }
  EXPECT_THAT(DataDirectory::Open(dir.Path("data"))->Secret(), IsOkAndHolds(secret));
}

}  // namespace
}  // namespace assay::store
