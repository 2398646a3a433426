#include "worker/agent/check_process.h"

#include <sys/stat.h>

#include <deque>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/await.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/agent/rendezvous_listener.h"

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
    process.Start(number, spec_, -1);
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
  process.Start(7, spec_, -1);
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

TEST_F(CheckProcessTest, TheNodesOfAGangMeasureTheirFabric) {
  absl::StatusOr<RendezvousListener> listener = RendezvousListener::Open("127.0.0.1");
  ASSERT_TRUE(listener.ok()) << listener.status();
  spec_.Clear();
  spec_.add_checks("fabric");
  v1::FabricSpec& fabric = *spec_.mutable_fabric();
  fabric.set_name("preflight-7");
  fabric.set_node_count(3);
  fabric.set_rendezvous_address(absl::StrCat("127.0.0.1:", listener->port()));
  fabric.set_token("nobody else's");
  fabric.mutable_time_limit()->set_seconds(100);
  config_.set_trainer_program(TRAINER);
  std::deque<CheckProcess> nodes;
  for (int rank = 0; rank < 3; ++rank) {
    config_.set_data_directory(directory_.Path(absl::StrCat("node", rank)));
    ASSERT_TRUE(MakeDirectories(config_.data_directory()).ok());
    fabric.set_rank(rank);
    nodes.emplace_back(config_, WORKER).Start(7, spec_, listener->fd());
  }
  for (int rank = 2; rank >= 0; --rank) {
    std::optional<CheckEnded> end;
    ASSERT_TRUE(Await([&] {
      return (end = nodes[static_cast<size_t>(rank)].TakeEnd()).has_value();
    })) << rank;
    v1::PreflightReport report;
    ASSERT_TRUE(report.ParseFromString(end->result));
    EXPECT_EQ(report.fabric().error(), "");
    ASSERT_EQ(report.fabric().links_size(), rank == 0 ? 3 : 0);
    for (const v1::FabricLink& link : report.fabric().links())
      EXPECT_GT(link.gb_per_s(), 0) << report.DebugString();
  }
}

TEST_F(CheckProcessTest, WithoutTheTrainerTheFabricsCheckSaysSo) {
  spec_.mutable_fabric()->set_node_count(2);
  config_.set_trainer_program("/nowhere");
  EXPECT_THAT(Run(WORKER).checks(0).problem(), HasSubstr("the pre-flight could not start: "));
}

}  // namespace
}  // namespace assay::agent
