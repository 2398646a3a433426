#include "server/auth/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::auth {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::TempDir;

UniqueFd Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    return UniqueFd();
  return fd;
}

class UnixListenerTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<UnixListener>> Start(int mode = 0600) {
    return UnixListener::Start(
        {.path = path_, .mode = mode, .peers = &peers_, .on_connection = [this](int fd) {
           accepted_.set_value(fd);
         }});
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("assayd.sock");
  PeerTable peers_{PeerTable::DefaultRange()};
  std::promise<int> accepted_;
};

TEST_F(UnixListenerTest, HandsOnAConnectionWhoseUserTheKernelNamed) {
  const auto listener = Start();
  ASSERT_THAT(listener, IsOk());

  const UniqueFd client = Connect(path_);
  ASSERT_TRUE(client.is_open());
  const UniqueFd server(accepted_.get_future().get());

  EXPECT_EQ(peers_.UserOf(absl::StrCat("fd:", server.get())), geteuid());
  ASSERT_THAT(WriteAll(client.get(), "x"), IsOk());
}

TEST_F(UnixListenerTest, ReplacesADeadSocketButNotALiveOneNorAFile) {
  {
    const auto listener = Start();
    ASSERT_THAT(listener, IsOk());
    EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kAlreadyExists));
    // A copy of the name that outlives the listener is what a killed process leaves behind.
    ASSERT_EQ(link(path_.c_str(), dir_.Path("dead").c_str()), 0);
  }
  EXPECT_FALSE(FileExists(path_));
  ASSERT_EQ(rename(dir_.Path("dead").c_str(), path_.c_str()), 0);
  EXPECT_THAT(Start(), IsOk());

  ASSERT_THAT(WriteFileAtomic(path_, "mine"), IsOk());
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(*ReadFile(path_), "mine");
}

TEST_F(UnixListenerTest, TheSocketHasTheModeAskedFor) {
  const auto listener = Start(0600);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(UnixListenerTest, APathTooLongIsSaid) {
  EXPECT_THAT(UnixListener::Start({.path = std::string(200, 'x'), .peers = &peers_}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("107")));
}

}  // namespace
}  // namespace assay::auth
