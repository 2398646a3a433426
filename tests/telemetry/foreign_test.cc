// Who else used a node: looked at, written down and added up.

#include "common/telemetry/foreign.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/telemetry/foreign_watch.h"
#include "worker/agent/telemetry/sampler.h"

namespace assay::agent {
namespace {

using telemetry::ForeignProcess;
using telemetry::ForeignSpan;
using telemetry::LargestForeign;
using telemetry::ReadForeign;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr pid_t kStep = 100;

// Processes whose files the test writes: the step is 100, its rank 101, the agent 90.
class ForeignWatchTest : public ::testing::Test {
 protected:
  ForeignWatchTest() {
    PutProcess(1, 0, "init", 0);
    PutProcess(90, 1, "assay-worker", 0);
    PutProcess(kStep, 90, "assay-worker", 0);
    PutProcess(101, kStep, "train", 0);
    absl::StatusOr<std::unique_ptr<ForeignWatch>> watch =
        ForeignWatch::Create(path_, {.proc = dir_.Path("proc"),
                                     .ticks_per_second = 100,
                                     .own = kStep,
                                     .left_out = {90},
                                     .cpu_ns = [this] { return cpu_ns_ += cost_ns_; }});
    CHECK_OK(watch.status());
    watch_ = *std::move(watch);
  }
  void PutProcess(pid_t pid, pid_t parent, absl::string_view name, int64_t cpu_ticks,
                  int64_t start_ticks = 5) {
    const std::filesystem::path folder = dir_.Path(absl::StrCat("proc/", pid));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat")
        << pid << " (" << name << ") S " << parent << " 1 1 0 -1 0 0 0 0 0 " << cpu_ticks / 2 << " "
        << cpu_ticks - cpu_ticks / 2 << " 0 0 20 0 1 0 " << start_ticks << " 0 0\n";
  }
  void LookAt(int64_t seconds, bool is_last = false) {
    ASSERT_THAT(watch_->Look(seconds * kSecondNs, is_last), IsOk());
  }
  std::vector<ForeignSpan> Written() const { return ReadForeign(*ReadFile(path_)); }

  testing::TempDir dir_;
  const std::string path_ = dir_.Path("foreign.jsonl");
  int64_t cpu_ns_ = 0;
  int64_t cost_ns_ = 1'000'000;  // of looking once
  std::unique_ptr<ForeignWatch> watch_;
};

TEST_F(ForeignWatchTest, WhoUsesMostBesideTheRunIsNamedAndTheRunIsNot) {
  PutProcess(7, 1, "backup", 5000);
  LookAt(100);
  PutProcess(90, 1, "assay-worker", 300);
  PutProcess(kStep, 90, "assay-worker", 300);
  PutProcess(101, kStep, "train", 900);
  PutProcess(102, 101, "loader", 900);
  PutProcess(7, 1, "backup", 5120);
  PutProcess(8, 1, "came later", 200);
  PutProcess(9, 1, "idle", 5);
  LookAt(110);
  EXPECT_THAT(Written(), ElementsAre(ForeignSpan{100 * kSecondNs,
                                                 110 * kSecondNs,
                                                 {{8, "came later", 2000}, {7, "backup", 1200}}}));
}

TEST_F(ForeignWatchTest, FiveAtMostEachTenSecondsAndAtTheEnd) {
  LookAt(100);
  for (pid_t pid = 10; pid < 20; ++pid)
    PutProcess(pid, 1, "many", pid * 10);
  LookAt(105);
  EXPECT_THAT(Written(), IsEmpty()) << "not due";
  LookAt(110);
  LookAt(113, /*is_last=*/true);
  ASSERT_THAT(Written(), SizeIs(2));
  EXPECT_THAT(Written()[0].largest, SizeIs(5));
  EXPECT_EQ(Written()[0].largest[0], (ForeignProcess{19, "many", 1900}));
  EXPECT_THAT(Written()[1].largest, IsEmpty()) << "they did nothing more";
}

TEST_F(ForeignWatchTest, ANumberGivenAnewIsAnotherProcess) {
  PutProcess(7, 1, "backup", 5000, /*start_ticks=*/5);
  LookAt(100);
  PutProcess(7, 1, "other", 100, /*start_ticks=*/9);
  LookAt(110);
  EXPECT_THAT(Written()[0].largest, ElementsAre(ForeignProcess{7, "other", 1000}));
}

TEST_F(ForeignWatchTest, WhereLookingIsDearItIsDoneLessOften) {
  cost_ns_ = 20'000'000;  // of ten seconds that is four times as much as it may
  LookAt(100);
  for (int64_t second = 101; second <= 220; ++second)
    LookAt(second);
  EXPECT_THAT(Written(), SizeIs(3)) << "once in forty seconds";
}

TEST_F(ForeignWatchTest, NamesDriveNoTerminalAndOnlyTheOwnerReadsThem) {
  LookAt(100);
  PutProcess(7, 1, "a) R (\x1b[31m\nb\"\xff", 1000);
  LookAt(110);
  ASSERT_THAT(Written(), SizeIs(1));
  EXPECT_EQ(Written()[0].largest[0].name, "a) R (\\x1b[31m\\nb\"\\xff");
  EXPECT_THAT(*ReadFile(path_), Not(HasSubstr("\x1b")));
  struct stat found {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

// With the real /proc: who looks is of the run itself.
TEST(ForeignTelemetryTest, ARunLeavesOneLineAtLeast) {
  const testing::TempDir dir;
  int64_t now_ns = 0;
  {
    const Telemetry telemetry(dir.Path("telemetry.bin"), dir.Path("foreign.jsonl"),
                              dir.Path("figures"), "boot",
                              [&now_ns] { return now_ns += kSecondNs; });
  }
  EXPECT_THAT(
      ReadForeign(*ReadFile(dir.Path("foreign.jsonl"))),
      Not(Contains(Field(&ForeignSpan::largest, Contains(Field(&ForeignProcess::pid, getpid()))))));
  EXPECT_THAT(ReadForeign(*ReadFile(dir.Path("foreign.jsonl"))), Not(IsEmpty()));
}

TEST(ForeignTest, LinesAreReadAsTheyWereWritten) {
  const std::vector<ForeignSpan> spans = {{1, 2, {{7, "a", 3}}}, {2, 5, {}}};
  const std::string text = telemetry::ForeignLine(spans[0]) + telemetry::ForeignLine(spans[1]);
  EXPECT_EQ(ReadForeign(text), spans);
  EXPECT_THAT(ReadForeign(text.substr(0, text.size() - 5)), ElementsAre(spans[0])) << "cut off";
  EXPECT_THAT(ReadForeign("no JSON\n[]\n{\"begin_ns\": 5, \"end_ns\": 5, \"largest\": []}\n"
                          "{\"begin_ns\": 5, \"end_ns\": 9, \"largest\": 3}\n"),
              IsEmpty());
  EXPECT_THAT(ReadForeign("{\"begin_ns\": 5, \"end_ns\": 9, \"largest\": [3, {\"pid\": 1, "
                          "\"name\": \"\\u001b[m\", \"cpu_ms\": 1}]}"),
              ElementsAre(ForeignSpan{5, 9, {{1, "\\x1b[m", 1}}}))
      << "an agent of somebody else's making may have written it";
}

TEST(ForeignTest, OnlyTheTimeAskedForCounts) {
  const std::vector<ForeignSpan> spans = {{0, 10 * kSecondNs, {{1, "before", 9000}}},
                                          {10 * kSecondNs, 20 * kSecondNs, {{2, "half", 4000}}},
                                          {20 * kSecondNs, 30 * kSecondNs, {{3, "all", 6000}}}};
  const std::vector<telemetry::ForeignUse> uses =
      LargestForeign(spans, 15 * kSecondNs, 30 * kSecondNs);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses[0].name, "all");
  EXPECT_DOUBLE_EQ(uses[0].share, 0.4);
  EXPECT_EQ(uses[1].pid, 2);
  EXPECT_NEAR(uses[1].share, 2.0 / 15, 1e-9);
  EXPECT_THAT(LargestForeign(spans, 40 * kSecondNs, 50 * kSecondNs), IsEmpty());
}

}  // namespace
}  // namespace assay::agent
