#include "server/core/types.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;

TEST(IdTest, ReadsBackWhatItWrites) {
  EXPECT_EQ(SubmissionId{42}.ToString(), "e-42");
  EXPECT_THAT(ParseSubmissionId("e-42"), IsOkAndHolds(SubmissionId{42}));
  EXPECT_THAT(ParseRunId("r-9223372036854775807"), IsOkAndHolds(RunId{9223372036854775807}));
  EXPECT_THAT(ParseTokenId("t-7"), IsOkAndHolds(TokenId{7}));
}

TEST(IdTest, RefusesEverythingElse) {
  for (const char* text : {"", "e", "e-", "e-0", "e-01", "e--1", "e-+1", "r-1", "e-1 ", " e-1",
                           "e-9223372036854775808", "E-1", "e-1x"})
    EXPECT_THAT(ParseSubmissionId(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
}

TEST(NameTest, TakesHostNamesOnly) {
  for (const char* name : {"w0", "node-17.rack_2", "0"})
    EXPECT_TRUE(CheckName("worker", name).ok()) << name;
  for (const char* name : {"", "-w", ".w", "W0", "a/b", "a b", "\xc3\xa9"})
    EXPECT_FALSE(CheckName("worker", name).ok()) << name;
  EXPECT_FALSE(CheckName("worker", std::string(64, 'a')).ok());
}

TEST(FailureTest, TellsTrainersFromInfrastructure) {
  for (const int code : {0, 4, 9, 137, 139})
    EXPECT_FALSE(IsTrainerFailure(code)) << code;
  for (const int code : {1, 2, 3, 5, 6, 7, 8, 126, 127, 128})
    EXPECT_TRUE(IsTrainerFailure(code)) << code;
}

TEST(StateNamesTest, ReadBack) {
  EXPECT_EQ(ParseRunState("UPLOADING"), RunState::kUploading);
  EXPECT_EQ(ParseRunState("NONE"), std::nullopt);
  EXPECT_EQ(ParseSubmissionState("CHECKING"), SubmissionState::kChecking);
  EXPECT_EQ(ParseSubmissionState(""), std::nullopt);
}

}  // namespace
}  // namespace assay::core
