#include "worker/agent/run_directory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

TEST(RunDirectoryTest, NamesGoThereAndBack) {
  const RunKey key{"runs/r-901", 3};
  const absl::StatusOr<RunDirectory> directory = RunDirectory::ForRun("/data", key);
  ASSERT_THAT(directory, IsOk());
  EXPECT_EQ(directory->path(), "/data/runs/r-901-g3");
  EXPECT_EQ(RunDirectory::ParseName("r-901-g3"), key);
}

TEST(RunDirectoryTest, NoNameLeadsOutOfTheDataDirectory) {
  for (const char* bad : {"", "runs/", "runs/..", "runs/a/b", "runs/a b", "r-1", "runs/a\n"}) {
    EXPECT_THAT(RunDirectory::ForRun("/data", {bad, 1}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  EXPECT_THAT(RunDirectory::ForRun("/data", {"runs/a", 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (const char* bad : {"", "r-1", "r-1-g", "r-1-g0", "r-1-gx", "-g1", ".."})
    EXPECT_EQ(RunDirectory::ParseName(bad), std::nullopt) << bad;
}

TEST(RunDirectoryTest, RecordsReadBackAsWritten) {
  const TempDir dir;
  const RunDirectory directory(dir.path());
  const StepExit exit{137, "killed \"hard\"\n\xff"};
  const Touch touch{.path = "/d/train/a",
                    .mechanism = "fanotify",
                    .access = "read",
                    .is_attributed = true,
                    .pid = 4,
                    .process = "assay-train",
                    .stamp = {1'700'000'000'123'456, 42},
                    .watched = "file system",
                    .rank = 3,
                    .gate = GateRecord{.path = "/d/train/a", .armed_pages = 3},
                    .holes = {{"W-NO-GATE", "\"nothing\""}, {"W-OVERFLOW", ""}}};

  EXPECT_THAT(directory.ReadExit(), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(directory.WriteExit(exit, {1, 2}), IsOk());
  ASSERT_THAT(directory.WriteTouch(touch), IsOk());
  ASSERT_THAT(directory.WriteProcesses(directory.StepPath(), {{7, 8}, {9, 10}}), IsOk());

  EXPECT_EQ(directory.ReadExit()->code, 137);
  EXPECT_THAT(directory.ReadTouch(directory.TouchPath()), IsOkAndHolds(touch));
  EXPECT_THAT(directory.ReadTouch(directory.ObservedTouchPath()),
              StatusIs(absl::StatusCode::kNotFound));
  const absl::StatusOr<ProcessRecord> record = directory.ReadProcesses(directory.StepPath());
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->processes, (std::vector<ProcessId>{{7, 8}, {9, 10}}));
  EXPECT_EQ(record->boot_id, BootId());
}

TEST(RunDirectoryTest, WhoTouchedAndHowWellThatWasSeenAreTwoThings) {
  const nlohmann::json json =
      nlohmann::json::parse(TouchJson({.is_attributed = true, .holes = {{"W-NO-GATE", "why"}}}));
  EXPECT_EQ(json["strength"], "attributed");
  EXPECT_EQ(json["assurance"], "observed");
  EXPECT_EQ(json["holes"][0]["code"], "W-NO-GATE");
  EXPECT_EQ(json["holes"][0]["why"], "why");
  EXPECT_FALSE(json.contains("rank")) << "unknown is not rank 0";

  const auto assurance_of = [](const Touch& touch) {
    return nlohmann::json::parse(TouchJson(touch))["assurance"];
  };
  Touch touch{.is_attributed = true, .gate = GateRecord()};
  EXPECT_EQ(assurance_of(touch), "proven") << "held, and nothing was open";
  touch.is_attributed = false;
  EXPECT_EQ(assurance_of(touch), "observed");
  touch = Touch{.is_attributed = true, .gate = GateRecord(), .holes = {{"W-DEVICE", "why"}}};
  EXPECT_EQ(assurance_of(touch), "observed");
  touch = Touch{.is_attributed = true};
  EXPECT_EQ(assurance_of(touch), "observed") << "an agent that knows no gates";
}

TEST(RunDirectoryTest, ADamagedRecordIsNotAnAbsentOne) {
  const TempDir dir;
  const RunDirectory directory(dir.path());
  ASSERT_THAT(MakeDirectories(directory.WitnessDirectory()), IsOk());
  ASSERT_THAT(WriteFileAtomic(directory.ExitPath(), "{\"exit_code\": "), IsOk());
  EXPECT_THAT(directory.ReadExit(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace assay::agent
