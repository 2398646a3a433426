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
#include "worker/comm/handshake.h"
#include "worker/comm/keys.h"
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
        RendezvousServerOptions{.world_size = 2, .run = "runs/r-1", .token = "secret"}, &clock_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  JoinOptions Options(int rank) const {
    return {.address = server_->address(),
            .rank = rank,
            .world_size = 2,
            .run = "runs/r-1",
            .token = "secret"};
  }

  absl::StatusOr<std::unique_ptr<Rendezvous>> Join(const JoinOptions& options) {
    return JoinRendezvous(options, nullptr, &clock_, Soon());
  }

  std::unique_ptr<Rendezvous> MustJoin(int rank) {
    absl::StatusOr<std::unique_ptr<Rendezvous>> rendezvous = Join(Options(rank));
    EXPECT_THAT(rendezvous, IsOk());
    return *std::move(rendezvous);
  }

  UniqueFd ConnectAsStranger() {
    absl::StatusOr<UniqueFd> fd = ConnectTo(server_->address(), clock_, Soon());
    EXPECT_THAT(fd, IsOk());
    return *std::move(fd);
  }

  // What the other end of `fd` says next.
  Frame NextFrameOn(int fd) {
    FrameReader reader(kHelloBytesMax);
    while (true) {
      const absl::StatusOr<std::optional<Frame>> frame = reader.Next();
      EXPECT_THAT(frame, IsOk());
      if (!frame.ok() || frame->has_value()) return frame.ok() ? **frame : Frame{};
      pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
      char buffer[4096];
      const bool is_there = poll(&waiting, 1, PollTimeoutMs(clock_, Soon(), kPatience)) == 1;
      const ssize_t count = is_there ? recv(fd, buffer, sizeof buffer, 0) : 0;
      EXPECT_GT(count, 0) << "hung up on, or no answer";
      if (count <= 0) return Frame{};
      reader.Add(absl::string_view(buffer, static_cast<size_t>(count)));
    }
  }

  // Sends raw bytes as a stranger; true if the server hangs up.
  bool IsHungUpOnAfter(absl::string_view bytes) {
    const UniqueFd fd = ConnectAsStranger();
    EXPECT_THAT(WriteAll(fd.get(), bytes), IsOk());
    return IsHungUpOn(fd.get());
  }

  bool IsHungUpOn(int fd) {
    const MonoTime deadline = Soon();
    while (clock_.Mono() < deadline) {
      pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
      poll(&waiting, 1, 100);
      char buffer[256];
      const ssize_t count = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
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
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kUnauthenticated,
                                      AllOf(HasSubstr("token"), HasSubstr("rank 1"))));
  EXPECT_THAT(Join(Options(1)), IsOk()) << "the refusal must not take the rank's place";
}

TEST_F(RendezvousTest, ARankOfAnotherRunIsRefusedWhateverItsToken) {
  JoinOptions options = Options(1);
  options.run = "runs/r-2";
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("run")));
}

// A server that squats on the port is given nothing that it could use, and is found out.
TEST_F(RendezvousTest, AFalseServerLearnsNoTokenAndIsRefused) {
  const absl::StatusOr<UniqueFd> listener = ListenOn("127.0.0.1:0");
  ASSERT_THAT(listener, IsOk());
  JoinOptions options = Options(1);
  options.address = LocalAddress(listener->get());
  absl::StatusOr<std::unique_ptr<Rendezvous>> joined = absl::UnknownError("still trying");
  std::thread rank([&] { joined = Join(options); });
  pollfd waiting = {.fd = listener->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&waiting, 1, PollTimeoutMs(clock_, Soon(), kPatience)), 1);
  const UniqueFd fd = AcceptFrom(listener->get());

  const Frame hello = NextFrameOn(fd.get());
  const Frame challenge{.type = FrameType::kChallenge,
                        .key = std::string(kNonceBytes, 'n'),
                        .value = std::string(kProofBytes, 'p')};
  ASSERT_THAT(WriteAll(fd.get(), EncodeFrame(challenge, nullptr)), IsOk());
  rank.join();

  EXPECT_EQ(hello.type, FrameType::kHello);
  EXPECT_EQ(EncodeFrame(hello, nullptr).find("secret"), std::string::npos);
  EXPECT_THAT(joined, StatusIs(absl::StatusCode::kUnauthenticated,
                               AllOf(HasSubstr("not rank 0"), HasSubstr("rank 1"))));
  char byte = 0;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0) << "the rank's proof must not be sent";
}

// What one connection proved proves nothing on another: the server's number is new each time.
TEST_F(RendezvousTest, ARecordedAnswerIsRefused) {
  const UniqueFd first = ConnectAsStranger();
  const std::string rank_nonce(kNonceBytes, 'r');
  const std::string hello = EncodeFrame({.type = FrameType::kHello,
                                         .id = 2,
                                         .rank = 1,
                                         .key = rank_nonce,
                                         .value = std::string(kRendezvousProtocol)},
                                        nullptr);
  ASSERT_THAT(WriteAll(first.get(), hello), IsOk());
  const Frame challenge = NextFrameOn(first.get());
  const Handshake known{.token = "secret",
                        .run = "runs/r-1",
                        .world_size = 2,
                        .rank = 1,
                        .rank_nonce = rank_nonce,
                        .server_nonce = challenge.key};
  EXPECT_EQ(challenge.value, known.ServerProof());
  const std::string answer =
      EncodeFrame({.type = FrameType::kAnswer, .value = known.RankProof()}, nullptr);

  EXPECT_TRUE(IsHungUpOnAfter(hello + answer));

  EXPECT_THAT(Join(Options(1)), IsOk()) << "the rank's place must still be free";
}

// They come first, stay, and say nothing.
TEST_F(RendezvousTest, TwoHundredStrangersKeepNoRankOut) {
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i)
    strangers.push_back(ConnectAsStranger());
  const MonoTime begin = clock_.Mono();

  const std::unique_ptr<Rendezvous> zero = MustJoin(0);
  const std::unique_ptr<Rendezvous> one = MustJoin(1);

  EXPECT_LT(clock_.Mono() - begin, kPatience / 2);
  EXPECT_THAT(one->Set("key", "value", Soon()), IsOk());
  EXPECT_THAT(zero->Get("key", Soon()), IsOkAndHolds("value"));
}

TEST_F(RendezvousTest, ASocketThatListensAlreadyIsTakenOver) {
  absl::StatusOr<UniqueFd> listener = ListenOn("127.0.0.1:0");
  ASSERT_THAT(listener, IsOk());
  JoinOptions options = Options(0);
  options.address = LocalAddress(listener->get());
  options.world_size = 1;
  const RendezvousServerOptions serve{.run = "runs/r-1", .token = "secret"};

  const absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
      RendezvousServer::Start(serve, *std::move(listener), &clock_);

  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(Join(options), IsOk());
  EXPECT_THAT(RendezvousServer::Start(serve, ConnectAsStranger(), &clock_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no listening socket")));
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
      Frame{.type = FrameType::kSet, .id = 1, .key = "key", .value = "before the hello"},
      nullptr)));
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
  const std::string bytes = EncodeFrame(frame, nullptr) + EncodeFrame(frame, nullptr);
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
  std::string bytes = EncodeFrame(Frame{.type = FrameType::kGet, .key = "key"}, nullptr);
  bytes[14] = '\x7f';  // the low byte of the key's length
  FrameReader reader(kFrameBytesMax);
  reader.Add(bytes);
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kDataLoss));
}

class MarkedFramesTest : public ::testing::Test {
 protected:
  MarkedFramesTest() { reader_.ExpectMarks(FrameMarks("key")); }

  std::string Next(const char* value) {
    return EncodeFrame({.type = FrameType::kSet, .key = "k", .value = value}, &marks_);
  }

  FrameMarks marks_{"key"};
  FrameReader reader_{kHelloBytesMax};
};

TEST_F(MarkedFramesTest, AreReadInTheirOrder) {
  reader_.Add(Next("a"));
  reader_.Add(Next("b"));
  for (const char* value : {"a", "b"}) {
    const absl::StatusOr<std::optional<Frame>> frame = reader_.Next();
    ASSERT_THAT(frame, IsOk());
    EXPECT_EQ((*frame)->value, value);
  }
}

TEST_F(MarkedFramesTest, AChangedByteShows) {
  const std::string good = Next("a");
  for (size_t i = 4; i < good.size(); ++i) {  // a flipped length waits for more
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    FrameReader reader(kHelloBytesMax);
    reader.ExpectMarks(FrameMarks("key"));
    reader.Add(bad);
    EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kUnauthenticated)) << "byte " << i;
  }
}

TEST_F(MarkedFramesTest, RepeatedReorderedAndUnmarkedFramesShow) {
  const std::string first = Next("a");
  const std::string second = Next("b");
  reader_.Add(first + first);
  EXPECT_THAT(reader_.Next(), IsOk());
  EXPECT_THAT(reader_.Next(), StatusIs(absl::StatusCode::kUnauthenticated));

  FrameReader reordered(kHelloBytesMax);
  reordered.ExpectMarks(FrameMarks("key"));
  reordered.Add(second);
  EXPECT_THAT(reordered.Next(), StatusIs(absl::StatusCode::kUnauthenticated));

  FrameReader unmarked(kHelloBytesMax);
  unmarked.ExpectMarks(FrameMarks("key"));
  unmarked.Add(EncodeFrame({.type = FrameType::kSet, .value = std::string(100, 'v')}, nullptr));
  EXPECT_THAT(unmarked.Next(), StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace assay::comm
