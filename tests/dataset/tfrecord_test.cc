#include "common/dataset/tfrecord.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Hex(absl::string_view bytes) {
  return absl::BytesToHexString(bytes);
}

std::string WriteRecordFile(const TempDir& dir, absl::string_view content) {
  const std::string path = dir.Path("a.tfrecord");
  WriteFile(path, content);
  return path;
}

// The header that TensorFlow writes for a 128^3 sample.
TEST(TfRecordTest, FramesALengthAsTensorFlowDoes) {
  const std::string record = FrameRecord(std::string(16777271, 'a'));

  EXPECT_EQ(Hex(record.substr(0, 12)), "37000001000000000579a20a");
  EXPECT_EQ(record.size(), 16777287U);
}

TEST(TfRecordTest, ReadsBackAllRecords) {
  const std::string bytes = FrameRecord("first") + FrameRecord("") + FrameRecord("third");
  RecordReader reader(bytes);

  for (const absl::string_view want : {"first", "", "third"}) {
    const absl::StatusOr<std::optional<absl::string_view>> payload = reader.Next();
    ASSERT_THAT(payload, IsOk());
    EXPECT_EQ(*payload, want);
  }
  EXPECT_THAT(reader.Next(), IsOkAndHolds(std::nullopt));
}

TEST(TfRecordTest, ReadsPlainAndCompressedFiles) {
  const TempDir dir;
  const std::string payload(100000, 'p');
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const std::string record = FrameRecord(payload);
    const std::string path =
        WriteRecordFile(dir, compression == Compression::kGzip ? Gzip(record) : record);
    RecordFile file(compression);

    EXPECT_THAT(file.ReadOnly(path), IsOkAndHolds(payload));
    EXPECT_THAT(file.ReadOnly(path), IsOkAndHolds(payload));  // buffers are used again
  }
}

// Goal: no damaged byte gets through, and the error names the file. Method: flip every byte of a
// short file in turn.
TEST(TfRecordTest, NoticesDamageAtEveryByte) {
  const TempDir dir;
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const std::string record = FrameRecord("some payload of some length");
    const std::string good = compression == Compression::kGzip ? Gzip(record) : record;
    // Bytes 4 to 9 of a gzip header (time, flags of the packer, system) carry no content.
    for (size_t i = 0; i < good.size(); ++i) {
      if (compression == Compression::kGzip && i >= 4 && i < 10) continue;
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x40);
      const std::string path = WriteRecordFile(dir, bad);
      RecordFile file(compression);
      const absl::Status status = file.ReadOnly(path).status();

      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(path), HasSubstr("byte "))))
          << i;
      EXPECT_TRUE(ErrorOffset(status).has_value());
    }
  }
}

TEST(TfRecordTest, NamesTheOffsetOfTheDamage) {
  const TempDir dir;
  std::string two = FrameRecord("0123456789") + FrameRecord("abc");
  two[26 + 12] = 'X';  // first byte of the second payload
  RecordReader reader(two);

  EXPECT_THAT(reader.Next(), IsOk());
  const absl::Status status = reader.Next().status();
  EXPECT_EQ(ErrorOffset(status), 38);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("payload")));
}

TEST(TfRecordTest, NoticesTruncationAtEveryLength) {
  const TempDir dir;
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const std::string record = FrameRecord("some payload");
    const std::string good = compression == Compression::kGzip ? Gzip(record) : record;
    for (size_t size = 0; size < good.size(); ++size) {
      RecordFile file(compression);
      EXPECT_THAT(file.ReadOnly(WriteRecordFile(dir, good.substr(0, size))),
                  StatusIs(absl::StatusCode::kDataLoss))
          << size;
    }
  }
}

TEST(TfRecordTest, RefusesWhatFollowsTheOnlyRecord) {
  const TempDir dir;
  const std::string record = FrameRecord("x");

  EXPECT_THAT(RecordFile(Compression::kNone).ReadOnly(WriteRecordFile(dir, record + record)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte 17")));
  EXPECT_THAT(RecordFile(Compression::kGzip).ReadOnly(WriteRecordFile(dir, Gzip(record) + "x")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("follow")));
}

TEST(TfRecordTest, AbsentFileIsNotFound) {
  EXPECT_THAT(RecordFile(Compression::kNone).ReadOnly("/nowhere/at/all.tfrecord"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/at/all.tfrecord")));
}

TEST(TfRecordTest, ParsesCompressionNames) {
  EXPECT_THAT(ParseCompression("none"), IsOkAndHolds(Compression::kNone));
  EXPECT_THAT(ParseCompression("gzip"), IsOkAndHolds(Compression::kGzip));
  EXPECT_THAT(ParseCompression("GZIP"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::dataset
