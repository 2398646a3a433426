// What an operator configures for jobs of Slurm.

#include "server/slurm_config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of `launcher { kind: "slurm" slurm { TEXT } }`.
v1::ServerConfig ConfigOf(const std::string& text) {
  v1::ServerConfig config;
  config.mutable_launcher()->set_kind("slurm");
  v1::SlurmConfig* const slurm = config.mutable_launcher()->mutable_slurm();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, slurm));
  slurm->set_server_address("head:7443");
  return config;
}
std::vector<std::string> ProblemsOf(const std::string& text) {
  return SlurmProblems(ConfigOf(text));
}

TEST(SlurmConfigTest, ASharedFolderIsNeededUnlessAgentsEnrolByMunge) {
  EXPECT_THAT(ProblemsOf("shared_directory: '/shared'"), IsEmpty());
  EXPECT_THAT(ProblemsOf(""), ElementsAre(HasSubstr("or, where there is none, let agents enrol by "
                                                    "munge (enrolment: MUNGE)")));
  EXPECT_THAT(ProblemsOf("enrolment: MUNGE"), IsEmpty());
  EXPECT_THAT(ProblemsOf("enrolment: MUNGE shared_directory: '/shared'"), IsEmpty());
  EXPECT_THAT(ProblemsOf("shared_directory: 'shared'"),
              ElementsAre(HasSubstr("\"shared\" is not an absolute path")));
}

TEST(SlurmConfigTest, MungesSocketIsForMungeAndAbsolute) {
  EXPECT_THAT(ProblemsOf("shared_directory: '/shared' munge_socket: '/run/munge/socket'"),
              ElementsAre(HasSubstr("slurm.munge_socket: is for enrolment: MUNGE")));
  EXPECT_THAT(ProblemsOf("enrolment: MUNGE munge_socket: 'socket'"),
              ElementsAre(HasSubstr("\"socket\" is not an absolute path")));
}

TEST(SlurmConfigTest, WhatTheCoordinatorFillsInIsNotConfigured) {
  EXPECT_THAT(ProblemsOf("enrolment: MUNGE worker { munge { coordinator_uid: 7 } }"),
              ElementsAre(HasSubstr("slurm.worker: leave out")));
  EXPECT_THAT(ProblemsOf("enrolment: MUNGE worker { ca_certificate: 'ca' }"),
              ElementsAre(HasSubstr("slurm.worker: leave out")));
}

TEST(SlurmConfigTest, NodesEnrolByMungeOnlyWhereThatIsConfigured) {
  EXPECT_EQ(MakeNodeEnrolment(ConfigOf("shared_directory: '/shared'")), nullptr);
  EXPECT_NE(MakeNodeEnrolment(ConfigOf("enrolment: MUNGE")), nullptr);
}

}  // namespace
}  // namespace assay
