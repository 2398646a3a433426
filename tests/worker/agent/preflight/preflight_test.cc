#include "worker/agent/preflight/preflight.h"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "tests/support/cpu_quota.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using testing::CpuQuota;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::TempDir;

void Write(const std::string& path, size_t bytes) {
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
}

std::string Script(const TempDir& directory, const std::string& text) {
  const std::string path = directory.Path("trainer");
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

// What the mode says in a process of its own, which `quota` holds back.
CheckResult CheckInProcess(const std::string& check, const CpuQuota* quota) {
  const TempDir directory;
  PreflightFlags flags{.checks = {check}, .is_json = true, .output_path = directory.Path("result")};
  flags.options.trainer_program = TRAINER;
  // The shell waits until it is in its group.
  std::vector<std::string> argv{
      "/bin/sh", "-c",          "read line < \"$0\"; exec \"$@\"", directory.Path("go"),
      WORKER,    kPreflightMode};
  for (const std::string& argument : ArgumentsOf(flags))
    argv.push_back(argument);
  argv.emplace_back("--memory_mib=96");
  EXPECT_EQ(mkfifo(directory.Path("go").c_str(), 0600), 0);
  const absl::StatusOr<ProcessId> child = Spawn({.argv = argv});
  EXPECT_THAT(child, IsOk());
  EXPECT_TRUE(quota == nullptr || quota->Add(child->pid));
  std::ofstream(directory.Path("go")) << "go\n";
  EXPECT_THAT(WaitForExit(*child, absl::Seconds(60)), IsOk());
  const absl::StatusOr<std::vector<CheckResult>> results =
      ParsePreflightJson(ReadFile(flags.output_path).value_or(""));
  EXPECT_THAT(results, IsOk());
  return results.ok() && results->size() == 1 ? results->front() : CheckResult{};
}

TEST(PreflightTest, MemoryIsAsFastAsThisMachinesIs) {
  const CheckResult result = CheckMemory({.memory_bytes = int64_t{96} << 20});
  EXPECT_TRUE(result.is_measured);
  EXPECT_EQ(result.unit, "GB/s");
  // No memory of this decade is slower, none reads and writes faster for one thread.
  EXPECT_THAT(result.value, Gt(0.3));
  EXPECT_THAT(result.value, Lt(300));
  EXPECT_THAT(result.detail, HasSubstr("96 MiB, 1 threads"));
}

TEST(PreflightTest, AQuotaOfProcessorTimeShowsInMemoryAndCompute) {
  const std::optional<CpuQuota> quota = CpuQuota::Make(0.1);
  if (!quota.has_value()) GTEST_SKIP() << "needs root and control groups";
  for (const std::string check : {"memory", "compute"}) {
    const CheckResult free = CheckInProcess(check, nullptr);
    const CheckResult held = CheckInProcess(check, &*quota);
    ASSERT_TRUE(free.is_measured) << free.detail;
    ASSERT_TRUE(held.is_measured) << held.detail << held.problem;
    EXPECT_THAT(held.value, Lt(0.4 * free.value)) << check;
    EXPECT_THAT(held.value, Gt(0)) << check;
  }
}

TEST(PreflightTest, ComputeIsWhatTheTrainerReaches) {
  const CheckResult result =
      CheckCompute({.trainer_program = TRAINER, .compute_time = absl::Milliseconds(100)});
  ASSERT_TRUE(result.is_measured) << result.detail << result.problem;
  EXPECT_EQ(result.unit, "GFLOP/s");
  EXPECT_THAT(result.value, Gt(0.5));
  EXPECT_THAT(result.value, Lt(1e5));
  EXPECT_THAT(result.detail, HasSubstr("1 threads"));
}

TEST(PreflightTest, ATrainerThatCannotBeAskedIsSaid) {
  const CheckResult missing = CheckCompute({.trainer_program = "/nowhere/assay-train"});
  EXPECT_FALSE(missing.is_measured);
  EXPECT_THAT(missing.detail, HasSubstr("/nowhere/assay-train"));
  const TempDir directory;
  const CheckResult old =
      CheckCompute({.trainer_program = Script(directory, "echo unknown; exit 2")});
  EXPECT_FALSE(old.is_measured);
  EXPECT_THAT(old.detail, HasSubstr("ended with 2: unknown"));
}

TEST(PreflightTest, AProductThatDoesNotEndIsAProblem) {
  const TempDir directory;
  const RealClock clock;
  const MonoTime begin = clock.Mono();
  const CheckResult result = CheckCompute({.trainer_program = Script(directory, "exec sleep 60"),
                                           .compute_time = absl::Milliseconds(50),
                                           .patience = absl::Milliseconds(50)});
  EXPECT_FALSE(result.is_measured);
  EXPECT_THAT(result.problem, HasSubstr("has not ended within 100ms"));
  EXPECT_LT(clock.Mono() - begin, absl::Seconds(20));
}

TEST(PreflightTest, DatasetFilesAreReadToTheirEnd) {
  const TempDir directory;
  ASSERT_THAT(MakeDirectories(directory.Path("train")), IsOk());
  for (const char* name : {"train/a", "train/b", "c"})
    Write(directory.Path(name), 10'000'001);
  const CheckResult result = CheckDatasetDisk({.dataset_directory = directory.path()});
  EXPECT_TRUE(result.is_measured);
  EXPECT_THAT(result.value, Gt(0));
  EXPECT_EQ(result.unit, "MB/s");
  EXPECT_THAT(result.detail, HasSubstr("30 MB"));
  EXPECT_THAT(result.problem, IsEmpty());
}

TEST(PreflightTest, NoMoreOfADatasetIsReadThanWasAskedFor) {
  const TempDir directory;
  Write(directory.Path("a"), size_t{64} << 20);
  const CheckResult result =
      CheckDatasetDisk({.dataset_directory = directory.path(), .disk_bytes = 1 << 20});
  EXPECT_TRUE(result.is_measured);
  EXPECT_THAT(result.detail, HasSubstr("4 MB"));  // a block
}

TEST(PreflightTest, ADatasetThatIsNotThereIsAProblem) {
  const CheckResult result = CheckDatasetDisk({.dataset_directory = "/nowhere/cosmo"});
  EXPECT_FALSE(result.is_measured);
  EXPECT_THAT(result.problem, HasSubstr("cannot list /nowhere/cosmo"));
  EXPECT_THAT(CheckDatasetDisk({}).problem, IsEmpty());
  EXPECT_EQ(CheckDatasetDisk({}).detail, "no dataset is given");
}

TEST(PreflightTest, AStageDiskIsWrittenReadAndLeftAsItWas) {
  const TempDir directory;
  const CheckResult result =
      CheckStageDisk({.stage_directory = directory.Path("stage"), .disk_bytes = 16 << 20});
  EXPECT_TRUE(result.is_measured) << result.problem;
  EXPECT_THAT(result.value, Gt(0));
  EXPECT_THAT(result.detail, HasSubstr("17 MB"));
  EXPECT_THAT(result.problem, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "whose it shall be is not known here";
}

TEST(PreflightTest, ADatasetThatDoesNotFitIsAProblemIfItShallBeStaged) {
  const TempDir directory;
  ASSERT_THAT(MakeDirectories(directory.Path("data")), IsOk());
  Write(directory.Path("data/large"), 1);
  std::error_code error;
  std::filesystem::resize_file(directory.Path("data/large"), uintmax_t{10} << 40, error);
  if (error) GTEST_SKIP() << "no sparse file of 10 TiB here: " << error.message();
  CheckOptions options{.dataset_directory = directory.Path("data"),
                       .stage_directory = directory.Path("stage"),
                       .is_staged = true,
                       .disk_bytes = 1 << 20};
  EXPECT_THAT(CheckStageSpace(options).problem, HasSubstr("the dataset has 10995.1 GB"));
  options.is_staged = false;
  EXPECT_THAT(CheckStageSpace(options).problem, IsEmpty());
  EXPECT_THAT(CheckStageSpace(options).value, Gt(0));
}

TEST(PreflightTest, AFolderThatCannotBeWrittenIsAProblem) {
  EXPECT_THAT(CheckStageDisk({.stage_directory = "/proc/stage"}).problem, Not(IsEmpty()));
  EXPECT_EQ(CheckStageDisk({}).detail, "no folder to stage to is given");
}

TEST(PreflightTest, WhoWorksMeanwhileIsNamed) {
  const absl::StatusOr<ProcessId> other = Spawn({.argv = {"/bin/sh", "-c", "while :; do :; done"}});
  ASSERT_THAT(other, IsOk());
  const CheckResult result = CheckQuiet({.quiet_time = absl::Seconds(1)});
  EXPECT_THAT(StopGroup(*other, absl::Seconds(1)), IsOk());
  EXPECT_TRUE(result.is_measured);
  EXPECT_THAT(result.value, Gt(0.3));
  EXPECT_THAT(result.problem, HasSubstr("cores work for others"));
  EXPECT_THAT(result.detail, HasSubstr("(process "));
}

TEST(PreflightTest, TheKernelsWordOnItsClockIsPassedOn) {
  const CheckResult result = CheckClock();
  EXPECT_FALSE(result.is_measured);
  EXPECT_THAT(result.detail, HasSubstr("synchronised"));
}

TEST(PreflightTest, WhatIsFoundSurvivesItsJson) {
  const std::vector<CheckResult> results{
      {.check = "memory", .is_measured = true, .value = 12.5, .unit = "GB/s", .detail = "\"a\"\n"},
      {.check = "stage-disk", .problem = "full"}};
  const absl::StatusOr<std::vector<CheckResult>> read = ParsePreflightJson(PreflightJson(results));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, results);
  for (const char* text : {"", "[]", "{\"checks\": 3}", "{\"checks\": [{}]}", "{\"checks\": [1]}",
                           "{\"checks\": [{\"check\": 3}]}"})
    EXPECT_THAT(ParsePreflightJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  EXPECT_THAT(PreflightText(results), HasSubstr("12.50 GB/s"));
  EXPECT_THAT(PreflightText(results), HasSubstr("PROBLEM: full"));
}

TEST(PreflightTest, FlagsSayWhatTheyRead) {
  PreflightFlags flags{.checks = {"memory", "stage-disk"},
                       .cores = {0, 1},
                       .time_limit = absl::Seconds(7),
                       .is_json = true,
                       .output_path = "/tmp/out"};
  flags.options = {.thread_count = 3,
                   .trainer_program = "/bin/assay-train",
                   .trainer_environment = {"A=b=c"},
                   .dataset_directory = "/data",
                   .stage_directory = "/stage",
                   .is_staged = true};
  const absl::StatusOr<PreflightFlags> read = ParsePreflightFlags(ArgumentsOf(flags));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(ArgumentsOf(*read), ArgumentsOf(flags));
  EXPECT_THAT(ParsePreflightFlags({"--checks=speed"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no check speed")));
  EXPECT_THAT(ParsePreflightFlags({"--threads=0"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("above 0")));
  EXPECT_THAT(ParsePreflightFlags({"--fast"}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PreflightTest, WhatHasNoTimeLeftIsSaid) {
  PreflightFlags flags{.checks = {"memory", "clock"}, .time_limit = absl::ZeroDuration()};
  const std::vector<CheckResult> results = RunPreflight(flags);
  ASSERT_THAT(results, SizeIs(2));
  for (const CheckResult& result : results) {
    EXPECT_FALSE(result.is_measured);
    EXPECT_EQ(result.detail, "no time was left for it");
  }
}

}  // namespace
}  // namespace assay::agent
