// A restart on a disk without a byte of room: the daemon answers questions, takes up work again
// when there is room, and leaves no temporary file. On a small file system of its own, which only
// root can mount.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using Submissions = v1::SubmissionService::Stub;

class FullDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(MakeDirectories(data_), IsOk());
    if (mount("tmpfs", data_.c_str(), "tmpfs", 0, "size=300m") != 0)
      GTEST_SKIP() << "mount: " << absl::ErrnoToStatus(errno, data_);
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) {
      EXPECT_EQ(umount2(data_.c_str(), MNT_DETACH), 0);
    }
  }

  absl::StatusOr<v1::Submission> Submit(const std::string& request_id) {
    Client client(deployment_.Unix());
    v1::CreateSubmissionRequest request;
    request.set_request_id(request_id);
    *request.mutable_spec() = TinySpec("Org", 64);
    return client.Call(client.submission(), &Submissions::CreateSubmission, request);
  }

  // To the last byte.
  void Fill() {
    const UniqueFd fd(open(JoinPath(data_, "fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct statvfs info {};
    ASSERT_EQ(statvfs(data_.c_str(), &info), 0);
    const auto bytes = static_cast<off_t>(info.f_bavail * info.f_frsize);
    if (bytes > 0) {
      ASSERT_EQ(posix_fallocate(fd.get(), lseek(fd.get(), 0, SEEK_END), bytes), 0);
    }
    ASSERT_EQ(statvfs(data_.c_str(), &info), 0);
    ASSERT_EQ(info.f_bavail, 0u);
  }

  void ExpectItAnswers() {
    Client client(deployment_.Unix());
    v1::GetSubmissionRequest request;
    request.set_name("submissions/e-1");
    EXPECT_THAT(client.Call(client.submission(), &Submissions::GetSubmission, request), IsOk());
    EXPECT_THAT(Submit("more"), StatusIs(absl::StatusCode::kResourceExhausted));
    const auto names = ListDirectory(data_);
    ASSERT_THAT(names, IsOk());
    for (const std::string& name : *names)
      EXPECT_FALSE(absl::StrContains(name, ".tmp")) << name;
  }

  Deployment deployment_;
  const std::string data_ = deployment_.dir().Path("data");
  bool is_mounted_ = false;
};

TEST_F(FullDiskTest, TheDaemonStartsAfterAKillAndAfterAnOrderlyEnd) {
  ASSERT_THAT(deployment_.Start(), IsOk());
  {
    Client root(deployment_.Unix());
    AddTinyDataset(&root);
  }
  ASSERT_THAT(Submit("first"), IsOk());

  deployment_.Kill();
  Fill();
  ASSERT_THAT(deployment_.Start(), IsOk());
  ExpectItAnswers();

  EXPECT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
  Fill();
  ASSERT_THAT(deployment_.Start(), IsOk());
  ExpectItAnswers();

  ASSERT_THAT(RemoveTree(JoinPath(data_, "fill")), IsOk());
  EXPECT_THAT(Submit("more"), IsOk());
}

}  // namespace
}  // namespace assay::testing
