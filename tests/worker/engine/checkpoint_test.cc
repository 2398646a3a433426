#include "worker/engine/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

class CheckpointTest : public ::testing::Test {
 protected:
  static std::vector<CheckpointSection> Sections(std::vector<float>* parameters,
                                                 std::vector<float>* velocity) {
    return {{"parameters", std::as_writable_bytes(std::span(*parameters))},
            {"velocity", std::as_writable_bytes(std::span(*velocity))}};
  }

  void SetUp() override {
    ASSERT_THAT(WriteCheckpoint(path_, {"run-1", {3, 14}}, Sections(&parameters_, &velocity_)),
                IsOk());
  }

  absl::StatusOr<TrainingPosition> Read(absl::string_view identity = "run-1") {
    return ReadCheckpoint(path_, identity, Sections(&read_parameters_, &read_velocity_));
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("checkpoint");
  std::vector<float> parameters_ = {1.5F, -0.0F, 3e-42F};  // a denormal keeps its bits
  std::vector<float> velocity_ = {0.25F};
  std::vector<float> read_parameters_ = {9, 9, 9}, read_velocity_ = {9};
};

TEST_F(CheckpointTest, GivesBackWhatWasWritten) {
  EXPECT_THAT(Read(), IsOkAndHolds(TrainingPosition{3, 14}));
  EXPECT_EQ(read_parameters_, parameters_);
  EXPECT_EQ(read_velocity_, velocity_);
}

// The format is written down: a change of it must change its version.
TEST_F(CheckpointTest, HasTheFormatItsVersionNames) {
  const std::string file = ReadFile(path_).value();
  const std::string text =
      "assay-checkpoint 1\n"
      "{\"identity\": \"run-1\", \"epoch\": 3, \"step\": 14, \"sections\": [{\"name\": "
      "\"parameters\", \"bytes\": 12}, {\"name\": \"velocity\", \"bytes\": 4}]}\n";
  ASSERT_EQ(file.size(), text.size() + 16 + 64);
  EXPECT_EQ(file.substr(0, text.size()), text);
  EXPECT_EQ(file.substr(file.size() - 64), Sha256Hex(file.substr(0, file.size() - 64)));
}

TEST_F(CheckpointTest, ADamagedOrShortenedFileIsDataLoss) {
  const std::string file = ReadFile(path_).value();
  for (const size_t at : {size_t{0}, size_t{30}, file.size() - 70, file.size() - 1}) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    ASSERT_THAT(WriteFileAtomic(path_, damaged), IsOk());
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_))) << at;
  }
  for (size_t size = 0; size < file.size(); size += 7) {
    ASSERT_THAT(WriteFileAtomic(path_, file.substr(0, size)), IsOk());
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_))) << size;
  }
  EXPECT_EQ(read_parameters_, (std::vector<float>{9, 9, 9})) << "nothing was taken over";
}

TEST_F(CheckpointTest, RefusesThatOfAnotherRunOrModel) {
  EXPECT_THAT(Read("run-2"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another run")));
  read_velocity_.resize(2);
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another model")));
}

TEST_F(CheckpointTest, IsNotFoundWhereThereIsNone) {
  ASSERT_THAT(RemoveTree(path_), IsOk());
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay
