#include "server/gate/frame_guard.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint32_t kMessageBytesMax = 1 << 20;
constexpr uint8_t kPing = 0x6;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  std::string frame;
  for (const size_t byte :
       {payload.size() >> 16, payload.size() >> 8, payload.size(), size_t{type}, size_t{flags},
        size_t{stream} >> 24, size_t{stream} >> 16, size_t{stream} >> 8, size_t{stream}})
    frame.push_back(static_cast<char>(byte & 0xff));
  return absl::StrCat(frame, payload);
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, size_t payload_bytes) {
  return Frame(type, flags, stream, std::string(payload_bytes, 'x'));
}

// A message as gRPC writes it.
std::string Message(size_t bytes, bool is_compressed = false) {
  std::string prefix(1, is_compressed ? '\1' : '\0');
  for (const int shift : {24, 16, 8, 0})
    prefix.push_back(static_cast<char>(bytes >> shift & 0xff));
  return absl::StrCat(prefix, std::string(std::min<size_t>(bytes, kMessageBytesMax), 'm'));
}

std::string OrderlyTraffic() {
  return absl::StrCat(kPreface, Frame(kSettingsFrame, 0, 0, size_t{18}),
                      Frame(kHeadersFrame, kEndHeadersFlag, 1, size_t{300}),
                      Frame(kDataFrame, 0, 1, Message(kMessageBytesMax).substr(0, 70000)),
                      Frame(kDataFrame, 0, 1, Message(kMessageBytesMax).substr(70000) + Message(7)),
                      Frame(kPing, 0, 0, size_t{8}), Frame(kHeadersFrame, 0, 3, size_t{8000}),
                      Frame(kContinuationFrame, kEndHeadersFlag, 3, size_t{4000}),
                      Frame(kDataFrame, kEndStreamFlag, 3, size_t{0}));
}

TEST(FrameGuardTest, LetsOrderlyTrafficPassHoweverItIsCut) {
  const std::string bytes = OrderlyTraffic();
  EXPECT_THAT(FrameGuard(kMessageBytesMax).Check(bytes), IsOk());
  for (const size_t step : {size_t{1}, size_t{2}, size_t{7}, size_t{9}, size_t{4096}}) {
    FrameGuard guard(kMessageBytesMax);
    for (size_t at = 0; at < bytes.size(); at += step)
      ASSERT_THAT(guard.Check(absl::string_view(bytes).substr(at, step)), IsOk()) << step;
  }
}

TEST(FrameGuardTest, EndsAHeaderBlockOfManyFramesBeforeItIsHandedOn) {
  // The quadratic work of the parser behind begins with a header that spans CONTINUATION frames.
  for (const size_t payload : {size_t{1}, size_t{16384}}) {
    FrameGuard guard(kMessageBytesMax);
    ASSERT_THAT(guard.Check(absl::StrCat(kPreface, Frame(kHeadersFrame, 0, 1, size_t{100}))),
                IsOk());
    absl::Status status;
    int frames = 0;
    while (status.ok() && frames < 1000) {
      status = guard.Check(Frame(kContinuationFrame, 0, 1, payload));
      ++frames;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_LE(frames, FrameGuard::kHeaderBlockFramesMax);
  }
}

TEST(FrameGuardTest, EndsAHeaderBlockThatIsTooLongAtItsAnnouncement) {
  FrameGuard guard(kMessageBytesMax);
  const std::string frame = Frame(kHeadersFrame, 0, 1, FrameGuard::kHeaderBlockBytesMax + 1);
  EXPECT_THAT(guard.Check(absl::StrCat(kPreface, frame.substr(0, 9))),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(FrameGuardTest, EndsAMessageThatIsTooLongAtItsAnnouncement) {
  const std::string begun =
      absl::StrCat(kPreface, Frame(kHeadersFrame, kEndHeadersFlag, 1, size_t{10}),
                   Frame(kDataFrame, 0, 1, Message(3)));
  const std::string message = Message(kMessageBytesMax + 1);
  for (const size_t first : {size_t{1}, size_t{4}, size_t{5}}) {
    FrameGuard guard(kMessageBytesMax);
    ASSERT_THAT(guard.Check(begun), IsOk());
    // Its length in two frames, with another call's between them.
    EXPECT_THAT(guard.Check(absl::StrCat(Frame(kDataFrame, 0, 1, message.substr(0, first)),
                                         Frame(kDataFrame, 0, 3, Message(100)),
                                         Frame(kDataFrame, 0, 1, message.substr(first, 10)))),
                StatusIs(absl::StatusCode::kResourceExhausted))
        << first;
  }
}

TEST(FrameGuardTest, CompressedAndPaddedFramesAreNotTaken) {
  FrameGuard compressed(kMessageBytesMax);
  EXPECT_THAT(compressed.Check(absl::StrCat(kPreface, Frame(kDataFrame, 0, 1, Message(3, true)))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FrameGuard padded(kMessageBytesMax);
  EXPECT_THAT(padded.Check(absl::StrCat(kPreface, Frame(kDataFrame, kPaddedFlag, 1, Message(3)))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameGuardTest, CallsThatHaveEndedAreForgottenAndTheOthersAreCounted) {
  FrameGuard guard(kMessageBytesMax);
  ASSERT_THAT(guard.Check(kPreface), IsOk());
  for (uint32_t call = 1; call < 4 * FrameGuard::kStreamsMax; call += 2)
    ASSERT_THAT(guard.Check(Frame(kDataFrame, kEndStreamFlag, call, Message(1))), IsOk());
  for (uint32_t call = 1; call < 4 * FrameGuard::kStreamsMax; call += 2) {
    ASSERT_THAT(guard.Check(absl::StrCat(Frame(kDataFrame, 0, call, Message(1)),
                                         Frame(kResetFrame, 0, call, size_t{4}))),
                IsOk());
  }
  absl::Status status;
  uint32_t open = 0;
  while (status.ok() && open <= FrameGuard::kStreamsMax)
    status = guard.Check(Frame(kDataFrame, 0, 2 * open++ + 1, Message(1)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(open, FrameGuard::kStreamsMax + 1);
}

TEST(FrameGuardTest, ABlockMayNotBeInterruptedNorGoOnUnbegun) {
  FrameGuard interrupted(kMessageBytesMax);
  EXPECT_THAT(interrupted.Check(absl::StrCat(kPreface, Frame(kHeadersFrame, 0, 1, size_t{10}),
                                             Frame(kDataFrame, 0, 1, size_t{10}))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FrameGuard unbegun(kMessageBytesMax);
  EXPECT_THAT(unbegun.Check(absl::StrCat(kPreface, Frame(kContinuationFrame, 0, 1, size_t{10}))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameGuardTest, WhatIsNotHttp2IsEndedAtItsFirstWrongByte) {
  EXPECT_THAT(FrameGuard(kMessageBytesMax).Check("GET / HTTP/1.1\r\n"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(FrameGuard(kMessageBytesMax).Check("PRX"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::gate
