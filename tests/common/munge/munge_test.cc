// Credentials by munged itself, each in a folder and with a key of its own.

#include "common/munge/munge.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/munge/node_claim.h"
#include "common/process.h"
#include "common/secret.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

constexpr char kDaemon[] = "/usr/sbin/munged";

class Daemon {
 public:
  Daemon() {
    CHECK_OK(WriteFileAtomic(dir_.Path("key"), absl::StrCat(MakeToken(), MakeToken()), 0600));
    const absl::StatusOr<ProcessId> process =
        Spawn({.argv = {kDaemon, "--foreground", "--force", absl::StrCat("--socket=", socket()),
                        absl::StrCat("--key-file=", dir_.Path("key")),
                        absl::StrCat("--pid-file=", dir_.Path("pid")),
                        absl::StrCat("--log-file=", dir_.Path("log")),
                        absl::StrCat("--seed-file=", dir_.Path("seed")), "--num-threads=2"},
               .output_path = dir_.Path("out")});
    CHECK_OK(process.status());
    process_ = *process;
    while (!FileExists(socket())) {
      CHECK(IsRunning(process_)) << ReadFile(dir_.Path("out")).value_or("");
      std::this_thread::yield();
    }
  }
  ~Daemon() { EXPECT_THAT(StopGroup(process_, absl::Seconds(10)), IsOk()); }
  std::string socket() const { return dir_.Path("socket"); }

 private:
  const TempDir dir_;
  ProcessId process_;
};

class MungeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FileExists(kDaemon)) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << kDaemon << " is missing";
    GTEST_SKIP() << kDaemon << " is missing (apt-get install munge)";
  }
};

TEST_F(MungeTest, ACredentialSaysWhoMadeItWhereAndServesOnce) {
  const Daemon daemon;
  const absl::StatusOr<std::string> made = MungeEncode(daemon.socket(), geteuid(), "hello");
  ASSERT_THAT(made, IsOk());
  EXPECT_TRUE(absl::StartsWith(*made, kMungePrefix));
  const absl::StatusOr<MungeCredential> opened = MungeDecode(daemon.socket(), *made);
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->payload, "hello");
  EXPECT_EQ(opened->uid, geteuid());
  EXPECT_THAT(opened->address, ::testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+"));

  EXPECT_THAT(MungeDecode(daemon.socket(), *made),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("Replayed credential"), HasSubstr("serves once"))));
}

TEST_F(MungeTest, WhatCannotBeOpenedSaysWhyAndWhatHelps) {
  const Daemon here;
  const Daemon elsewhere;
  const absl::StatusOr<std::string> foreign = MungeEncode(elsewhere.socket(), geteuid(), "hello");
  EXPECT_THAT(MungeDecode(here.socket(), *foreign),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/etc/munge/munge.key")));
  const absl::StatusOr<std::string> others = MungeEncode(here.socket(), geteuid() + 1, "hello");
  EXPECT_THAT(MungeDecode(here.socket(), *others),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("for another user")));
  EXPECT_THAT(MungeDecode(here.socket(), "MUNGE:rubbish:"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("no credential")));
}

TEST(MungeSocketTest, AMissingDaemonIsNamedWithItsSocketAndTheRemedy) {
  const TempDir dir;
  const auto is_missing =
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(dir.Path("none")), HasSubstr("systemctl status munge")));
  EXPECT_THAT(MungeEncode(dir.Path("none"), geteuid(), "hello"), is_missing);
  EXPECT_THAT(MungeDecode(dir.Path("none"), "MUNGE:rubbish:"), is_missing);
}

TEST(NodeClaimTest, IsReadAsItWasWritten) {
  const NodeClaim claim = {"a-1", "4711", "n0", "abc"};
  const absl::StatusOr<NodeClaim> read = ParseNodeClaim(NodeClaimText(claim));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, claim);
}

}  // namespace
}  // namespace assay
