#include "worker/agent/check_process.h"

#include <sys/stat.h>

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/await.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::agent {
namespace {

using testing::Await;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::WriteFile;

class CheckProcessTest : public ::testing::Test {
 protected:
  // Runs the program to its end. What it was told is in `arguments`.
  v1::PreflightReport Run(const std::string& program, int64_t number = 7) {
    CheckProcess process(config_, program);
    process.Start(number, spec_);
    std::optional<CheckEnded> end;
    EXPECT_TRUE(Await([&] { return (end = process.TakeEnd()).has_value(); }));
    v1::PreflightReport report;
    if (!end.has_value()) return report;
    EXPECT_EQ(end->number, number);
    EXPECT_TRUE(report.ParseFromString(end->result));
    EXPECT_FALSE(process.TakeEnd().has_value()) << "once";
    return report;
  }
  std::string Script(const std::string& text) {
    const std::string path = directory_.Path("worker");
    WriteFile(
        path,
        "#!/bin/sh\nfor a in \"$@\"; do case $a in --output=*) out=${a#--output=};; esac; done\n" +
            text + "\n");
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }
  void SetUp() override {
    config_.set_data_directory(directory_.path());
    config_.set_trainer_program("/bin/false");
    spec_.add_checks("clock");
    spec_.add_checks("stage-space");
    spec_.add_checks("unheard-of");
    config_.set_stage_directory(directory_.Path("stage"));
  }

  const TempDir directory_;
  v1::WorkerConfig config_;
  v1::PreflightSpec spec_;
};

TEST_F(CheckProcessTest, CarriesOutWhatItKnows) {
  const v1::PreflightReport report = Run(WORKER);
  ASSERT_EQ(report.checks_size(), 2);
  EXPECT_EQ(report.checks(0).check(), "clock");
  EXPECT_THAT(report.checks(0).detail(), HasSubstr("synchronised"));
  EXPECT_EQ(report.checks(1).check(), "stage-space");
  EXPECT_TRUE(report.checks(1).is_measured());
  EXPECT_GT(report.checks(1).value(), 0);
}

TEST_F(CheckProcessTest, WhatDiesIsAProblemOfEachCheck) {
  for (const std::string& program :
       {Script("kill -9 $$"), Script("echo half > $out"), std::string("/nowhere")}) {
    const v1::PreflightReport report = Run(program);
    ASSERT_EQ(report.checks_size(), 3) << program;
    for (const v1::NodeCheck& check : report.checks())
      EXPECT_THAT(check.problem(), HasSubstr("the pre-flight ")) << program;
  }
}

TEST_F(CheckProcessTest, AnEndedOneLeavesNothingRunning) {
  CheckProcess process(
      config_, Script("echo $$ > " + directory_.Path("pid") + "; while :; do sleep 1; done"));
  process.Start(7, spec_);
  EXPECT_GE(process.exit_fd(), 0);
  std::optional<ProcessId> child;
  EXPECT_TRUE(Await([&] {
    const std::string text = ReadFile(directory_.Path("pid")).value_or("");
    if (text.empty()) return false;
    const auto found = IdentifyProcess(std::stoi(text));
    if (found.ok()) child = *found;
    return child.has_value();
  }));
  process.Stop();
  ASSERT_TRUE(child.has_value());
  EXPECT_FALSE(IsRunning(*child));
  EXPECT_FALSE(process.TakeEnd().has_value());
  EXPECT_EQ(process.exit_fd(), -1);
}

}  // namespace
}  // namespace assay::agent
