#include "server/gate/listener.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::gate {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ListenerTest, TellsThePortThatTheKernelChose) {
  const auto listeners = ListenTcp("127.0.0.1:0");
  ASSERT_THAT(listeners, IsOk());
  EXPECT_THAT(listeners->sockets, SizeIs(1));
  EXPECT_THAT(listeners->address, ::testing::StartsWith("127.0.0.1:"));
  EXPECT_NE(listeners->address, "127.0.0.1:0");

  EXPECT_THAT(ListenTcp(listeners->address),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("taken")));
}

TEST(ListenerTest, SaysWhatIsNotAnAddress) {
  for (const char* text : {"", "7443", ":7443", "localhost:", "localhost:70000", "localhost:x"})
    EXPECT_THAT(ListenTcp(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
}

TEST(ListenerTest, AnIpv6HostIsCountedByWhatItIsGiven) {
  const auto group = [](const char* text) {
    sockaddr_storage address{};
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
    ipv6.sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text, &ipv6.sin6_addr), 1);
    return AddressGroup(address);
  };
  EXPECT_EQ(group("2001:db8::1"), group("2001:db8::ffff:1"));
  EXPECT_NE(group("2001:db8::1"), group("2001:db8:0:1::1"));
}

class UnixListenerTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.Path("assayd.sock");
};

TEST_F(UnixListenerTest, ReplacesADeadSocketButNotALiveOneNorAFile) {
  {
    const auto listener = ListenUnix(path_, 0600);
    ASSERT_THAT(listener, IsOk());
    EXPECT_THAT(ListenUnix(path_, 0600), StatusIs(absl::StatusCode::kAlreadyExists));
  }
  // The name that a killed process leaves behind.
  ASSERT_TRUE(FileExists(path_));
  EXPECT_THAT(ListenUnix(path_, 0600), IsOk());

  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_THAT(WriteFileAtomic(path_, "mine"), IsOk());
  EXPECT_THAT(ListenUnix(path_, 0600), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(*ReadFile(path_), "mine");
}

TEST_F(UnixListenerTest, TheSocketHasTheModeAskedFor) {
  const auto listener = ListenUnix(path_, 0600);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(UnixListenerTest, APathTooLongIsSaid) {
  EXPECT_THAT(ListenUnix(std::string(200, 'x'), 0600),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("107")));
}

}  // namespace
}  // namespace assay::gate
