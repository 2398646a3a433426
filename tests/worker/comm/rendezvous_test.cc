// The TCP rendezvous: what it stores, whom it refuses, and how losses show.

#include "worker/comm/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/world.h"
#include "worker/comm/rendezvous_frame.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/comm/socket.h"
#include "worker/comm/tcp_rendezvous.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kPatience;
using testing::Soon;

constexpr absl::Duration kShort = absl::Milliseconds(50);

class RendezvousTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<RendezvousServer>> server = RendezvousServer::Start(
        RendezvousServerOptions{.world_size = 2, .token = "secret"}, &clock_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  JoinOptions Options(int rank) const {
    return {.address = server_->address(), .rank = rank, .world_size = 2, .token = "secret"};
  }

  absl::StatusOr<std::unique_ptr<Rendezvous>> Join(const JoinOptions& options) {
    return JoinRendezvous(options, nullptr, &clock_, Soon());
  }

  std::unique_ptr<Rendezvous> MustJoin(int rank) {
    absl::StatusOr<std::unique_ptr<Rendezvous>> rendezvous = Join(Options(rank));
    EXPECT_THAT(rendezvous, IsOk());
    return *std::move(rendezvous);
  }

  // Sends raw bytes as a stranger; true if the server hangs up.
  bool IsHungUpOnAfter(absl::string_view bytes) {
    absl::StatusOr<UniqueFd> fd = ConnectTo(server_->address(), clock_, Soon());
    EXPECT_THAT(fd, IsOk());
    EXPECT_THAT(WriteAll(fd->get(), bytes), IsOk());
    const MonoTime deadline = Soon();
    while (clock_.Mono() < deadline) {
      pollfd waiting = {.fd = fd->get(), .events = POLLIN, .revents = 0};
      poll(&waiting, 1, 100);
      char buffer[256];
      const ssize_t count = recv(fd->get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
    }
    return false;
  }

  RealClock clock_;
  std::unique_ptr<RendezvousServer> server_;
};

TEST_F(RendezvousTest, AValueSetByOneRankReachesTheOtherThatWaitsForIt) {
  const std::unique_ptr<Rendezvous> zero = MustJoin(0);
  const std::unique_ptr<Rendezvous> one = MustJoin(1);
  const std::string value("binary\0value", 12);

  std::thread setter([&] { EXPECT_THAT(one->Set("key", value, Soon()), IsOk()); });
  EXPECT_THAT(zero->Get("key", Soon()), IsOkAndHolds(value));
  setter.join();
  EXPECT_THAT(one->Get("key", Soon()), IsOkAndHolds(value));
}

TEST_F(RendezvousTest, AKeyIsSetOnce) {
  const std::unique_ptr<Rendezvous> zero = MustJoin(0);
  EXPECT_THAT(zero->Set("key", "a", Soon()), IsOk());
  EXPECT_THAT(zero->Set("key", "a", Soon()), IsOk()) << "the same value again is a repeat";
  EXPECT_THAT(zero->Set("key", "b", Soon()),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("key")));
}

TEST_F(RendezvousTest, AKeyThatNobodySetsIsADeadlineExceededWithRankAndAddress) {
  const std::unique_ptr<Rendezvous> one = MustJoin(1);
  EXPECT_THAT(
      one->Get("nothing", clock_.Mono() + kShort),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("rank 1"), HasSubstr("nothing"), HasSubstr(server_->address()))));
}

TEST_F(RendezvousTest, OversizeKeysAndValuesAreRefusedHere) {
  const std::unique_ptr<Rendezvous> zero = MustJoin(0);
  EXPECT_THAT(zero->Set(std::string(kKeyBytesMax + 1, 'k'), "", Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(zero->Set("k", std::string(kValueBytesMax + 1, 'v'), Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(zero->Set("k", std::string(kValueBytesMax, 'v'), Soon()), IsOk());
}

TEST_F(RendezvousTest, AWrongTokenIsRefused) {
  JoinOptions options = Options(1);
  options.token = "guess";
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kPermissionDenied,
                                      AllOf(HasSubstr("token"), HasSubstr("rank 1"))));
  EXPECT_THAT(Join(Options(1)), IsOk()) << "the refusal must not take the rank's place";
}

TEST_F(RendezvousTest, AnotherWorldSizeAndATakenRankAreRefused) {
  JoinOptions options = Options(1);
  options.world_size = 3;
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 ranks")));
  const std::unique_ptr<Rendezvous> one = MustJoin(1);
  EXPECT_THAT(Join(Options(1)), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("rank 1")));
}

TEST_F(RendezvousTest, StrangersAreHungUpOn) {
  EXPECT_TRUE(IsHungUpOnAfter("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(IsHungUpOnAfter(std::string("\x7f\xff\xff\xff", 4))) << "an oversize frame";
  EXPECT_TRUE(IsHungUpOnAfter(std::string(4, '\0'))) << "a frame without a type";
  EXPECT_TRUE(IsHungUpOnAfter(EncodeFrame(
      Frame{.type = FrameType::kSet, .id = 1, .key = "key", .value = "before the hello"})));
  const std::unique_ptr<Rendezvous> zero = MustJoin(0);
  EXPECT_THAT(zero->Health(), IsOk());
}

TEST_F(RendezvousTest, ARankThatVanishesIsNamedToTheOthersAndToLateComers) {
  std::unique_ptr<Rendezvous> zero = MustJoin(0);
  std::unique_ptr<Rendezvous> one = MustJoin(1);

  one.reset();

  EXPECT_THAT(zero->Get("never", Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1 at 127.0.0.1:")));
  EXPECT_THAT(zero->Health(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_->WaitUntilAllLeft(Soon()), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(RendezvousTest, TheEndOfTheServerIsUnavailableAndNamesItsAddress) {
  const std::unique_ptr<Rendezvous> one = MustJoin(1);
  const std::string address = server_->address();
  server_.reset();
  EXPECT_THAT(one->Get("never", Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
}

TEST_F(RendezvousTest, LeavingInOrderIsNoLoss) {
  std::unique_ptr<Rendezvous> zero = MustJoin(0);
  std::unique_ptr<Rendezvous> one = MustJoin(1);
  EXPECT_THAT(one->Leave(Soon()), IsOk());
  one.reset();
  EXPECT_THAT(zero->Set("still", "here", Soon()), IsOk());
  EXPECT_THAT(zero->Health(), IsOk());
  EXPECT_THAT(server_->WaitUntilAllLeft(clock_.Mono() + kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(": 0")));
  EXPECT_THAT(zero->Leave(Soon()), IsOk());
  EXPECT_THAT(server_->WaitUntilAllLeft(Soon()), IsOk());
}

TEST(JoinRendezvousTest, WithoutAServerItTriesUntilTheDeadlineAndSaysWhere) {
  const RealClock clock;
  std::string address;
  {
    const absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
        RendezvousServer::Start(RendezvousServerOptions{.token = "x"}, &clock);
    ASSERT_THAT(server, IsOk());
    address = (*server)->address();
  }
  const JoinOptions options{.address = address, .rank = 1, .world_size = 2, .token = "x"};
  EXPECT_THAT(JoinRendezvous(options, nullptr, &clock, clock.Mono() + kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 1 of 2"), HasSubstr(address))));
}

TEST(JoinRendezvousTest, BadAddressesAndTokensAreInvalid) {
  const RealClock clock;
  for (const char* address : {"", "host", "host:", ":1", "host:http", "host:123456"}) {
    const JoinOptions options{.address = address, .token = "x"};
    EXPECT_THAT(JoinRendezvous(options, nullptr, &clock, Soon()),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << address;
  }
  const JoinOptions no_token{.address = "127.0.0.1:1"};
  EXPECT_THAT(JoinRendezvous(no_token, nullptr, &clock, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
}

TEST(FrameReaderTest, CutsAStreamIntoFramesWhereverItIsSplit) {
  const Frame frame{.type = FrameType::kSet, .id = 7, .rank = 3, .key = "k", .value = "value"};
  const std::string bytes = EncodeFrame(frame) + EncodeFrame(frame);
  FrameReader reader(kFrameBytesMax);
  int frame_count = 0;
  for (const char byte : bytes) {
    reader.Add(absl::string_view(&byte, 1));
    const absl::StatusOr<std::optional<Frame>> next = reader.Next();
    ASSERT_THAT(next, IsOk());
    if (!next->has_value()) continue;
    ++frame_count;
    EXPECT_EQ((*next)->id, 7U);
    EXPECT_EQ((*next)->rank, 3U);
    EXPECT_EQ((*next)->key, "k");
    EXPECT_EQ((*next)->value, "value");
  }
  EXPECT_EQ(frame_count, 2);
}

TEST(FrameReaderTest, AKeyLongerThanItsFrameIsDataLoss) {
  std::string bytes = EncodeFrame(Frame{.type = FrameType::kGet, .key = "key"});
  bytes[14] = '\x7f';  // the low byte of the key's length
  FrameReader reader(kFrameBytesMax);
  reader.Add(bytes);
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace assay::comm
